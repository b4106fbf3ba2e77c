// SPDX-License-Identifier: Apache-2.0
// Adds to a time without an overflow.
#pragma once
#include <tenure/clock.hpp>

namespace tenure {

/// `now` and so much more; as late as a clock can be, if that is later. REQUIRES: `now` is not negative.
inline Clock::Time later(Clock::Time now, Clock::Duration more) {
  return more < Clock::Time::max() - now ? now + more : Clock::Time::max();
}

}  // namespace tenure
