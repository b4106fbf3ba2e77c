// SPDX-License-Identifier: Apache-2.0
// The durations by which an election runs, and their rules.
#pragma once
#include <string>

#include <tenure/clock.hpp>
#include <tenure/export.hpp>

namespace tenure {

/// The durations by which an election runs. They are exact to the nanosecond; stores round a term up to milliseconds.
///
///   asked            asked + term - margin             asked + term
///     |---------------- is_leader() ---|---- your time to stop ----|  others may lead
///
/// Candidates of one election may have different timings: followers wait for the longest term that they know of.
struct TENURE_EXPORT Timing {
  Clock::Duration term{};    ///< How long one grant lasts, counted from before it was asked for.
  Clock::Duration renew{};   ///< While leading: from one renewal to the next.
  Clock::Duration retry{};   ///< After an unanswered call: the pause before the next, with jitter.
  Clock::Duration margin{};  ///< ousting() comes this long before the lease ends: your time, and clock_allowance().
  Clock::Duration call{};    ///< How long one store call may take.
  Clock::Duration drain{};   ///< How long a voluntary end (resign, stop) may take. Renewals go on meanwhile.
  double clock_rate_error{500e-6};  ///< How far a CLOCK_BOOTTIME may run from true rate (500 ppm: NTP's slew limit).

  /// A timing that works for this term over lock tables: renew is term/5, margin and call are term/40, retry is
  /// term/100, drain is term. For terms below 3 s the parts are greater, because a busy host does not get faster with a
  /// shorter term. Kafka wants a renewal more often, and a bucket a longer call: see their presets.
  static Timing of(Clock::Duration term);

  /// The end of is_leader() for a leader that asked for its lease, or for a renewal, at `asked`.
  Clock::Time deadline(Clock::Time asked) const { return asked + term - margin; }

  /// An outage of the store that is no longer than this ends no tenure, whenever it begins. After it, a new connection
  /// and its first answer may together take as long as `call`. The other `call` is for a question that the outage lost.
  Clock::Duration rides_out() const { return term - margin - renew - 2 * call - retry; }

  /// The part of `margin` that clocks need which run apart: 2 * clock_rate_error * term. The rest is your time to stop.
  Clock::Duration clock_allowance() const;

  /// Throws std::invalid_argument, which names the broken rule, its numbers, and a timing that would work. The rules:
  /// all durations positive (drain may be zero) and at most an hour; 0 <= clock_rate_error < 0.25;
  /// term > renew + call + margin; margin > clock_allowance().
  void validate() const;

  friend bool operator==(const Timing&, const Timing&) = default;
};

/// Timings that suit a store. Every store has `presets()`. Take `balanced` unless you have measured.
struct Presets {
  Timing fast{}, balanced{}, steady{};

  friend bool operator==(const Presets&, const Presets&) = default;
};

inline constexpr Clock::Duration max_term = std::chrono::hours(1);

/// "term 10s, renew 2s, ..." for logs.
TENURE_EXPORT std::string to_string(const Timing&);

}  // namespace tenure
