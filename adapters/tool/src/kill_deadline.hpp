// SPDX-License-Identifier: Apache-2.0
// When the command must end. Pure: it knows neither a process nor a clock.
#pragma once
#include <algorithm>

#include <tenure/clock.hpp>
#include <tenure/timing.hpp>

namespace tenure::tool {

/// Until when the command may run.
struct Lease {
  Clock::Time term_at;  ///< SIGTERM, so that it has time to stop.
  Clock::Time kill_at;  ///< SIGKILL. Before the lease can be somebody else's.
};

/// The times between those of a lease, by its timing.
struct Pace {
  Clock::Duration grace;   ///< Between SIGTERM and SIGKILL.
  Clock::Duration spare;   ///< Between SIGKILL and the moment at which others may lead.
  Clock::Duration beyond;  ///< Between the deadline of Leadership and that moment.
  Clock::Duration look;    ///< How often we look for a new deadline.

  /// An end of the lease leaves at most so much of `grace` that one renewal may fail before SIGTERM.
  static Pace of(const Timing& timing, Clock::Duration grace) {
    const auto beyond = timing.margin - timing.clock_allowance();
    const auto most = std::max(timing.rides_out() / 2, beyond / 4);
    return {std::min(grace, most), beyond / 2, beyond, timing.renew / 8};
  }
  Lease lease(Clock::Time deadline) const {
    const auto kill_at = deadline + beyond - spare;
    return {grace.count() > 0 ? std::min(deadline, kill_at - grace) : kill_at, kill_at};
  }
};

/// When a running command gets SIGTERM, and when SIGKILL.
///
/// A lease only moves the two later, and only as long as no end has begun: a command that was told to stop is never
/// told to go on. A new command needs a new KillDeadline.
class KillDeadline {
 public:
  using Time = Clock::Time;

  /// Of a grant or a renewal.
  void extend(const Lease& lease) {
    lease_kill_ = std::max(lease_kill_, lease.kill_at);
    if (!ends_) term_at_ = std::max(term_at_, lease.term_at);
  }

  /// The end begins. What demands the earlier kill wins.
  void end(Time now, Time kill_at) {
    ends_ = true;
    term_at_ = std::min(term_at_, now);
    asked_kill_ = std::min(asked_kill_, kill_at);
  }

  /// True once: SIGTERM is due.
  bool terms(Time now) {
    if (termed_ || now < std::min(term_at_, kill_at())) return false;
    asked_kill_ = kill_at();  // a later renewal gives no new time to what ignores SIGTERM
    return ends_ = termed_ = true;
  }

  /// From now on everything is to be killed, again and again until nothing is left.
  bool kills(Time now) const { return now >= kill_at(); }

  bool ending() const { return ends_; }
  Time kill_at() const { return std::min(lease_kill_, asked_kill_); }

  /// When one of them becomes true.
  Time next() const { return termed_ ? kill_at() : std::min(term_at_, kill_at()); }

 private:
  Time term_at_{}, lease_kill_{};  ///< Without a lease both are due at once.
  Time asked_kill_{Time::max()};
  bool ends_{}, termed_{};
};

}  // namespace tenure::tool
