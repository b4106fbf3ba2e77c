// SPDX-License-Identifier: Apache-2.0
// Whether followers of a dead store come back at different moments.
#pragma once
#include <gtest/gtest.h>

#include <set>
#include <stop_token>
#include <thread>

#include <tenure/manual_clock.hpp>

#include "eventually.hpp"

namespace tenure::test {

/// `open`: opens a store that cannot be reached. Each of its followers tries again after 0.5 to 1 s, no two of them at
/// the same moment: otherwise they all come back at once when a server does.
template <class Open>
void expect_followers_come_back_at_different_moments(Open open) {
  using namespace std::chrono_literals;
  std::set<Clock::Time> alarms;
  for (int i = 0; i < 3; ++i) {
    ManualClock clock;
    const auto follower = open();
    std::stop_source stop;
    const auto now = clock.now();
    std::jthread waits([&] { follower->await_change(std::nullopt, {clock, now + 1min, stop.get_token()}); });
    EXPECT_TRUE(eventually([&] { return clock.next_alarm() <= now + 1s; }));  // A step of connecting may take longer.
    EXPECT_GE(clock.next_alarm(), now + 500ms);
    alarms.insert(clock.next_alarm());
    stop.request_stop();
  }
  EXPECT_EQ(alarms.size(), 3u);
}

}  // namespace tenure::test
