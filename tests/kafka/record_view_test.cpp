// SPDX-License-Identifier: Apache-2.0
// Goal: what follows from reads of the record is right: rules 4 to 7 and 9 of backends/kafka/README.md. Method: reads
// are handed to one view at moments that are only numbers, and its answers are compared.
#include "record_view.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;
using Time = Clock::Time;

constexpr auto lease = 6250ms;
constexpr auto at_once = Time::min();
constexpr Time start{1h};

RecordView view(Token highest = {}, bool first_claim_waits = false) {
  return {"mine", lease, first_claim_waits, highest};
}

Commit record(std::int64_t token, const std::string& incarnation = "other", bool released = false,
              std::uint64_t seq = 1, Clock::Duration its_lease = lease) {
  return {token, encode(Record{released, its_lease, seq, {incarnation, incarnation, incarnation + ":1"}})};
}

Incumbent incumbent(const RecordView& view, Time now) {
  const auto sight = view.sight(now);
  const auto* found = std::get_if<Incumbent>(&sight);
  EXPECT_TRUE(found) << "another sight, number " << sight.index();
  return found ? *found : Incumbent{};
}

TEST(RecordView, BeforeTheFirstReadTheSightIsUnknown) {
  EXPECT_FALSE(view().was_read());
  EXPECT_TRUE(std::holds_alternative<Unknown>(view().sight(start)));
  EXPECT_EQ(view().led_until(), std::nullopt);
}

TEST(RecordView, HasAllTextsOfWhoLeads) {
  const Incumbent who{.name = "n", .incarnation = "i", .address = "a:1", .version = "9.9"};
  auto v = view();
  v.observed(Commit{41, encode(Record{.lease = lease, .seq = 1, .who = who})}, start);
  auto told = incumbent(v, start + 1s);
  EXPECT_EQ(told.token, Token{41});
  EXPECT_EQ(told.remaining, lease - 1s);
  told.token = {}, told.remaining = {};
  EXPECT_EQ(told, who);
}

// Rule 4: the wait.

TEST(RecordView, ALeaseIsWaitedForFromWhenItsRecordWasFirstSeen) {
  auto v = view();
  v.observed(record(41), start);
  v.observed(record(41), start + 1s);
  v.believed(record(41), start + 2s, start + 2s);
  EXPECT_EQ(v.claimable_at(start + 2s, false), start + lease);
  EXPECT_EQ(v.led_until(), start + lease);
}

TEST(RecordView, ARenewalRestartsTheWait) {
  auto v = view();
  v.believed(record(41), start, start);
  v.believed(record(41, "other", false, 2), start + 1s, start);
  EXPECT_EQ(v.claimable_at(start, false), start + 1s + lease);
}

TEST(RecordView, AReleasedRecordAndOnesOwnAreClaimedAtOnce) {
  for (const auto& free : {record(41, "other", true), record(41, "mine")}) {
    auto v = view();
    v.believed(free, start, start);
    EXPECT_EQ(v.claimable_at(start, false), at_once);
    EXPECT_TRUE(std::holds_alternative<Vacant>(v.sight(start)));
  }
}

TEST(RecordView, TheLongestLeaseEverSeenIsWaitedFor) {
  auto v = view();
  v.observed(record(41, "slow", false, 1, 20s), start);
  v.believed(record(42), start + 1s, start);
  EXPECT_EQ(v.longest_lease(), 20s);
  EXPECT_EQ(v.claimable_at(start, false), start + 1s + 20s);
  EXPECT_EQ(v.led_until(), start + 1s + lease) << "its own lease is shorter";
}

TEST(RecordView, ALeaseShorterThanOursIsWaitedForAsOurs) {
  auto v = view();
  v.believed(record(41, "fast", false, 1, 1s), start, start);
  EXPECT_EQ(v.claimable_at(start, false), start + lease);
}

TEST(RecordView, TheSightHasTheHolderAndWhatRemainsOfItsLease) {
  auto v = view();
  v.observed(record(41), start);
  EXPECT_EQ(incumbent(v, start + 1s), (Incumbent{"other", "other", "other:1", {41}, lease - 1s}));
  EXPECT_EQ(incumbent(v, start + 1h).remaining, 0s);
}

// Rule 5: an absent record.

TEST(RecordView, AnAbsentRecordOfANewGroupIsClaimedAtOnce) {
  auto v = view();
  v.believed(std::nullopt, start, start);
  EXPECT_EQ(v.claimable_at(start, true), at_once);
  EXPECT_EQ(v.claimable_at(start, false), start + lease);
}

TEST(RecordView, AnAbsentRecordThatWasSeenOnceIsWaitedFor) {
  auto known = view({5});
  known.believed(std::nullopt, start, start);
  EXPECT_EQ(known.claimable_at(start, true), start + lease);
  for (const bool acknowledged : {false, true}) {
    auto v = view();
    acknowledged ? v.acknowledged({0}) : void(v.observed(Commit{0, "somebody's own"}, start));
    v.believed(std::nullopt, start, start);
    EXPECT_EQ(v.claimable_at(start, true), start + lease) << acknowledged;
  }
}

TEST(RecordView, AnAbsenceCountsFromTheFirstAssignmentSinceWhichNoRecordStood) {
  auto v = view();
  v.believed(std::nullopt, start, start);
  v.believed(std::nullopt, start + 3s, start + 2s);
  EXPECT_EQ(v.claimable_at(start + 2s, false), start + lease);
  v.end_absence();
  v.believed(std::nullopt, start + 3s, start + 2s);
  EXPECT_EQ(v.claimable_at(start + 2s, false), start + 2s + lease);
}

TEST(RecordView, WhereTheFirstClaimWaitsAnAbsenceCountsFromEveryAssignment) {
  auto v = view({}, true);
  v.believed(std::nullopt, start, start);
  EXPECT_EQ(v.claimable_at(start, true), start + lease);
  v.believed(std::nullopt, start + 3s, start + 2s);
  EXPECT_EQ(v.claimable_at(start + 2s, false), start + 2s + lease);
}

// Rule 6: a foreign commit.

TEST(RecordView, AForeignCommitIsALeaseOfAnUnknownHolder) {
  for (const auto& foreign : {Commit{7, "somebody's own"}, Commit{0, record(0).metadata}}) {
    auto v = view();
    EXPECT_TRUE(v.believed(foreign, start, start).foreign);
    EXPECT_FALSE(v.believed(foreign, start + 1s, start).foreign) << "told once";
    EXPECT_EQ(v.claimable_at(start, true), start + lease);
    EXPECT_EQ(incumbent(v, start), (Incumbent{"", "", "", token_of(foreign), lease}));
    EXPECT_EQ(v.led_until(), std::nullopt);
  }
  auto v = view();
  EXPECT_FALSE(v.believed(record(41), start, start).foreign);
}

TEST(RecordView, AForeignCommitIsWaitedForFromTheAssignmentBecauseTheSameMayHaveBeenMadeTwice) {
  for (const bool fell : {false, true}) {
    auto v = view(Token{fell ? 41U : 0U});
    v.believed(Commit{0, ""}, start, start);
    v.believed(Commit{0, ""}, start + 3s, start + 2s);
    EXPECT_EQ(v.claimable_at(start + 2s, false), start + 2s + lease) << fell;
  }
}

// Rule 7: a token that fell.

TEST(RecordView, AnOlderAnswerOfAnObserverIsNotBelieved) {
  auto v = view();
  v.observed(record(41, "other", false, 5), start);
  for (const auto& older : {record(40, "other", true), record(41, "other", false, 4)}) {
    EXPECT_EQ(v.observed(older, start + 1s).fell_from, std::nullopt);
    EXPECT_EQ(incumbent(v, start + 1s), (Incumbent{"other", "other", "other:1", {41}, lease - 1s}));
  }
}

TEST(RecordView, AnOlderAnswerThatLastsForALeaseIsALostCommit) {
  auto v = view();
  v.observed(record(41), start);
  v.observed(record(30), start + 1s);
  EXPECT_EQ(v.observed(record(30), start + 1s + lease - 1ms).fell_from, std::nullopt);
  EXPECT_EQ(v.observed(record(30), start + 1s + lease).fell_from, Token{41});
  EXPECT_EQ(incumbent(v, start + 1s + lease).token, Token{30});
  EXPECT_EQ(v.highest(), Token{41});
}

/// Whoever leads by a lower token never saw the lost one.
TEST(RecordView, AfterALostCommitTheRenewalsOfTheLowerTokenAreFollowed) {
  auto v = view();
  v.observed(record(41), start);
  v.observed(record(31), start + 1s);
  auto now = start + 1s + lease;
  ASSERT_EQ(v.observed(record(31), now).fell_from, Token{41});
  for (std::uint64_t seq = 2; seq < 20; ++seq) {
    now += 1s;
    EXPECT_EQ(v.observed(record(31, "other", false, seq), now).fell_from, std::nullopt) << seq;
    EXPECT_EQ(incumbent(v, now).remaining, lease) << seq;
  }
  EXPECT_EQ(v.observed(record(30), now).fell_from, std::nullopt);
  EXPECT_EQ(incumbent(v, now).token, Token{31}) << "an older answer is still one";
  EXPECT_EQ(v.believed(record(31, "other", true, 20), now, now).fell_from, std::nullopt) << "told once";
  EXPECT_LE(v.claimable_at(now, false), now);
  EXPECT_EQ(v.next_token({}, 0), Token{42}) << "above what was lost";
}

TEST(RecordView, AnAcknowledgedTokenThatFellToTheSameRecordIsAnotherAlarm) {
  auto v = view();
  v.observed(record(41), start);
  ASSERT_EQ(v.believed(record(30), start, start).fell_from, Token{41});
  v.acknowledged({42});
  EXPECT_EQ(v.believed(record(30), start + 1h, start).fell_from, Token{42});
  EXPECT_EQ(v.claimable_at(start, false), start + 1h + lease);
}

TEST(RecordView, AnOlderAnswerBetweenTwoGoodOnesIsForgotten) {
  auto v = view();
  v.observed(record(41), start);
  v.observed(record(30), start + 1s);
  v.observed(record(41), start + 2s);
  EXPECT_EQ(v.observed(record(30), start + 1s + lease).fell_from, std::nullopt);
}

TEST(RecordView, ABelievedReadOfALowerTokenIsALostCommitAndAFullLease) {
  auto v = view();
  v.observed(record(41), start);
  EXPECT_EQ(v.believed(record(30, "other", true), start + 1s, start).fell_from, Token{41});
  EXPECT_EQ(v.claimable_at(start, false), start + 1s + lease) << "though it says that it is released";
  EXPECT_EQ(v.believed(record(30, "other", true), start + 2s, start).fell_from, std::nullopt) << "told once";
  EXPECT_EQ(v.claimable_at(start, false), start + 1s + lease);
}

/// Who had the lost token may lead for that long, whoever claims and releases meanwhile.
TEST(RecordView, NoRecordAfterALostCommitIsClaimedBeforeAFullLease) {
  auto v = view();
  v.observed(record(41), start);
  ASSERT_EQ(v.believed(record(31, "other", true), start + 1s, start).fell_from, Token{41});
  v.believed(record(32, "newcomer", true), start + 2s, start + 2s);
  EXPECT_EQ(v.claimable_at(start + 2s, false), start + 1s + lease);
  v.believed(std::nullopt, start + 3s, start);
  EXPECT_GE(v.claimable_at(start, false), start + 1s + lease);
}

/// Whoever leads overwrites it by the token that he has.
TEST(RecordView, ARenewalOverAForeignCommitOfAHigherOffsetIsNoLossOfTheStores) {
  auto v = view();
  v.observed(record(41), start);
  EXPECT_TRUE(v.observed(Commit{100000, "somebody's own"}, start + 1s).foreign);
  for (std::uint64_t seq = 2; seq < 12; ++seq) {
    const auto now = start + seq * 1s;
    EXPECT_EQ(v.observed(record(41, "other", false, seq), now).fell_from, std::nullopt);
    EXPECT_EQ(incumbent(v, now).remaining, lease);
  }
  EXPECT_EQ(v.next_token({}, 0), Token{100001});
}

TEST(RecordView, AForeignCommitOfALowerTokenIsNoLossOfTheStores) {
  auto v = view();
  v.observed(record(41), start);
  const auto found = v.believed(Commit{0, ""}, start, start);
  EXPECT_TRUE(found.foreign);
  EXPECT_EQ(found.fell_from, std::nullopt);
}

// Rule 9: the token of a claim.

TEST(RecordView, TheNextTokenIsOneAboveAllThatWasReadAcknowledgedAndTried) {
  auto v = view({5});
  v.observed(record(41, "other", true), start);
  EXPECT_EQ(v.next_token({}, 0), Token{42});
  EXPECT_EQ(v.next_token({50}, 0), Token{51});
  v.acknowledged({60});
  EXPECT_EQ(v.highest(), Token{60});
  EXPECT_EQ(v.next_token({50}, 0), Token{61});
}

TEST(RecordView, AcknowledgingALowerTokenLowersNothing) {
  auto v = view({5});
  v.acknowledged({4});
  EXPECT_EQ(v.highest(), Token{5});
}

TEST(RecordView, WhereNoRecordOfOursStandsTheNextTokenIsAboveTheWallClock) {
  for (const auto& found : {std::optional<Commit>(), std::optional(Commit{0, ""})}) {
    auto v = view();
    v.believed(found, start, start);
    EXPECT_EQ(v.next_token({}, 1'700'000'000'000), Token{1'700'000'000'001});
    EXPECT_EQ(v.next_token({}, -1), Token{1}) << "a wall clock before 1970";
  }
  auto v = view();
  v.believed(record(41), start, start);
  EXPECT_EQ(v.next_token({}, 1'700'000'000'000), Token{42});
}

TEST(RecordView, NoTokenFollowsTheLargestOffset) {
  constexpr auto last = std::numeric_limits<std::int64_t>::max();
  auto v = view();
  v.believed(record(last - 1), start, start);
  EXPECT_EQ(v.next_token({}, 0), Token{last});
  v.believed(record(last), start, start);
  EXPECT_EQ(v.next_token({}, 0), std::nullopt);
}

}  // namespace
}  // namespace tenure::kafka
