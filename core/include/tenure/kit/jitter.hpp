// SPDX-License-Identifier: Apache-2.0
// Pauses before something is tried again.
#pragma once
#include <tenure/clock.hpp>
#include <tenure/export.hpp>

namespace tenure {

/// From half of the pause to all of it, at random, so that those who lost a server together do not come back together.
TENURE_EXPORT Clock::Duration jittered(Clock::Duration pause);

}  // namespace tenure
