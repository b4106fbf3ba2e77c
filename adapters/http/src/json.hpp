// SPDX-License-Identifier: Apache-2.0
// What all documents are made of.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "dialect.hpp"
#include "look.hpp"

namespace tenure::http {

using dialect::document;
using dialect::Json;
using dialect::json;
using dialect::ms;

inline std::string text(const Json& json) { return dialect::text(json) + "\n"; }

inline std::string document_of(const Json& fields) {
  auto out = document();
  out.update(fields);
  return text(out);
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
  for (const auto& [key, count] : counted) out[underscored(to_string(key))] = count;
  return out;
}

inline Json counts(const Metrics& m) {
  return {{"elected", m.elected}, {"ousted", counts(m.ousted)}, {"errors", counts(m.errors)}};
}

}  // namespace tenure::http
