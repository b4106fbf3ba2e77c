// SPDX-License-Identifier: Apache-2.0
// Writes a sight as text and as JSON.
#include "sight.hpp"

#include <tenure/kit/logging.hpp>

#include "dialect.hpp"
#include "durations.hpp"
#include "exit_code.hpp"

namespace tenure::tool {

std::optional<Incumbent> leader_in(const Sight& sight) {
  const auto* leader = dialect::leader_in(sight);
  return leader ? std::optional(*leader) : std::nullopt;
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

std::string as_json(const Sight& sight, const std::string& election, const About& about) {
  auto out = dialect::document();
  out["election"] = election;
  out["unix_ms"] = boot_clock().unix_ms();
  dialect::add(out, sight);
  if (about.age) out["age_ms"] = dialect::ms(*about.age);
  if (about.renewed) out["renewed"] = *about.renewed;
  return dialect::text(out);
}

int worse(int code, const Sight& sight) {
  if (code == unseen || std::holds_alternative<Unknown>(sight)) return unseen;
  return leader_in(sight) ? code : vacant;
}

}  // namespace tenure::tool
