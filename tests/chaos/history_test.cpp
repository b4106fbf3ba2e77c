// SPDX-License-Identifier: Apache-2.0
// Goal: the judge finds every breach, and nothing else. Method: journals written by hand, in milliseconds.
#include "history.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tenure::test {
namespace {

using std::chrono::milliseconds;

Clock::Time ms(int t) { return Clock::Time(milliseconds(t)); }

struct Journal : ::testing::Test {
  std::vector<Event> events;

  Event& add(int at, pid_t pid, const char* what, unsigned token = 0) {
    Event e;
    e.at = ms(at);
    e.pid = pid;
    e.what = what;
    e.token = {token};
    return events.emplace_back(e);
  }
  void start(pid_t pid) {
    auto& e = add(0, pid, "start");
    e.name = "c" + std::to_string(pid);
    e.term = milliseconds(1000);
    e.margin = milliseconds(100);
  }
  void lead(int at, pid_t pid, unsigned token, int until) {
    auto& e = add(at, pid, "lead", token);
    e.after = ms(at);
    e.until = ms(until);
  }
  void ousting(int at, pid_t pid, unsigned token, const char* reason) {
    add(at, pid, "ousting", token).reason = reason;
  }

  /// The breaches found, in order of the enumeration.
  std::string breaches() const {
    const auto verdict = judge(events);
    std::string found;
    for (const auto b :
         {Breach::overlap, Breach::token, Breach::hooks, Breach::revival, Breach::term, Breach::unfinished})
      if (verdict.count(b) != 0) found += (found.empty() ? "" : " ") + to_string(b);
    return found;
  }

  void SetUp() override {
    start(1);
    start(2);
  }
};

TEST_F(Journal, TenuresOneAfterTheOtherAreNoBreach) {
  add(10, 1, "elected", 5);
  lead(11, 1, 5, 900);
  ousting(900, 1, 5, "lapsed");
  add(905, 1, "follow");
  add(906, 1, "ended", 5);
  EXPECT_EQ(judge(events).smallest_gap, std::nullopt);
  add(1000, 2, "elected", 6);
  lead(1001, 2, 6, 1800);
  const auto verdict = judge(events);
  EXPECT_EQ(breaches(), "");
  EXPECT_EQ(verdict.tenures, 2u);
  EXPECT_EQ(verdict.smallest_gap, milliseconds(100));
  EXPECT_EQ(verdict.largest_overlap, Clock::Duration::zero());
}

TEST_F(Journal, TwoLeadersAtOnceAreFound) {
  add(10, 1, "elected", 5);
  lead(11, 1, 5, 900);
  add(800, 2, "elected", 6);
  lead(801, 2, 6, 1700);
  EXPECT_EQ(breaches(), "overlap");
  EXPECT_EQ(judge(events).largest_overlap, milliseconds(100));
  EXPECT_EQ(judge(events).smallest_gap, milliseconds(-100));
}

TEST_F(Journal, TenuresWithinAnotherTenureAreFound) {
  lead(11, 1, 5, 900);
  lead(100, 2, 6, 300);
  ousting(301, 2, 6, "lapsed");
  lead(400, 2, 7, 500);
  EXPECT_EQ(judge(events).count(Breach::overlap), 2u);
}

TEST_F(Journal, ALeaseRenewedIntoTheSuccessorsTenureIsFound) {
  lead(11, 1, 5, 900);
  lead(890, 1, 5, 1700);
  lead(1000, 2, 6, 1800);
  EXPECT_EQ(breaches(), "overlap");
}

TEST_F(Journal, AStoppedLeaderIsValidUntilItsDeadline) {
  lead(11, 1, 5, 900);
  add(100, 1, "stopped");
  lead(800, 2, 6, 1600);
  add(1200, 1, "resumed");
  EXPECT_EQ(breaches(), "overlap");
}

TEST_F(Journal, WorkThatMayRunOnAfterALapseIsAPartOfTheTenure) {
  add(10, 1, "elected", 5);
  lead(11, 1, 5, 900);
  ousting(901, 1, 5, "lapsed");
  events.back().until = ms(990);
  add(901, 1, "follow");
  add(970, 2, "elected", 6);
  lead(971, 2, 6, 1700);
  add(980, 1, "ended", 5);
  EXPECT_EQ(breaches(), "overlap");
  EXPECT_EQ(judge(events).largest_overlap, milliseconds(10));
}

TEST_F(Journal, AKilledLeaderIsValidNoMore) {
  lead(11, 1, 5, 900);
  add(100, 1, "killed");
  lead(101, 2, 6, 1000);
  EXPECT_EQ(breaches(), "");
}

TEST_F(Journal, AKilledLeaderIsValidUntilItsDeath) {
  lead(11, 1, 5, 900);
  lead(99, 2, 6, 900);
  add(100, 1, "killed");
  EXPECT_EQ(breaches(), "overlap");
}

TEST_F(Journal, AHandOverMayComeBeforeTheDeadlineButNotBeforeOustingReturned) {
  add(10, 1, "elected", 5);
  lead(11, 1, 5, 900);
  ousting(100, 1, 5, "stopped");
  add(200, 1, "ended", 5);
  add(201, 1, "follow");
  add(201, 1, "quit");
  lead(202, 2, 6, 1000);
  EXPECT_EQ(breaches(), "");
  lead(150, 2, 6, 1000);
  events[events.size() - 2] = events.back();
  events.pop_back();
  EXPECT_EQ(breaches(), "overlap");
}

TEST_F(Journal, ASupersededTenureIsValidUntilItsLastSample) {
  add(10, 1, "elected", 5);
  lead(11, 1, 5, 900);
  lead(300, 1, 5, 900);
  ousting(400, 1, 5, "superseded");
  add(401, 1, "follow");
  add(402, 1, "ended", 5);
  lead(350, 2, 6, 1000);
  EXPECT_EQ(breaches(), "");
  events.back().at = events.back().after = ms(299);
  EXPECT_EQ(breaches(), "overlap");
}

TEST_F(Journal, TokensThatDoNotRiseAreFound) {
  lead(11, 1, 5, 900);
  lead(1000, 2, 5, 1800);
  EXPECT_EQ(breaches(), "token");
  events.back().token = {4};
  EXPECT_EQ(breaches(), "token");
  events.back().token = {6};
  EXPECT_EQ(breaches(), "");
}

TEST_F(Journal, ATokenThatItsOwnerUsesAgainIsFound) {
  add(10, 1, "elected", 5);
  lead(11, 1, 5, 900);
  ousting(900, 1, 5, "lapsed");
  add(901, 1, "ended", 5);
  add(1000, 1, "elected", 5);
  EXPECT_EQ(breaches(), "token");
}

TEST_F(Journal, TokensOfTenuresWithoutASampleAreJudgedToo) {
  add(10, 1, "elected", 5);
  ousting(11, 1, 5, "lapsed");
  add(12, 1, "ended", 5);
  add(20, 2, "elected", 5);
  EXPECT_EQ(breaches(), "token");
}

TEST_F(Journal, HooksOutOfOrderAreFound) {
  add(10, 1, "elected", 5);
  add(20, 1, "elected", 6);
  EXPECT_EQ(breaches(), "hooks");
  events.resize(2);
  ousting(10, 1, 5, "lapsed");
  EXPECT_EQ(breaches(), "hooks");
  events.resize(2);
  add(10, 1, "elected", 5);
  add(11, 1, "ended", 5);
  EXPECT_EQ(breaches(), "hooks");
  events.resize(2);
  add(10, 1, "elected", 5);
  ousting(11, 1, 6, "lapsed");
  EXPECT_EQ(breaches(), "hooks");
  events.resize(2);
  add(10, 1, "elected", 5);
  ousting(11, 1, 5, "lapsed");
  ousting(12, 1, 5, "lapsed");
  EXPECT_EQ(breaches(), "hooks");
}

TEST_F(Journal, AHookAfterTheEndIsFound) {
  add(10, 1, "quit");
  add(11, 1, "elected", 5);
  EXPECT_EQ(breaches(), "hooks");
}

TEST_F(Journal, AnEndWithoutOustingIsFound) {
  add(10, 1, "elected", 5);
  add(11, 1, "quit");
  EXPECT_EQ(breaches(), "unfinished");
}

TEST_F(Journal, AKilledLeaderNeedsNoOusting) {
  add(10, 1, "elected", 5);
  add(11, 1, "killed");
  EXPECT_EQ(breaches(), "");
}

TEST_F(Journal, ALeaderThatRevivesItsTokenAfterATermIsFound) {
  lead(11, 1, 5, 900);
  add(100, 1, "stopped");
  add(1100, 1, "resumed");
  lead(1101, 1, 5, 1900);
  EXPECT_EQ(breaches(), "revival");
  events.back().until = ms(999);
  events.back().at = ms(99);  // looked before the pause, wrote after it
  EXPECT_EQ(breaches(), "");
}

TEST_F(Journal, ALeaderMayKeepItsTokenOverAShortPause) {
  lead(11, 1, 5, 900);
  add(100, 1, "stopped");
  add(500, 1, "resumed");
  lead(501, 1, 5, 900);
  EXPECT_EQ(breaches(), "");
}

TEST_F(Journal, ADeadlineBeyondTermLessMarginIsFound) {
  lead(11, 1, 5, 911);
  EXPECT_EQ(breaches(), "");
  lead(12, 1, 5, 913);
  EXPECT_EQ(breaches(), "term");
}

TEST_F(Journal, AProcessIdMayBeUsedAgain) {
  lead(11, 1, 5, 900);
  add(100, 1, "killed");
  start(1);
  lead(200, 1, 6, 1000);
  EXPECT_EQ(breaches(), "");
}

TEST_F(Journal, FaultsAreCounted) {
  lead(11, 1, 5, 900);
  add(100, 1, "stopped");
  add(110, 2, "killed");
  add(1000, 1, "resumed");
  const auto verdict = judge(events);
  EXPECT_EQ(verdict.faults.at("stopped"), 1u);
  EXPECT_EQ(verdict.faults.at("killed"), 1u);
  EXPECT_EQ(verdict.to_leaders, 1u);
}

TEST_F(Journal, AnElectedThatCameLateBecauseItsProcessWasStoppedIsNoBreach) {
  lead(1000, 2, 6, 1800);
  add(1200, 1, "elected", 5);
  ousting(1201, 1, 5, "lapsed");
  add(1202, 1, "ended", 5);
  EXPECT_EQ(breaches(), "");
}

struct Group : Journal {
  Event& of(const char* election, Event& e) {
    e.election = election;
    return e;
  }
  void leads(const char* election, int at, pid_t pid, unsigned token, int until) {
    lead(at, pid, token, until);
    of(election, events.back());
  }
  void holds(int at, pid_t pid, int until) {
    auto& e = add(at, pid, "holds");
    e.after = ms(at);
    e.until = ms(until);
  }
};

TEST_F(Group, ElectionsAreJudgedEachForItself) {
  leads("a", 11, 1, 5, 900);
  leads("b", 12, 2, 5, 900);
  EXPECT_EQ(breaches(), "");
  leads("b", 13, 1, 6, 900);
  EXPECT_EQ(breaches(), "overlap");
  EXPECT_NE(judge(events).findings.at(0).what.find("b: "), std::string::npos);
}

TEST_F(Group, TokensRiseInEachElection) {
  leads("a", 11, 1, 7, 900);
  leads("b", 12, 2, 5, 900);
  EXPECT_EQ(breaches(), "");
  leads("a", 1000, 2, 6, 1900);
  EXPECT_EQ(breaches(), "token");
}

TEST_F(Group, ASampleOfAllMovesTheDeadlineOfEachThatIsHeld) {
  leads("a", 11, 1, 5, 900);
  leads("b", 12, 1, 5, 900);
  of("a", add(500, 1, "follow"));
  holds(600, 1, 1500);
  leads("a", 1000, 2, 6, 1800);
  EXPECT_EQ(breaches(), "");
  leads("b", 1000, 2, 6, 1800);
  EXPECT_EQ(breaches(), "overlap");
}

TEST_F(Group, ASampleOfAllBelongsToItsProcess) {
  leads("a", 11, 1, 5, 900);
  holds(600, 2, 1500);
  leads("a", 1000, 2, 6, 1800);
  EXPECT_EQ(breaches(), "");
}

TEST_F(Group, ElectedMayBeASampleOfItsOwnThatNoSampleOfAllPutsOff) {
  auto& e = of("a", add(10, 1, "elected", 5));
  e.after = ms(11);
  e.until = ms(900);
  holds(800, 1, 1700);
  leads("a", 950, 2, 6, 1700);
  EXPECT_EQ(breaches(), "");
  events.back().at = events.back().after = ms(890);
  EXPECT_EQ(breaches(), "overlap");
}

TEST_F(Group, ARevivalOfOneIsFoundInASampleOfAll) {
  leads("a", 11, 1, 5, 900);
  add(100, 1, "stopped");
  add(1100, 1, "resumed");
  holds(1101, 1, 1900);
  EXPECT_EQ(breaches(), "revival");
}

TEST_F(Group, OneThatIsNotOustedAtTheEndIsFound) {
  for (const auto* election : {"a", "b"}) of(election, add(10, 1, "elected", 5));
  of("a", add(20, 1, "ousting", 5));
  of("a", add(21, 1, "ended", 5));
  add(30, 1, "quit");
  EXPECT_EQ(breaches(), "unfinished");
  EXPECT_EQ(judge(events).findings.size(), 1u);
}

TEST_F(Group, ItIsKnownHowManyEachProcessLeads) {
  History history;
  leads("a", 11, 1, 5, 900);
  leads("b", 12, 1, 5, 900);
  leads("c", 12, 2, 5, 700);
  of("a", add(20, 1, "follow"));
  for (const auto& e : events) history.take(e);
  const std::map<pid_t, std::size_t> now{{1, 1}, {2, 1}}, later{{1, 1}, {2, 0}};
  EXPECT_EQ(history.led(ms(100)), now);
  EXPECT_EQ(history.led(ms(800)), later);
}

TEST_F(Journal, WhatIsDoneToTheServerIsCounted) {
  add(100, 0, "server crashed");
  EXPECT_EQ(judge(events).faults.at("server crashed"), 1u);
}

TEST(JournalLine, ThatAKillCutShortDoesNotSpoilTheNext) {
  const auto e = parse_event(R"({"t":5,"pid":7,"event":"elec{"t":6,"pid":8,"event":"lead","token":3,"election":"a"})");
  EXPECT_EQ(e.what, "lead");
  EXPECT_EQ(e.pid, 8);
  EXPECT_EQ(e.election, "a");
}

TEST(JournalLine, IsReadAsTheCandidateWritesIt) {
  const auto e = parse_event(
      R"({"t":5,"pid":7,"event":"ousting","token":9223372036854775807,"reason":"lapsed","detail":"a \"b\" \\c"})");
  EXPECT_EQ(e.at, Clock::Time(Clock::Duration(5)));
  EXPECT_EQ(e.pid, 7);
  EXPECT_EQ(e.what, "ousting");
  EXPECT_EQ(e.token, Token{~0ULL >> 1});
  EXPECT_EQ(e.reason, "lapsed");
  EXPECT_EQ(e.detail, "a \"b\" \\c");
  EXPECT_EQ(parse_event("no line of ours").what, "");
}

}  // namespace
}  // namespace tenure::test
