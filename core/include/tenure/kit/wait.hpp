// SPDX-License-Identifier: Apache-2.0
// Functions that wait until a limit.
#pragma once
#include <tenure/clock.hpp>
#include <tenure/export.hpp>
#include <tenure/limit.hpp>

namespace tenure {

/// Sleeps on the caller's waker until somebody wakes it, the limit passes, or its stop is requested.
TENURE_EXPORT void wait(Waker& waker, const Limit& limit);

/// Does the same, and also ends when `descriptor` is ready for one of poll()'s `events`.
/// REQUIRES: boot_clock() made the waker, and is the limit's clock.
TENURE_EXPORT void wait_ready(Waker& waker, const Limit& limit, int descriptor, short events);

/// Sleeps until the limit passes or its stop is requested.
TENURE_EXPORT void wait_out(const Limit& limit);

/// The time of boot_clock() at which a limit passes; a day from now at the most. Unlike the limit's own clock,
/// boot_clock() outlives every call.
TENURE_EXPORT Clock::Time by_boot_clock(const Limit& limit);

}  // namespace tenure
