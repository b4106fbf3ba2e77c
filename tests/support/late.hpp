// SPDX-License-Identifier: Apache-2.0
// What late.cpp and lateness_test.cpp agree on.
#pragma once
#include <tenure/clock.hpp>

namespace tenure::test {

inline constexpr Clock::Duration late_limit = std::chrono::seconds(1);  ///< Of the wait in a test of late.cpp.
inline constexpr auto late_waits = "it waits";                          ///< It says so when that begins.
inline constexpr auto late_file = "TENURE_LATE_FILE";                   ///< Names the file that it waits for.

}  // namespace tenure::test
