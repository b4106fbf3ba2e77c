// SPDX-License-Identifier: Apache-2.0
// Who leads, as the commands print it. adapters/json/status.schema.json describes the JSON form.
#pragma once
#include <optional>
#include <string>

#include <tenure/backend.hpp>

namespace tenure::tool {

/// The leader in a sight, if its lease has not lapsed.
std::optional<Incumbent> leader_in(const Sight& sight);

/// One line without its end.
std::string as_text(const Sight& sight);

/// What some commands know besides.
struct About {
  std::optional<Clock::Duration> age{};  ///< Of the record.
  std::optional<bool> renewed{};         ///< The leader was seen to renew.
};
std::string as_json(const Sight& sight, const std::string& election, const About& about = {});

/// The exit code of several sights, with one more: 4 if one is unknown, 3 if one has no leader.
int worse(int code, const Sight& sight);

}  // namespace tenure::tool
