// SPDX-License-Identifier: Apache-2.0
// Goal: Neli joins and claims by rules 1 to 10. The numbers are those of backends/kafka/README.md. Method: see
// neli_scene.hpp.
#include <gtest/gtest.h>

#include <limits>

#include <tenure/version.hpp>

#include "neli_scene.hpp"

namespace tenure::kafka {
namespace {

using NeliClaim = NeliTest;
using NeliJoin = NeliTest;
using NeliNonce = NeliTest;
using NeliRank = NeliTest;
using NeliWait = NeliTest;

// ---- rules 1 and 2: join ----

TEST_F(NeliJoin, ReadsTheRecordBeforeItOpensAMember) {
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<effect::Open>());
  s.observed(record(41));
  EXPECT_TRUE(s.did<effect::Open>());
}

TEST_F(NeliJoin, RanksByTokenThenCreationThenIncarnation) {
  s.call(Verb::acquire);
  s.advance(1234ms);
  s.observed(record(41));
  EXPECT_EQ(s.take<effect::Open>().client_id, "!tenure.00000000000000000041.1700000001234.mine");
}

TEST_F(NeliJoin, RanksBeforeEveryOrdinaryMember) {
  s.call(Verb::acquire);
  s.observed(std::nullopt);
  const auto ours = s.take<effect::Open>().client_id;
  for (const std::string name : {"rdkafka", "consumer-jobs-1", "console-consumer", "sarama", "0", "-", "A", ".", "_"})
    EXPECT_LT(ours, name);
}

TEST_F(NeliJoin, TriesUntilTheRecordIsRead) {
  s.call(Verb::acquire);
  s.observed(unreachable);
  EXPECT_EQ(s.take_answer<Unknown>().error, unreachable);
  EXPECT_FALSE(s.did<effect::Open>());
  s.advance(250ms);
  s.observed(record(41));
  EXPECT_TRUE(s.did<effect::Open>());
}

TEST_F(NeliJoin, ReportsTheSameTroubleAgainOnlyAtTheLimit) {
  s.call(Verb::acquire);
  s.observed(unreachable);
  s.take_answer<Unknown>();
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<effect::Reply>()) << "a hot loop of the caller";
  s.advance(1990ms);
  EXPECT_EQ(s.take_answer<Unknown>().error, unreachable);
}

TEST_F(NeliJoin, SaysWhoLeadsWhileItWaitsForAnAssignment) {
  s.call(Verb::acquire);
  s.observed(record(41));
  const auto holder = s.take_answer<Denied>().holder;
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->name, "other");
  EXPECT_EQ(holder->address, "other:1");
  EXPECT_EQ(holder->token, Token{41});
  EXPECT_EQ(holder->remaining, lease);
}

TEST_F(NeliJoin, AMemberThatCannotBeOpenedIsTriedAgainAfterAPause) {
  s.join();
  s.give(fact::Broken{s.handle, {Fault::misconfigured, "no such file"}});
  EXPECT_TRUE(s.did<effect::Drop>());
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Unknown>().error.message, "no such file");
  s.advance(999ms);
  EXPECT_FALSE(s.did<effect::Observe>());
  s.advance(1ms);
  s.observed(std::nullopt);
  EXPECT_TRUE(s.did<effect::Open>());
}

// ---- rules 3 to 7: what decides a claim ----

// Rule 3: the nonce.

TEST_F(NeliNonce, IsAcknowledgedBeforeTheReadThatDecides) {
  s.join(record(40, "other", true));
  s.assigned(true);
  EXPECT_TRUE(s.did<effect::Assign>());
  s.call(Verb::acquire);
  s.take_commit(1);
  EXPECT_FALSE(s.did<effect::ReadMember>());
  s.committed();
  EXPECT_FALSE(s.did<effect::SendCommit>()) << "claimed by what the observer read";
  s.read(record(40, "other", true));
  EXPECT_TRUE(s.did<effect::SendCommit>());
}

TEST_F(NeliNonce, AReadWithoutItDecidesNothing) {
  s.join(record(41));
  s.own();
  s.call(Verb::acquire);
  s.read(record(40, "other", true), "somebody's");
  EXPECT_FALSE(s.did<effect::SendCommit>());
  const auto first = s.nonce;
  s.advance(249ms);
  EXPECT_FALSE(s.did<effect::SendCommit>());
  s.advance(1ms);
  s.take_commit(1);
  EXPECT_NE(s.nonce, first) << "unique per attempt";
}

TEST_F(NeliNonce, AFailedNonceIsReplacedAfterAPause) {
  s.join();
  s.assigned(true);
  s.take_commit(1);
  const auto first = s.nonce;
  s.committed(Outcome::failed, unreachable);
  s.advance(249ms);
  EXPECT_FALSE(s.did<effect::SendCommit>());
  s.advance(1ms);
  s.take_commit(1);
  EXPECT_NE(s.nonce, first);
}

TEST_F(NeliNonce, ServesEveryReadUntilTheNextRevoke) {
  s.join(record(41));
  s.own();
  for (int i = 0; i < 3; ++i) {
    s.read(record(41, "other", false, 2 + static_cast<unsigned>(i)));
    s.advance(250ms);
    EXPECT_FALSE(s.did<effect::SendCommit>());
  }
  const auto first = s.nonce;
  s.rebalanced(true, 8);
  s.take_commit(1);
  EXPECT_NE(s.nonce, first);
}

TEST_F(NeliNonce, ThatWasSentTwiceCostsNothing) {
  s.join();
  s.assigned(true);
  s.take_commit(1);
  s.committed_again();
  EXPECT_FALSE(s.did<effect::Drop>());
  EXPECT_TRUE(s.did<effect::ReadMember>());
}

TEST_F(NeliNonce, AReadThatFailedIsRepeatedAfterAPauseAndAnotherOneDecidesNothing) {
  s.join();
  s.own();
  const auto asked = s.take<effect::ReadMember>().id;
  s.give(fact::MemberRead{asked + 1, Reading{record(40, "other", true), s.nonce}});
  EXPECT_FALSE(s.claims());
  s.give(fact::MemberRead{asked, unreachable});
  s.advance(249ms);
  EXPECT_FALSE(s.did<effect::ReadMember>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<effect::ReadMember>());
}

TEST_F(NeliNonce, UnansweredForALeaseCostsTheHandle) {
  s.join();
  s.assigned(true);
  s.forget();
  s.await();
  s.expect_drop_after(lease);
}

/// Another member that comes and goes would else keep it in the group for ever.
TEST_F(NeliNonce, WhatIsOwedOverARebalanceCounts) {
  for (const bool read_between : {false, true}) {
    s = Scene();
    s.join(record(40));
    s.own();
    s.await();
    s.advance(lease / 2);
    s.revoked();
    s.advance(1s);
    s.forget();
    s.own(8);
    if (read_between) {
      s.read(record(40));
      s.revoked();
      s.own(9);
    }
    s.await();
    s.forget();
    s.expect_drop_after(read_between ? lease : lease / 2);
  }
}

TEST_F(NeliNonce, WhatIsOwedCountsOnceAlsoIfAnAnswerIsOutstanding) {
  s.join(record(40));
  s.assigned(true);
  s.await();
  s.advance(lease / 2 + 100ms);
  s.revoked();
  s.advance(499ms);
  EXPECT_FALSE(s.did<effect::Drop>()) << "its answer may still come";
}

TEST_F(NeliNonce, NoPartitionForItMeansToLookAtTheTopicAgain) {
  s.join();
  s.assigned(true);
  s.take_commit(1);
  s.forget();
  s.committed(Outcome::unknown_topic, {Fault::misconfigured, "no partition 1"});
  EXPECT_TRUE(s.did<effect::Drop>());
  s.call(Verb::acquire);
  s.advance(1s);
  EXPECT_TRUE(s.take<effect::Observe>().check_topic);
}

/// The client then takes the place away, and gives no other.
TEST_F(NeliNonce, ARenewalWithoutATopicMeansToLookAtItOnceTheLeaseIsOver) {
  s.lead(40);
  s.call(Verb::renew, {41});
  s.take_commit(0);
  s.committed(Outcome::unknown_topic, {Fault::misconfigured, "no topic"});
  s.revoked();
  s.forget();
  s.advance(lease);
  s.call(Verb::acquire);
  s.advance(1s);
  EXPECT_TRUE(s.take<effect::Observe>().check_topic) << "it may be gone";
}

// Rule 4: the wait, and what ends it.
TEST_F(NeliWait, AReleasedRecordIsClaimedAtOnce) {
  s.own_what_is_free();
  EXPECT_EQ(s.claim(), 41);
}

TEST_F(NeliWait, OnesOwnRecordIsClaimedAtOnce) {
  s.join(record(40, "mine"));
  s.own_over(record(40, "mine"));
  EXPECT_EQ(s.claim(), 41);
}

// Rule 5: an absent record.
TEST_F(NeliWait, AnAbsentRecordOfANewGroupIsClaimedAtOnceByTheWallClocksToken) {
  s.join();
  s.own_over(std::nullopt, 1);
  EXPECT_EQ(s.claim(), unix_start + 1);
}

/// How long an owner waits after its assignment before it claims over an absent record.
Clock::Duration wait_of_absent(Neli::Config with, int generation) {
  Scene s(std::move(with));
  s.join();
  s.await();
  s.stands(std::nullopt);
  s.advance(3s);  // which an observer sees all the time, and which proves nothing
  s.answering = false;
  const auto from = s.now;
  s.own(generation);
  s.read(std::nullopt);
  for (int i = 0; i < 100 && !s.did<effect::SendCommit>(); ++i) {
    s.call(Verb::acquire);
    if (s.did<effect::SendCommit>()) break;
    s.advance(250ms);
    if (s.did<effect::ReadMember>()) s.read(std::nullopt);
  }
  return s.now - from;
}

TEST_F(NeliWait, AnAbsentRecordOfAGroupThatWasThereIsALeaseAway) {
  EXPECT_EQ(wait_of_absent(config(), 1), 0s);
  EXPECT_EQ(wait_of_absent(config(), 2), lease);
}

/// The same from its first assignment, in a group that rebalances every two seconds. `meanwhile` happens in the
/// first rebalance.
template <class F>
Clock::Duration wait_of_absent_in_turmoil(Neli::Config with, F meanwhile) {
  Scene s(std::move(with));
  s.join();
  const auto from = s.now;
  for (int generation = 7; generation < 20; ++generation) {
    s.own(generation);
    s.read(std::nullopt);
    s.call(Verb::acquire);
    for (int i = 0; i < 8 && !s.did<effect::SendCommit>(); ++i) {
      s.advance(250ms);
      if (s.did<effect::ReadMember>()) s.read(std::nullopt);
      s.call(Verb::acquire);
    }
    if (s.did<effect::SendCommit>()) break;
    s.revoked();
    if (generation == 7) meanwhile(s);
    s.forget();
  }
  return s.now - from;
}

TEST_F(NeliWait, AnAbsentRecordIsWaitedForOnceHoweverOftenTheGroupRebalances) {
  EXPECT_EQ(wait_of_absent_in_turmoil(config(), [](Scene&) {}), lease);
}

TEST_F(NeliWait, AnAbsentRecordThatStoodMeanwhileIsWaitedForAnew) {
  const auto stood = [](Scene& it) {
    it.await();
    it.advance(250ms);
    it.observed(record(41));
  };
  EXPECT_GE(wait_of_absent_in_turmoil(config(), stood), lease + 2s);
}

TEST_F(NeliWait, AnAbsentRecordIsWaitedForAnewByAnotherMember) {
  // Without us the group may have been empty, and whoever led meanwhile be deleted from it.
  const auto lost = [](Scene& it) {
    it.revoked(true);
    it.stands(std::nullopt);
    it.advance(1s);
    it.answering = false;
    it.opened();
  };
  EXPECT_GE(wait_of_absent_in_turmoil(config(), lost), lease + 2s);
}

/// A foreign commit of -1 reads like none, and may stand over the record of whoever led then.
TEST_F(NeliWait, AnAbsentRecordIsWaitedForAnewAfterAGenerationInWhichAnotherOneMayHaveLed) {
  for (const bool heard_of : {false, true}) {
    s = Scene();
    s.join();
    s.own_over(std::nullopt, 7);
    s.await();
    s.stands(std::nullopt);
    s.advance(lease - 1s);
    s.revoked();
    if (heard_of) s.assigned(false, 8), s.revoked();
    s.answering = false;
    s.forget();
    s.own_over(std::nullopt, 9);
    s.await();
    s.stands(std::nullopt);
    s.advance(lease - 1ms);
    EXPECT_FALSE(s.claims()) << heard_of;
    s.advance(1ms);
    EXPECT_TRUE(s.claims()) << heard_of;
  }
}

TEST_F(NeliWait, WhereTheTopicMayBeDeletedAnAbsentRecordIsWaitedForFromEveryAssignment) {
  auto with = config();
  with.first_claim_waits = true;
  EXPECT_GT(wait_of_absent_in_turmoil(with, [](Scene&) {}), 3 * lease) << "and in turmoil never";
}

TEST_F(NeliWait, AnAbsentRecordThatThisProcessHasSeenIsALeaseAway) {
  auto with = config();
  with.highest = {5};
  EXPECT_GE(wait_of_absent(with, 1), lease);
}

TEST_F(NeliWait, AnAbsentRecordAfterAForeignCommitIsALeaseAway) {
  s.join(Commit{0, "somebody's own"});
  s.own_over(std::nullopt, 1);
  EXPECT_FALSE(s.claims());
}

TEST_F(NeliWait, AnAbsentRecordIsALeaseAwayForThoseWhoAskForIt) {
  auto with = config();
  with.first_claim_waits = true;
  EXPECT_EQ(wait_of_absent(with, 1), lease);
}

TEST_F(NeliWait, WhoJoinedBeforeTheGroupWasThereClaimsAtOnceInALaterGeneration) {
  for (const bool by_generation : {false, true})
    for (const bool evicted : {false, true}) {
      Scene one;
      one.call(Verb::acquire);
      one.observed(std::nullopt, !by_generation);
      one.opened();
      one.assigned(false, by_generation ? 1 : 2);
      one.revoked();
      if (evicted) {
        one.revoked(true);
        one.stands(std::nullopt);
        one.advance(1s);
        one.answering = false;
        one.opened();
      }
      one.own_over(std::nullopt, 3);
      one.call(Verb::acquire);
      EXPECT_EQ(one.did<effect::SendCommit>(), !evicted) << by_generation << evicted;
    }
}

/// A process of roles keeps its handle when it is evicted. The group may have been empty meanwhile.
TEST_F(NeliWait, WhoWasEvictedBeganTheGroupNoMore) {
  struct Sent {
    std::uint64_t id{};
  };
  for (const bool lost : {false, true}) {
    Membership<Sent> m;
    m.open(1, "rank", false, Scene::start);
    m.take_place(1, Scene::start);
    m.lose_place(lost, Scene::start);
    m.take_place(2, Scene::start);
    EXPECT_EQ(m->founder, !lost);
  }
}

// Rule 24: the rank is of when the handle was opened.

TEST_F(NeliRank, WhoIsDealtPartition0BeforeALeaderThatClaimedMeanwhileMakesRoom) {
  for (const std::int64_t ranked : {40, 41}) {
    s = Scene();
    s.join(record(ranked));
    s.own_over(record(41), 2);
    EXPECT_EQ(s.did<effect::Drop>(), ranked < 41) << "it knew of that one when it was ranked";
  }
}

TEST_F(NeliRank, ItMakesRoomOnce) {
  s.join(record(40));
  s.own_over(record(41), 2);
  ASSERT_TRUE(s.did<effect::Drop>());
  s.stands(record(41));
  s.advance(1s);
  s.answering = false;
  s.opened();
  s.forget();
  s.own_over(record(42), 4);
  EXPECT_FALSE(s.did<effect::Drop>());
}

TEST_F(NeliRank, WhoWasThereWhenTheLeaderDiedMakesNoRoom) {
  s.join(record(40));
  s.assigned(false, 1);
  s.stands(record(41));
  s.advance(lease / 2);
  s.answering = false;
  s.revoked();
  s.own_over(record(41), 2);
  EXPECT_FALSE(s.did<effect::Drop>());
}

TEST_F(NeliRank, WhatIsReleasedIsClaimedWhateverTheRank) {
  s.join(record(40));
  s.own_over(record(41, "other", true), 2);
  EXPECT_FALSE(s.did<effect::Drop>());
}

// Rule 4 again: another's record.
TEST_F(NeliWait, AnothersRecordIsWaitedForFromWhenItWasFirstSeen) {
  s.join(record(41));
  s.await();
  s.advance(3s);  // as a follower
  s.own_over(record(41));
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->remaining, lease - 3s);
  s.await(of_41);
  s.forget<effect::ReadMember>();
  s.advance(lease - 3s - 1ms);
  s.forget();
  s.advance(1ms);
  EXPECT_TRUE(s.did<effect::Wake>());
  EXPECT_EQ(s.claim(), 42);
}

TEST_F(NeliWait, AChangeRestartsTheWaitAndAReleaseEndsIt) {
  s.join(record(41));
  s.own_over(record(41));
  s.advance(250ms);
  s.read(record(41, "other", false, 2));
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->remaining, lease);
  s.advance(250ms);
  s.read(record(41, "other", true, 3));
  EXPECT_EQ(s.claim(), 42);
}

TEST_F(NeliWait, TheLongestLeaseSeenIsWaitedFor) {
  for (const bool seen_before : {false, true}) {
    s = Scene();
    s.join(record(41, "slow", false, 1, 20s));
    const auto now_there = seen_before ? record(41) : record(41, "slow", false, 1, 20s);
    s.own_over(now_there);
    s.await(Sight(Incumbent{"x", "x", "", {41}, 1s}));
    s.forget();
    for (auto left = 20s - 250ms; left > 0ms; left -= 250ms) {
      s.advance(250ms);
      if (s.did<effect::ReadMember>()) s.read(now_there);
      s.call(Verb::acquire);
      ASSERT_FALSE(s.did<effect::SendCommit>()) << left / 1ms;
    }
    s.advance(250ms);
    EXPECT_TRUE(s.claims());
  }
}

// Rule 6: a foreign commit.
/// The first claim over a commit that is not one of ours, a lease after it was first seen.
std::int64_t claim_over(const Commit& foreign) {
  Scene s;
  s.join(foreign);
  s.own_over(foreign);
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->remaining, lease);
  s.await(Incumbent{"", "", "", token_of(foreign), 1s});
  s.stands(foreign);
  s.advance(lease);
  s.call(Verb::acquire);
  return s.take_commit(0).offset;
}

TEST_F(NeliWait, AForeignCommitCountsAsALeaseAndItsOffsetIsExceeded) {
  EXPECT_EQ(claim_over({2 * unix_start, "somebody's own"}), 2 * unix_start + 1);
}

TEST_F(NeliWait, OverAForeignCommitTokensDoNotBeginAnew) {
  // A console consumer's, or that of a reset of the offsets: the topic is empty, so both write 0.
  const auto later = unix_start + lease / 1ms;
  for (const auto& foreign : {Commit{0, ""}, Commit{1000, "somebody's own"}, Commit{0, record(0).metadata}})
    EXPECT_EQ(claim_over(foreign), later + 1) << foreign.metadata;
}

// Rule 7: a token that fell.
TEST_F(NeliWait, ATokenThatFellIsAnAlarmAndAFullLease) {
  s.join(record(41));
  s.own_over(record(30, "other", true));
  EXPECT_TRUE(s.did<effect::Tell>());
  EXPECT_FALSE(s.claims()) << "no shortcut by a record of the past";
  s.forget<effect::ReadMember>();
  s.advance(250ms);
  s.read(record(30, "other", true));
  s.advance(lease - 251ms);
  EXPECT_FALSE(s.claims());
  s.forget();
  s.advance(1ms);
  EXPECT_EQ(s.claim(), 42) << "above what was seen, not above what was read";
}

TEST_F(NeliWait, AnObserversOlderAnswerIsDiscarded) {
  s.join(record(41, "other", false, 5));
  for (const auto& older : {record(40, "other", true), record(41, "other", false, 4)}) {
    s.await(of_41);
    s.advance(250ms);
    s.observed(older);
    EXPECT_FALSE(s.did<effect::Wake>());
    s.call(Verb::acquire);
    const auto holder = s.take_answer<Denied>().holder;
    EXPECT_EQ(holder->token, Token{41});
    EXPECT_EQ(holder->remaining, lease - (s.now - Scene::start)) << "its wait goes on";
  }
}

TEST_F(NeliWait, AnObserversOlderAnswerForALeaseIsAnAlarm) {
  s.join(record(41));
  s.await(of_41);
  s.stands(record(30));
  s.advance(lease - 250ms);
  EXPECT_FALSE(s.did<effect::Tell>());
  s.advance(500ms);
  EXPECT_TRUE(s.did<effect::Tell>());
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->token, Token{30});
}

TEST_F(NeliWait, AfterALostCommitAFollowerFollowsTheRenewalsOfTheLowerToken) {
  s.join(record(41));
  s.assigned(false);
  s.await(of_41);
  s.stands(record(31));
  s.advance(lease + 250ms);
  EXPECT_TRUE(s.did<effect::Tell>());
  s.forget();
  for (std::uint64_t seq = 2; seq < 20; ++seq) {
    s.stands(record(31, "other", false, seq));
    s.advance(1s);
    s.call(Verb::acquire);
    const auto holder = s.take_answer<Denied>().holder;
    ASSERT_TRUE(holder);
    EXPECT_EQ(holder->token, Token{31});
    EXPECT_GT(holder->remaining, lease - 2s) << seq;
    s.await(*holder);
  }
  EXPECT_FALSE(s.did<effect::Tell>()) << "told once";
}

// ---- rules 8 to 10: claim ----

TEST_F(NeliClaim, IsSentForACallOnly) {
  s.own_what_is_free();
  s.advance(2s);
  EXPECT_FALSE(s.did<effect::SendCommit>());
}

TEST_F(NeliClaim, GrantsTheTokenThatWasAcknowledged) {
  s.lead(40);
  EXPECT_EQ(s.token, Token{41});
  EXPECT_EQ(decode(s.sent.commit.metadata)->who.incarnation, "mine");
  EXPECT_EQ(decode(s.sent.commit.metadata)->who.name, "me");
  EXPECT_EQ(decode(s.sent.commit.metadata)->who.version, version());
  EXPECT_EQ(decode(s.sent.commit.metadata)->lease, lease);
}

TEST_F(NeliClaim, AfterAClaimOfUnknownOutcomeNoOtherGoesOutInThatGeneration) {
  // Handled after its successor, it would write the old token over the new one.
  s.own_what_is_free();
  s.advance(200ms);
  EXPECT_EQ(s.claim(), 41);
  s.committed(Outcome::failed, unreachable);
  EXPECT_EQ(s.take_answer<Unknown>().error, unreachable);
  EXPECT_EQ(s.take<effect::Drop>().handle, s.handle)
      << "a member id that does not join again is in no later generation";
  s.call(Verb::acquire);
  s.advance(1s);
  EXPECT_FALSE(s.did<effect::SendCommit>());
  s.observed(record(40, "other", true));  // it may be in the log and not be shown
  s.opened();
  s.own_over(record(40, "other", true), 8);
  EXPECT_EQ(s.claim(), 42) << "a failed token is never used again";
}

TEST_F(NeliClaim, AfterARenewalOfUnknownOutcomeNoClaimGoesOutInThatGeneration) {
  for (const bool another_generation : {false, true}) {
    s = Scene();
    s.lead();
    s.ask_renewal();
    s.committed(Outcome::failed, unreachable);
    s.take_answer<Unknown>();
    s.advance(500ms);
    s.renew();  // the tenure goes on: it writes the same token
    if (another_generation) {
      s.rebalanced(true, 8);
      s.renew();
    }
    s.forget();
    s.advance(lease - margin);
    EXPECT_EQ(s.did<effect::Drop>(), !another_generation);
  }
}

TEST_F(NeliClaim, ARefusedClaimIsNoTenure) {
  for (const auto outcome : {Outcome::fenced, Outcome::unknown_topic, Outcome::failed}) {
    s = Scene();
    s.own_what_is_free();
    s.call(Verb::acquire);
    s.take_record();
    s.committed(outcome, fenced);
    EXPECT_EQ(s.take_answer<Unknown>().error, fenced);
    EXPECT_EQ(s.did<effect::Drop>(), outcome != Outcome::unknown_topic) << "it is no member, or the claim may come yet";
    s.call(Verb::renew, {41});
    EXPECT_FALSE(s.did<effect::SendCommit>());
    s.take_answer<Denied>();
  }
}

TEST_F(NeliClaim, ALateAcknowledgementIsNotUsed) {
  s.own_what_is_free();
  s.call(Verb::acquire, {}, Vacant{}, 1min);
  s.take_commit(0);
  s.advance(lease - margin);
  s.committed();
  s.take_answer<Unknown>();
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<effect::ReadMember>()) << "before a pause, long as the claim took";
  s.advance(250ms);
  s.read(record(41, "mine"));
  EXPECT_EQ(s.take_commit(0).offset, 42);
}

TEST_F(NeliClaim, AcknowledgedToNobodyIsNotUsed) {
  s.own_what_is_free();
  const auto id = s.call(Verb::acquire);
  s.take_commit(0);
  s.give(fact::Abandoned{id});
  const auto next = s.call(Verb::acquire);
  EXPECT_NE(next, id);
  s.committed();
  EXPECT_FALSE(s.did<effect::Reply>()) << "the claim was sent before this call asked";
  EXPECT_FALSE(s.did<effect::ReadMember>()) << "before a pause";
  s.advance(250ms);
  s.read(record(41, "mine"));
  EXPECT_EQ(s.take_commit(0).offset, 42);
  s.committed();
  EXPECT_EQ(s.take_answer<Granted>().token, Token{42});
}

/// Its records keep the others out, and it never leads.
TEST_F(NeliClaim, AlwaysAcknowledgedToNobodyCostsTheHandle) {
  s.own_what_is_free();
  std::int64_t token = 41;
  const auto until = s.now + 2 * lease;
  while (s.now < until && !s.did<effect::Drop>()) {
    const auto id = s.call(Verb::acquire);
    if (s.did<effect::Drop>()) break;
    s.take_commit(0);
    s.advance(500ms);
    s.give(fact::Abandoned{id});
    s.committed();
    s.advance(250ms);
    if (s.did<effect::Drop>()) break;
    s.read(record(token++, "mine"));
  }
  EXPECT_LT(s.now, until) << "it was dropped";
}

TEST_F(NeliClaim, GrantedToACallerThatHadGoneIsNotUsed) {
  s.own_what_is_free();
  const auto id = s.call(Verb::acquire);
  s.take_commit(0);
  s.committed();
  s.take_answer<Granted>();
  s.give(fact::Abandoned{id});
  s.call(Verb::renew, {41});
  s.take_answer<Denied>();
}

TEST_F(NeliClaim, OnesOwnTokenCountsAsSeen) {
  s.lead(40);
  EXPECT_EQ(s.neli.highest(), Token{41});
  s.advance(lease - margin);
  s.call(Verb::acquire);
  s.read(record(40, "other", true));  // the store has lost a commit that it had acknowledged
  EXPECT_TRUE(s.did<effect::Tell>());
  EXPECT_FALSE(s.did<effect::SendCommit>());
}

TEST_F(NeliClaim, AReadFromBeforeItIsNoLossOfTheStores) {
  const auto before = record(40);
  s.join(before);
  s.own_over(before);
  s.await(Incumbent{"other", "other", "other:1", {40}, 1s});
  s.advance(lease);
  const auto under_way = s.take<effect::ReadMember>().id;
  EXPECT_EQ(s.claim(), 41);
  s.committed();
  s.take_answer<Granted>();
  s.give(fact::MemberRead{under_way, Reading{before, s.nonce}});
  EXPECT_FALSE(s.did<effect::Tell>());
  s.call(Verb::observe);
  EXPECT_EQ(std::get<Incumbent>(s.take<effect::ReplySight>().sight).token, Token{41});
}

TEST_F(NeliClaim, UnansweredForALeaseCostsTheHandle) {
  s.own_what_is_free();
  s.call(Verb::acquire, {}, Vacant{}, 1min);
  s.forget();
  s.expect_drop_after(lease);
}

TEST_F(NeliClaim, NoTokenFollowsTheLargestOffset) {
  const auto last = record(std::numeric_limits<std::int64_t>::max(), "other", true);
  s.join(last);
  s.own_over(last);
  EXPECT_FALSE(s.claims());
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::corrupt);
}

TEST_F(NeliClaim, AnAcquireWhileLeadingIsANewTenure) {
  s.lead(40);
  s.call(Verb::acquire);
  s.read(record(41, "mine"));
  EXPECT_EQ(s.take_commit(0).offset, 42);
}

}  // namespace
}  // namespace tenure::kafka
