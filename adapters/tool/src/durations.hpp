// SPDX-License-Identifier: Apache-2.0
// Durations as people write and read them.
#pragma once
#include <string>
#include <string_view>

#include <tenure/clock.hpp>

namespace tenure::tool {

/// "500ms", "10s", "5m" or "1h": a whole number and its unit. Throws std::invalid_argument for other text, for zero,
/// and for more than 365 days.
Clock::Duration duration(std::string_view text);

/// In seconds with up to three digits behind the point: "7.15 s".
std::string seconds(Clock::Duration);

}  // namespace tenure::tool
