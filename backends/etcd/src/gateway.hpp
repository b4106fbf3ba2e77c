// SPDX-License-Identifier: Apache-2.0
// What is said to etcd's JSON gateway, and what it answers. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/result.hpp>

#include "web/base64.hpp"
#include "web/http.hpp"
#include "web/record.hpp"

namespace tenure::etcd {

using web::Answer;
using web::base64;
using web::from_base64;
using web::Json;
using web::parsed;

// ---- what stands in the keys ----

/// JSON of ASCII alone, a record's with the token first. The same record is always the same text.
template <class Value>
std::string text_of(const Value& value) {
  return web::json_of(value).dump();
}

/// What stands in the two keys; nothing: there is no such key. `key` is the record's, for messages. Fault::corrupt says
/// that the record is none of ours. It sets no clock.
Result<Read> read_of(const std::optional<std::string>& record, const std::optional<std::string>& step_down,
                     const std::string& key);

// ---- questions ----

/// A POST of JSON. `token`: the value of the header Authorization. It may be empty.
web::Request post(std::string path, std::string body, const std::string& token = {});

Json range(const std::string& key);
/// At most `most` keys, in order.
Json range(const std::string& first, const std::string& before, std::size_t most);
Json put(const std::string& key, const std::string& value);

/// Demands that this is the key's very value, or that there is no such key if `value` is empty.
Json still(const std::string& key, const std::optional<std::string>& value);

Json transaction(std::vector<Json> compare, std::vector<Json> success, std::vector<Json> failure);

/// Watches this key from now on.
Json watch(const std::string& key);

// ---- answers ----

/// What a transaction did.
struct Done {
  bool succeeded{};
  /// The values that its branch answered, in order. Empty for a put, and if there is no such key.
  std::vector<std::optional<std::string>> values;
};
/// Empty if this is not the answer to a transaction whose branches ask this many questions.
std::optional<Done> done_of(const Json& answer, std::size_t of_success, std::size_t of_failure);

/// A range of keys and their values, in order.
struct Page {
  std::vector<std::pair<std::string, std::string>> values;
  bool more{};  ///< Others follow.
};
/// Nothing: it is not the answer to such a question.
std::optional<Page> page_of(const Json& answer, const std::string& first, const std::string& before);

struct Event {
  bool created{};                      ///< The watch began.
  bool canceled{};                     ///< The watch ended.
  std::optional<std::string> value{};  ///< That the key has now. Nothing: none, or nothing happened.
  bool changed{};                      ///< Something happened to the key.
};
/// Nothing: it is none.
std::optional<Event> event_of(const Json& line);

/// The text at such a place: "/header/cluster_id". Empty: there is none.
std::string text_at(const Json& answer, const char* place);

/// The objects of the list at such a place. Empty: there is none.
std::vector<Json> objects_at(const Json& answer, const char* place);

/// Why the login is to be repeated, if that is so: etcd's token has expired, or is of an earlier time.
bool asks_for_login(const Answer& answer);
/// Authentication is off, so that nobody needs a token.
bool needs_no_login(const Answer& answer);

/// The answer's JSON, or the error that it is. Its messages are redacted before they are cut.
Result<Json> json_of(const Answer& answer, const Redactor& redacted = Redactor({}));

/// The error that stands in a line of a watch, if it is one.
std::optional<Error> error_in(const Json& line, const Redactor& redacted = Redactor({}));

}  // namespace tenure::etcd
