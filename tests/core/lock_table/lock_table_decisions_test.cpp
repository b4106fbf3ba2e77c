// SPDX-License-Identifier: Apache-2.0
// Goal: every rule of the lock-table protocol, a test each. Method: facts in, decisions out; the test is the
// store.
#include "lock_table/lock_table_decisions.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <tenure/kit/who.hpp>
#include <tenure/version.hpp>

namespace tenure {
namespace {

using namespace std::chrono_literals;
using Duration = Clock::Duration;
using Time = Clock::Time;

const std::string me = who_text({"me", "me:1"}, "1"), other = who_text({"other", "other:1"}, "2"),
                  third_who = who_text({"third", ""}, "3");

/// One candidate, and a store that says what the test wants.
struct LockTableRules : testing::Test {
  static Timing timing_of(Duration term) {
    auto timing = Timing::of(term);
    timing.clock_rate_error = 500e-6;
    return timing;
  }

  Timing timing = timing_of(10s);
  LockTableDecisions d{me, timing};
  Time now{1000s};
  std::uint64_t beat{100};

  static constexpr std::int64_t unix_ms = 1'700'000'000'000;

  /// The other candidate's record, asked at `asked` by its clock.
  static Record theirs(std::uint64_t token, std::uint64_t its_beat, Duration asked) {
    return {.token = {token},
            .beat = its_beat,
            .who = other,
            .term = 10s,
            .asked = asked,
            .written_ms = 1};  // later than the store's now, which is zero: no hint
  }
  static Record released(Record record) {
    record.released = true;
    return record;
  }
  static Read holds(Record record) { return {.record = std::move(record)}; }
  static Read absent(bool certain) { return {.absence_certain = certain}; }

  bool may_claim(Time at) const { return LockTableDecisions(d).claim(at, at, 1).has_value(); }
  /// From that moment on, and not an instant sooner.
  void expect_claimable_from(Time at) const {
    EXPECT_FALSE(may_claim(at - 1ns));
    EXPECT_TRUE(may_claim(at));
  }
  LockTableDecisions::Attempt claim() {
    auto attempt = d.claim(now, now, ++beat);
    EXPECT_TRUE(attempt);
    return attempt.value_or(LockTableDecisions::Attempt{});
  }
  static Result<Swap> applied(const LockTableDecisions::Attempt& attempt) { return Swap{true, holds(attempt.next)}; }
  static Result<Swap> refused(Read stands) { return Swap{false, std::move(stands)}; }
  static Result<Swap> unanswered() { return Error{Fault::timed_out, "no answer"}; }

  /// Leads with the token returned.
  Token lead() {
    d.saw(absent(true), now);
    const auto attempt = claim();
    EXPECT_TRUE(std::holds_alternative<Granted>(d.claimed(applied(attempt), now)));
    return attempt.next.token;
  }
  LockTableDecisions::Attempt renewal(Token token) {
    auto attempt = d.renewal(token, now, ++beat);
    EXPECT_TRUE(attempt);
    return attempt.value_or(LockTableDecisions::Attempt{});
  }
  void renew_unanswered(Token token) {
    (void)renewal(token);
    (void)d.renewed(unanswered(), now);
  }
  LockTableDecisions::Attempt surrender() {
    auto attempt = d.surrender(now, ++beat);
    EXPECT_TRUE(attempt);
    return attempt.value_or(LockTableDecisions::Attempt{});
  }
};

TEST(Matches, ARecordIsAsExpectedByItsTokenOneOfTheBeatsAndItsRelease) {
  const Record record{.token = {7}, .beat = 70};
  EXPECT_TRUE(matches(Expected{{7}, {69, 70}}, record));
  EXPECT_FALSE(matches(Expected{{8}, {70}}, record));
  EXPECT_FALSE(matches(Expected{{7}, {69}}, record));
  EXPECT_FALSE(matches(Expected{{7}, {70}, true}, record));
  EXPECT_FALSE(matches(std::nullopt, record));
  EXPECT_FALSE(matches(Expected{{7}, {70}}, std::nullopt));
}

// ---- when a record may be taken over ----

TEST_F(LockTableRules, NothingIsClaimedUnseen) { EXPECT_FALSE(d.claim(now, now, 1)); }

TEST_F(LockTableRules, AnAbsentRecordIsClaimedAtOnceWhereAbsenceIsCertain) {
  d.saw(absent(true), now);
  const auto attempt = claim();
  EXPECT_FALSE(attempt.expected);
  EXPECT_EQ(attempt.next.who, me);
  EXPECT_EQ(attempt.next.term, 10s);
  EXPECT_EQ(attempt.next.asked, now.time_since_epoch());
  EXPECT_FALSE(attempt.next.released);
}

TEST_F(LockTableRules, AHolderThatWritesNonsenseOfItselfIsWaitedForAndNotNamed) {
  for (const std::string who : {"other", "name=a b", "name=a\n", "name=%", "name=%00"}) {
    d = LockTableDecisions{me, timing};
    auto record = theirs(7, 70, 3s);
    record.who = who;
    d.saw(holds(record), now);
    EXPECT_TRUE(d.unreadable()) << who;
    EXPECT_FALSE(d.incumbent(now));
    expect_claimable_from(now + 10s);
  }
}

TEST_F(LockTableRules, WhatALaterVersionAddsOfItselfIsSkipped) {
  auto record = theirs(7, 70, 3s);
  record.who += ";place=rack%207";
  d.saw(holds(record), now);
  EXPECT_EQ(d.incumbent(now), incumbent_of(other, {7}, 10s));
}

/// Whoever it was refused for may have been at work.
TEST_F(LockTableRules, ARefusedClaimOnTheSameUnreadableRecordWaitsAnew) {
  const Read unreadable{.record = theirs(7, 70, 3s), .unreadable = true};
  d.saw(unreadable, now);
  now += 10s;
  const auto attempt = claim();
  ASSERT_FALSE(std::holds_alternative<Granted>(d.claimed(refused(unreadable), now)));
  EXPECT_EQ(d.earliest(), now + 10s);
}

TEST_F(LockTableRules, ElsewhereAClaimOnNothingCountsOnceItStoodForATerm) {
  d.saw(absent(false), now);
  const auto first = claim();
  EXPECT_FALSE(first.expected);
  const auto answer = d.claimed(applied(first), now + 1s);
  ASSERT_TRUE(std::holds_alternative<Denied>(answer));
  EXPECT_FALSE(std::get<Denied>(answer).holder);
  EXPECT_EQ(d.earliest(), now + 11s) << "the answer's receipt counts, not when it was asked";
  EXPECT_EQ(d.next_look(), now + 11s);
  EXPECT_FALSE(d.renewal(first.next.token, now + 2s, 7));
  d.saw(holds(first.next), now + 6s);
  EXPECT_FALSE(may_claim(now + 11s - 1ns));
  now += 11s;
  const auto second = claim();
  ASSERT_TRUE(second.expected);
  EXPECT_EQ(second.expected->token, first.next.token);
  EXPECT_GT(second.next.token, first.next.token);
  EXPECT_TRUE(std::holds_alternative<Granted>(d.claimed(applied(second), now)));
}

TEST_F(LockTableRules, AnUnansweredClaimOnNothingCountsFromWhenItIsSeen) {
  d.saw(absent(false), now);
  const auto first = claim();
  d.claimed(unanswered(), now + 1s);
  d.saw(holds(first.next), now + 3s);
  expect_claimable_from(now + 13s);
}

TEST_F(LockTableRules, AClaimOnNothingThatVanishedIsMadeAgainAndCountsAnew) {
  d.saw(absent(false), now);
  d.claimed(applied(claim()), now);
  d.saw(absent(false), now + 9s);
  now += 9s;
  EXPECT_TRUE(std::holds_alternative<Denied>(d.claimed(applied(claim()), now)));
  EXPECT_EQ(d.earliest(), now + 10s);
}

TEST_F(LockTableRules, AClaimOnNothingIsNotReleasedForOthersToTakeAtOnce) {
  d.saw(absent(false), now);
  const auto attempt = claim();
  EXPECT_FALSE(d.surrender(now, 7)) << "unanswered: what it would consume is nothing";
  d.claimed(applied(attempt), now);
  EXPECT_FALSE(d.surrender(now, 7));
}

TEST_F(LockTableRules, ARecordLostInACacheIsClaimedAnewAndThatMustStandForTheLongestTermSeen) {
  auto record = theirs(5, 50, 3s);
  record.term = 30s;
  d.saw(holds(record), now);
  d.saw(absent(false), now + 1s);
  EXPECT_TRUE(d.take_alarm());
  now += 1s;
  const auto attempt = claim();
  EXPECT_GT(attempt.next.token, Token{5});
  d.claimed(applied(attempt), now);
  EXPECT_EQ(d.earliest(), now + 30s);
}

TEST_F(LockTableRules, AReleasedRecordIsClaimedAtOnce) {
  d.saw(holds(released(theirs(5, 50, 3s))), now);
  const auto attempt = claim();
  ASSERT_TRUE(attempt.expected);
  EXPECT_EQ(attempt.expected->token, Token{5});
  EXPECT_EQ(attempt.expected->beats, std::vector<std::uint64_t>{50});
}

TEST_F(LockTableRules, AReleaseCountsAlsoWhereTheVersionStaysTheSame) {
  auto record = theirs(5, 50, 3s);
  d.saw(holds(record), now);
  EXPECT_FALSE(may_claim(now));
  record.released = true;
  d.saw(holds(record), now + 1s);
  EXPECT_TRUE(may_claim(now + 1s));
}

TEST_F(LockTableRules, AHeldRecordLapsesATermAfterItWasFirstSeen) {
  d.saw(holds(theirs(5, 50, 77s)), now);
  d.saw(holds(theirs(5, 50, 77s)), now + 4s);
  expect_claimable_from(now + 10s);
}

TEST_F(LockTableRules, ANewVersionIsANewLease) {
  d.saw(holds(theirs(5, 50, 77s)), now);
  d.saw(holds(theirs(5, 51, 86s)), now + 9s);
  EXPECT_FALSE(may_claim(now + 10s));
  EXPECT_TRUE(may_claim(now + 19s + 1s));
}

/// The first version was read at once, the second late: the first tells how far the clocks are apart.
TEST_F(LockTableRules, AnEarlierVersionThatWasReadSoonerBoundsTheLease) {
  d.saw(holds(theirs(5, 50, 77s)), now);
  d.saw(holds(theirs(5, 51, 79s)), now + 9s);
  const auto runs_apart = [](Duration by) {
    return Duration(std::llround(std::ceil(1e-3 / (1 - 5e-4) * static_cast<double>(by.count()))));
  };
  EXPECT_EQ(d.earliest(), now + 2s + 10s + runs_apart(2s));
  d.saw(holds(theirs(5, 52, 89s)), now + 20s);
  EXPECT_EQ(d.earliest(), now + 12s + 10s + runs_apart(2s) + runs_apart(10s));
}

TEST_F(LockTableRules, ClocksRunApartByMoreThanTheSumOfTheirErrors) {
  timing.clock_rate_error = 0.1;  // a second of a clock that is slow by this is 1.1 / 0.9 s of one that is fast by it
  d.run_by(timing);
  d.saw(holds(theirs(5, 50, 100s)), now);
  d.saw(holds(theirs(5, 51, 109s)), now + 12s);
  EXPECT_GE(d.earliest(), now + 11s + 10s);
  EXPECT_LT(d.earliest(), now + 11s + 10s + 1ms);
}

TEST_F(LockTableRules, ALaterVersionThatWasReadSoonerBoundsTheLeaseToo) {
  d.saw(holds(theirs(5, 50, 77s)), now);
  d.saw(holds(theirs(5, 51, 79s)), now + 1s);
  EXPECT_EQ(d.earliest(), now + 1s + 10s);
}

TEST_F(LockTableRules, OnlyVersionsOfTheSameIncarnationBoundIt) {
  d.saw(holds(theirs(5, 50, 77s)), now);
  auto third = theirs(6, 60, 79s);
  third.who = third_who;
  d.saw(holds(third), now + 9s);
  EXPECT_EQ(d.earliest(), now + 19s);
}

TEST_F(LockTableRules, AHoldersClockThatFellSaysNothingOfBefore) {
  d.saw(holds(theirs(5, 50, 77s)), now);
  d.saw(holds(theirs(5, 51, 76s)), now + 2s);
  EXPECT_EQ(d.earliest(), now + 12s);
}

/// Its machine was stopped for five seconds: what its clock said before is five seconds off.
TEST_F(LockTableRules, AHoldersClockThatStoodStillSaysNothingOfBefore) {
  auto first = holds(theirs(5, 50, 77s));
  first.now_ms = first.record->written_ms = unix_ms;
  d.saw(first, now);
  auto second = holds(theirs(5, 51, 79s));
  second.now_ms = second.record->written_ms = unix_ms + 7000;
  d.saw(second, now + 7s);
  EXPECT_EQ(d.earliest(), now + 17s);
}

TEST_F(LockTableRules, ASharedClockIsExact) {
  auto read = holds(theirs(5, 50, (now - 4s).time_since_epoch()));
  read.same_clock = true;
  d.saw(read, now);
  expect_claimable_from(now + 6s);
}

TEST_F(LockTableRules, ASharedClockThatIsAheadOfOursIsNotShared) {
  auto read = holds(theirs(5, 50, (now + 1h).time_since_epoch()));
  read.same_clock = true;
  d.saw(read, now);
  EXPECT_EQ(d.earliest(), now + 10s);
}

TEST_F(LockTableRules, TheStoresClockDecidesNothing) {
  for (const std::int64_t written :
       {std::int64_t{0}, unix_ms - 86'400'000, unix_ms, unix_ms + 86'400'000, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()})
    for (const std::int64_t at : {std::int64_t{0}, unix_ms, std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<std::int64_t>::max()}) {
      LockTableDecisions fresh{me, timing};
      auto read = holds(theirs(5, 50, 77s));
      read.record->written_ms = written;
      read.now_ms = at;
      fresh.saw(read, now);
      EXPECT_EQ(fresh.earliest(), now + 10s) << written << " " << at;
    }
}

TEST_F(LockTableRules, TheLongestTermKnownCounts) {
  auto record = theirs(5, 50, 77s);
  record.term = 30s;
  d.saw(holds(record), now);
  EXPECT_EQ(d.earliest(), now + 30s) << "the record's";
  record = theirs(6, 60, 1s);
  record.term = 1s;
  record.who = third_who;
  d.saw(holds(record), now + 1s);
  EXPECT_EQ(d.earliest(), now + 31s) << "one seen before";
  LockTableDecisions fresh{me, timing};
  fresh.saw(holds(record), now);
  EXPECT_EQ(fresh.earliest(), now + 10s) << "our own";
}

// ---- what a push says was released ----

TEST_F(LockTableRules, APushedReleaseIsTakenOverWithoutARead) {
  d.saw(holds(theirs(5, 50, 3s)), now);
  const auto attempt = d.succession({{5}, 51}, now + 1s, 7);
  ASSERT_TRUE(attempt);
  ASSERT_TRUE(attempt->expected);
  EXPECT_EQ(attempt->expected->token, Token{5});
  EXPECT_EQ(attempt->expected->beats, std::vector<std::uint64_t>{51});
  EXPECT_TRUE(attempt->expected->released) << "a notice can be forged: the store is to check it";
  EXPECT_GT(attempt->next.token, Token{5});
  EXPECT_EQ(attempt->next.asked, (now + 1s).time_since_epoch());
  EXPECT_FALSE(attempt->next.released);
  EXPECT_TRUE(std::holds_alternative<Granted>(d.claimed(applied(*attempt), now + 1s)));
}

TEST_F(LockTableRules, APushThatSaysNothingToUsIsNoGround) {
  const Version release{{5}, 51};
  EXPECT_FALSE(d.succession(release, now, 7)) << "nothing was seen";
  d.saw(absent(true), now);
  EXPECT_FALSE(d.succession(release, now, 7)) << "nothing was there";
  d.saw(holds(theirs(5, 50, 3s)), now);
  EXPECT_FALSE(d.succession({{4}, 51}, now, 7)) << "of an earlier tenure";
  EXPECT_FALSE(d.succession({{6}, 51}, now, 7)) << "of one that was never seen";
  d.saw(holds(released(theirs(5, 51, 3s))), now);
  EXPECT_FALSE(d.succession({{5}, 50}, now, 7)) << "it is released already, by another write";
  d.saw(Read{.record = theirs(7, 70, 3s), .unreadable = true}, now);
  EXPECT_FALSE(d.succession({{7}, 71}, now, 7)) << "it cannot be read";
  d.saw(holds(theirs(9, 90, 3s)), now);
  d.saw(holds(theirs(5, 50, 3s)), now);
  EXPECT_TRUE(d.take_alarm());
  EXPECT_FALSE(d.succession(release, now, 7)) << "the store lost data";
}

TEST_F(LockTableRules, OurOwnReleaseIsNoNews) {
  const auto token = lead();
  const auto attempt = surrender();
  EXPECT_FALSE(d.succession({token, attempt.next.beat}, now, 7));
  EXPECT_EQ(d.surrendered(applied(attempt), now), std::nullopt);
  EXPECT_FALSE(d.succession({token, attempt.next.beat}, now, 7));
}

TEST_F(LockTableRules, AForgedOrLatePushChangesNothingThatWasSeen) {
  d.saw(holds(theirs(5, 50, 3s)), now);
  const auto end = d.earliest();
  const auto attempt = d.succession({{5}, 50}, now + 2s, 7);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(d.earliest(), end);
  EXPECT_EQ(d.version(), (Version{{5}, 50}));
  const auto answer = d.claimed(refused(holds(theirs(5, 50, 3s))), now + 2s);
  ASSERT_TRUE(std::holds_alternative<Denied>(answer)) << "it stands, but is not released: no contradiction";
  EXPECT_EQ(std::get<Denied>(answer).holder->name, "other");
  EXPECT_GE(d.earliest(), end);
  EXPECT_FALSE(may_claim(end - 1ns));
}

TEST_F(LockTableRules, AForgedPushOfAVersionThatIsSeenAfterwardsDoesNotShortenItsLease) {
  d.saw(holds(theirs(5, 50, 3s)), now);
  ASSERT_TRUE(d.succession({{5}, 51}, now + 9s, 7));
  d.claimed(unanswered(), now + 9s);
  d.saw(holds(theirs(5, 51, 12s)), now + 9s);
  EXPECT_GE(d.earliest(), now + 19s) << "from when it was read, not from when it was pushed";
}

TEST_F(LockTableRules, AnUnansweredClaimIsNotForgottenForANoticesSake) {
  d.saw(holds(theirs(5, 50, 3s)), now);
  const auto first = d.succession({{5}, 51}, now, 7);
  ASSERT_TRUE(first);
  d.claimed(unanswered(), now);
  EXPECT_FALSE(d.succession({{5}, 52}, now, 8)) << "look first";
  const auto surrendered = d.surrender(now, 9);
  ASSERT_TRUE(surrendered) << "it may still take effect";
  EXPECT_EQ(surrendered->expected->beats, std::vector<std::uint64_t>{51});
  EXPECT_TRUE(surrendered->expected->released);
  EXPECT_TRUE(surrendered->next.released);
}

// ---- what is ours ----

TEST_F(LockTableRules, TheGhostOfAnUnansweredClaimIsOursAtOnceWithANewToken) {
  d.saw(absent(true), now);
  const auto lost = claim();
  EXPECT_TRUE(std::holds_alternative<Unknown>(d.claimed(unanswered(), now)));
  d.saw(holds(lost.next), now + 1s);
  now += 1s;
  const auto again = claim();
  ASSERT_TRUE(again.expected);
  EXPECT_EQ(again.expected->token, lost.next.token);
  EXPECT_NE(std::find(again.expected->beats.begin(), again.expected->beats.end(), lost.next.beat),
            again.expected->beats.end());
  EXPECT_GT(again.next.token, lost.next.token);
  EXPECT_NE(again.next.beat, lost.next.beat);
}

TEST_F(LockTableRules, OurIncarnationWithABeatThatWeNeverSentIsACopyOfUs) {
  auto record = theirs(5, 50, 77s);
  record.who = me;
  d.saw(holds(record), now);
  EXPECT_TRUE(d.copied());
  EXPECT_FALSE(may_claim(now)) << "not our ghost";
  d.become(other);
  EXPECT_FALSE(d.copied());
  now += 10s;
  EXPECT_EQ(claim().next.who, other);
}

TEST_F(LockTableRules, OurOwnRecordIsNoCopy) {
  const auto token = lead();
  EXPECT_FALSE(d.copied());
  (void)d.renewed(applied(renewal(token)), now);
  EXPECT_FALSE(d.copied());
}

// ---- tokens ----

TEST_F(LockTableRules, ATokenIsAboveTheStoredOneAndNotBelowTheStoresClock) {
  for (const auto& [stored, next] : {std::pair(unix_ms + 1'000'000, unix_ms + 1'000'001), {std::int64_t{5}, unix_ms}}) {
    d = LockTableDecisions{me, timing};
    auto read = holds(released(theirs(static_cast<std::uint64_t>(stored), 50, 77s)));
    read.now_ms = unix_ms;
    d.saw(read, now);
    EXPECT_EQ(claim().next.token, Token{static_cast<std::uint64_t>(next)}) << stored;
  }
}

TEST_F(LockTableRules, AStoresClockOutOfAllReasonDoesNotUseUpTheTokens) {
  for (const auto ms :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}}) {
    auto read = absent(true);
    read.now_ms = ms;
    d.saw(read, now);
    EXPECT_EQ(LockTableDecisions(d).claim(now, now, 1)->next.token, Token{1});
  }
}

TEST_F(LockTableRules, WhereTokensEndNothingIsClaimed) {
  d.saw(holds(released(theirs(std::numeric_limits<std::int64_t>::max() - 1, 50, 77s))), now);
  EXPECT_FALSE(d.claim(now, now, 1));
  EXPECT_EQ(d.take_alarm()->fault, Fault::corrupt);
  EXPECT_FALSE(d.incumbent(now));
  d.saw(holds(released(theirs(5, 51, 78s))), now);
  EXPECT_EQ(claim().next.token, Token{6}) << "once it is mended, whoever saw it takes part again";
}

TEST_F(LockTableRules, TheGreatestTokenThatIsClaimedCanBeRead) {
  const std::uint64_t greatest = std::numeric_limits<std::int64_t>::max() - 2;
  d.saw(holds(released(theirs(greatest - 1, 50, 77s))), now);
  const auto attempt = claim();
  EXPECT_EQ(attempt.next.token, Token{greatest});
  EXPECT_TRUE(std::holds_alternative<Granted>(d.claimed(applied(attempt), now)));
  EXPECT_FALSE(d.unreadable());
}

// ---- a store that lost data ----

TEST_F(LockTableRules, ATokenThatFellIsAnAlarmOnceAndIsWaitedFor) {
  d.saw(holds(theirs(9, 90, 77s)), now);
  EXPECT_FALSE(d.take_alarm());
  const auto old = released(theirs(5, 50, 50s));
  d.saw(holds(old), now + 2s);
  const auto alarm = d.take_alarm();
  ASSERT_TRUE(alarm);
  EXPECT_EQ(alarm->fault, Fault::corrupt);
  EXPECT_NE(alarm->message.find("token 9"), std::string::npos) << alarm->message;
  EXPECT_NE(alarm->message.find("token 5"), std::string::npos) << alarm->message;
  EXPECT_NE(alarm->message.find("restore it, and until then fence"), std::string::npos) << "what is to be done";
  d.saw(holds(old), now + 3s);
  EXPECT_FALSE(d.take_alarm()) << "once";
  EXPECT_FALSE(may_claim(now + 12s - 1ns)) << "the holder of 9 may have renewed just before";
  now += 12s;
  const auto attempt = claim();
  EXPECT_EQ(attempt.next.token, Token{10});
  EXPECT_EQ(attempt.expected->token, Token{5});
}

TEST_F(LockTableRules, ARecordThatVanishedIsAnAlarmAlsoWhereAbsenceIsCertain) {
  d.saw(holds(theirs(9, 90, 77s)), now);
  d.saw(absent(true), now + 2s);
  EXPECT_TRUE(d.take_alarm());
  EXPECT_FALSE(may_claim(now + 12s - 1ns));
  now += 12s;
  EXPECT_EQ(claim().next.token, Token{10});
}

TEST_F(LockTableRules, AfterAnAlarmTheNextLossIsAnAlarmAgain) {
  d.saw(holds(theirs(9, 90, 77s)), now);
  d.saw(absent(false), now);
  EXPECT_TRUE(d.take_alarm());
  d.saw(holds(theirs(10, 91, 80s)), now);
  EXPECT_FALSE(d.take_alarm());
  d.saw(holds(theirs(3, 30, 80s)), now);
  EXPECT_TRUE(d.take_alarm());
}

/// By its own term it would be over.
TEST_F(LockTableRules, WhoStandsWhereDataWereLostMayLeadForATermFromItsSight) {
  d.saw(holds(theirs(9, 90, 77s)), now);
  auto old = holds(theirs(5, 50, now.time_since_epoch() - 10s));
  old.same_clock = true;
  d.saw(old, now);
  EXPECT_EQ(d.lease_end(), now + 10s);
}

TEST_F(LockTableRules, AnUnreadableRecordIsWaitedForAndOutbid) {
  auto read = holds(theirs(7, 70, 77s));
  read.unreadable = true;
  d.saw(read, now);
  EXPECT_FALSE(d.incumbent(now));
  EXPECT_FALSE(may_claim(now + 10s - 1ns));
  now += 10s;
  const auto attempt = claim();
  EXPECT_EQ(attempt.expected->token, Token{7});
  EXPECT_EQ(attempt.expected->beats, std::vector<std::uint64_t>{70});
  EXPECT_EQ(attempt.next.token, Token{8});
}

TEST_F(LockTableRules, ARecordThatCannotBeRightIsUnreadable) {
  const auto unreadable = [&](auto&& spoil) {
    auto record = theirs(7, 70, 77s);
    spoil(record);
    LockTableDecisions fresh{me, timing};
    fresh.saw(holds(record), now);
    return fresh.unreadable() && fresh.earliest() == now + 10s;
  };
  EXPECT_FALSE(unreadable([](Record&) {}));
  EXPECT_TRUE(unreadable([](Record& r) { r.term = 0s; }));
  EXPECT_TRUE(unreadable([](Record& r) { r.term = Duration::min(); }));
  EXPECT_TRUE(unreadable([](Record& r) { r.term = max_term + 1ms; }));
  EXPECT_TRUE(unreadable([](Record& r) { r.asked = -1ns; }));
  EXPECT_TRUE(unreadable([](Record& r) { r.asked = Duration::max(); }));
  EXPECT_TRUE(unreadable([](Record& r) { r.asked = Duration::min(); }));
  EXPECT_TRUE(unreadable([](Record& r) { r.token = {std::numeric_limits<std::uint64_t>::max()}; }));
}

// ---- claims answered ----

TEST_F(LockTableRules, ARefusedClaimIsAReadAtItsReceipt) {
  d.saw(absent(false), now);
  now += 10s;
  (void)claim();
  const auto answer = d.claimed(refused(holds(theirs(5, 50, 77s))), now + 1s);
  ASSERT_TRUE(std::holds_alternative<Denied>(answer));
  const auto& holder = std::get<Denied>(answer).holder;
  ASSERT_TRUE(holder);
  EXPECT_EQ(*holder, incumbent_of(other, {5}, 10s));
  EXPECT_EQ(d.earliest(), now + 11s);
  EXPECT_FALSE(d.surrender(now, 1)) << "nothing of ours can stand there";
}

TEST_F(LockTableRules, ARefusalThatShowsWhatWasExpectedIsNoAnswer) {
  const auto free = holds(released(theirs(5, 50, 77s)));
  d.saw(free, now);
  (void)claim();
  EXPECT_TRUE(std::holds_alternative<Unknown>(d.claimed(refused(free), now)));
}

TEST_F(LockTableRules, AGrantAfterItsOwnDeadlineIsNoneButItsBeatIsOurs) {
  d.saw(absent(true), now);
  const auto late = claim();
  now += timing.term - timing.margin;
  EXPECT_TRUE(std::holds_alternative<Unknown>(d.claimed(applied(late), now)));
  EXPECT_FALSE(d.renewal(late.next.token, now, ++beat));
  const auto again = claim();
  EXPECT_EQ(again.expected->token, late.next.token);
  EXPECT_GT(again.next.token, late.next.token);
}

TEST_F(LockTableRules, AGrantJustBeforeItsDeadlineIsOne) {
  d.saw(absent(true), now);
  const auto attempt = claim();
  EXPECT_TRUE(std::holds_alternative<Granted>(d.claimed(applied(attempt), now + timing.term - timing.margin - 1ns)));
}

// ---- renewals ----

TEST_F(LockTableRules, ARenewalDemandsTheAcknowledgedBeatHoweverManyWereNotAnsweredSince) {
  const auto token = lead();
  const auto acknowledged = beat;
  for (int i = 0; i < 1100; ++i) renew_unanswered(token);
  const auto beats = renewal(token).expected->beats;
  EXPECT_LE(beats.size(), 1024u);
  EXPECT_EQ(beats.front(), acknowledged);
  EXPECT_EQ(beats.back(), beat - 1);
}

TEST_F(LockTableRules, ARenewalDemandsEveryBeatSinceTheLastAcknowledgedOne) {
  const auto token = lead();
  const auto granted = beat;
  const auto first = renewal(token);
  EXPECT_EQ(first.expected->token, token);
  EXPECT_EQ(first.expected->beats, std::vector{granted});
  EXPECT_EQ(first.next.token, token);
  (void)d.renewed(unanswered(), now);
  renew_unanswered(token);
  const auto third = renewal(token);
  EXPECT_EQ(third.expected->beats, (std::vector{granted, granted + 1, granted + 2}));
  EXPECT_TRUE(std::holds_alternative<Granted>(d.renewed(applied(third), now)));
  EXPECT_EQ(renewal(token).expected->beats, std::vector{granted + 3});
}

TEST_F(LockTableRules, UnansweredBeatsAreKeptInBoundedNumber) {
  const auto token = lead();
  for (int i = 0; i < 2000; ++i) {
    renew_unanswered(token);
  }
  EXPECT_EQ(renewal(token).expected->beats.size(), 1024u);
}

TEST_F(LockTableRules, ARenewalMovesTheDeadline) {
  const auto token = lead();
  const auto first = timing.deadline(now);
  now += timing.renew;
  ASSERT_TRUE(std::holds_alternative<Granted>(d.renewed(applied(renewal(token)), now)));
  now = first;
  EXPECT_TRUE(d.renewal(token, now, ++beat));
}

TEST_F(LockTableRules, ARefusalThatShowsOneOfOurBeatsIsNoAnswerAnyOtherEndsTheTenure) {
  const auto token = lead();
  const auto lost = renewal(token);
  (void)d.renewed(unanswered(), now);
  (void)renewal(token);
  EXPECT_TRUE(std::holds_alternative<Unknown>(d.renewed(refused(holds(lost.next)), now)));
  (void)renewal(token);
  EXPECT_TRUE(std::holds_alternative<Denied>(d.renewed(refused(holds(theirs(token.value + 1, 50, 77s))), now)));
  EXPECT_FALSE(d.renewal(token, now, ++beat));
}

/// A store that knows of a death shows a release that nobody wrote. Then a successor may lead already.
TEST_F(LockTableRules, ARefusedRenewalThatShowsAReleaseEndsTheTenureWhateverTheBeat) {
  for (const bool own_beat : {false, true}) {
    d = LockTableDecisions{me, timing};
    const auto token = lead();
    auto ended = renewal(token).next;
    if (!own_beat) {
      (void)d.renewed(unanswered(), now);
      (void)renewal(token);
    }
    ended.released = true;
    EXPECT_TRUE(std::holds_alternative<Denied>(d.renewed(refused(holds(ended)), now))) << own_beat;
    EXPECT_FALSE(d.renewal(token, now, ++beat)) << own_beat;
    EXPECT_GT(claim().next.token, token) << "it may lead anew";
  }
}

TEST_F(LockTableRules, ARenewalThatFindsNoRecordEndsTheTenure) {
  const auto token = lead();
  (void)renewal(token);
  EXPECT_TRUE(std::holds_alternative<Denied>(d.renewed(refused(absent(true)), now)));
  EXPECT_TRUE(d.take_alarm());
}

TEST_F(LockTableRules, OfTwoCopiesOneIsDenied) {
  const auto token = lead();
  auto copy = d;
  const auto first = renewal(token);
  EXPECT_TRUE(std::holds_alternative<Granted>(d.renewed(applied(first), now)));
  const auto second = copy.renewal(token, now, ++beat);
  ASSERT_TRUE(second);
  ASSERT_EQ(std::find(second->expected->beats.begin(), second->expected->beats.end(), first.next.beat),
            second->expected->beats.end());
  EXPECT_TRUE(std::holds_alternative<Denied>(copy.renewed(refused(holds(first.next)), now)));
  EXPECT_TRUE(copy.copied());
  EXPECT_FALSE(copy.claim(now, now, ++beat)) << "the survivor's record is not the copy's ghost";
}

/// By the deadline that stood when it was asked, not by the one that it brings.
TEST_F(LockTableRules, ARenewalAnsweredAfterTheDeadlineCountsForNothing) {
  const auto token = lead();
  const auto deadline = now + timing.term - timing.margin;
  now = deadline - 1ns;
  const auto late = renewal(token);
  EXPECT_TRUE(std::holds_alternative<Unknown>(d.renewed(applied(late), deadline)));
  EXPECT_FALSE(d.renewal(token, deadline, ++beat));
}

TEST_F(LockTableRules, ARenewalThatWasAppliedAndThenRefusedIsNoAnswer) {
  const auto token = lead();
  const auto attempt = renewal(token);  // taken, and sent once more below us
  EXPECT_TRUE(std::holds_alternative<Unknown>(d.renewed(refused(holds(attempt.next)), now)));
  const auto again = renewal(token);
  EXPECT_TRUE(std::holds_alternative<Granted>(d.renewed(applied(again), now)));
}

TEST_F(LockTableRules, NothingIsRenewedAfterTheDeadlineNorUnderAnotherToken) {
  const auto token = lead();
  EXPECT_FALSE(d.renewal({token.value + 1}, now, ++beat));
  EXPECT_TRUE(LockTableDecisions(d).renewal(token, now + timing.term - timing.margin - 1ns, 1));
  EXPECT_FALSE(d.renewal(token, now + timing.term - timing.margin, ++beat));
}

TEST_F(LockTableRules, ARequestToStepDownOfThisTenureIsHeard) {
  const auto token = lead();
  const auto attempt = renewal(token);
  auto swap = *applied(attempt);
  swap.found.step_down = StepDown{token, "ops", "upgrade"};
  const auto answer = d.renewed(swap, now);
  ASSERT_TRUE(std::holds_alternative<StepDownRequested>(answer));
  EXPECT_EQ(std::get<StepDownRequested>(answer).token, token);
  EXPECT_EQ(std::get<StepDownRequested>(answer).by, "ops");
  EXPECT_EQ(std::get<StepDownRequested>(answer).why, "upgrade");
  swap = *applied(renewal(token));
  swap.found.step_down = StepDown{{token.value - 1}, "ops", "upgrade"};
  EXPECT_TRUE(std::holds_alternative<Granted>(d.renewed(swap, now))) << "of another one it means nothing";
}

// ---- surrender ----

TEST_F(LockTableRules, SurrenderEndsOurTenureAndNothingElse) {
  EXPECT_FALSE(d.surrender(now, ++beat));
  const auto token = lead();
  const auto granted = beat;
  const auto attempt = surrender();
  EXPECT_EQ(attempt.expected->token, token);
  EXPECT_EQ(attempt.expected->beats, std::vector{granted});
  EXPECT_TRUE(attempt.next.released);
  EXPECT_EQ(attempt.next.token, token);
  EXPECT_EQ(d.surrendered(applied(attempt), now), std::nullopt);
  EXPECT_FALSE(d.surrender(now, ++beat));
  EXPECT_FALSE(d.renewal(token, now, ++beat));
}

TEST_F(LockTableRules, SurrenderOfWhatSomebodyElseTookIsDone) {
  (void)lead();
  ASSERT_TRUE(d.surrender(now, ++beat));
  EXPECT_EQ(d.surrendered(refused(holds(theirs(2'000, 50, 77s))), now), std::nullopt);
  EXPECT_FALSE(d.surrender(now, ++beat));
}

TEST_F(LockTableRules, SurrenderOfWhatTheStoreEndedIsDone) {
  auto ended = renewal(lead()).next;
  (void)d.renewed(unanswered(), now);
  ASSERT_TRUE(d.surrender(now, ++beat));
  ended.released = true;
  EXPECT_EQ(d.surrendered(refused(holds(ended)), now), std::nullopt);
  EXPECT_FALSE(d.surrender(now, ++beat));
}

TEST_F(LockTableRules, AnUnansweredSurrenderIsRepeatedWithBothBeats) {
  const auto token = lead();
  const auto granted = beat;
  ASSERT_TRUE(d.surrender(now, ++beat));
  EXPECT_NE(d.surrendered(unanswered(), now), std::nullopt);
  const auto again = surrender();
  EXPECT_EQ(again.expected->token, token);
  EXPECT_EQ(again.expected->beats, (std::vector{granted, granted + 1}));
}

TEST_F(LockTableRules, AnUnansweredClaimIsSurrenderedByConsumingWhatItExpected) {
  d.saw(holds(released(theirs(5, 50, 77s))), now);
  const auto pending = claim();
  (void)d.claimed(unanswered(), now);
  const auto attempt = surrender();
  EXPECT_EQ(attempt.expected->token, Token{5});
  EXPECT_EQ(attempt.expected->beats, std::vector<std::uint64_t>{50});
  EXPECT_TRUE(attempt.next.released);
  EXPECT_EQ(attempt.next.token, pending.next.token);
  EXPECT_EQ(d.surrendered(applied(attempt), now), std::nullopt);
  EXPECT_FALSE(d.surrender(now, ++beat));
}

TEST_F(LockTableRules, IfTheClaimHadTakenEffectItsGhostIsReleased) {
  d.saw(absent(true), now);
  const auto pending = claim();
  (void)d.claimed(unanswered(), now);
  ASSERT_TRUE(d.surrender(now, ++beat));
  EXPECT_EQ(d.surrendered(refused(holds(pending.next)), now), std::nullopt);
  const auto attempt = surrender();
  EXPECT_EQ(attempt.expected->token, pending.next.token);
  EXPECT_TRUE(attempt.next.released);
}

TEST_F(LockTableRules, AClaimWhoseGroundIsGoneNeedsNoSurrender) {
  d.saw(absent(true), now);
  (void)claim();
  (void)d.claimed(unanswered(), now);
  d.saw(holds(theirs(5, 50, 77s)), now);
  EXPECT_FALSE(d.surrender(now, ++beat));
}

TEST_F(LockTableRules, ALapsedTenureIsStillSurrendered) {
  const auto token = lead();
  now += 20s;
  const auto attempt = surrender();
  EXPECT_EQ(attempt.expected->token, token);
}

// ---- sight ----

TEST_F(LockTableRules, AnIncumbentIsShownUntilTheRecordIsReleasedAlsoLapsed) {
  EXPECT_FALSE(d.incumbent(now));
  auto record = theirs(5, 50, 77s);
  d.saw(holds(record), now);
  EXPECT_EQ(d.incumbent(now + 4s), (Incumbent{.name = "other",
                                              .incarnation = "2",
                                              .address = "other:1",
                                              .token = {5},
                                              .remaining = 6s,
                                              .version = TENURE_VERSION}));
  EXPECT_EQ(d.incumbent(now + 40s)->remaining, 0s);
  record.released = true;
  d.saw(holds(record), now);
  EXPECT_FALSE(d.incumbent(now));
  d.saw(absent(true), now);
  EXPECT_FALSE(d.incumbent(now));
}

TEST_F(LockTableRules, AFollowerLooksAgainWhenTheLeaseEnds) {
  d.saw(holds(theirs(5, 50, 77s)), now);
  EXPECT_EQ(d.next_look(), now + 10s) << "no hint of its age";
  auto read = holds(theirs(5, 51, 78s));
  read.now_ms = unix_ms;
  read.record->written_ms = unix_ms - 5;
  d.saw(read, now + 1s);
  EXPECT_EQ(d.next_look(), now + 1s - 5ms + 8s + 3ms) << "just after the last renewal that is due before";
  EXPECT_EQ(d.earliest(), now + 11s);
  d.saw(read, now + 9s);
  EXPECT_EQ(d.next_look(), now + 11s) << "it was not renewed";
}

TEST_F(LockTableRules, OneReadPerTermLessRenewKeepsTheBoundTight) {
  const auto first = now;
  Duration latest{};
  int reads = 0;
  for (; now < first + 800s; now = d.next_look(), ++reads) {
    const auto renewals = (now - first) / timing.renew;  // by a leader that asks exactly then, by the same clock
    auto read = holds(theirs(5, 50 + static_cast<std::uint64_t>(renewals), 77s + renewals * timing.renew));
    read.now_ms = unix_ms + (now - first) / 1ms;
    read.record->written_ms = unix_ms + renewals * timing.renew / 1ms;
    d.saw(read, now);
    if (reads > 2) latest = std::max(latest, d.earliest() - (first + renewals * timing.renew + timing.term));
  }
  EXPECT_LE(reads, 800s / (timing.term - timing.renew) + 2) << "the first ones make it tight";
  EXPECT_LE(latest, 4ms);
}

TEST_F(LockTableRules, UntilTheBoundIsTightItLooksJustAfterARenewalThatIsDue) {
  auto read = holds(theirs(5, 50, 77s));
  read.now_ms = unix_ms;
  read.record->written_ms = unix_ms - 500;  // half a second old; the next comes in 1.5 s
  d.saw(read, now);
  EXPECT_EQ(d.next_look(), now + 1500ms + 3ms);
  read.now_ms += 1504;
  now += 1504ms;
  d.saw(read, now);  // not yet
  EXPECT_GT(d.next_look(), now);
  EXPECT_LE(d.next_look(), now + 10ms);
  auto renewed = holds(theirs(5, 51, 79s));
  renewed.now_ms = unix_ms + 1510;
  renewed.record->written_ms = unix_ms + 1506;
  now += 6ms;
  d.saw(renewed, now);
  EXPECT_EQ(d.next_look(), now - 4ms + 8s + 3ms) << "tight: just after the last one that is due in this lease";
  EXPECT_EQ(d.earliest(), now + 10s);
}

TEST_F(LockTableRules, AWrongHintCostsAFewReadsAndNoMore) {
  auto read = holds(theirs(5, 50, 77s));
  read.now_ms = unix_ms;
  read.record->written_ms = unix_ms - 1999;
  int looks = 0;
  for (d.saw(read, now); d.next_look() < d.earliest(); d.saw(read, now)) {
    now = d.next_look();
    ASSERT_LE(++looks, 8);
  }
  EXPECT_GT(looks, 1);
}

TEST_F(LockTableRules, ALeaderHasNothingToLookForUntilItContendsAgain) {
  const auto token = lead();
  EXPECT_EQ(d.next_look(), Time::max());
  d.saw(holds(theirs(token.value + 1, 50, 77s)), now + 20s);
  EXPECT_FALSE(d.claim(now + 20s, now + 20s, 1));
  EXPECT_EQ(d.next_look(), now + 30s);
}

}  // namespace
}  // namespace tenure
