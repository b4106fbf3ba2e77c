// SPDX-License-Identifier: Apache-2.0
// Counts what metrics report. It decides nothing.
#pragma once
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tenure/metrics.hpp>
#include <tenure/timing.hpp>

namespace tenure {

inline Clock::Duration late(Clock::Time due, Clock::Time now) {
  return now > due ? now - due : Clock::Duration::zero();
}

/// Any thread may call any method. The lock is held for a moment only, and no other one is taken meanwhile.
class Tally {
 public:
  /// What is counted here is shown from the first moment on, with zeros.
  Tally(std::string election, const Timing& timing, const std::vector<std::string>& verbs);

  /// `change` has what is counted so far.
  template <class Change>
  void count(Change change) {
    const std::lock_guard lock(mutex_);
    change(counted_);
  }
  void granted(Clock::Time asked);

  /// `remaining`: of the lease that stands, or zero.
  Metrics snapshot(Clock::Duration remaining, Clock::Time now) const;

 private:
  const Timing timing_;
  mutable std::mutex mutex_;
  std::optional<Clock::Time> granted_;  ///< When it was asked for.
  Metrics counted_;
};

}  // namespace tenure
