// SPDX-License-Identifier: Apache-2.0
// How one tenure comes to its end, and until when its work must be over.
#pragma once
#include <algorithm>
#include <utility>

#include <tenure/hooks.hpp>

#include "kit/require.hpp"

namespace tenure {

/// How one tenure comes to its end, and until when its work must be over. A voluntary end goes from leading over
/// draining, where renewals go on; any other end goes to over at once. Nothing leads back.
class Ending {
 public:
  using Time = Clock::Time;

  bool leading() const { return stage_ == Stage::leading; }
  bool draining() const { return stage_ == Stage::draining; }
  bool over() const { return stage_ == Stage::over; }  ///< is_leader() is false, and ousting() may still run.
  Reason reason() const {                              ///< The reason of the first end. REQUIRES: not leading.
    TENURE_REQUIRE(!leading());
    return reason_;
  }
  Time done_by() const { return done_by_; }
  Time overrun_at() const { return overrun_at_; }  ///< When ousting() has outstayed its time.
  bool overran() const { return overrun_; }        ///< overruns() has said so.
  Time drain_by() const { return drain_by_; }      ///< REQUIRES: draining.

  /// While it leads, and while its work may go on.
  bool renews(Time now) const { return leading() || (draining() && now < drain_by_); }

  /// A voluntary end begins. REQUIRES: leading.
  void drain(Reason reason, Time drain_by, Time lease_end) {
    TENURE_REQUIRE(leading());
    stage_ = Stage::draining;
    reason_ = reason;
    drain_by_ = drain_by;
    renewed(lease_end);
  }

  /// REQUIRES: draining. The work may take as long as the lease, but no longer than the drain.
  void renewed(Time lease_end) {
    TENURE_REQUIRE(draining());
    done_by_ = overrun_at_ = std::min(drain_by_, lease_end);
  }

  /// The lease is lost. Work that drained already gets no more time by that.
  void lose(Reason reason, Time done_by, Time overrun_at) {
    TENURE_REQUIRE(!over() && done_by <= overrun_at);
    if (leading()) reason_ = reason;
    stage_ = Stage::over;
    done_by_ = std::min(done_by_, done_by);
    overrun_at_ = std::min(overrun_at_, overrun_at);
  }

  /// The lease ended while the work drained: its times stand. REQUIRES: draining.
  void lapse() {
    TENURE_REQUIRE(draining());
    stage_ = Stage::over;
  }

  /// Whether the work's time is up; true once.
  bool expires(Time now) { return !leading() && now >= done_by_ && !std::exchange(expired_, true); }

  /// Whether ousting() has outstayed its time; true once.
  bool overruns(Time now) { return !leading() && now >= overrun_at_ && !std::exchange(overrun_, true); }

  /// When one of the two becomes true.
  Time next_alarm() const {
    if (leading()) return Time::max();
    return std::min(expired_ ? Time::max() : done_by_, overrun_ ? Time::max() : overrun_at_);
  }

 private:
  friend class GroupDigest;  ///< Of the tests.

  enum class Stage { leading, draining, over };
  Stage stage_{Stage::leading};
  Reason reason_{};
  Time drain_by_{Time::max()}, done_by_{Time::max()}, overrun_at_{Time::max()};
  bool expired_{}, overrun_{};
};

}  // namespace tenure
