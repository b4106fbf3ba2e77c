// SPDX-License-Identifier: Apache-2.0
// Goal: the rules S1 to S9 of the chapter "Roles that several may lead" of backends/kafka/README.md hold, by their
// numbers. Method: facts are handed to one SharedRoles at chosen moments of a clock that is only a number; the test
// plays the coordinator.
#include "shared_roles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "messages.hpp"
#include "roles.hpp"

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;
using Time = Clock::Time;

constexpr int count = 2;
constexpr auto lease = 26500ms;
constexpr auto margin = 500ms;
constexpr auto presumed = lease - margin;
constexpr auto session_time = 6s;

/// A role of this unit.
std::string role(int unit, int number = 0) {
  for (int i = 0;; ++i) {
    const auto name = "role" + std::to_string(i);
    if (unit_of(name, count) == unit && number-- == 0) return name;
  }
}

Record of_other(std::uint64_t seq, bool leads, const std::string& who = "other") {
  return {.lease = lease,
          .incarnation = who,
          .seq = seq,
          .name = who,
          .address = "",
          .units = count,
          .exclusive = Exclusive::no,
          .leads = leads};
}

struct Scene {
  Scene() {
    for (int unit = 0; unit < count; ++unit)
      for (int i = 0; i < 2; ++i) give(role_fact::Joined{role(unit, i)});
  }

  void give(const RoleFact& fact) {
    for (auto& effect : roles.on(fact, now, 1'700'000'000'000)) {
      if (auto* e = std::get_if<role_effect::SendCommit>(&effect)) sent = *e, ++commits;
      if (auto* e = std::get_if<role_effect::Open>(&effect)) handle = e->handle, ++opened;
      if (std::holds_alternative<role_effect::Drop>(effect)) ++drops;
      if (std::holds_alternative<role_effect::Unassign>(effect)) ++unassigns;
      if (std::holds_alternative<role_effect::ReadMember>(effect)) ++reads;
      if (auto* e = std::get_if<role_effect::Reply>(&effect)) answer = e->answer;
      if (auto* e = std::get_if<role_effect::Tell>(&effect)) told += e->message;
    }
  }
  void pass(Clock::Duration by) { now += by, give(role_fact::Elapsed{}); }
  void call(RoleCall what) {
    answer.reset();
    give(role_fact::Called{++calls, std::move(what), now + 2s});
  }

  // ---- the coordinator ----
  void observe() { give(role_fact::Observed{offsets}); }
  void accept() {
    ASSERT_TRUE(sent);
    for (const auto& [partition, commit] : sent->commits) offsets[static_cast<std::size_t>(partition)] = commit;
    answer_commit(Outcome::accepted);
  }
  void answer_commit(Outcome outcome) {
    const auto id = std::exchange(sent, std::nullopt).value().id;
    give(role_fact::Committed{id, outcome, outcome == Outcome::accepted ? Error{} : Error{Fault::timed_out, "no"}});
  }
  void assign(std::vector<int> partitions) { give(role_fact::Assigned{handle, std::move(partitions), 2}); }
  void write(int unit, const Record& record, std::int64_t offset = 1) {
    offsets.at(static_cast<std::size_t>(record_of(unit))) = {offset, encode(record)};
  }

  // ---- what core does ----
  void open() {
    observe();
    call(role_call::Open{SessionId{77}, {.record = {.holder = "me"}}});
    pass(0s);
  }
  void commit(std::vector<std::string> claims = {}, std::vector<std::string> releases = {}) {
    tenure::Commit c{.session = SessionId{77}, .next = {.record = {.holder = "me"}}};
    std::sort(claims.begin(), claims.end());
    std::sort(releases.begin(), releases.end());
    const auto seen = look();
    for (const auto& name : claims) {
      const auto it = seen.leads.find(name);
      c.claims.push_back({name, it == seen.leads.end() ? std::nullopt : std::optional(it->second.token)});
    }
    for (const auto& name : releases) c.releases.push_back({name, seen.leads.at(name).token, std::nullopt});
    call(role_call::Write{c});
  }
  Look look() {
    call(role_call::See{});
    return *std::get<Result<Look>>(answer.value());
  }
  const tenure::Committed& done() const { return *std::get<Result<tenure::Committed>>(answer.value()); }
  bool failed() const { return answer && !std::get<Result<tenure::Committed>>(*answer); }
  bool allotted(const std::string& name) { return look().allotted->contains(name); }
  bool leads(const std::string& name) {
    const auto seen = look().leads;
    const auto it = seen.find(name);
    return it != seen.end() && it->second.session == SessionId{77} && !it->second.released;
  }
  Record record(int unit) {
    return decode(offsets.at(static_cast<std::size_t>(record_of(unit))).value().metadata).value();
  }

  /// A member of the group that owns both units, and leads a role of each.
  void lead() {
    open();
    assign({0, 1, 2, 3, 4, 5});
    commit({role(0), role(1)});
    accept();
    ASSERT_EQ(done().claimed.size(), 2u);
  }
  /// The group's members have changed, and unit 1 is another one's.
  void lose_unit_1() {
    give(role_fact::Revoked{handle, false});
    assign({0, 1, 2});
  }

  SharedRoles roles{{.units = count,
                     .lease = lease,
                     .margin = margin,
                     .session = session_time,
                     .observe_every = 500ms,
                     .incarnation = "me"}};
  Time now{Time{1h}};
  role_fact::Offsets offsets{static_cast<std::size_t>(partitions_of(count))};
  std::optional<role_effect::SendCommit> sent;
  std::optional<RoleAnswer> answer;
  std::string told;
  std::uint64_t handle{}, calls{};
  int commits{}, drops{}, unassigns{}, reads{}, opened{};
};

// ---- S1 ----

TEST(SharedRoles, S1LeadsFromItsAssignmentAndWaitsForNobodysLease) {
  Scene s;
  s.write(0, of_other(3, true));
  s.write(1, of_other(3, true));
  s.open();
  EXPECT_FALSE(s.allotted(role(0)));
  s.assign({0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(s.allotted(role(0)));
  s.commit({role(0), role(0, 1), role(1)});
  ASSERT_TRUE(s.sent);
  EXPECT_EQ(s.sent->commits.size(), 2u) << "one record per unit";
  s.accept();
  EXPECT_EQ(s.done().claimed.size(), 3u);
  EXPECT_TRUE(s.leads(role(0, 1)));
  EXPECT_EQ(s.reads, 0);
}

TEST(SharedRoles, S1WhatIsNotAcknowledgedIsNotLed) {
  for (const auto outcome : {Outcome::fenced, Outcome::failed}) {
    Scene s;
    s.open();
    s.assign({0, 1, 2, 3, 4, 5});
    s.commit({role(0)});
    s.answer_commit(outcome);
    EXPECT_TRUE(s.failed());
    EXPECT_FALSE(s.leads(role(0)));
    EXPECT_EQ(s.drops, 0) << "it fences nothing, so it may be tried again by the same handle";
  }
}

TEST(SharedRoles, S1OnlyWhatIsOwnedIsClaimed) {
  Scene s;
  s.open();
  s.assign({0, 1, 2});
  s.commit({role(0), role(1)});
  s.accept();
  EXPECT_EQ(s.done().claimed, std::vector<std::string>{role(0)});
}

// ---- S2 ----

TEST(SharedRoles, S2ARecordSaysWhetherItsWriterKnowsThatItLeads) {
  Scene s;
  s.lead();
  EXPECT_FALSE(s.record(0).leads);
  EXPECT_EQ(s.record(0).exclusive, Exclusive::no);
  s.pass(1s);
  s.commit();
  s.accept();
  EXPECT_TRUE(s.record(0).leads);
  s.commit({}, {role(0)});
  s.accept();
  EXPECT_TRUE(s.record(0).released);
  EXPECT_FALSE(s.record(1).released);
}

TEST(SharedRoles, S2OffsetsNeverFall) {
  Scene s;
  s.write(0, of_other(1, true), 1'700'000'000'123);
  s.lead();
  EXPECT_EQ(s.offsets[0]->offset, 1'700'000'000'123);
}

// ---- S3 ----

TEST(SharedRoles, S3LeadsOnFromTheSendingOfTheLastAcknowledgedCommit) {
  Scene s;
  s.lead();
  s.pass(1s);
  const auto asked = s.now;
  s.commit();
  s.pass(1s);
  s.accept();  // Late.
  s.give(role_fact::Revoked{s.handle, true});
  s.now = asked + presumed - 1ns;
  s.pass(0s);
  EXPECT_TRUE(s.leads(role(0)));
  EXPECT_TRUE(s.allotted(role(0)));
  s.pass(1ns);
  EXPECT_FALSE(s.leads(role(0)));
}

TEST(SharedRoles, S3AnErrorExtendsNothing) {
  for (const auto outcome : {Outcome::fenced, Outcome::failed}) {
    Scene s;
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

TEST(SharedRoles, S3WhatLapsedIsNotRevivedByALateAnswer) {
  Scene s;
  s.lead();
  s.pass(presumed - 1ms);
  s.commit();
  s.pass(1ms);
  ASSERT_FALSE(s.leads(role(0)));
  if (s.sent) s.accept();
  EXPECT_FALSE(s.leads(role(0)));
}

// ---- S4 ----

TEST(SharedRoles, S4LeadsOnThroughARebalanceAndAfterTheUnitIsAnothers) {
  Scene s;
  s.lead();
  const auto asked = s.now;
  s.pass(1s);
  s.give(role_fact::Revoked{s.handle, false});
  EXPECT_EQ(s.unassigns, 1) << "the others wait for nothing of ours";
  EXPECT_TRUE(s.allotted(role(0)) && s.leads(role(0)));
  EXPECT_TRUE(s.allotted(role(1)) && s.leads(role(1)));
  s.assign({0, 1, 2});
  s.commit();
  s.accept();
  EXPECT_EQ(s.done().not_renewed, std::vector<std::string>{role(1)});
  EXPECT_TRUE(s.allotted(role(1)) && s.leads(role(1)));
  s.now = asked + presumed - 1ns;
  s.pass(0s);
  EXPECT_TRUE(s.leads(role(1)));
  s.pass(1ns);
  EXPECT_FALSE(s.leads(role(1))) << "neither the membership nor the other unit's commit has moved its end";
  EXPECT_TRUE(s.leads(role(0)));
}

TEST(SharedRoles, S4ACommitThatIsAnsweredInTheNextGenerationCountsFromWhenItWasAsked) {
  Scene s;
  s.lead();
  s.pass(1s);
  const auto asked = s.now;
  s.commit();
  s.give(role_fact::Revoked{s.handle, false});
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

TEST(SharedRoles, S4AUnitThatComesBackIsRenewedWithTheSameTenure) {
  Scene s;
  s.lead();
  const auto before = s.look().leads.at(role(1)).token;
  s.lose_unit_1();
  s.give(role_fact::Revoked{s.handle, false});
  s.assign({0, 1, 2, 3, 4, 5});
  s.commit();
  s.accept();
  EXPECT_TRUE(s.done().not_renewed.empty());
  EXPECT_EQ(s.look().leads.at(role(1)).token, before);
}

// ---- S6 ----

TEST(SharedRoles, S6WhoWasNotAnsweredForASessionSendsNothingMore) {
  Scene s;
  s.lead();
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

TEST(SharedRoles, S6AnAnswerOrAnAssignmentIsHeardFrom) {
  Scene s;
  s.lead();
  s.pass(session_time - 1s);
  s.commit();
  s.accept();
  s.pass(session_time - 1ns);
  EXPECT_EQ(s.drops, 0);
  s.give(role_fact::Revoked{s.handle, false});
  s.assign({0, 1, 2, 3, 4, 5});
  s.pass(session_time - 1ns);
  EXPECT_EQ(s.drops, 0);
  s.pass(1ns);
  EXPECT_EQ(s.drops, 1);
}

TEST(SharedRoles, S6AClaimThatIsNotAnsweredOrAFenceThatStaysCostsTheHandleToo) {
  for (const bool fence : {false, true}) {
    Scene s;
    s.open();
    s.assign({0, 1, 2, 3, 4, 5});
    s.pass(2 * session_time);
    EXPECT_EQ(s.drops, 0) << "who leads nothing need not be heard of";
    s.commit({role(0)});
    if (fence) s.answer_commit(Outcome::fenced);
    s.pass(session_time - 1ns);
    EXPECT_EQ(s.drops, 0);
    s.pass(1ns);
    EXPECT_EQ(s.drops, 1);
  }
}

TEST(SharedRoles, S6WhoLostItsPlaceTakesAnother) {
  Scene s;
  s.lead();
  s.give(role_fact::Revoked{s.handle, true});
  EXPECT_EQ(s.drops, 1);
  EXPECT_EQ(s.opened, 1);
  s.pass(1s);
  EXPECT_EQ(s.opened, 2);
  EXPECT_TRUE(s.leads(role(0)));
}

// ---- S7 ----

TEST(SharedRoles, S7GivesALostUnitUpWhenItsNewOwnerKnowsThatItLeads) {
  Scene s;
  s.lead();
  s.lose_unit_1();
  s.write(1, of_other(7, false));
  s.observe();
  EXPECT_TRUE(s.allotted(role(1))) << "that may be a claim whose answer is lost";
  s.write(1, of_other(8, true));
  s.observe();
  EXPECT_FALSE(s.allotted(role(1)));
  EXPECT_TRUE(s.leads(role(1))) << "until its work is over";
  s.commit({}, {role(1)});
  s.accept();
  EXPECT_EQ(s.done().released, std::vector<std::string>{role(1)});
  EXPECT_FALSE(s.leads(role(1)));
  EXPECT_EQ(s.record(1).incarnation, "other") << "nothing of ours was written there";
}

TEST(SharedRoles, S7AnOldRecordProvesNothing) {
  Scene s;
  s.lead();
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

TEST(SharedRoles, S7OneThatWritesWithoutEverBeingAnsweredTakesNothing) {
  Scene s;
  s.lead();
  s.lose_unit_1();
  for (std::uint64_t seq = 7; seq < 12; ++seq) {
    s.write(1, of_other(seq, false));
    s.observe();
    EXPECT_TRUE(s.allotted(role(1)));
  }
}

TEST(SharedRoles, S7WhatIsOursAgainWasNotTaken) {
  Scene s;
  s.lead();
  s.lose_unit_1();
  for (std::uint64_t seq = 7; seq < 9; ++seq) s.write(1, of_other(seq, true)), s.observe();
  ASSERT_FALSE(s.allotted(role(1)));
  s.give(role_fact::Revoked{s.handle, false});
  s.assign({0, 1, 2, 3, 4, 5});
  EXPECT_TRUE(s.allotted(role(1)));
}

// ---- S8 ----

TEST(SharedRoles, S8AStopLeavesTheGroup) {
  Scene s;
  s.lead();
  s.commit({}, {role(0), role(1)});
  s.accept();
  s.call(role_call::End{SessionId{77}});
  EXPECT_EQ(s.drops, 1);
  s.give(role_fact::Left{s.handle});
  EXPECT_TRUE(*std::get<Result<bool>>(s.answer.value()));
}

TEST(SharedRoles, S8WhoAsksNothingLeavesTheGroup) {
  Scene s;
  s.open();
  s.assign({0, 1, 2, 3, 4, 5});
  s.pass(lease);
  EXPECT_EQ(s.drops, 1);
}

// ---- S9 ----

TEST(SharedRoles, S9WithExclusiveProcessesInTheGroupNothingIsClaimed) {
  Scene s;
  auto theirs = of_other(1, false);
  theirs.exclusive = Exclusive::yes;
  s.write(0, theirs);
  s.open();
  s.assign({0, 1, 2, 3, 4, 5});
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

TEST(SharedRoles, S9AnExclusiveProcessClaimsNothingBesideOneThatIsNot) {
  Roles exclusive({.units = count, .lease = lease, .margin = margin, .observe_every = 500ms, .incarnation = "me"});
  role_fact::Offsets offsets{static_cast<std::size_t>(partitions_of(count))};
  offsets[0] = {1, encode(of_other(1, true))};
  Time now{1h};
  exclusive.on(role_fact::Joined{role(1)}, now, 1);
  std::string told;
  std::optional<RoleAnswer> answer;
  std::uint64_t handle = 0, call = 0;
  std::optional<std::uint64_t> nonce, reading;
  std::map<int, Commit> sent;
  const auto give = [&](const RoleFact& fact) {
    for (auto& effect : exclusive.on(fact, now, 1)) {
      if (auto* e = std::get_if<role_effect::Tell>(&effect)) told += e->message;
      if (auto* e = std::get_if<role_effect::Open>(&effect)) handle = e->handle;
      if (auto* e = std::get_if<role_effect::SendCommit>(&effect)) nonce = e->id, sent = e->commits;
      if (auto* e = std::get_if<role_effect::ReadMember>(&effect)) reading = e->id;
      if (auto* e = std::get_if<role_effect::Reply>(&effect)) answer = e->answer;
    }
  };
  const auto allotted = [&] {
    give(role_fact::Called{++call, role_call::See{}, now + 1s});
    return !std::get<Result<Look>>(answer.value())->allotted->empty();
  };
  offsets[static_cast<std::size_t>(record_of(1))] = {
      5,
      encode(Record{.released = true, .lease = lease, .incarnation = "x", .name = "x", .address = "", .units = count})};
  give(role_fact::Observed{offsets});
  give(role_fact::Called{++call, role_call::Open{SessionId{7}, {}}, now + 1s});
  give(role_fact::Elapsed{});
  give(role_fact::Assigned{handle, {0, 1, 2, 3, 4, 5}, 2});
  ASSERT_TRUE(nonce);
  for (const auto& [partition, commit] : sent) offsets[static_cast<std::size_t>(partition)] = commit;
  give(role_fact::Committed{*nonce, Outcome::accepted, {}});
  ASSERT_TRUE(reading);
  give(role_fact::MemberRead{*reading, offsets});
  EXPECT_FALSE(allotted());
  EXPECT_TRUE(test::mentions(told, "\"other\" uses this group and topic with 2 units and Exclusive::no")) << told;
}

}  // namespace
}  // namespace tenure::kafka
