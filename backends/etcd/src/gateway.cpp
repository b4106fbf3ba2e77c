// SPDX-License-Identifier: Apache-2.0
// Writes requests as the gateway reads them, and reads its answers and errors.
#include "gateway.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <tenure/kit/logging.hpp>

namespace tenure::etcd {
namespace {

struct Meaning {
  std::string_view phrase;  ///< A part of etcd's message.
  Fault fault;
  std::string_view remedy;
};

/// The first that fits. etcd's codes are coarser than its messages: both of one member without a leader and of one that
/// is shutting down say "unavailable". They are looked for in etcd's own errors only: a proxy may say "permission
/// denied" too.
constexpr std::array meanings{
    Meaning{"invalid user ID or password", Fault::forbidden, "check user and password"},
    Meaning{"user name is empty", Fault::forbidden, "authentication is on: set user and password"},
    Meaning{"user name not found", Fault::forbidden, "check the user"},
    Meaning{"etcdserver: permission denied", Fault::forbidden,
            "grant the user's role the keys: etcdctl role grant-permission ROLE --prefix=true readwrite tenure/ (or "
            "your prefix; read, for one who only observes)"},
    Meaning{"invalid auth token", Fault::forbidden, "authentication is on: set user and password"},
    Meaning{"space exceeded", Fault::misconfigured,
            "the members' quota is used up, and they refuse every write: etcdctl compact, then etcdctl defrag, then "
            "etcdctl alarm disarm; and set --auto-compaction-retention"},
    Meaning{"corrupt", Fault::corrupt, "the members' data differ: see etcdctl alarm list, and etcd's page on recovery"},
    Meaning{"not supported for learner", Fault::unreachable, "name members that vote"},
    Meaning{"no leader", Fault::unreachable,
            "the cluster has lost its majority, or is electing: etcdctl endpoint status"},
    Meaning{"request timed out", Fault::unreachable, "the member did not reach the cluster's majority in time"},
    Meaning{"authentication is not enabled", Fault::misconfigured,
            "leave out user and password, or: etcdctl auth enable"},
};

/// grpc's codes, as far as they say more than "unavailable".
Fault fault_of(const Json& code) {
  constexpr int permission_denied = 7, unauthenticated = 16;
  if (code == permission_denied || code == unauthenticated) return Fault::forbidden;
  return Fault::unreachable;
}

Error explained(const std::string& text, Fault otherwise) {
  const auto* const found = std::find_if(
      meanings.begin(), meanings.end(), [&](const Meaning& meaning) { return text.find(meaning.phrase) != text.npos; });
  if (found == meanings.end()) return {otherwise, printable(text)};
  return {found->fault, printable(text) + " (" + std::string(found->remedy) + ")"};
}

const Json* at(const Json& answer, const std::string& place) {
  const Json::json_pointer pointer(place);
  return answer.contains(pointer) ? &answer[pointer] : nullptr;
}

/// The answer about one key. Empty if it is none.
struct Range {
  std::optional<std::string> value;
};
std::optional<Range> range_of(const Json& answer) {
  const auto* const range = at(answer, "/response_range");
  if (range == nullptr || !range->is_object()) return std::nullopt;
  if (!range->contains("kvs")) return Range{};
  const auto* const value = at(*range, "/kvs/0/value");
  if (value == nullptr) return at(*range, "/kvs/0/key") != nullptr ? std::optional(Range{""}) : std::nullopt;
  auto bytes = value->is_string() ? from_base64(value->get_ref<const std::string&>()) : std::nullopt;
  return bytes ? std::optional(Range{std::move(bytes)}) : std::nullopt;
}

bool mentions(const Answer& answer, std::string_view phrase) {
  return answer.status != 200 && answer.body.find(phrase) != answer.body.npos;
}

Error not_of_etcd(const Answer& answer, const std::string& body) {
  if (answer.body.find("HTTP request to an HTTPS server") != answer.body.npos)
    return {Fault::misconfigured, "this port has TLS: write etcds://, or set Options::tls"};
  if (answer.status == 200) return {Fault::unreachable, "its answer is not of etcd: " + printable(body, 80)};
  return {Fault::unreachable,
          "it answered with HTTP status " + std::to_string(answer.status) + ": " + printable(body, 200)};
}

}  // namespace

Result<Read> read_of(const std::optional<std::string>& record, const std::optional<std::string>& step_down,
                     const std::string& key) {
  auto out = record ? web::read_of(parsed(*record), "the value of etcd's key " + printable(key))
                    : Result<Read>(Read{.absence_certain = true});
  if (out && step_down) out->step_down = web::step_down_of(parsed(*step_down));
  return out;
}

web::Request post(std::string path, std::string body, const std::string& token) {
  web::Request out{.method = "POST", .path = std::move(path), .body = std::move(body)};
  // A member without a leader answers so at once, and does not wait for one.
  out.headers = {"Content-Type: application/json", "Expect:", "Grpc-Metadata-hasleader: true"};
  if (!token.empty()) out.headers.push_back("Authorization: " + token);
  return out;
}

Json range(const std::string& key) { return {{"request_range", {{"key", base64(key)}}}}; }

Json range(const std::string& first, const std::string& before, std::size_t most) {
  return {{"key", base64(first)}, {"range_end", base64(before)}, {"limit", std::to_string(most)}};
}

Json put(const std::string& key, const std::string& value) {
  return {{"request_put", {{"key", base64(key)}, {"value", base64(value)}}}};
}

Json still(const std::string& key, const std::optional<std::string>& value) {
  Json out{{"result", "EQUAL"}, {"key", base64(key)}};
  if (value) {
    out["target"] = "VALUE";
    out["value"] = base64(*value);
  } else {
    out["target"] = "CREATE";
    out["create_revision"] = "0";
  }
  return out;
}

Json transaction(std::vector<Json> compare, std::vector<Json> success, std::vector<Json> failure) {
  return {{"compare", std::move(compare)}, {"success", std::move(success)}, {"failure", std::move(failure)}};
}

Json watch(const std::string& key) { return {{"create_request", {{"key", base64(key)}}}}; }

std::string text_at(const Json& answer, const char* place) {
  const auto* const found = at(answer, place);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<Json> objects_at(const Json& answer, const char* place) {
  std::vector<Json> out;
  if (const auto* const list = at(answer, place); list != nullptr && list->is_array())
    std::copy_if(list->begin(), list->end(), std::back_inserter(out), [](const Json& one) { return one.is_object(); });
  return out;
}

/// An absent record is a ground for a claim, so that nothing is taken for it that is less than a whole answer.
std::optional<Done> done_of(const Json& answer, std::size_t of_success, std::size_t of_failure) {
  if (text_at(answer, "/header/revision").empty()) return std::nullopt;
  const auto* const succeeded = at(answer, "/succeeded");
  if (succeeded != nullptr && !succeeded->is_boolean()) return std::nullopt;
  Done out{.succeeded = succeeded != nullptr && succeeded->get<bool>(), .values = {}};
  const auto* const parts = at(answer, "/responses");
  if (parts == nullptr || !parts->is_array() || parts->size() != (out.succeeded ? of_success : of_failure))
    return std::nullopt;
  for (const auto& part : *parts) {
    if (part.is_object() && part.contains("response_put")) {
      out.values.emplace_back();
      continue;
    }
    auto range = range_of(part);
    if (!range) return std::nullopt;
    out.values.push_back(std::move(range->value));
  }
  return out;
}

/// The next page begins after its last key. So keys that do not rise, or none although more follow, would have no end.
std::optional<Page> page_of(const Json& answer, const std::string& first, const std::string& before) {
  if (text_at(answer, "/header/revision").empty()) return std::nullopt;
  const auto* const more = at(answer, "/more");
  Page out{.values = {}, .more = more != nullptr && *more == true};
  const auto* const found = at(answer, "/kvs");
  if (found == nullptr) return out.more ? std::nullopt : std::optional(std::move(out));
  if (!found->is_array() || found->empty()) return std::nullopt;
  for (const auto& one : *found) {
    auto key = from_base64(text_at(one, "/key")), value = from_base64(text_at(one, "/value"));
    const bool rises = key && (out.values.empty() ? *key >= first : *key > out.values.back().first);
    if (!rises || *key >= before || !value) return std::nullopt;
    out.values.emplace_back(*std::move(key), *std::move(value));
  }
  return out;
}

std::optional<Event> event_of(const Json& line) {
  const auto* const result = at(line, "/result");
  if (result == nullptr || !result->is_object()) return std::nullopt;
  const auto says = [&](const char* flag) { return result->contains(flag) && (*result)[flag] == true; };
  Event out{.created = says("created"), .canceled = says("canceled")};
  const auto* const events = at(*result, "/events");
  if (events == nullptr || !events->is_array() || events->empty()) return out;
  out.changed = true;
  const auto& last = events->back();
  if (last.is_object() && !last.contains("type")) out.value = from_base64(text_at(last, "/kv/value"));
  return out;
}

bool asks_for_login(const Answer& answer) {
  return mentions(answer, "invalid auth token") || mentions(answer, "revision of auth store is old");
}

bool needs_no_login(const Answer& answer) { return mentions(answer, "authentication is not enabled"); }

/// A call's error is {"error": MESSAGE, "code"} up to etcd 3.5, and {"message", "code"} where the gateway is built with
/// grpc-gateway 2, as Debian 13's is. That of a watch is an object in "error", whose code has a name of its own before.
std::optional<Error> error_in(const Json& line, const Redactor& redacted) {
  const auto* const error = at(line, "/error");
  const auto& where = error != nullptr && error->is_object() ? *error : line;
  auto message = error != nullptr && error->is_string() ? error->get<std::string>() : text_at(where, "/message");
  if (error == nullptr && message.empty()) return std::nullopt;
  const auto* const named = at(where, "/grpc_code");
  const auto* const code = named != nullptr ? named : at(where, "/code");
  return explained(redacted(message), code != nullptr ? fault_of(*code) : Fault::unreachable);
}

Result<Json> json_of(const Answer& answer, const Redactor& redacted) {
  auto json = parsed(answer.body);
  if (answer.status == 404)
    return Error{
        Fault::misconfigured,
        "there is no JSON gateway at this port: name the client port of etcd 3.4 or newer, and do not start it "
        "with --enable-grpc-gateway=false"};
  if (!json.is_object()) return not_of_etcd(answer, redacted(answer.body));
  if (auto error = error_in(json, redacted)) return *error;
  if (answer.status != 200)
    return Error{Fault::unreachable, "it answered with HTTP status " + std::to_string(answer.status)};
  return json;
}

}  // namespace tenure::etcd
