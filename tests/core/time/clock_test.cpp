// SPDX-License-Identifier: Apache-2.0
// Goal: the process's clock is CLOCK_BOOTTIME, and its wakers wait on it and lose no wake.
#include <tenure/clock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <stop_token>
#include <thread>

#include "eventually.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;

Clock::Duration machine(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec);
}

TEST(BootClock, ReadsBoottimeAndTheWallClock) {
  const auto before = machine(CLOCK_BOOTTIME);
  const auto now = boot_clock().now().time_since_epoch();
  EXPECT_LE(before, now);
  EXPECT_LE(now, machine(CLOCK_BOOTTIME));
  const auto wall = std::chrono::milliseconds(boot_clock().unix_ms());
  EXPECT_LE(std::chrono::abs(machine(CLOCK_REALTIME) - wall), 10s);
}

TEST(BootClock, IsOne) { EXPECT_EQ(&boot_clock(), &boot_clock()); }

TEST(BootWaker, SleepsUntilItsMoment) {
  const auto waker = boot_clock().make_waker();
  const auto until = boot_clock().now() + 20ms;
  EXPECT_FALSE(waker->wait_until(until));
  EXPECT_GE(boot_clock().now(), until);
  EXPECT_FALSE(waker->wait_until(until)) << "the same moment, now past";
}

TEST(BootWaker, DoesNotSleepForWhatIsPast) {
  const auto waker = boot_clock().make_waker();
  EXPECT_FALSE(waker->wait_until(boot_clock().now()));
  EXPECT_FALSE(waker->wait_until(Clock::Time{}));
  EXPECT_FALSE(waker->wait_until(Clock::Time::min()));
}

TEST(BootWaker, AWakeBeforeTheWaitIsNotLostAndEndsOneWait) {
  const auto waker = boot_clock().make_waker();
  waker->wake();
  waker->wake();
  EXPECT_TRUE(waker->wait_until(Clock::Time::max()));
  EXPECT_FALSE(waker->wait_until(boot_clock().now() + 1ms));
}

TEST(BootWaker, AnotherThreadSetsItsMomentWhileItSleeps) {
  const auto waker = boot_clock().make_waker();
  const auto set_to = [&](Clock::Time first, Clock::Time then) {
    waker->set(first);
    std::jthread other([&] { waker->set(then); });
    EXPECT_FALSE(waker->wait());
    EXPECT_GE(boot_clock().now(), then);
  };
  set_to(Clock::Time::max(), boot_clock().now() + 20ms);
  set_to(boot_clock().now() + 1min, boot_clock().now() - 1ms);
}

TEST(BootWaker, AnotherThreadWakesIt) {
  const auto waker = boot_clock().make_waker();
  std::jthread other([&] { waker->wake(); });
  EXPECT_TRUE(waker->wait_until(boot_clock().now() + 1min));
}

TEST(BootWaker, ASignalDoesNotEndTheWait) {
  static std::atomic<int> caught{0};
  struct sigaction action {};
  action.sa_handler = [](int) { ++caught; };
  struct sigaction old {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &old), 0);
  const auto caught_one = [] {
    const auto waker = boot_clock().make_waker();
    const auto until = boot_clock().now() + 100ms;
    const auto waiter = ::pthread_self();
    std::jthread other([&] {
      for (int sent = 0; sent < 5 && boot_clock().now() < until; ++sent) {
        ::pthread_kill(waiter, SIGUSR1);
        const auto next = boot_clock().make_waker();
        next->wait_until(boot_clock().now() + 5ms);
      }
    });
    EXPECT_FALSE(waker->wait_until(until));
    EXPECT_GE(boot_clock().now(), until);
    return caught > 0;
  };
  EXPECT_TRUE(test::eventually(caught_one));  // on a busy machine the other one may come too late
  ::sigaction(SIGUSR1, &old, nullptr);
}

TEST(SleepFor, LastsItsWholeTime) {
  const auto from = boot_clock().now();
  EXPECT_TRUE(sleep_for(20ms));
  EXPECT_GE(boot_clock().now() - from, 20ms);
  EXPECT_TRUE(sleep_for(20ms, std::stop_source().get_token()));
  EXPECT_GE(boot_clock().now() - from, 40ms);
}

TEST(SleepFor, NothingToSleepIsNoSleep) {
  EXPECT_TRUE(sleep_for(0ms));
  EXPECT_TRUE(sleep_for(-1h));
  EXPECT_TRUE(sleep_for(Clock::Duration::min()));
}

TEST(SleepFor, EndsWhenItsStopIsRequested) {
  std::stop_source stop;
  std::jthread other([&] { stop.request_stop(); });
  EXPECT_FALSE(sleep_for(Clock::Duration::max(), stop.get_token()));
  EXPECT_FALSE(sleep_for(1h, stop.get_token())) << "it stays requested";
  EXPECT_FALSE(sleep_for(0s, stop.get_token())) << "and so ends a loop of steps that took too long";
}

}  // namespace
}  // namespace tenure
