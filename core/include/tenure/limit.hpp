// SPDX-License-Identifier: Apache-2.0
// When a call must have returned.
#pragma once
#include <stop_token>

#include <tenure/clock.hpp>

namespace tenure {

/// When a call must have returned. REQUIRES: the clock outlives the call.
struct Limit {
  Clock& clock;
  Clock::Time by{};
  std::stop_token stop{};  ///< Once it is requested, the call returns at once: nobody waits for the answer.

  /// Whether the call must return: the time is over, or the stop was requested.
  bool passed() const { return stop.stop_requested() || clock.now() >= by; }
};

}  // namespace tenure
