// SPDX-License-Identifier: Apache-2.0
// What all documents are made of.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "look.hpp"

namespace tenure::http {

using Json = nlohmann::ordered_json;

constexpr int version = 1;  ///< Of the documents; README.md says when it rises.

/// ASCII alone: what a terminal or a browser would obey is escaped. Bytes that are not UTF-8 become U+FFFD.
inline std::string text(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"; }

inline std::int64_t ms(Clock::Duration d) { return std::chrono::duration_cast<std::chrono::milliseconds>(d).count(); }

inline Json json(const std::optional<Clock::Duration>& d) { return d ? Json(ms(*d)) : Json(nullptr); }

/// As text, because a number of JSON may lose digits above 2^53.
inline Json json(const std::optional<Token>& token) {
  return token ? Json(std::to_string(token->value)) : Json(nullptr);
}

inline Json json(const Candidate& self) { return {{"name", self.name}, {"address", self.address}}; }

inline Json health(const Metrics& m, Clock::Duration stuck_after) {
  const auto ails = ailment(m, stuck_after);
  return {{"healthy", ails.empty()},
          {"why", ails},
          {"overdue_ms", ms(m.overdue)},
          {"wedged_ms", ms(m.wedged)},
          {"overrun_ms", ms(m.overrun)},
          {"stalled", m.stalled},
          {"since_progress_ms", json(m.since_progress)}};
}

template <class Key>
Json counts(const std::map<Key, std::uint64_t>& counted) {
  auto out = Json::object();
  for (const auto& [key, count] : counted) out[std::string(to_string(key))] = count;
  return out;
}

inline Json counts(const Metrics& m) {
  return {{"elected", m.elected}, {"ousted", counts(m.ousted)}, {"errors", counts(m.errors)}};
}

}  // namespace tenure::http
