// SPDX-License-Identifier: Apache-2.0
// Goal: the judge of gaps calls no instant led that may not have been. Method: journals by hand; times are seconds.
#include "coverage.hpp"

#include <gtest/gtest.h>

#include "history.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

Clock::Time at(int second) { return Clock::Time(std::chrono::seconds(second)); }

/// Of process 1, in election "r", unless a test says otherwise.
Event event(const std::string& what, int second, int until = 0) {
  Event e;
  e.what = what;
  e.election = "r";
  e.pid = 1;
  e.at = e.after = at(second);
  e.until = at(until);
  return e;
}

Event of(pid_t pid, Event e) {
  e.pid = pid;
  return e;
}

std::vector<std::pair<int, int>> gaps_of(const std::vector<Event>& journal) {
  std::vector<std::pair<int, int>> out;
  for (const auto& gap : gaps(journal, {"r"}, at(0), at(100)))
    out.emplace_back(gap.from.time_since_epoch() / 1s, gap.to.time_since_epoch() / 1s);
  return out;
}

using Gaps = std::vector<std::pair<int, int>>;

TEST(Coverage, WhatNobodyLeadsIsAGapFromEndToEnd) { EXPECT_EQ(gaps_of({}), (Gaps{{0, 100}})); }

TEST(Coverage, AStretchGoesFromASampleToTheLastDeadline) {
  EXPECT_EQ(gaps_of({event("lead", 5, 20), event("holds", 15, 90)}), (Gaps{{0, 5}, {90, 100}}));
  auto slow = event("lead", 3, 90);
  slow.after = at(5);  // It was true at some instant between.
  EXPECT_EQ(gaps_of({slow}), (Gaps{{0, 5}, {90, 100}}));
  EXPECT_EQ(gaps_of({event("elected", 5, 90)}), (Gaps{{0, 5}, {90, 100}}));
  EXPECT_EQ(gaps_of({event("elected", 5)}), (Gaps{{0, 100}})) << "it has not looked";
}

TEST(Coverage, AnEndCountsFromTheLastSampleBefore) {
  for (const auto* what : {"follow", "ousting"})
    EXPECT_EQ(gaps_of({event("lead", 0, 50), event("holds", 40, 90), event(what, 60)}), (Gaps{{40, 100}})) << what;
}

TEST(Coverage, ADeathEndsAll) {
  EXPECT_EQ(gaps_of({event("lead", 0, 50), event(done_to::killed, 30)}), (Gaps{{30, 100}}));
  EXPECT_EQ(gaps_of({event("lead", 0, 20), event(done_to::killed, 30)}), (Gaps{{20, 100}}));
}

TEST(Coverage, WhatLapsedBetweenTwoSamplesIsAGap) {
  EXPECT_EQ(gaps_of({event("lead", 0, 20), event("holds", 30, 100)}), (Gaps{{20, 30}}));
}

TEST(Coverage, OneThatLeadsIsEnough) {
  const auto first = event("lead", 0, 60), second = of(2, event("lead", 50, 100));
  EXPECT_EQ(gaps_of({first, second}), Gaps{});
  EXPECT_EQ(gaps_of({first, second, event(done_to::killed, 55)}), Gaps{});
  EXPECT_EQ(gaps_of({first, second, event(done_to::killed, 40)}), (Gaps{{40, 50}}));
}

TEST(Coverage, EachElectionIsJudgedForItself) {
  auto other = event("lead", 0, 100);
  other.election = "s";
  EXPECT_EQ(gaps_of({other}), (Gaps{{0, 100}}));
  EXPECT_TRUE(gaps({other}, {"s"}, at(0), at(100)).empty());
  EXPECT_EQ(gaps({other}, {"r", "s"}, at(0), at(100)).size(), 1u);
}

}  // namespace
}  // namespace tenure::test
