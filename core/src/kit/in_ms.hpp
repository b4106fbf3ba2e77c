// SPDX-License-Identifier: Apache-2.0
// A duration in milliseconds, as messages say it.
#pragma once
#include <chrono>
#include <string>

#include <tenure/clock.hpp>

namespace tenure {

/// "75 ms", rounded up, for messages.
inline std::string in_ms(Clock::Duration d) {
  using std::chrono::milliseconds;
  return std::to_string((d + milliseconds(1) - Clock::Duration(1)) / milliseconds(1)) + " ms";
}

}  // namespace tenure
