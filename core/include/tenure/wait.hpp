// SPDX-License-Identifier: Apache-2.0
// For those who write a backend.
#pragma once
#include <tenure/backend.hpp>

namespace tenure {

/// Sleeps on the caller's waker until somebody wakes it, the limit passes, or its stop is requested.
TENURE_EXPORT void wait(Waker& waker, const Limit& limit);

/// Sleeps until the limit passes or its stop is requested.
TENURE_EXPORT void wait_out(const Limit& limit);

}  // namespace tenure
