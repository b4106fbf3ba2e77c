// SPDX-License-Identifier: Apache-2.0
// Pauses before something is tried again.
#pragma once
#include <tenure/clock.hpp>
#include <tenure/export.hpp>

namespace tenure {

/// A random part of the pause, between half and all of it. So clients that lost a server together do not come
/// back together.
TENURE_EXPORT Clock::Duration jittered(Clock::Duration pause);

}  // namespace tenure
