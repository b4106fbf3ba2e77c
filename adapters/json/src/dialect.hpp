// SPDX-License-Identifier: Apache-2.0
// The one dialect of JSON in which a process tells of elections: by HTTP, by the tool, and in log lines.
// status.schema.json describes it. Rooms that tell by JSON include this; users never do.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include <tenure/backend.hpp>
#include <tenure/clock.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::dialect {

using Json = nlohmann::ordered_json;

/// Of all documents. It rises when a name changes its meaning or goes.
inline constexpr int version = 1;

inline Json document() { return {{"version", version}}; }

/// Without a line's end. ASCII alone: what a terminal or a browser would obey is escaped. Bytes that are not UTF-8
/// become U+FFFD.
inline std::string text(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

inline std::int64_t ms(Clock::Duration d) { return std::chrono::duration_cast<std::chrono::milliseconds>(d).count(); }

inline Json json(const std::optional<Clock::Duration>& d) { return d ? Json(ms(*d)) : Json(nullptr); }

/// As text, because a number of JSON may lose digits above 2^53. Null where there is none to tell.
inline Json json(const std::optional<Token>& token) {
  return token && *token != Token{} ? Json(std::to_string(token->value)) : Json(nullptr);
}

inline Json json(const Error& error) {
  return {{"fault", underscored(to_string(error.fault))}, {"message", error.message}};
}

inline Json json(const Incumbent& leader) {
  return {{"name", leader.name},
          {"address", leader.address},
          {"incarnation", leader.incarnation},
          {"version", leader.version},
          {"token", json(leader.token == Token{} ? std::nullopt : std::optional(leader.token))},
          {"remaining_ms", ms(leader.remaining)}};
}

/// A lease that has ended is nobody's.
inline const Incumbent* leader_in(const Sight& sight) {
  const auto* who = std::get_if<Incumbent>(&sight);
  return who && who->remaining > Clock::Duration::zero() ? who : nullptr;
}

/// `state`, `leader` and `error`: who leads an election.
inline void add(Json& out, const Sight& sight) {
  const auto* leader = leader_in(sight);
  const auto* unknown = std::get_if<Unknown>(&sight);
  out["state"] = leader ? "led" : unknown ? "unknown" : "vacant";
  out["leader"] = leader ? json(*leader) : Json(nullptr);
  if (unknown) out["error"] = json(unknown->error);
}

}  // namespace tenure::dialect
