// SPDX-License-Identifier: Apache-2.0
// Who leads, as the commands print it. The JSON form is described in README.md; its "v" changes with its meaning.
#pragma once
#include <optional>
#include <string>

#include <tenure/backend.hpp>

namespace tenure::tool {

inline constexpr int json_version = 1;

/// The leader in a sight, if its lease has not lapsed.
std::optional<Incumbent> leader_in(const Sight& sight);

/// One line without its end.
std::string as_text(const Sight& sight);
/// `age`: of the record, if it is known.
std::string as_json(const Sight& sight, const std::string& election, std::optional<Clock::Duration> age = {});

}  // namespace tenure::tool
