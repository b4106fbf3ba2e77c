// SPDX-License-Identifier: Apache-2.0
// Goal: Neli renews, loses and ends a tenure by rules 11 to 19. The numbers are those of backends/kafka/README.md.
// Method: see neli_scene.hpp.
#include <gtest/gtest.h>

#include <utility>

#include "neli_scene.hpp"

namespace tenure::kafka {
namespace {

using NeliDeadline = NeliTest;
using NeliEvicted = NeliTest;
using NeliRebalance = NeliTest;
using NeliRelease = NeliTest;
using NeliRenew = NeliTest;

// ---- rules 11 and 12: renew ----

TEST_F(NeliRenew, EveryRenewalDiffers) {
  s.lead();
  auto seq = decode(s.sent.commit.metadata)->seq;
  for (int i = 0; i < 3; ++i) {
    s.advance(500ms);
    s.renew();
    const auto record = decode(s.sent.commit.metadata);
    EXPECT_EQ(s.sent.commit.offset, static_cast<std::int64_t>(s.token.value));
    EXPECT_GT(record->seq, std::exchange(seq, record->seq));
  }
}

TEST_F(NeliRenew, OneRenewalIsOutstandingAtATime) {
  s.lead();
  const auto id = s.ask_renewal();
  s.advance(1s);
  s.give(fact::Abandoned{id});
  s.call(Verb::renew, s.token);
  s.give(fact::Committed{s.sent.id + 1, Outcome::accepted, {}});  // of no commit of this handle
  EXPECT_FALSE(s.did<effect::SendCommit>());
  s.committed();
  EXPECT_FALSE(s.did<effect::Reply>()) << "that one was sent before this call asked";
  s.take_record();
  s.committed();
  s.take_answer<Granted>();
}

TEST_F(NeliRenew, AFailedRenewalChangesNothingButTheNextAttempt) {
  s.lead();
  s.ask_renewal();
  s.committed(Outcome::failed, unreachable);
  EXPECT_EQ(s.take_answer<Unknown>().error, unreachable);
  s.call(Verb::renew, s.token);
  s.advance(99ms);
  EXPECT_FALSE(s.did<effect::SendCommit>());
  s.advance(1ms);
  s.take_record();
  s.committed();
  s.take_answer<Granted>();
}

// Rule 23.

TEST_F(NeliRenew, ARenewalThatWasSentTwiceCostsTheHandleAndKeepsRankAndToken) {
  for (const auto outcome : {Outcome::accepted, Outcome::failed}) {
    s = Scene();
    s.lead(40);
    const auto token = s.token;
    const auto rank = s.rank;
    const auto handle = s.handle;
    s.call(Verb::renew, token);
    s.take_record();
    s.committed_again(outcome);
    EXPECT_EQ(s.take<effect::Drop>().handle, handle);
    s.forget();
    s.call(Verb::renew, token);
    EXPECT_FALSE(s.did<effect::SendCommit>()) << "a copy may be handled after it";
    s.forget();
    s.advance(1s);
    s.opened();
    EXPECT_NE(s.handle, handle);
    EXPECT_EQ(s.rank, rank) << "it is known without a read, which may take long where connections died";
    s.assigned(true, 8);
    s.call(Verb::renew, token);
    EXPECT_EQ(s.take_commit(0).offset, 41);
    s.committed();
    EXPECT_EQ(s.take_answer<Granted>().token, token);
  }
}

TEST_F(NeliRenew, AfterARenewalThatWasSentTwiceTheOldRankIsKeptForTheTenureOnly) {
  s.lead(40);
  const auto rank = s.rank;
  s.ask_renewal();
  s.committed_again();
  s.advance(1s);
  s.opened();
  EXPECT_EQ(s.rank, rank);
  s.forget();
  s.expect_drop_after(lease - margin - 1s);  // The old rank would take partition 0 from a healthy successor.
  s.call(Verb::acquire);
  s.advance(1s);
  s.observed(record(41, "mine"));
  s.opened();
  EXPECT_NE(s.rank, rank);
}

TEST_F(NeliRenew, AfterARenewalThatWasSentTwiceNobodyJoinsByTheOldRankWithoutATenure) {
  s.lead(40);
  const auto rank = s.rank;
  s.ask_renewal();
  s.committed_again();
  s.now += lease - margin;  // It was stopped until then.
  s.call(Verb::acquire);
  s.observed(record(41, "mine"));
  s.opened();
  EXPECT_NE(s.rank, rank);
}

TEST_F(NeliRenew, FencedItIsNotTriedUntilTheLeaseHasRunOut) {
  s.lead();
  s.renewal_is_fenced();
  EXPECT_EQ(s.take_answer<Unknown>().error, fenced);
  s.advance(1s);
  s.call(Verb::renew, s.token);
  EXPECT_FALSE(s.did<effect::SendCommit>());
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::fenced);
  s.advance(lease);
  s.call(Verb::renew, s.token);
  s.take_answer<Denied>();
}

TEST_F(NeliRenew, FencedAndNotAssignedAgainTheHandleIsDroppedWithTheTenure) {
  s.lead();
  s.renewal_is_fenced();
  s.expect_drop_after(lease - margin);  // Its old place is another one's.
}

TEST_F(NeliRenew, OfAnotherTokenIsDenied) {
  s.lead(40);
  s.call(Verb::renew, {40});
  s.take_answer<Denied>();
  EXPECT_FALSE(s.did<effect::SendCommit>());
}

TEST_F(NeliRenew, ALeaderReadsNoRecord) {
  s.lead();
  s.renew();
  s.forget();
  s.advance(lease - margin - 1ms);
  EXPECT_FALSE(s.did<effect::Observe>());
  EXPECT_FALSE(s.did<effect::ReadMember>());
}

// ---- rules 13 and 14: a rebalance ----

TEST_F(NeliRebalance, TheLeaderKeepsItsTokenAndCommitsNothingMeanwhile) {
  s.lead();
  s.revoked();
  EXPECT_TRUE(s.did<effect::Unassign>());
  s.call(Verb::renew, s.token);
  s.advance(1s);
  EXPECT_FALSE(s.did<effect::SendCommit>());
  EXPECT_FALSE(s.did<effect::Reply>());
  s.assigned(true, 8);
  EXPECT_EQ(s.take_record().who.incarnation, "mine") << "no nonce before a renewal";
  s.committed();
  EXPECT_EQ(s.take_answer<Granted>().token, s.token);
}

TEST_F(NeliRebalance, ARenewalWaitsForTheAssignmentUpToItsLimit) {
  s.lead();
  s.revoked();
  s.call(Verb::renew, s.token);
  s.advance(2s);
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::timed_out);
}

TEST_F(NeliRebalance, WaitsForTheOutstandingCommit) {
  s.lead();
  s.ask_renewal();
  s.revoked();
  s.advance(100ms);
  EXPECT_FALSE(s.did<effect::Unassign>());
  s.committed();
  EXPECT_TRUE(s.did<effect::Unassign>());
  EXPECT_EQ(s.take_answer<Granted>().token, s.token);
}

TEST_F(NeliRebalance, AnUnansweredCommitCostsTheHandleNotTheLease) {
  s.lead();
  s.ask_renewal(10s);
  s.revoked();
  s.advance(499ms);
  EXPECT_FALSE(s.did<effect::Drop>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<effect::Drop>());
  EXPECT_FALSE(s.did<effect::Unassign>()) << "the commit could go out under the next generation";
  s.take_answer<Unknown>();
  // A new handle that owns partition 0 before the deadline goes on with the same token.
  s.advance(500ms);
  s.observed(record(41, "mine"));
  s.opened();
  s.assigned(true, 9);
  s.ask_renewal();
  s.committed();
  EXPECT_EQ(s.take_answer<Granted>().token, s.token);
  s.call(Verb::release);
  EXPECT_TRUE(s.take_record().released);
}

TEST_F(NeliRebalance, AnAssignmentBeforeTheAnswerCostsTheHandle) {
  // No client does that. If one did, the commit could carry the new generation.
  s.lead();
  s.ask_renewal();
  s.assigned(true, 8);
  EXPECT_TRUE(s.did<effect::Drop>());
  EXPECT_FALSE(s.did<effect::Assign>());
}

TEST_F(NeliRebalance, WithoutPartitionZeroTheLeaseRunsOut) {
  s.lead();
  s.rebalanced(false, 8);
  s.call(Verb::renew, s.token);
  const auto error = s.take_answer<Unknown>().error;
  EXPECT_EQ(error.fault, Fault::fenced);
  EXPECT_NE(error.message.find("lost READ on the topic"), std::string::npos) << error.message;
  s.advance(1s);
  s.rebalanced(true, 9);  // back before the deadline
  s.renew();
}

TEST_F(NeliRebalance, AFollowerAnswersTheAssignmentAndWaits) {
  s.join(record(41));
  s.assigned(false);
  EXPECT_TRUE(s.did<effect::Assign>());
  EXPECT_FALSE(s.did<effect::SendCommit>());
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->token, Token{41});
}

// A leader that can renew no more is told why, though its lease still runs.

/// The answer to a leader's renewal after this happened.
template <class F>
std::string why_not_renewed(F happens) {
  Scene s;
  s.lead();
  happens(s);
  s.call(Verb::renew, s.token);
  const auto error = s.take_answer<Unknown>().error;
  EXPECT_EQ(error.fault, Fault::fenced);
  return error.message;
}

TEST_F(NeliRenew, SaysWhyTheLeaseCannotBeRenewed) {
  const auto says = [](const std::string& message, const char* what) {
    return message.find(what) != std::string::npos && message.find("lease runs to its end") != std::string::npos;
  };
  const auto evicted = why_not_renewed([](Scene& it) { it.revoked(true); });
  EXPECT_TRUE(says(evicted, "evicted")) << evicted;
  const auto dropped = why_not_renewed([](Scene& it) { it.give(fact::Broken{it.handle, unreachable}); });
  EXPECT_TRUE(says(dropped, "has left the group")) << dropped;
  EXPECT_EQ(dropped.find("evicted"), std::string::npos) << "the candidate itself gave the handle up";
  const auto refused = why_not_renewed([](Scene& it) {
    it.renewal_is_fenced();
    it.forget();
  });
  EXPECT_TRUE(says(refused, "accepts no commit")) << refused;
  const auto moved = why_not_renewed([](Scene& it) { it.rebalanced(false, 8); });
  EXPECT_TRUE(says(moved, "another member")) << moved;
  EXPECT_TRUE(says(moved, "READ on the topic")) << "no other one needs to have it";
}

// ---- rules 15 and 16: evicted ----

TEST_F(NeliEvicted, AFollowerRanksAnewByAReadFromAfterTheDrop) {
  s.join(record(41));
  s.assigned(false);
  s.await(of_41);
  s.stands(record(41));
  s.advance(2s);
  s.answering = false;
  s.advance(250ms);
  const auto under_way = s.take<effect::Observe>();
  const auto old = s.handle;
  s.revoked(true);
  EXPECT_EQ(s.take<effect::Drop>().handle, old);
  EXPECT_FALSE(s.did<effect::Unassign>()) << "that would rejoin with the old rank";
  s.give(fact::Observed{under_way.id, std::optional(record(41))});
  EXPECT_FALSE(s.did<effect::Open>()) << "read before the drop";
  s.advance(1s);
  s.observed(record(43));
  EXPECT_EQ(s.take<effect::Open>().client_id.substr(0, 28), "!tenure.00000000000000000043");
}

TEST_F(NeliEvicted, ASecondLiesBetweenTwoOpenings) {
  s.join(record(41));
  s.await(of_41);
  s.advance(250ms);
  s.stands(record(41));
  s.revoked(true);
  s.advance(749ms);
  EXPECT_FALSE(s.did<effect::Open>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<effect::Open>());
}

TEST_F(NeliEvicted, ALeaderKeepsItsRankWhileItsLeaseRuns) {
  s.lead();
  s.revoked(true);
  EXPECT_TRUE(s.did<effect::Unassign>());
  EXPECT_FALSE(s.did<effect::Drop>());
  s.call(Verb::renew, s.token);
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::fenced);
  s.advance(2s);
  s.assigned(true, 9);
  s.renew();
}

TEST_F(NeliEvicted, ALeaderRanksAnewWhenItsLeaseEndsUnassigned) {
  s.lead();
  s.revoked(true);
  s.expect_drop_after(lease - margin);
}

// No revoke tells a member that it was evicted while it joined. Its client joins anew, by another id.

TEST_F(NeliEvicted, WhileItJoinedALeaderWhoseLeaseIsOverRanksAnew) {
  for (const bool evicted : {false, true}) {
    s = Scene();
    s.lead();
    s.revoked();
    s.advance(lease - margin);
    s.forget();
    s.assigned(true, 9, evicted ? "another" : "one");
    EXPECT_EQ(s.did<effect::Drop>(), evicted) << "by its old rank it would keep what a healthy successor had";
    EXPECT_EQ(s.did<effect::Assign>(), !evicted);
  }
}

TEST_F(NeliEvicted, WhileItJoinedALeaderWhoseLeaseRunsGoesOn) {
  s.lead();
  s.revoked();
  s.assigned(true, 9, "another");
  EXPECT_FALSE(s.did<effect::Drop>());
  s.renew();
}

TEST_F(NeliEvicted, WhileItJoinedAFollowerRanksAnew) {
  s.join(record(41));
  s.assigned(false);
  s.revoked();
  s.forget();
  s.assigned(true, 9, "another");
  EXPECT_TRUE(s.did<effect::Drop>());
}

// ---- rules 17 and 18: the deadline ----

TEST_F(NeliDeadline, CountsFromTheSendingOfTheLastAcknowledgedCommit) {
  s.lead();
  s.advance(1s);
  s.ask_renewal(10s);
  const auto sent = s.now;
  s.advance(2s);
  s.committed();
  s.take_answer<Granted>();
  s.advance(sent + lease - margin - s.now - 1ms);
  s.ask_renewal();
  EXPECT_FALSE(s.did<effect::Reply>());
  s.advance(1ms);
  s.take_answer<Denied>();
}

TEST_F(NeliDeadline, AnAnswerThatArrivesWithItRevivesNothing) {
  s.lead();
  s.ask_renewal(1min);
  s.now += lease - margin;
  s.committed();
  EXPECT_FALSE(std::holds_alternative<Granted>(s.take_answer()));
}

TEST_F(NeliDeadline, WithACommitUnansweredTheHandleIsDropped) {
  s.lead();
  s.call(Verb::renew, s.token, Vacant{}, 1min);
  s.advance(lease - margin);
  EXPECT_TRUE(s.did<effect::Drop>());
}

TEST_F(NeliDeadline, LeadingAgainIsANewTokenByANewRead) {
  s.lead(40);
  s.advance(lease - margin);
  EXPECT_FALSE(s.did<effect::Drop>());
  EXPECT_FALSE(s.claims());
  s.read(record(41, "mine"));
  EXPECT_EQ(s.take_commit(0).offset, 42);
}

// Rule 25.

TEST_F(NeliDeadline, AfterItAHandleWhoseGenerationIsLentClaimsNoMore) {
  s.lead(40);
  ASSERT_EQ(s.neli.leads_in_generation(), s.token);
  s.give(fact::Lent{7});
  EXPECT_FALSE(s.did<effect::Drop>()) << "the tenure goes on";
  s.advance(lease - margin);
  ASSERT_EQ(s.neli.leads_in_generation(), std::nullopt);
  EXPECT_TRUE(s.did<effect::Drop>());
}

/// Kafka's coordinator gives a member that joins anew the generation of before, if nothing has changed.
TEST_F(NeliDeadline, AfterItAHandleThatIsAssignedThatGenerationAgainClaimsNoMore) {
  s.lead(40);
  s.revoked();
  s.give(fact::Lent{7});
  s.assigned(true, 7);
  EXPECT_FALSE(s.did<effect::Drop>()) << "the tenure goes on";
  s.advance(lease - margin);
  EXPECT_TRUE(s.did<effect::Drop>());
}

TEST_F(NeliDeadline, AHandleThatHasALaterGenerationThanTheOneThatWasLentMayClaim) {
  s.lead(40);
  s.revoked();
  s.give(fact::Lent{7});
  s.assigned(true, 8);
  s.advance(lease - margin);
  EXPECT_FALSE(s.did<effect::Drop>());
}

TEST_F(NeliDeadline, ATenureLeadsInAGenerationOnlyWhileItsOwnerMayCommit) {
  s.lead(40);
  s.revoked();
  EXPECT_EQ(s.neli.leads_in_generation(), std::nullopt) << "a rebalance is under way";
  s.assigned(true, 8);
  EXPECT_EQ(s.neli.leads_in_generation(), s.token);
  s.rebalanced(false, 9);
  EXPECT_EQ(s.neli.leads_in_generation(), std::nullopt) << "another member owns partition 0, and may claim";
}

TEST_F(NeliRenew, WhoIsFencedLeadsInNoGeneration) {
  s.lead(40);
  s.renewal_is_fenced();
  EXPECT_EQ(s.neli.leads_in_generation(), std::nullopt);
}

TEST_F(NeliDeadline, ResultsOfOlderHandlesAreIgnored) {
  s.lead(40);
  const auto old = s.handle;
  s.ask_renewal(1min);
  const auto late = s.sent.id;
  s.advance(lease - margin);
  s.call(Verb::acquire);
  s.observed(record(41, "mine"));
  s.opened();
  s.forget();
  s.give(fact::Committed{late, Outcome::accepted, {}});
  s.give(fact::Assigned{old, true, 9});
  s.give(fact::Revoked{old, true});
  EXPECT_FALSE(s.did<effect::Assign>() || s.did<effect::Drop>() || s.did<effect::Reply>());
}

// ---- rule 19: release ----

TEST_F(NeliRelease, WritesThatItIsFreeThenLeaves) {
  s.lead(40);
  s.call(Verb::release);
  EXPECT_FALSE(s.did<effect::Drop>());
  const auto written = s.take_commit(0);
  EXPECT_EQ(written.offset, 41);
  EXPECT_TRUE(decode(written.metadata)->released);
  s.committed();
  EXPECT_TRUE(s.did<effect::Drop>());
  EXPECT_FALSE(s.did<effect::ReplyReleased>()) << "before the group knows";
  s.give(fact::Left{s.handle});
  EXPECT_EQ(s.take<effect::ReplyReleased>().error, std::nullopt);
}

TEST_F(NeliRelease, WaitsNotForEverToBeOutOfTheGroup) {
  s.lead();
  s.call(Verb::release);
  s.take_record();
  s.committed();
  s.give(fact::Left{s.handle + 1});  // another one's
  s.advance(299ms);
  EXPECT_FALSE(s.did<effect::ReplyReleased>());
  s.advance(1ms);
  EXPECT_EQ(s.take<effect::ReplyReleased>().error, std::nullopt);
}

TEST_F(NeliRelease, RanksLastAtTheNextAcquire) {
  s.lead(40);
  s.call(Verb::release);
  s.take_record();
  s.committed();
  s.give(fact::Left{s.handle});
  s.forget();
  s.advance(5s);
  EXPECT_FALSE(s.did<effect::Observe>()) << "it does not contend meanwhile";
  s.call(Verb::acquire);
  s.observed(record(41, "mine", true, 9));
  const auto opened = s.take<effect::Open>();
  EXPECT_NE(opened.handle, s.handle);
  EXPECT_EQ(opened.client_id, "!tenure.00000000000000000041.1700000005000.mine");
}

TEST_F(NeliRelease, InARebalanceWaitsForTheAssignment) {
  s.lead();
  s.revoked();
  s.call(Verb::release);
  s.advance(1s);
  EXPECT_FALSE(s.did<effect::Drop>());
  s.assigned(true, 8);
  EXPECT_TRUE(s.take_record().released);
}

TEST_F(NeliRelease, InARebalanceThatOutlastsTheDeadlineLeavesUnsaid) {
  s.lead();
  s.revoked();
  s.call(Verb::release, {}, Vacant{}, 1min);
  s.advance(lease - margin);
  EXPECT_TRUE(s.did<effect::Drop>());
  EXPECT_FALSE(s.did<effect::SendCommit>());
}

TEST_F(NeliRelease, WithACommitUnansweredLeavesUnsaid) {
  s.lead();
  const auto id = s.ask_renewal();
  s.give(fact::Abandoned{id});
  s.call(Verb::release);
  EXPECT_FALSE(s.did<effect::SendCommit>());
  s.advance(500ms);
  EXPECT_TRUE(s.did<effect::Drop>());
  EXPECT_FALSE(s.did<effect::SendCommit>());
  s.give(fact::Left{s.handle});
  EXPECT_TRUE(s.take<effect::ReplyReleased>().error);
}

TEST_F(NeliRelease, AClaimThatNobodyAwaitedIsReleasedToo) {
  s.own_what_is_free();
  const auto id = s.call(Verb::acquire);
  s.take_commit(0);
  s.give(fact::Abandoned{id});
  s.call(Verb::release);
  s.committed();
  const auto written = s.take_commit(0);
  EXPECT_EQ(written.offset, 41);
  EXPECT_TRUE(decode(written.metadata)->released);
}

TEST_F(NeliRelease, WritesNothingWhereSomebodyElseMayHaveWritten) {
  // The lease ran out while another owned partition 0; then it came back.
  s.lead();
  s.rebalanced(false, 8);
  s.advance(lease - margin);
  s.rebalanced(true, 9);
  s.forget();
  s.call(Verb::release);
  EXPECT_FALSE(s.did<effect::SendCommit>());
  EXPECT_TRUE(s.did<effect::Drop>());
}

TEST_F(NeliRelease, OfUnknownOutcomeCostsTheHandleAndIsReported) {
  for (const bool in_a_rebalance : {false, true}) {
    s = Scene();
    s.lead();
    s.call(Verb::release);
    s.take_record();
    if (in_a_rebalance) s.revoked();
    s.committed(Outcome::failed, unreachable);
    EXPECT_TRUE(s.did<effect::Drop>());
    EXPECT_FALSE(s.did<effect::Unassign>());
    s.give(fact::Left{s.handle});
    EXPECT_EQ(s.take<effect::ReplyReleased>().error, unreachable);
  }
}

TEST_F(NeliRelease, WithoutATenureIsNoError) {
  s.call(Verb::release);
  EXPECT_EQ(s.take<effect::ReplyReleased>().error, std::nullopt);
  s.join();
  s.call(Verb::release);
  EXPECT_TRUE(s.did<effect::Drop>());
  EXPECT_FALSE(s.did<effect::SendCommit>());
}

TEST_F(NeliRelease, AnAbandonedReleaseStillLeaves) {
  s.lead();
  const auto id = s.call(Verb::release);
  s.give(fact::Abandoned{id});
  EXPECT_TRUE(s.did<effect::Drop>());
  s.forget();
  s.call(Verb::acquire);
  s.advance(1s);
  s.observed(record(41, "mine", true, 9));
  EXPECT_TRUE(s.did<effect::Open>()) << "and can contend again";
}

TEST_F(NeliRelease, TheErrorOfAnAbandonedReleaseIsNotThatOfTheNext) {
  s.lead();
  s.ask_renewal(1min);
  const auto id = s.call(Verb::release);
  s.advance(500ms);  // It leaves unsaid, and waits to be out of the group.
  s.give(fact::Abandoned{id});
  s.forget();
  s.call(Verb::acquire);
  s.advance(1s);
  s.observed(record(41, "mine"));
  s.opened();
  s.own_over(record(41, "mine"), 9);
  s.claim();
  s.committed();
  s.call(Verb::release);
  EXPECT_TRUE(s.take_record().released);
  s.committed();
  s.give(fact::Left{s.handle});
  EXPECT_EQ(s.take<effect::ReplyReleased>().error, std::nullopt);
}

}  // namespace
}  // namespace tenure::kafka
