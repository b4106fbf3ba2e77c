// SPDX-License-Identifier: Apache-2.0
// Goal: of many elections, one whose work hangs is given back, and not taken again before its work goes on or the pause
// is over. The others are led on, and nobody looks at all of them for it. Method: the machine alone, whose time and
// store the test plays.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "group_scene.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::group_timing;
using test::GroupScene;
using test::GroupStage;

constexpr StallLimits limits{.after = 3s, .pause = 1min + 70ms};  ///< A pause may end between two looks at the work.

struct GroupStall : test::GroupTest {
  void SetUp() override { me.stall = limits; }
  void progress(const std::string& election) { me.worked[election] = stage.now; }
  /// "e" is not led any more, its work has stopped, and the store knows.
  void stall() {
    ASSERT_NO_FATAL_FAILURE(me.lead({"e"}));
    ASSERT_NO_FATAL_FAILURE(me.pass(limits.after));
    ASSERT_EQ(me.reasons(), std::vector{Reason::stalled});
    me.ousting_returned("e");
    ASSERT_NO_FATAL_FAILURE(me.settle());
    ASSERT_TRUE(stage.lead("e").released);
  }
  std::size_t tenures() const { return me.count<group_effect::Begin>(); }
  /// Not an instant sooner.
  void expect_next_tenure_after(Clock::Duration pause) {
    const auto before = tenures();
    me.pass(pause - 1ns);
    EXPECT_EQ(tenures(), before);
    me.pass(1ns);
    EXPECT_EQ(tenures(), before + 1);
  }
};

TEST_F(GroupStall, AWorkThatReportsItsProgressInTimeLeadsOn) {
  me.lead({"e"});
  for (int i = 0; i < 50; ++i) {
    me.pass(limits.after - 1ms);
    ASSERT_TRUE(me.leads("e"));
    progress("e");
  }
  EXPECT_TRUE(me.reasons().empty());
}

TEST_F(GroupStall, AWorkThatReportsNoneEndsItsTenureAloneAtThatVeryInstant) {
  me.lead({"e", "f"});
  me.pass(1s);
  progress("f");
  me.pass(2s - 1ns);
  EXPECT_TRUE(me.reasons().empty());
  me.pass(1ns);
  const auto ends = me.all<group_effect::End>();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].election, "e");
  EXPECT_EQ(ends[0].reason, Reason::stalled);
  EXPECT_EQ(me.candidacy.stalled(), 1u);
  me.pass(1s - 1ns);
  EXPECT_EQ(me.count<group_effect::End>(), 1u);
  me.pass(1ns);
  EXPECT_EQ(me.count<group_effect::End>(), 2u) << "3 s after its progress";
}

/// The process was stopped, and the work with it.
TEST_F(GroupStall, AWorkThatWasStoppedTogetherWithUsHasItsTimeOnceMore) {
  me.lead({"e"});
  stage.pass(limits.after + 1s);
  me.tick();
  EXPECT_TRUE(me.reasons().empty());
  me.pass(limits.after - 1ns);
  EXPECT_TRUE(me.reasons().empty());
  progress("e");
  me.pass(limits.after - 1ns);
  EXPECT_TRUE(me.reasons().empty());
  me.pass(1ns);
  EXPECT_EQ(me.reasons(), std::vector{Reason::stalled}) << "then it really stalled";
}

TEST_F(GroupStall, AWorkThatStalledEndsItsTenureThoughWeAreLateEachTime) {
  me.lead({"e"});
  for (int i = 0; i < 2; ++i) {
    stage.pass(limits.after + 1s);
    me.tick();
    me.settle();
  }
  EXPECT_EQ(me.reasons(), std::vector{Reason::stalled});
}

TEST_F(GroupStall, EachElectionHasItsOwnLimits) {
  me.join("watched");
  me.stall = {};
  me.lead({"free"});
  me.pass(1h);
  const auto ends = me.all<group_effect::End>();
  ASSERT_GE(ends.size(), 1u);
  for (const auto& end : ends) EXPECT_EQ(end.election, "watched");
  EXPECT_TRUE(me.leads("free"));
}

TEST_F(GroupStall, ItContendsAgainWhenThePauseAfterTheReleaseIsOver) {
  stall();
  expect_next_tenure_after(limits.pause);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_EQ(me.candidacy.stalled(), 0u);
  me.pass(limits.after);
  EXPECT_EQ(me.reasons(), (std::vector{Reason::stalled, Reason::stalled})) << "its work is watched as before";
}

TEST_F(GroupStall, ItContendsAgainSoonAfterTheWorkWentOn) {
  stall();
  me.pass(10s);
  EXPECT_EQ(tenures(), 1u);
  progress("e");
  me.pass(group_timing.retry);
  EXPECT_EQ(tenures(), 2u);
  EXPECT_TRUE(me.leads("e"));
}

/// The work went on while it was being stopped. A cool-down is left all the same.
TEST_F(GroupStall, ProgressDuringTheEndLeavesAShortCoolDown) {
  me.lead({"e"});
  me.pass(limits.after + 1s);
  ASSERT_EQ(me.reasons(), std::vector{Reason::stalled});
  progress("e");
  me.pass(group_timing.retry);
  EXPECT_EQ(me.candidacy.stalled(), 0u);
  me.work_ended("e");
  expect_next_tenure_after(group_timing.retry);
}

TEST_F(GroupStall, ANewTenureHasItsWholeTimeUntilItsFirstProgress) {
  stall();
  progress("e");
  me.pass(group_timing.retry);
  ASSERT_TRUE(me.leads("e"));
  const auto begun = me.all<group_effect::Begin>().size();
  me.pass(limits.after - group_timing.retry - 1ns);
  EXPECT_EQ(me.reasons().size(), begun - 1);
  me.pass(group_timing.retry + 1ns);
  EXPECT_EQ(me.reasons().size(), begun);
}

TEST_F(GroupStall, TheTimesOfEarlierTenuresDoNotEndThisOneAndAreNotKept) {
  me.lead({"e"});
  for (int i = 0; i < 3; ++i) {
    me.pass(1s);
    me.hand_back("e", 0s);
    ASSERT_TRUE(me.leads("e"));
  }
  EXPECT_EQ(me.candidacy.progress_due(Clock::Time::max()), std::vector<std::string>{"e"});
  me.pass(limits.after - 1ns);
  EXPECT_EQ(me.reasons().size(), 3u);
  me.pass(1ns);
  EXPECT_EQ(me.reasons().size(), 4u);
}

/// Whoever resigns says himself when he contends again.
TEST_F(GroupStall, ProgressDoesNotShortenTheCoolDownOfALaterResign) {
  stall();
  me.resign("e", 90s);
  EXPECT_EQ(me.candidacy.stalled(), 0u);
  progress("e");
  expect_next_tenure_after(90s);
}

TEST_F(GroupStall, ASessionThatIsLostShortensNoPause) {
  stall();
  me.pass_without_store(group_timing.term);
  expect_next_tenure_after(limits.pause - group_timing.term);
}

TEST_F(GroupStall, WhatWasLeftHasNotStalled) {
  stall();
  me.leave("e");
  EXPECT_EQ(me.candidacy.stalled(), 0u);
  me.pass(1s);
  me.stall = {};
  me.join("e");
  me.settle();
  EXPECT_TRUE(me.leads("e"));
  me.pass(1h);
  EXPECT_TRUE(me.leads("e")) << "it was joined again without a limit";
}

TEST_F(GroupStall, WhatIsJoinedAgainWithoutALimitLeadsOn) {
  me.lead({"e"});
  me.pass(1s);
  me.leave("e");
  me.ousting_returned("e");
  me.stall = {};
  me.join("e");
  me.settle();
  me.pass(1h);
  EXPECT_EQ(me.reasons(), std::vector{Reason::resigned});
  EXPECT_TRUE(me.leads("e"));
}

/// Each work is looked at once per stall time, however often the others are.
TEST_F(GroupStall, ALookAtOneWorkLooksAtNoOther) {
  std::vector<std::string> names;
  for (int i = 0; i < 400; ++i) names.push_back("e" + std::to_string(i));
  me.lead(names);
  for (const auto& name : names) progress(name);
  const auto looked_through = me.candidacy.looked_through();
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round)
    for (const auto& name : names) {
      progress(name);
      me.pass(limits.after / 500);
    }
  EXPECT_TRUE(me.reasons().empty());
  EXPECT_LE(me.looks_at_work, (rounds + 2) * names.size());
  EXPECT_EQ(me.candidacy.looked_through(), looked_through);
}

}  // namespace
}  // namespace tenure
