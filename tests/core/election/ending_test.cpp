// SPDX-License-Identifier: Apache-2.0
// Goal: a tenure ends in one direction, its work never has more time than the lease, and what is said is said once.
#include "election/ending.hpp"

#include <gtest/gtest.h>

#include "election/lease.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using Time = Clock::Time;

constexpr Time now{1h};
constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

TEST(Lease, ALeaseRunsFromWhenItWasAskedAndNothingTakesItBack) {
  Lease lease{.timing = timing};
  lease.extend(now);
  EXPECT_EQ(lease.deadline, now + 9500ms);
  EXPECT_EQ(lease.end, now + 10s - timing.clock_allowance());
  const auto longest = lease.deadline;
  lease.extend(now - 1s);
  EXPECT_EQ(lease.deadline, longest) << "an answer that came out of order";
  EXPECT_FALSE(lease.lapsed(longest - 1ns));
  EXPECT_TRUE(lease.lapsed(longest));
}

TEST(Ending, ALeaderRenewsAndHasNoTimeToKeep) {
  Ending ending;
  EXPECT_TRUE(ending.leading());
  EXPECT_TRUE(ending.renews(Time::max()));
  EXPECT_FALSE(ending.expires(now));
  EXPECT_FALSE(ending.overruns(now));
  EXPECT_EQ(ending.next_alarm(), Time::max());
}

TEST(Ending, ADrainLastsAsLongAsItMayAndAsItsLeaseDoes) {
  Ending ending;
  ending.drain(Reason::resigned, now + 4s, now + 3s);
  EXPECT_EQ(ending.done_by(), now + 3s) << "the lease ends first";
  ending.renewed(now + 9s);
  EXPECT_EQ(ending.done_by(), now + 4s) << "the drain ends first";
  EXPECT_TRUE(ending.renews(now + 4s - 1ns));
  EXPECT_FALSE(ending.renews(now + 4s));
}

TEST(Ending, ADrainThatLosesItsLeaseKeepsItsReasonAndGetsNoMoreTime) {
  Ending ending;
  ending.drain(Reason::stopped, now + 4s, now + 9s);
  ending.lose(Reason::superseded, now + 8s, now + 8s);
  EXPECT_TRUE(ending.over());
  EXPECT_EQ(ending.reason(), Reason::stopped);
  EXPECT_EQ(ending.done_by(), now + 4s);
  EXPECT_FALSE(ending.renews(now));
}

TEST(Ending, TheEndOfTheTimeIsReportedOnceAndSoIsAnOverrun) {
  Ending ending;
  ending.lose(Reason::lapsed, now + 1s, now + 2s);
  EXPECT_EQ(ending.reason(), Reason::lapsed);
  EXPECT_EQ(ending.next_alarm(), now + 1s);
  EXPECT_FALSE(ending.expires(now + 1s - 1ns));
  EXPECT_TRUE(ending.expires(now + 1s));
  EXPECT_FALSE(ending.expires(now + 1s));
  EXPECT_EQ(ending.next_alarm(), now + 2s);
  EXPECT_FALSE(ending.overruns(now + 2s - 1ns));
  EXPECT_TRUE(ending.overruns(now + 2s));
  EXPECT_FALSE(ending.overruns(now + 2s));
  EXPECT_EQ(ending.next_alarm(), Time::max());
}

}  // namespace
}  // namespace tenure
