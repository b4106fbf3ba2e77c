// SPDX-License-Identifier: Apache-2.0
// Goal: rules 20 to 22 hold, and callers learn who leads and when to try. The numbers are those of
// backends/kafka/README.md. Method: see neli_scene.hpp.
#include <gtest/gtest.h>

#include <algorithm>

#include <tenure/version.hpp>

#include "neli_scene.hpp"

namespace tenure::kafka {
namespace {

using NeliAwait = NeliTest;
using NeliIdle = NeliTest;
using NeliMemory = NeliTest;
using NeliObserve = NeliTest;
using NeliStepDown = NeliTest;
using NeliStranger = NeliTest;

// ---- rule 20: asked from outside ----

TEST_F(NeliStepDown, AsksEveryThreeSecondsWhileLeading) {
  auto with = config();
  with.remote_step_down = true;
  s = Scene(with);
  s.lead();
  s.forget();
  s.give(fact::Requested{std::optional<Commit>()});
  s.advance(2999ms);
  EXPECT_FALSE(s.did<effect::ReadRequests>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<effect::ReadRequests>());
  s.renew();
  s.give(fact::Requested{std::optional(Commit{40, encode(StepDown{{40}, "ops", "old"})})});
  s.renew();  // of another tenure: means nothing
  s.give(fact::Requested{std::optional(Commit{41, encode(StepDown{{41}, "ops", "upgrade"})})});
  s.ask_renewal();
  s.committed();
  const auto step_down = s.take_answer<StepDownRequested>();
  EXPECT_EQ(step_down.token, s.token);
  EXPECT_EQ(step_down.by, "ops");
  EXPECT_EQ(step_down.why, "upgrade");
}

TEST_F(NeliStepDown, WhoMayNotReadTheRequestsIsWarnedOnceUntilItMay) {
  auto with = config();
  with.remote_step_down = true;
  s = Scene(with);
  s.lead();
  for (const bool told : {true, false}) {
    s.forget();
    s.give(fact::Requested{Error{Fault::forbidden, "needs READ"}});
    EXPECT_EQ(s.did<effect::Tell>(), told);
    s.give(fact::Requested{Error{Fault::timed_out, "passes"}});
  }
  s.give(fact::Requested{std::optional<Commit>()});
  s.forget();
  s.give(fact::Requested{Error{Fault::forbidden, "needs READ"}});
  EXPECT_TRUE(s.did<effect::Tell>()) << "the right was taken away again";
}

TEST_F(NeliStepDown, IsNotAskedForUnlessWanted) {
  s.lead();
  s.advance(5s);
  EXPECT_FALSE(s.did<effect::ReadRequests>());
}

// ---- rule 21: a stranger in the group ----

/// A follower that is assigned, without partition 0, while the record lapses.
void stand_by(Scene& s, const std::optional<Commit>& found) {
  s.join(found);
  s.stands(found);
  s.assigned(false);
  s.forget();
}

/// A follower that is asked all the time, as a manager asks.
void stand_by(Scene& s, Clock::Duration by) {
  for (const auto until = s.now + by; s.now < until;) {
    s.await();
    s.advance(std::min<Clock::Duration>(250ms, until - s.now));
  }
}

/// For so long that it asks who owns partition 0.
void see_nobody_lead(Scene& s) {
  stand_by(s, std::nullopt);
  stand_by(s, lease);
  s.forget();
}

fact::OwnersFound owned_by(const std::string& client_id, const std::string& host = "/h", int partition = 0) {
  return {Owners{.partitions = {{partition, client_id, host}}}};
}

TEST_F(NeliStranger, IsAskedForWhenNobodyLedForALease) {
  stand_by(s, record(41));
  stand_by(s, 2 * lease - 1ms);  // of the record, and another
  EXPECT_FALSE(s.did<effect::FindOwners>());
  stand_by(s, 1ms);
  EXPECT_TRUE(s.did<effect::FindOwners>());
  s.forget();
  s.give(owned_by("console-consumer", "/10.0.0.7"));
  const auto said = s.take<effect::Tell>();
  EXPECT_EQ(said.level, Level::warning);
  EXPECT_NE(said.message.find("\"console-consumer\" at /10.0.0.7"), std::string::npos) << said.message;
  EXPECT_NE(said.message.find("group of its own"), std::string::npos) << said.message;
  stand_by(s, 5 * lease);
  EXPECT_FALSE(s.did<effect::FindOwners>()) << "once is enough";
}

/// Nobody commits then, so that no commit is refused for it.
TEST_F(NeliStranger, TheTopicIsLookedAtToo) {
  stand_by(s, std::nullopt);
  stand_by(s, lease - 1ms);
  s.answering = false;
  stand_by(s, 1s);
  EXPECT_TRUE(s.did<effect::FindOwners>());
  EXPECT_TRUE(s.take<effect::Observe>().check_topic);
}

TEST_F(NeliStranger, TheTopicIsLookedAtAlsoAfterALookThatWasUnderWay) {
  stand_by(s, std::nullopt);
  stand_by(s, lease - 300ms);
  s.answering = false;
  stand_by(s, 300ms);
  EXPECT_TRUE(s.did<effect::FindOwners>());
  const auto under_way = s.take<effect::Observe>();
  EXPECT_FALSE(under_way.check_topic);
  s.give(fact::Observed{under_way.id, std::optional<Commit>(), false});
  stand_by(s, 250ms);
  EXPECT_TRUE(s.take<effect::Observe>().check_topic);
}

TEST_F(NeliStranger, OverNoRecordOfOursTheLeaseCountsFromTheFirstSight) {
  for (const auto& found :
       {std::optional<Commit>(), std::optional(Commit{0, ""}), std::optional(record(41, "other", true))}) {
    s = Scene();
    stand_by(s, found);
    stand_by(s, lease - 1ms);
    EXPECT_FALSE(s.did<effect::FindOwners>());
    stand_by(s, 1ms);
    EXPECT_TRUE(s.did<effect::FindOwners>());
  }
}

TEST_F(NeliStranger, IsNoCandidateOfOurs) {
  for (const auto& owners :
       {fact::OwnersFound{Owners{}}, owned_by("!tenure.1.2.x"), owned_by("console-consumer", "/h", 1)}) {
    s = Scene();
    see_nobody_lead(s);
    s.give(owners);
    EXPECT_FALSE(s.did<effect::Tell>());
    stand_by(s, lease);
    EXPECT_TRUE(s.did<effect::FindOwners>()) << "and is asked for again";
  }
}

TEST_F(NeliStranger, IsAProcessOfRolesToo) {
  see_nobody_lead(s);
  s.give(owned_by("!tenure.roles.1.x"));
  EXPECT_TRUE(s.did<effect::Tell>());
}

TEST_F(NeliStranger, IsReportedAgainAfterSomebodyLed) {
  const auto told = [&] {
    s.give(owned_by("rdkafka", "/h"));
    return s.did<effect::Tell>();
  };
  stand_by(s, std::nullopt);
  stand_by(s, lease);
  EXPECT_TRUE(told());
  s.revoked();
  s.stands(record(41));
  s.assigned(false);
  s.forget();
  stand_by(s, 2 * lease + 250ms);  // from the next read on
  EXPECT_TRUE(s.did<effect::FindOwners>());
  EXPECT_TRUE(told());
}

TEST_F(NeliStranger, OfTheOtherProtocolIsReportedWithItsRemedy) {
  see_nobody_lead(s);
  s.give(fact::OwnersFound{Owners{.partitions = {}, .converted = true}});
  const auto said = s.take<effect::Tell>().message;
  EXPECT_NE(said.find("group.consumer.migration.policy=disabled"), std::string::npos) << said;
}

TEST_F(NeliStranger, ThereIsNoneButNobodyHasThePartition) {
  for (const bool stable : {false, true}) {
    s = Scene();
    see_nobody_lead(s);
    auto found = owned_by("!tenure.1.2.x", "/h", 1);
    found.result->stable = stable;
    s.give(found);
    ASSERT_EQ(s.did<effect::Tell>(), stable) << "in a rebalance nobody has anything";
    if (!stable) continue;
    const auto said = s.take<effect::Tell>().message;
    EXPECT_NE(said.find("nobody can lead or renew: partition 0 is assigned to no member"), std::string::npos) << said;
  }
}

TEST_F(NeliStranger, IsNotAskedForWhereSomebodyLeadsOrMayClaim) {
  Scene leader;
  leader.lead();
  Scene owner;
  owner.join(record(41));
  owner.own();
  owner.stands(record(41));
  for (int i = 0; i < 60; ++i) {
    leader.advance(500ms);
    leader.renew();
    owner.await(Incumbent{"other", "other", "other:1", {41}, 0s});
    owner.advance(500ms);
  }
  EXPECT_FALSE(leader.did<effect::FindOwners>());
  EXPECT_FALSE(owner.did<effect::FindOwners>());
}

TEST_F(NeliStranger, AForeignCommitIsNoLossOfTheStores) {
  s.join(record(41));
  s.own_over(Commit{0, ""});
  for (; s.did<effect::Tell>();) {
    const auto said = s.take<effect::Tell>().message;
    EXPECT_EQ(said.find("lost"), std::string::npos) << said;
  }
  EXPECT_FALSE(s.claims()) << "a full lease all the same";
}

TEST_F(NeliStranger, IsAskedForAtOnceByALeaderThatLostPartitionZero) {
  s.lead();
  s.revoked();
  s.assigned(false);
  ASSERT_TRUE(s.did<effect::FindOwners>()) << "it may lead by a protocol of its own";
  s.forget();
  s.give(owned_by("rdkafka", "/10.0.0.7"));
  EXPECT_NE(s.take<effect::Tell>().message.find("goNELI"), std::string::npos);
  s.advance(1s);
  EXPECT_FALSE(s.did<effect::FindOwners>());
}

TEST_F(NeliStranger, AfterOneThatOwnedPartitionZeroALeaseIsWaitedFor) {
  stand_by(s, record(41, "other", true));
  stand_by(s, lease);
  s.give(owned_by("rdkafka"));
  s.revoked();
  s.forget();
  s.own();
  s.answer_reads();
  const auto owner_since = s.now;
  stand_by(s, lease - 1ms);
  EXPECT_FALSE(s.claims()) << "it may not know yet that it leads no more";
  s.advance(owner_since + lease - s.now);
  s.call(Verb::acquire);
  s.take_record();
}

// ---- want of memory ----

const fact::Broken no_memory{any_handle, {Fault::unreachable, "std::bad_alloc"}};

TEST_F(NeliMemory, AnObservationThatWasLostIsAskedForAgain) {
  s.call(Verb::acquire);
  s.take<effect::Observe>();
  s.give(no_memory);
  s.advance(250ms);
  s.observed(record(41));
  EXPECT_TRUE(s.did<effect::Open>());
  s.give(no_memory);
  EXPECT_TRUE(s.did<effect::Drop>()) << "nobody knows whether it was opened";
}

TEST_F(NeliMemory, AReadOfTheRequestsThatWasLostIsAskedForAgain) {
  auto c = config();
  c.remote_step_down = true;
  s = Scene(c);
  s.lead();
  s.give(no_memory);
  EXPECT_TRUE(s.did<effect::ReadRequests>());
}

TEST_F(NeliMemory, ASearchThatWasLostIsMadeAgain) {
  stand_by(s, std::nullopt);
  stand_by(s, lease);
  s.give(no_memory);
  stand_by(s, 1s);
  s.opened();
  s.assigned(false);
  s.forget();
  stand_by(s, lease);
  EXPECT_TRUE(s.did<effect::FindOwners>());
}

// ---- the backend ----

// Rule 22: nobody asks.
TEST_F(NeliIdle, LeavesTheGroupWhenNobodyAsksForALease) {
  s.join(record(41));
  s.stands(record(41));
  s.assigned(false);
  s.expect_drop_after(lease);
  s.forget();
  s.advance(1min);
  EXPECT_FALSE(s.did<effect::Open>() || s.did<effect::Observe>());
  s.call(Verb::acquire);
  s.answer_reads();
  EXPECT_TRUE(s.did<effect::Open>());
}

// Rule 22: somebody else may have the right, or a way to the coordinator.
TEST_F(NeliIdle, LeavesTheGroupWhenItsCommitsFailForALease) {
  for (const auto fault : {Fault::forbidden, Fault::misconfigured, Fault::unreachable}) {
    s = Scene();
    s.join(record(40, "other", true));
    s.assigned(true);
    const Error error{fault, "no"};
    const auto refuse_for = [&](Clock::Duration by) {
      for (const auto until = s.now + by; s.now < until;) {
        if (s.did<effect::SendCommit>()) {
          s.take_commit(1);
          s.committed(Outcome::failed, error);
        }
        stand_by(s, std::min<Clock::Duration>(250ms, until - s.now));
      }
    };
    refuse_for(lease - 1ms);
    EXPECT_FALSE(s.did<effect::Drop>());
    refuse_for(1ms);
    EXPECT_TRUE(s.did<effect::Drop>());
    const auto said = s.take<effect::Tell>();
    EXPECT_EQ(said.level, Level::warning);
    EXPECT_NE(said.message.find(error.message), std::string::npos) << said.message;
  }
}

/// Each answer comes behind the limit of its call, when the next call waits already: the next renewal goes out at once.
TEST_F(NeliIdle, ALeaderWhoseRenewalsAreSlowKeepsItsHandle) {
  s.lead();
  s.ask_renewal();
  for (const auto until = s.now + 3 * lease; s.now < until;) {
    s.advance(1s);
    s.call(Verb::renew, s.token);
    s.committed();
    s.take_record();
  }
  EXPECT_FALSE(s.did<effect::Drop>());
}

TEST_F(NeliIdle, LeavesTheGroupWhenItsReadsFailForALease) {
  for (const bool answered : {false, true}) {
    s = Scene();
    s.join(record(41));
    const auto fail_for = [&](Clock::Duration by) {
      for (const auto until = s.now + by; s.now < until;) {
        if (answered && s.did<effect::ReadMember>())
          s.give(fact::MemberRead{s.take<effect::ReadMember>().id, unreachable});
        stand_by(s, std::min<Clock::Duration>(250ms, until - s.now));
      }
    };
    for (const bool told : {true, false}) {
      s.own();
      fail_for(lease - 1ms);
      EXPECT_FALSE(s.did<effect::Drop>());
      fail_for(1ms);
      EXPECT_TRUE(s.did<effect::Drop>());
      EXPECT_EQ(s.did<effect::Tell>(), told) << "once, until somebody leads here";
      s.forget<effect::Drop>();
      s.forget<effect::Tell>();
      s.stands(record(41));
      stand_by(s, 1500ms);
      s.answering = false;
      s.opened();
    }
  }
}

// Its files of certificates may have been renewed since.
TEST_F(NeliIdle, AMemberThatMayNotJoinIsOpenedAnew) {
  s.join(record(41));
  s.stands(record(41));
  const auto refuse_for = [&](Clock::Duration by) {
    for (const auto until = s.now + by; s.now < until;) {
      s.give(fact::Troubled{s.handle, {Fault::forbidden, "certificate verify failed"}});
      stand_by(s, std::min<Clock::Duration>(250ms, until - s.now));
    }
  };
  refuse_for(5s - 1ms);
  EXPECT_FALSE(s.did<effect::Drop>());
  refuse_for(1ms);
  EXPECT_TRUE(s.did<effect::Drop>());
  stand_by(s, 1500ms);
  s.opened();
  s.forget();
  refuse_for(3s);
  EXPECT_FALSE(s.did<effect::Drop>()) << "it has its own time";
}

TEST_F(NeliIdle, StaysWhileItWaitsForALeaseOrForACall) {
  s.join(record(41, "other", false, 1, 1min));
  s.own_over(record(41, "other", false, 1, 1min));
  stand_by(s, 1min - 1ms);
  EXPECT_FALSE(s.did<effect::Drop>()) << "whatever its further reads say";
}

TEST_F(NeliIdle, StaysThroughItsTenureWhenItsCommitsAreRefused) {
  s.lead();
  s.ask_renewal();
  s.committed(Outcome::failed, {Fault::forbidden, "no"});
  s.advance(lease - margin - 1ms);
  EXPECT_FALSE(s.did<effect::Drop>());
}

TEST_F(NeliIdle, StaysWhileItIsAsked) {
  s.join(record(41));
  s.await(of_41);
  s.advance(2s);
  EXPECT_FALSE(s.did<effect::Drop>());
  Scene leader;
  leader.lead();
  for (int i = 0; i < 30; ++i) {
    leader.advance(500ms);
    leader.renew();
  }
  EXPECT_FALSE(leader.did<effect::Drop>());
}

// What the callers are told.
TEST_F(NeliAwait, AWaitEndsWhenTheHolderChanges) {
  for (const auto& change : {record(42), record(41, "other", true, 2)}) {
    s = Scene();
    s.join(record(41));
    s.await(of_41);
    s.advance(250ms);
    s.observed(change);
    EXPECT_TRUE(s.did<effect::Wake>());
  }
}

TEST_F(NeliAwait, AWaitOutlastsRenewalsAndEndsWithTheLease) {
  s.join(record(41));
  s.await(of_41);
  for (unsigned i = 2; i < 20; ++i) {
    s.advance(250ms);
    s.observed(record(41, "other", false, i));
    ASSERT_FALSE(s.did<effect::Wake>());
  }
  const auto last = s.now;
  while (!s.did<effect::Wake>()) {
    s.advance(50ms);
    if (s.did<effect::Observe>()) s.observed(record(41, "other", false, 19));
    ASSERT_LE(s.now, last + lease);
  }
  EXPECT_GT(s.now, last + lease - 50ms);
}

TEST_F(NeliAwait, AWaitEndsExactlyWithTheLeaseWhateverReadsAreUnderWay) {
  s.join(record(41));
  s.await(of_41);
  s.advance(1s);
  EXPECT_EQ(s.neli.alarm(), Scene::start + lease);
}

TEST_F(NeliAwait, AWaitEndsWhenAClaimIsWorthTrying) {
  s.join(record(40, "other", true));
  s.await();
  s.own();
  EXPECT_FALSE(s.did<effect::Wake>());
  s.read(record(40, "other", true));
  EXPECT_TRUE(s.did<effect::Wake>());
}

TEST_F(NeliAwait, AnOwnRecordWithoutATenureIsNobodys) {
  s.call(Verb::acquire);
  s.observed(record(40, "mine"));
  EXPECT_EQ(s.take_answer<Denied>().holder, std::nullopt);
  s.await();
  EXPECT_FALSE(s.did<effect::Wake>());
}

TEST_F(NeliAwait, AWaitForAHolderThatHasLapsedIsNoHotLoop) {
  s.join(record(41));
  s.stands(record(41));
  s.await(of_41);
  s.advance(lease);
  EXPECT_TRUE(s.did<effect::Wake>());
  s.forget();
  s.call(Verb::acquire);
  const auto holder = s.take_answer<Denied>().holder;
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->remaining, 0s);
  s.await(*holder);
  s.advance(2s);
  EXPECT_FALSE(s.did<effect::Wake>());
}

TEST_F(NeliAwait, AWaitEndsAtOnceWhenItIsSoAlready) {
  s.join(record(41));
  s.await(Incumbent{"another", "another", "", {40}, 1s});
  EXPECT_TRUE(s.did<effect::Wake>());
}

TEST_F(NeliObserve, OnlyACandidateCreatesAMissingTopic) {
  s.call(Verb::observe);
  const auto looked = s.take<effect::Observe>();
  EXPECT_TRUE(looked.check_topic);
  EXPECT_FALSE(looked.create);
  s.give(fact::Observed{looked.id, std::optional<Commit>()});
  s.call(Verb::acquire);
  const auto looks_again = s.take<effect::Observe>();
  EXPECT_TRUE(looks_again.check_topic);
  EXPECT_TRUE(looks_again.create);
}

TEST_F(NeliObserve, DoesNotJoinTheGroup) {
  s.call(Verb::observe);
  s.observed(record(41));
  const auto sight = s.take<effect::ReplySight>().sight;
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).token, Token{41});
  s.advance(1min);
  EXPECT_FALSE(s.did<effect::Open>());
}

TEST_F(NeliObserve, IsAnsweredByAReadThatBeganAfterTheCall) {
  s.call(Verb::observe);
  s.observed(record(41));
  s.take<effect::ReplySight>();
  s.advance(50ms);
  s.call(Verb::observe);
  EXPECT_FALSE(s.did<effect::ReplySight>());
  s.observed(record(41, "other", true, 2));
  EXPECT_TRUE(std::holds_alternative<Vacant>(s.take<effect::ReplySight>().sight));
  s.call(Verb::observe);
  s.observed(unreachable);
  EXPECT_TRUE(std::holds_alternative<Unknown>(s.take<effect::ReplySight>().sight));
}

TEST_F(NeliObserve, ALapsedHolderIsSeenWithNothingRemaining) {
  s.call(Verb::observe);
  s.stands(record(41));
  s.advance(lease);
  s.forget();
  s.call(Verb::observe);
  s.answer_reads();
  const auto sight = s.take<effect::ReplySight>().sight;
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).remaining, 0s);
}

TEST_F(NeliObserve, ALeaderSeesItself) {
  s.lead(40);
  s.call(Verb::observe);
  const auto sight = s.take<effect::ReplySight>().sight;
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight), (Incumbent{"me", "mine", "me:1", {41}, lease, version()}));
}

TEST_F(NeliObserve, AnObserverStopsReadingWhenNobodyAsks) {
  s.call(Verb::observe);
  s.stands(record(41));
  s.advance(lease);
  s.answering = false;
  s.forget();
  s.advance(1min);
  EXPECT_FALSE(s.did<effect::Observe>());
}

TEST_F(NeliAwait, WhatNeedsTheUserIsReportedOnceAndEndsAWait) {
  s.join(record(41));
  const Error session{Fault::misconfigured, "INVALID_SESSION_TIMEOUT"};
  s.await(of_41);
  s.give(fact::Troubled{s.handle, session});
  EXPECT_TRUE(s.did<effect::Wake>());
  s.forget();
  s.await(of_41);
  s.give(fact::Troubled{s.handle, session});
  EXPECT_FALSE(s.did<effect::Wake>());
  s.call(Verb::acquire);
  s.advance(2s);
  EXPECT_EQ(s.take_answer<Unknown>().error, session);
}

/// It commits nothing, and no answer says that the trouble is over.
TEST_F(NeliAwait, ABystandersTroubleIsToldOnceAndThenItFollowsAgain) {
  s.join(record(41));
  s.assigned(false);
  const Error refused{Fault::forbidden, "the token source failed"};
  for (int i = 0; i < 2; ++i) {
    s.give(fact::Troubled{s.handle, refused});
    s.call(Verb::acquire);
    EXPECT_EQ(s.take_answer<Unknown>().error, refused) << "again, if it comes again";
    s.await(of_41);
    s.advance(250ms);
    s.observed(record(41, "other", false, 2));
    s.call(Verb::acquire);
    EXPECT_EQ(s.take_answer<Denied>().holder->token, Token{41});
  }
}

TEST_F(NeliIdle, ClosingLeavesTheGroup) {
  s.lead();
  s.give(fact::Closing{});
  EXPECT_TRUE(s.did<effect::Drop>());
}

}  // namespace
}  // namespace tenure::kafka
