// SPDX-License-Identifier: Apache-2.0
// Writes a sight as text and as JSON.
#include "sight.hpp"

#include <nlohmann/json.hpp>

#include <tenure/kit/logging.hpp>

#include "durations.hpp"

namespace tenure::tool {

std::optional<Incumbent> leader_in(const Sight& sight) {
  const auto* incumbent = std::get_if<Incumbent>(&sight);
  if (!incumbent || incumbent->remaining <= Clock::Duration::zero()) return std::nullopt;
  return *incumbent;
}

std::string as_text(const Sight& sight) {
  if (const auto* unknown = std::get_if<Unknown>(&sight))
    return "unknown: " + std::string(to_string(unknown->error.fault)) + ": " + printable(unknown->error.message, 1000);
  const auto leader = leader_in(sight);
  if (!leader) return "nobody leads";
  auto line = printable(leader->name) + " leads";
  if (!leader->address.empty()) line += " at " + printable(leader->address);
  if (!leader->version.empty()) line += ", tenure " + printable(leader->version);
  return line + ", token " + std::to_string(leader->token.value) + ", for " + seconds(leader->remaining) + " more";
}

std::string as_json(const Sight& sight, const std::string& election, std::optional<Clock::Duration> age) {
  using Json = nlohmann::ordered_json;
  Json out{{"v", json_version}, {"election", election}, {"at_unix_ms", boot_clock().unix_ms()}};
  const auto leader = leader_in(sight);
  out["state"] = leader ? "led" : std::holds_alternative<Unknown>(sight) ? "unknown" : "vacant";
  if (leader)
    out["leader"] = {{"name", leader->name},         {"incarnation", leader->incarnation},
                     {"address", leader->address},   {"version", leader->version},
                     {"token", leader->token.value}, {"remaining_ms", in_ms(leader->remaining)}};
  if (age) out["age_ms"] = in_ms(*age);
  if (const auto* unknown = std::get_if<Unknown>(&sight))
    out["error"] = {{"fault", to_string(unknown->error.fault)}, {"message", unknown->error.message}};
  return out.dump(-1, ' ', true, Json::error_handler_t::replace);  // ASCII alone: nothing that a terminal obeys
}

}  // namespace tenure::tool
