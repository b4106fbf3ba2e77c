// SPDX-License-Identifier: Apache-2.0
// Draws the jitter of a pause.
#include <tenure/kit/jitter.hpp>

#include "kit/random.hpp"

namespace tenure {

Clock::Duration jittered(Clock::Duration pause) { return jittered(pause, random_u64()); }

}  // namespace tenure
