// SPDX-License-Identifier: Apache-2.0
// The right to lead for a limited time: until when we may act, and from when others may lead.
#pragma once
#include <algorithm>

#include <tenure/timing.hpp>

#include "kit/require.hpp"

namespace tenure {

/// The right to lead, for a limited time. It keeps the timing that it was granted by: the store knows no other one, and
/// learns of none before the next claim.
struct Lease {
  Timing timing;
  Clock::Time deadline{};  ///< is_leader() until here.
  Clock::Time end{};       ///< Others may lead from here, by the fastest clock that is allowed.

  /// By a grant or a renewal. An answer that comes out of order takes nothing back.
  void extend(Clock::Time asked) {
    deadline = std::max(deadline, timing.deadline(asked));
    end = std::max(end, asked + timing.term - timing.clock_allowance());
    TENURE_REQUIRE(deadline <= end);
  }

  bool lapsed(Clock::Time now) const { return now >= deadline; }
};

}  // namespace tenure
