// SPDX-License-Identifier: Apache-2.0
// Draws the jitter of a pause.
#include <tenure/kit/jitter.hpp>

#include "kit/random.hpp"

namespace tenure {

Clock::Duration jittered(Clock::Duration pause) {
  const auto half = static_cast<std::uint64_t>((pause / 2).count());
  return pause - Clock::Duration(static_cast<Clock::rep>(random_u64() % (half + 1)));
}

}  // namespace tenure
