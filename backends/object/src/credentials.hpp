// SPDX-License-Identifier: Apache-2.0
// Finds the keys that sign requests, where Amazon's own tools look for them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/object.hpp>
#include <tenure/result.hpp>

#include "options.hpp"
#include "web/http.hpp"
#include "web/record.hpp"
#include "web/until.hpp"

namespace tenure::object {

struct Login {
  std::string key{}, secret{}, token{};  ///< An access key's id and secret; the token of a session, perhaps.
  std::string source{};                  ///< Where they were found, for messages.
  std::int64_t expires_ms{};             ///< Since 1970, by the issuer's clock. 0: never.
  friend bool operator==(const Login&, const Login&) = default;
};

/// Asks whatever there is, in order. An error says what was looked for, or what the one that should know answered.
/// REQUIRES: `options` are checked.
Result<Login> find_login(const Options& options, const web::Until& until);

Error no_credentials(const std::string& why);

/// As server_at(), of one to which we send a secret: by TLS, unless it is this host or one that only its network has.
Result<Server> confidant_at(const std::string& url, const std::string& what);

/// Of what becomes a header or a path.
bool fit_for_header(std::string_view text);

/// For a form, or a query.
std::string form_encoded(std::string_view text);

/// Empty: there is no such member, or it is no text.
std::string member(const web::Json& json, const char* name);

/// What names the server, and the path with all behind it.
std::pair<std::string, std::string> split_url(const std::string& url);

/// One question on a connection of its own. Nothing of the answer is told, because a secret may be in it.
Result<std::string> fetch(const Server& server, const web::Request& request, const std::string& who,
                          const web::Until& until);
/// The token that is fetched so.
Result<Login> token_of(const Server& server, const web::Request& request, const std::string& who,
                       const web::Until& until);

/// The milliseconds since 1970 of "2026-11-28T01:02:03Z". 0 of any other text.
std::int64_t moment_of(std::string_view text);

/// The text between <NAME> and </NAME>, the first of them. Empty: there is none.
std::string element(std::string_view xml, std::string_view name);

}  // namespace tenure::object
