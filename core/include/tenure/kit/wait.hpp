// SPDX-License-Identifier: Apache-2.0
// Waiting to a limit.
#pragma once
#include <tenure/clock.hpp>
#include <tenure/export.hpp>
#include <tenure/limit.hpp>

namespace tenure {

/// Sleeps on the caller's waker until somebody wakes it, the limit passes, or its stop is requested.
TENURE_EXPORT void wait(Waker& waker, const Limit& limit);

/// Sleeps until the limit passes or its stop is requested.
TENURE_EXPORT void wait_out(const Limit& limit);

/// When a limit passes, by boot_clock(), which unlike its own clock outlives every call. At most a day from now.
TENURE_EXPORT Clock::Time by_boot_clock(const Limit& limit);

}  // namespace tenure
