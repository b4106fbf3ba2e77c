// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <tenure/clock.hpp>

namespace tenure::tool {

/// When a running command gets SIGTERM, and when SIGKILL. Pure: it knows neither a process nor a clock.
///
/// A lease only moves the two later, and only as long as no end has begun: a command that was told to stop is never
/// told to go on. A new command needs a new Doom.
class Doom {
 public:
  using Time = Clock::Time;

  /// Of a grant or a renewal.
  void lease(Time term_at, Time kill_at) {
    lease_kill_ = std::max(lease_kill_, kill_at);
    if (!ends_) term_at_ = std::max(term_at_, term_at);
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
