// SPDX-License-Identifier: Apache-2.0
// Goal: the clock of tests stands until told, and tells when everybody waits.
#include <tenure/manual_clock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tenure {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, StandsStillUntilAdvanced) {
  ManualClock clock(Clock::Time{5s}, 1000);
  EXPECT_EQ(clock.now(), Clock::Time{5s});
  EXPECT_EQ(clock.unix_ms(), 1000);
  clock.advance(2s);
  EXPECT_EQ(clock.now(), Clock::Time{7s});
  EXPECT_EQ(clock.unix_ms(), 3000) << "the wall clock goes along";
  clock.advance_to(Clock::Time{6s});
  EXPECT_EQ(clock.now(), Clock::Time{7s}) << "it never falls";
  clock.step_unix(-1h);
  EXPECT_EQ(clock.now(), Clock::Time{7s});
  EXPECT_EQ(clock.unix_ms(), 3000 - 3'600'000);
}

TEST(ManualClock, SmallStepsMoveItsWallClockToo) {
  ManualClock clock(ManualClock::Time{1h}, 1000);
  for (int i = 0; i < 3; ++i) clock.advance(500us);
  EXPECT_EQ(clock.unix_ms(), 1001);
}

TEST(ManualClock, AWaiterSleepsUntilItsMomentAndNotLonger) {
  ManualClock clock;
  const auto until = clock.now() + 10s;
  std::atomic<bool> awake{false};
  std::jthread thread([&] {
    EXPECT_FALSE(clock.make_waker()->wait_until(until));
    awake = true;
  });
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(clock.next_alarm(), until);
  clock.advance(10s - 1ns);
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_FALSE(awake);
  clock.advance(1ns);
  thread.join();
  EXPECT_TRUE(awake);
  EXPECT_EQ(clock.next_alarm(), Clock::Time::max());
}

TEST(ManualClock, AWakeIsNeverLostAndEndsOneWait) {
  ManualClock clock;
  const auto waker = clock.make_waker();
  waker->wake();
  waker->wake();
  EXPECT_TRUE(waker->wait_until(Clock::Time::max()));
  std::jthread thread([&] { EXPECT_TRUE(waker->wait_until(Clock::Time::max())); });
  ASSERT_TRUE(clock.await_parked(1)) << "the second wake was counted twice";
  waker->wake();
}

TEST(ManualClock, WhatIsPastIsNotWaitedFor) {
  ManualClock clock;
  EXPECT_FALSE(clock.make_waker()->wait_until(clock.now()));
  EXPECT_FALSE(clock.make_waker()->wait_until(Clock::Time::min()));
}

TEST(ManualClock, AMomentIsSetWhileItIsWaitedFor) {
  ManualClock clock;
  const auto waker = clock.make_waker();
  std::jthread thread([&] { EXPECT_FALSE(waker->wait()); });
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(clock.next_alarm(), Clock::Time::max()) << "never set";
  waker->set(clock.now() + 1s);
  EXPECT_EQ(clock.next_alarm(), clock.now() + 1s);
  clock.advance(1s - 1ns);
  ASSERT_TRUE(clock.await_parked(1));
  waker->set(clock.now());
}

// A store call that ignored its limit is left behind when its manager ends, and the clock of a test ends soon after.
TEST(ManualClock, ItsEndEndsEveryWaitByItAndWaitsForTheWaiters) {
  std::atomic<bool> over{false};
  std::jthread thread;
  {
    ManualClock clock;
    thread = std::jthread([&over, waker = clock.make_waker()]() mutable {
      EXPECT_FALSE(waker->wait_until(Clock::Time::max()));
      over = true;
      waker.reset();
    });
    ASSERT_TRUE(clock.await_parked(1));
  }
  EXPECT_TRUE(over);
}

TEST(ManualClock, ThreadsThatAreAboutToRunAreNotParked) {
  ManualClock clock;
  std::atomic<int> rounds{0};
  std::jthread thread([&] {
    const auto waker = clock.make_waker();
    for (int i = 0; i < 100; ++i) {
      waker->wait_until(clock.now() + 1s);
      ++rounds;
    }
  });
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(clock.await_parked(1));
    ASSERT_EQ(rounds, i);
    clock.advance(1s);
  }
}

}  // namespace
}  // namespace tenure
