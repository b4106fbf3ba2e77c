// SPDX-License-Identifier: Apache-2.0
// What both machines know of a store call that comes late.
#pragma once
#include <algorithm>
#include <chrono>
#include <utility>

#include <tenure/clock.hpp>

namespace tenure {

/// What is known of a store call that has outlasted its limit. Nothing waits for one that is wedged.
struct LateCall {
  using Time = Clock::Time;

  static constexpr Clock::Duration grace = std::chrono::milliseconds(50);

  /// How late a call is before that is told, which wakes somebody. On a busy host many are late for a moment.
  static constexpr Clock::Duration told_after(Clock::Duration call) {
    return std::max<Clock::Duration>(call, std::chrono::seconds(1));
  }

  bool excused{};         ///< It was late once because we were late ourselves.
  bool wedged{}, told{};  ///< told: that it is wedged.

  /// When it counts as wedged, and then when that is told.
  Time alarm(Time by, Clock::Duration call) const {
    if (told) return Time::max();
    return by + (wedged ? told_after(call) : grace);
  }

  /// Whether it is to be told now. If we come late ourselves, this process was stopped or starved, and so was the call.
  /// Then it gets its grace once more, by a later limit.
  bool watch(Time now, Time& by, Clock::Duration call) {
    if (now < alarm(by, call)) return false;
    if (!wedged && now >= by + 2 * grace && !std::exchange(excused, true)) {
      by = now;
      return false;
    }
    wedged = true;
    return told = now >= alarm(by, call);
  }
};

}  // namespace tenure
