// SPDX-License-Identifier: Apache-2.0
// How late this machine is, how busy, and whether that excuses a test.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include <tenure/clock.hpp>

namespace tenure::test {

/// A sleeper of main.cpp measures it, all the time: the sum of what it was woken too late, and when it is to wake next.
inline std::atomic<Clock::rep> machine_lost{0}, machine_due{Clock::Time::max().time_since_epoch().count()};

/// So much does a sleeper oversleep on any machine.
inline constexpr Clock::Duration machine_is_late{std::chrono::milliseconds(5)};

/// Until now. A sleeper that is still late counts too: where all stood still, the caller may be awake before it.
inline Clock::rep lost_until_now() {
  const auto late = boot_clock().now().time_since_epoch() - Clock::Duration(machine_due);
  return machine_lost + (late > machine_is_late ? late.count() : 0);
}

/// A wait of this test ended without what it waited for, while the machine stood still for too long.
inline std::atomic<bool> machine_starved{false};

/// The test that runs has failed, and will be repeated for that: what it leaves need not be kept.
inline std::atomic<bool> failure_excused{false};

/// Begin it before what has a limit of time. Where that limit was missed, starved() excuses the test if the machine
/// stood still for more than a quarter of the limit: main.cpp then repeats the test. A broken promise has no excuse.
class Lateness {
 public:
  void starved(Clock::Duration limit) const {
    if (lost_until_now() - lost_ > limit.count() / 4) machine_starved = true;
  }
  Clock::Duration taken() const { return boot_clock().now() - began_; }

 private:
  const Clock::Time began_ = boot_clock().now();
  const Clock::rep lost_ = lost_until_now();
};

/// Whether what began with `since` was over within the limit. If not, and the machine is to blame, the test is
/// repeated.
inline bool in_time(const Lateness& since, Clock::Duration limit) {
  if (since.taken() < limit) return true;
  since.starved(limit);
  return false;
}

/// How long tasks of this machine have waited for a processor, and others for a disk, until now. Linux tells it in
/// /proc/pressure, or a test of this in the file that it names. Zero where nobody does.
inline Clock::Duration waited_for_machine() {
  const auto told = [](const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    const auto at = line.rfind("total=");
    return std::chrono::microseconds(at == line.npos ? 0 : std::atoll(line.c_str() + at + 6));
  };
  const auto* other = std::getenv("TENURE_PRESSURE");
  return other == nullptr ? told("/proc/pressure/cpu") + told("/proc/pressure/io") : told(other);
}

/// Of the test that runs.
inline std::atomic<Clock::rep> test_began{0}, pressed_before_test{0};

/// For what did not come within a limit of a second or more, such as a real server's answer. That excuses the test if,
/// since it began, tasks waited for a processor or a disk half of the time. A sleeper is woken soon then; who computes
/// or writes is late all the same.
inline void excuse_if_busy() {
  const auto taken = boot_clock().now().time_since_epoch() - Clock::Duration(test_began);
  const auto pressed = waited_for_machine() - Clock::Duration(pressed_before_test);
  if (taken >= std::chrono::seconds(1) && pressed > taken / 2) machine_starved = true;
}

}  // namespace tenure::test

/// What must hold however busy the machine is, for the message of an expectation: EXPECT_EQ(leaders, 1) << PROMISE.
#define TENURE_PROMISE "(a broken promise: no machine is so busy that this may happen)"
