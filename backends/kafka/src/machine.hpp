// SPDX-License-Identifier: Apache-2.0
// What Neli and RoleMachine are built on: the moment of the present fact, the alarm, and what is to be done.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <tenure/clock.hpp>

namespace tenure::kafka {

/// A value.
template <class Effect>
class Machine {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  /// When fact::Elapsed is due at the latest.
  Time alarm() const { return alarm_; }

 protected:
  /// True if that time has come. If not, the alarm is set for it.
  bool due(Time at) {
    if (now_ >= at) return true;
    alarm_ = std::min(alarm_, at);
    return false;
  }
  template <class One>
  void emit(One effect) {
    effects_.emplace_back(std::move(effect));
  }
  std::uint64_t next_id() { return ++last_id_; }

  Time now_{};
  std::int64_t unix_ms_{};
  Time alarm_{Time::max()};
  std::vector<Effect> effects_;

 private:
  std::uint64_t last_id_{0};
};

}  // namespace tenure::kafka
