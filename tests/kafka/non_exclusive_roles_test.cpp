// SPDX-License-Identifier: Apache-2.0
// Goal: the rules S1 to S9 of the chapter "Roles that several may lead" of backends/kafka/README.md hold, by their
// numbers. Method: facts are handed to one NonExclusiveRoles at chosen moments of a clock that is only a number; the
// test plays the coordinator.
#include "non_exclusive_roles.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "messages.hpp"
#include "role_scene.hpp"
#include "roles.hpp"

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;

constexpr int count = scene_units;
constexpr auto lease = 26500ms;
constexpr auto margin = 500ms;
constexpr auto presumed = lease - margin;
constexpr auto session_time = 6s;

Record of_other(std::uint64_t seq, bool leads, const std::string& who = "other") {
  return {
      .lease = lease, .seq = seq, .who = {who, who, ""}, .units = count, .exclusive = Exclusive::no, .leads = leads};
}

struct Scene : RoleScene {
  Scene()
      : RoleScene(std::make_unique<NonExclusiveRoles>(RoleConfig{.units = count,
                                                                 .lease = lease,
                                                                 .margin = margin,
                                                                 .session = session_time,
                                                                 .observe_every = 500ms,
                                                                 .incarnation = "me"})) {}

  void write(int unit, const Record& record, std::int64_t at = 1) { offset(record_of(unit)) = {at, encode(record)}; }
  /// A member of the group that owns both units, and leads a role of each.
  void lead() {
    open();
    assign(all_partitions);
    commit({role(0), role(1)});
    accept();
    ASSERT_EQ(done().claimed.size(), 2u);
  }
  /// The group's members have changed, and unit 1 is another one's.
  void lose_unit_1() {
    give(role_fact::Revoked{handle, false});
    assign({0, 1, 2});
  }
};

/// A namespace of its own, because the class under test has this name, too.
namespace rules_of_non_exclusive_roles {

struct NonExclusiveRoles : testing::Test {
  Scene s;
};

struct NonExclusiveRolesThatLead : NonExclusiveRoles {
  void SetUp() override { s.lead(); }
};

// ---- S1 ----

TEST_F(NonExclusiveRoles, S1LeadsFromItsAssignmentAndWaitsForNobodysLease) {
  s.write(0, of_other(3, true));
  s.write(1, of_other(3, true));
  s.open();
  EXPECT_FALSE(s.allotted(role(0)));
  s.assign(all_partitions);
  EXPECT_TRUE(s.allotted(role(0)));
  s.commit({role(0), role(0, 1), role(1)});
  ASSERT_TRUE(s.sent);
  EXPECT_EQ(s.sent->commits.size(), 2u) << "one record per unit";
  s.accept();
  EXPECT_EQ(s.done().claimed.size(), 3u);
  EXPECT_TRUE(s.leads(role(0, 1)));
  EXPECT_FALSE(s.reading);
}

TEST_F(NonExclusiveRoles, S1WhatIsNotAcknowledgedIsNotLed) {
  for (const auto outcome : {Outcome::fenced, Outcome::failed}) {
    s = Scene();
    s.join(all_partitions);
    s.commit({role(0)});
    s.answer_commit(outcome);
    EXPECT_TRUE(s.failed());
    EXPECT_FALSE(s.leads(role(0)));
    EXPECT_EQ(s.drops, outcome == Outcome::fenced) << "a failure fences nothing, so the same handle may try again";
  }
}

TEST_F(NonExclusiveRoles, S1OnlyWhatIsOwnedIsClaimed) {
  s.join({0, 1, 2});
  s.do_commit({role(0), role(1)});
  EXPECT_EQ(s.done().claimed, std::vector<std::string>{role(0)});
}

TEST_F(NonExclusiveRoles, S1AnOwnerWhoseClaimsAreRefusedForALeaseLeaves) {
  s.join(all_partitions);
  for (const auto until = s.now + lease; s.now < until; s.pass(500ms)) {
    ASSERT_EQ(s.drops, 0);
    s.commit({role(0)});
    ASSERT_TRUE(s.sent);
    s.give(role_fact::Committed{std::exchange(s.sent, std::nullopt)->id, Outcome::failed, {Fault::forbidden, "no"}});
  }
  EXPECT_EQ(s.drops, 1);
}

TEST_F(NonExclusiveRoles, S1WhoMayLeadNothingForALeaseLeaves) {
  s.join(all_partitions);
  s.most = 0;
  s.stay(lease - 250ms);
  EXPECT_EQ(s.drops, 0);
  s.stay(500ms);
  EXPECT_EQ(s.drops, 1);
  s.stay(3 * lease);
  EXPECT_EQ(s.opened, 1);
}

TEST_F(NonExclusiveRoles, S1AnOwnerWhoseClaimsAreNotAnsweredStaysOutForLongerEachTime) {
  s.open();
  int times = 0;
  for (const Clock::Duration pause : {1000ms, 26'500ms, 53'000ms}) {
    s.assign(all_partitions);
    s.commit({role(0), role(1)});
    s.stay(session_time);
    s.expect_out_for(pause, ++times);
  }
  EXPECT_NE(s.told.find("stays out of the group for 26 s"), std::string::npos) << s.told;
}

TEST_F(NonExclusiveRoles, S1OneFailureThatNoOtherFollowsCostsNoPlace) {
  s.join(all_partitions);
  s.commit({role(0)});
  s.answer_commit(Outcome::failed);
  s.now += 2 * lease;
  s.look();
  EXPECT_EQ(s.drops, 0);
}

TEST_F(NonExclusiveRoles, S1AnOwnerWhoseClaimsFailForALeaseLeaves) {
  s.join(all_partitions);
  for (const auto until = s.now + lease; s.now < until; s.pass(500ms)) {
    ASSERT_EQ(s.drops, 0);
    s.commit({role(0)});
    s.answer_commit(Outcome::failed);
  }
  EXPECT_EQ(s.drops, 1);
}

// ---- S2 ----

TEST_F(NonExclusiveRolesThatLead, S2ARecordSaysWhetherItsWriterKnowsThatItLeads) {
  EXPECT_FALSE(s.record(0).leads);
  EXPECT_EQ(s.record(0).exclusive, Exclusive::no);
  s.pass(1s);
  s.do_commit();
  EXPECT_TRUE(s.record(0).leads);
  s.do_commit({}, {role(0)});
  EXPECT_TRUE(s.record(0).released);
  EXPECT_FALSE(s.record(1).released);
}

TEST_F(NonExclusiveRoles, S2OffsetsNeverFall) {
  s.write(0, of_other(1, true), 1'700'000'000'123);
  s.lead();
  EXPECT_EQ(s.offsets[0]->offset, 1'700'000'000'123);
}

// ---- S3 ----

TEST_F(NonExclusiveRolesThatLead, S3LeadsOnFromTheSendingOfTheLastAcknowledgedCommit) {
  s.pass(1s);
  const auto asked = s.now;
  s.commit();
  s.pass(1s);
  s.accept();  // Late.
  s.revoked(true);
  s.now = asked + presumed - 1ns;
  s.pass(0s);
  EXPECT_TRUE(s.leads(role(0)));
  EXPECT_TRUE(s.allotted(role(0)));
  s.pass(1ns);
  EXPECT_FALSE(s.leads(role(0)));
}

TEST_F(NonExclusiveRoles, S3AnErrorExtendsNothing) {
  for (const auto outcome : {Outcome::fenced, Outcome::failed}) {
    s = Scene();
    s.lead();
    const auto asked = s.now;
    s.pass(1s);
    s.commit();
    s.answer_commit(outcome);
    s.now = asked + presumed;
    s.pass(0s);
    EXPECT_FALSE(s.leads(role(0)));
  }
}

TEST_F(NonExclusiveRolesThatLead, S3WhatLapsedIsNotRevivedByALateAnswer) {
  s.pass(presumed - 1ms);
  s.commit();
  s.pass(1ms);
  ASSERT_FALSE(s.leads(role(0)));
  if (s.sent) s.accept();
  EXPECT_FALSE(s.leads(role(0)));
}

// ---- S4 ----

TEST_F(NonExclusiveRolesThatLead, S4LeadsOnThroughARebalanceAndAfterTheUnitIsAnothers) {
  const auto asked = s.now;
  s.pass(1s);
  s.revoked();
  EXPECT_EQ(s.unassigns, 1) << "the others wait for nothing of ours";
  EXPECT_TRUE(s.allotted(role(0)) && s.leads(role(0)));
  EXPECT_TRUE(s.allotted(role(1)) && s.leads(role(1)));
  s.assign({0, 1, 2});
  s.do_commit();
  EXPECT_EQ(s.done().not_renewed, std::vector<std::string>{role(1)});
  EXPECT_TRUE(s.allotted(role(1)) && s.leads(role(1)));
  s.now = asked + presumed - 1ns;
  s.pass(0s);
  EXPECT_TRUE(s.leads(role(1)));
  s.pass(1ns);
  EXPECT_FALSE(s.leads(role(1))) << "neither the membership nor the other unit's commit has moved its end";
  EXPECT_TRUE(s.leads(role(0)));
}

TEST_F(NonExclusiveRolesThatLead, S4ACommitThatIsAnsweredInTheNextGenerationCountsFromWhenItWasAsked) {
  s.pass(1s);
  const auto asked = s.now;
  s.commit();
  s.revoked();
  EXPECT_EQ(s.unassigns, 1);
  s.pass(400ms);
  s.assign({0, 1, 2});
  EXPECT_EQ(s.drops, 0);
  s.accept();
  s.now = asked + presumed - 1ns;
  s.pass(0s);
  EXPECT_TRUE(s.leads(role(1)));
  s.pass(1ns);
  EXPECT_FALSE(s.leads(role(1)));
}

TEST_F(NonExclusiveRolesThatLead, S4AUnitThatComesBackIsRenewedWithTheSameTenure) {
  const auto before = s.look().leads.at(role(1)).token;
  s.lose_unit_1();
  s.rebalance(all_partitions);
  s.do_commit();
  EXPECT_TRUE(s.done().not_renewed.empty());
  EXPECT_EQ(s.look().leads.at(role(1)).token, before);
}

// ---- S6 ----

TEST_F(NonExclusiveRolesThatLead, S6WhoWasNotAnsweredForASessionSendsNothingMore) {
  const auto asked = s.now;
  s.pass(2s);
  s.commit();
  s.answer_commit(Outcome::failed);
  s.now = asked + session_time - 1ns;
  s.pass(0s);
  EXPECT_EQ(s.drops, 0);
  s.pass(1ns);
  EXPECT_EQ(s.drops, 1);
  EXPECT_TRUE(s.leads(role(0))) << "it leads on nevertheless";
  EXPECT_TRUE(s.allotted(role(0)));
}

TEST_F(NonExclusiveRolesThatLead, S6AnAnswerOrAnAssignmentIsHeardFrom) {
  s.pass(session_time - 1s);
  s.do_commit();
  s.pass(session_time - 1ns);
  EXPECT_EQ(s.drops, 0);
  s.rebalance(all_partitions);
  s.pass(session_time - 1ns);
  EXPECT_EQ(s.drops, 0);
  s.pass(1ns);
  EXPECT_EQ(s.drops, 1);
}

TEST_F(NonExclusiveRoles, S6AClaimThatIsNotAnsweredOrThatIsFencedCostsTheHandleToo) {
  for (const bool fence : {false, true}) {
    s = Scene();
    s.join(all_partitions);
    s.pass(2 * session_time);
    EXPECT_EQ(s.drops, 0) << "who leads nothing need not be heard of";
    s.commit({role(0)});
    if (fence) s.answer_commit(Outcome::fenced);
    s.pass(session_time - 1ns);
    EXPECT_EQ(s.drops, fence) << "a fence costs it at once";
    s.pass(1ns);
    EXPECT_EQ(s.drops, 1);
  }
}

TEST_F(NonExclusiveRolesThatLead, S6WhoLostItsPlaceTakesAnother) {
  s.revoked(true);
  EXPECT_EQ(s.drops, 1);
  EXPECT_EQ(s.opened, 1);
  s.pass(1s);
  EXPECT_EQ(s.opened, 2);
  EXPECT_TRUE(s.leads(role(0)));
}

// ---- S7 ----

TEST_F(NonExclusiveRolesThatLead, S7GivesALostUnitUpWhenItsNewOwnerKnowsThatItLeads) {
  s.lose_unit_1();
  s.write(1, of_other(7, false));
  s.observe();
  EXPECT_TRUE(s.allotted(role(1))) << "that may be a claim whose answer is lost";
  s.write(1, of_other(8, true));
  s.observe();
  EXPECT_FALSE(s.allotted(role(1)));
  EXPECT_TRUE(s.leads(role(1))) << "until its work is over";
  s.do_commit({}, {role(1)});
  EXPECT_EQ(s.done().released, std::vector<std::string>{role(1)});
  EXPECT_FALSE(s.leads(role(1)));
  EXPECT_EQ(s.record(1).who.incarnation, "other") << "nothing of ours was written there";
}

TEST_F(NonExclusiveRolesThatLead, S7AnOldRecordProvesNothing) {
  s.lose_unit_1();
  s.write(1, of_other(8, true));  // A frozen coordinator tells what was.
  for (int i = 0; i < 3; ++i) s.observe();
  EXPECT_TRUE(s.allotted(role(1)));
  s.write(1, of_other(2, true, "third"));
  s.observe();
  EXPECT_TRUE(s.allotted(role(1)));
  s.write(1, of_other(1, true, "third"));  // older still
  s.observe();
  EXPECT_TRUE(s.allotted(role(1)));
}

TEST_F(NonExclusiveRolesThatLead, S7OneThatWritesWithoutEverBeingAnsweredTakesNothing) {
  s.lose_unit_1();
  for (std::uint64_t seq = 7; seq < 12; ++seq) {
    s.write(1, of_other(seq, false));
    s.observe();
    EXPECT_TRUE(s.allotted(role(1)));
  }
}

TEST_F(NonExclusiveRolesThatLead, S7WhatIsOursAgainWasNotTaken) {
  s.lose_unit_1();
  for (std::uint64_t seq = 7; seq < 9; ++seq) s.write(1, of_other(seq, true)), s.observe();
  ASSERT_FALSE(s.allotted(role(1)));
  s.rebalance(all_partitions);
  EXPECT_TRUE(s.allotted(role(1)));
}

// ---- S8 ----

TEST_F(NonExclusiveRolesThatLead, S8AStopLeavesTheGroup) {
  s.do_commit({}, {role(0), role(1)});
  s.call(role_call::End{SessionId{77}});
  EXPECT_EQ(s.drops, 1);
  s.give(role_fact::Left{s.handle});
  EXPECT_TRUE(*std::get<Result<bool>>(s.answer.value()));
}

TEST_F(NonExclusiveRoles, S8WhoAsksNothingLeavesTheGroup) {
  s.join(all_partitions);
  s.pass(lease);
  EXPECT_EQ(s.drops, 1);
}

// ---- S9 ----

TEST_F(NonExclusiveRoles, S9WithExclusiveProcessesInTheGroupNothingIsClaimed) {
  auto theirs = of_other(1, false);
  theirs.exclusive = Exclusive::yes;
  s.write(0, theirs);
  s.join(all_partitions);
  EXPECT_FALSE(s.allotted(role(1)));
  EXPECT_TRUE(test::mentions(s.told,
                             "\"other\" uses this group and topic with 2 units, and this process with 2 units "
                             "and Exclusive::no"))
      << s.told;
  s.pass(lease - 1ns);
  EXPECT_FALSE(s.allotted(role(1)));
  s.pass(1ns);
  EXPECT_TRUE(s.allotted(role(1))) << "that process was gone for a lease";
}

TEST_F(NonExclusiveRoles, S9AnExclusiveProcessClaimsNothingBesideOneThatIsNot) {
  for (const bool beside : {true, false}) {
    RoleScene exclusive(std::make_unique<Roles>(
        RoleConfig{.units = count, .lease = lease, .margin = margin, .observe_every = 500ms, .incarnation = "me"}));
    auto gone = of_other(1, false, "x");
    gone.released = true;
    gone.exclusive = Exclusive::yes;
    exclusive.offset(record_of(0)) = {1, encode(beside ? of_other(1, true) : gone)};
    exclusive.offset(record_of(1)) = {5, encode(gone)};
    exclusive.join(all_partitions);
    exclusive.prove();
    EXPECT_EQ(exclusive.look().allotted->empty(), beside);
    EXPECT_EQ(beside,
              test::mentions(exclusive.told, "\"other\" uses this group and topic with 2 units and Exclusive::no"))
        << exclusive.told;
  }
}

// ---- R14: rule 21, a stranger in the group ----

TEST_F(NonExclusiveRoles, R14AStrangerThatKeepsAUnitFromAllIsNamed) {
  s.write(1, of_other(3, true, "gone"));
  s.join({0, 1, 2});
  s.stay(2 * lease - 250ms);
  EXPECT_EQ(s.searches, 0);
  s.stay(250ms);
  ASSERT_EQ(s.searches, 1);
  s.found_owner(record_of(1), "console-consumer");
  EXPECT_TRUE(tenure::test::mentions(s.told, "partition 3 is owned by \"console-consumer\" at /10.0.0.7")) << s.told;
}

}  // namespace rules_of_non_exclusive_roles
}  // namespace
}  // namespace tenure::kafka
