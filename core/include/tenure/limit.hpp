// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stop_token>

#include <tenure/clock.hpp>

namespace tenure {

/// By when a call must have returned. The clock outlives the call.
struct Limit {
  Clock& clock;
  Clock::Time by{};
  std::stop_token stop{};  ///< Once requested: return at once, nobody waits for the answer.

  bool passed() const { return stop.stop_requested() || clock.now() >= by; }
};

}  // namespace tenure
