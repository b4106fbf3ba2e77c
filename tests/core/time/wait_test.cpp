// SPDX-License-Identifier: Apache-2.0
// Goal: waits end by their limit, by their stop and by a wake, whichever comes first.
#include <tenure/kit/wait.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include <tenure/manual_clock.hpp>

#include "in_child.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;

TEST(Wait, EndsAtItsLimit) {
  ManualClock clock;
  const Limit limit{clock, clock.now() + 10s, {}};
  std::jthread thread([&] { wait_out(limit); });
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(clock.next_alarm(), limit.by);
  clock.advance(10s);
  thread.join();
  EXPECT_TRUE(limit.passed());
}

TEST(Wait, EndsWhenItsStopIsRequested) {
  ManualClock clock;
  std::stop_source stop;
  std::jthread thread([&] { wait_out({clock, Clock::Time::max(), stop.get_token()}); });
  ASSERT_TRUE(clock.await_parked(1));
  stop.request_stop();
}

TEST(Wait, DoesNotBeginWhereStopWasRequestedOrTheLimitPassed) {
  ManualClock clock;
  std::stop_source stop;
  stop.request_stop();
  wait_out({clock, Clock::Time::max(), stop.get_token()});
  wait_out({clock, clock.now(), {}});
  const auto waker = clock.make_waker();
  wait(*waker, {clock, Clock::Time::max(), stop.get_token()});
}

TEST(Wait, AWakeEndsItButNotAWaitThatIsToBeWaitedOut) {
  ManualClock clock;
  const auto waker = clock.make_waker();
  std::jthread thread([&] { wait(*waker, {clock, Clock::Time::max(), {}}); });
  ASSERT_TRUE(clock.await_parked(1));
  waker->wake();
}

/// poll() refuses more descriptors than RLIMIT_NOFILE, also of those that are open.
TEST(Wait, DoesNotSpinWhereNoDescriptorIsAllowed) {
  test::in_child([] {
    const auto waker = boot_clock().make_waker();
    const Limit limit{boot_clock(), boot_clock().now() + 100ms, {}};
    const rlimit none{1, 1};
    rusage before{}, after{};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0 || ::getrusage(RUSAGE_SELF, &before) != 0) return false;
    int looks = 0;
    for (; !limit.passed(); ++looks) wait(*waker, limit);
    return ::getrusage(RUSAGE_SELF, &after) == 0 && looks <= after.ru_nvcsw - before.ru_nvcsw;
  });
}

TEST(Limit, PassesByTheClockOrByItsStop) {
  ManualClock clock;
  std::stop_source stop;
  const Limit limit{clock, clock.now() + 1s, stop.get_token()};
  EXPECT_FALSE(limit.passed());
  clock.advance(1s);
  EXPECT_TRUE(limit.passed());
  const Limit later{clock, clock.now() + 1s, stop.get_token()};
  EXPECT_FALSE(later.passed());
  stop.request_stop();
  EXPECT_TRUE(later.passed());
}

}  // namespace
}  // namespace tenure
