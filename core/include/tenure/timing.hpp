// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <tenure/clock.hpp>
#include <tenure/export.hpp>

namespace tenure {

/// The numbers of an election. Every duration is exact to the nanosecond; stores round a term up to milliseconds.
///
///   asked            asked + term - margin             asked + term
///     |---------------- is_leader() ---|---- your time to stop ----|  others may lead
///
/// Candidates of one election may run different timings: followers wait for the longest term they know of.
struct TENURE_EXPORT Timing {
  Clock::Duration term{};    ///< How long one grant lasts, counted from before it was asked for.
  Clock::Duration renew{};   ///< Leading: from one question to the next.
  Clock::Duration retry{};   ///< After an unanswered question: pause before the next, with jitter.
  Clock::Duration margin{};  ///< ousting() comes this long before the end: your time to stop, plus clock-rate error.
  Clock::Duration call{};    ///< How long one store call may take.
  Clock::Duration drain{};   ///< How long a voluntary end (resign, stop) may take, renewing meanwhile.
  double clock_rate_error{500e-6};  ///< How far a CLOCK_BOOTTIME may run from true rate (500 ppm: NTP's slew limit).

  /// A set that works for this term: renew term/5, margin and call term/40, retry term/100; of terms below three
  /// seconds a greater part, since a busy host does not get faster with them.
  static Timing of(Clock::Duration term);

  /// Until when a leader may act that asked for its lease, or for more of it, at `asked`.
  Clock::Time deadline(Clock::Time asked) const { return asked + term - margin; }

  /// An outage of the store no longer than this ends no tenure, whenever it begins, if a new connection and its first
  /// answer then take no longer than `call`: one `call` may be lost to a question that the outage swallowed.
  Clock::Duration rides_out() const { return term - margin - renew - 2 * call - retry; }

  /// What of `margin` is spent on clocks that run apart: 2 * clock_rate_error * term. The rest is yours.
  Clock::Duration clock_allowance() const;

  /// Throws std::invalid_argument naming the rule broken, its numbers, and a set that would work. The rules:
  /// all durations positive (drain may be zero) and at most an hour; 0 <= clock_rate_error < 0.25;
  /// term > renew + call + margin; margin > clock_allowance().
  void validate() const;

  friend bool operator==(const Timing&, const Timing&) = default;
};

/// Timings that suit a store: every store has `presets()`. `balanced` unless you have measured.
struct Presets {
  Timing fast{}, balanced{}, steady{};

  friend bool operator==(const Presets&, const Presets&) = default;
};

inline constexpr Clock::Duration max_term = std::chrono::hours(1);

/// "term 10s, renew 2s, ..." for logs.
TENURE_EXPORT std::string to_string(const Timing&);

}  // namespace tenure
