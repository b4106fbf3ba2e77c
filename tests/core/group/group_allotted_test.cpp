// SPDX-License-Identifier: Apache-2.0
// Goal: rules 17 and 18 of core/src/group/README.md hold, which are those of a store that allots the elections itself.
// Method: as in group_candidacy_test.cpp.
#include <gtest/gtest.h>

#include <memory>

#include <tenure/elections.hpp>

#include "group/group_candidacy.hpp"
#include "group/spread.hpp"
#include "group_scene.hpp"
#include "refusal.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::group_timing;
using test::rival;

struct GroupAllotted : test::GroupTest {
  void allot(std::set<std::string> elections) { stage.store.allotted = std::move(elections); }
  /// It leads both. From here on no commit renews "a", whose lease is nearly over. When that ends.
  Clock::Time leave_a_unrenewed() {
    me.lead({"a", "b"});
    const auto end = me.deadline;
    stage.store.not_renewed = {"a"};
    while (stage.now < end - group_timing.renew) me.renew();
    return end;
  }
};

// ---- rule 17: where the store allots ----

TEST_F(GroupAllotted, OnlyWhatIsAllottedIsClaimed) {
  allot({"mine"});
  me.join("other");
  me.lead({"mine"});
  me.pass(30s);
  EXPECT_FALSE(me.leads("other"));
  EXPECT_TRUE(me.leads("mine"));
}

TEST_F(GroupAllotted, WhatIsAllottedLaterIsClaimedByTheNextLook) {
  allot({"mine"});
  me.join("other");
  me.lead({"mine"});
  stage.store.allotted->insert("other");
  me.look_now();
  EXPECT_TRUE(me.leads("other"));
}

TEST_F(GroupAllotted, WhoeverJoinsOneMoreLooksAtOnceBecauseTheStoreMayAllotIt) {
  allot({"mine"});
  me.lead({"mine"});
  stage.store.allotted->insert("other");
  me.join("other");
  me.settle();
  EXPECT_TRUE(me.leads("other"));
}

TEST_F(GroupAllotted, WhatIsNoLongerAllottedEndsBeforeItIsReleased) {
  allot({"a", "b"});
  me.lead({"a", "b"});
  stage.store.allotted->erase("a");
  me.look_now();
  ASSERT_EQ(me.count<group_effect::End>(), 1u);
  EXPECT_EQ(me.all<group_effect::End>()[0].election, "a");
  EXPECT_EQ(me.reasons(), std::vector{Reason::handed_over});
  EXPECT_TRUE(me.leads("a")) << "ousting() has not returned";
  EXPECT_FALSE(stage.lead("a").released);
  me.work_ended("a");
  EXPECT_FALSE(me.leads("a"));
  EXPECT_TRUE(stage.lead("a").released);
  EXPECT_TRUE(me.leads("b"));
  me.pass(30s);
  EXPECT_FALSE(me.leads("a")) << "it is not ours to claim";
}

TEST_F(GroupAllotted, NobodysSessionIsEndedWhereTheStoreAllots) {
  allot({"mine", "theirs"});
  stage.rival(rival, 1);
  stage.lead("theirs", {5}, rival);
  me.join("theirs");
  me.lead({"mine"});
  me.pass(60s);
  EXPECT_EQ(me.count<group_effect::Begin>(), 1u);
  EXPECT_FALSE(stage.store.sessions.at(rival).record.released);
  stage.lead("theirs", {5}, rival, true);  // It may be claimed now, as the store shows.
  me.look_now();
  EXPECT_TRUE(me.leads("theirs"));
}

TEST_F(GroupAllotted, TheSpreadHandsNothingOverWhereTheStoreAllots) {
  allot({"a", "b", "c", "d"});
  stage.rival(rival, 1);
  me.run_with(Spread{});
  stage.store.sessions[rival].joined = 4;
  for (const auto* election : {"a", "b", "c", "d"}) stage.store.sessions[rival].names ^= hash_of(election);
  me.begins({"a", "b", "c", "d"});
  me.pass(10s);
  for (const auto* election : {"a", "b", "c", "d"}) EXPECT_TRUE(me.leads(election)) << election;
  EXPECT_EQ(me.count<group_effect::End>(), 0u);
}

// ---- rule 18: what a commit did not renew ----

TEST_F(GroupAllotted, WhatWasNotRenewedEndsByTheRenewalBefore) {
  me.lead({"a", "b"});
  me.renew();
  const auto end = me.deadline;
  stage.store.not_renewed = {"a"};
  me.renew();
  ASSERT_GT(me.deadline, end);
  EXPECT_EQ(me.led.at("a").cap, end);
  me.pass(end - stage.now - 1ms);
  EXPECT_TRUE(me.leads("a"));
  me.pass(1ms);
  EXPECT_FALSE(me.leads("a"));
  EXPECT_TRUE(me.leads("b"));
  EXPECT_EQ(me.reasons(), std::vector{Reason::lapsed});
}

TEST_F(GroupAllotted, TheEarlierEndIsPublishedBeforeTheSessionsLaterOne) {
  me.lead({"a"});
  me.renew();
  stage.store.not_renewed = {"a"};
  me.renew();
  const auto at = [&](auto type) {
    return std::find_if(me.newest.begin(), me.newest.end(),
                        [](const auto& e) { return std::holds_alternative<decltype(type)>(e); });
  };
  EXPECT_LT(at(group_effect::Cap{}), at(group_effect::Publish{})) << "or a reader sees the later deadline";
}

TEST_F(GroupAllotted, ManyCommitsWithoutItMoveItsEndNoFurther) {
  me.lead({"a"});
  me.renew();
  const auto end = me.deadline;
  stage.store.not_renewed = {"a"};
  me.renew();
  me.renew();
  EXPECT_EQ(me.led.at("a").cap, end);
}

TEST_F(GroupAllotted, ARenewalBeforeThatEndGoesOnWithTheSameTenure) {
  me.lead({"a"});
  stage.store.not_renewed = {"a"};
  me.renew();
  stage.store.not_renewed.clear();
  me.renew();
  me.pass(3 * group_timing.term);
  EXPECT_TRUE(me.leads("a"));
  EXPECT_EQ(me.count<group_effect::Begin>(), 1u);
  EXPECT_EQ(me.count<group_effect::End>(), 0u);
}

TEST_F(GroupAllotted, ARenewalThatIsAnsweredAfterThatEndRevivesNothing) {
  me.lead({"a"});
  const auto end = me.deadline;
  stage.store.not_renewed = {"a"};
  while (stage.now < end - 2 * group_timing.renew) me.renew();
  stage.store.not_renewed.clear();
  me.pass_until_asked<ask::Write>();
  while (stage.now + group_timing.call < end) {
    me.tell(Result<Committed>(Error{Fault::timed_out, "no answer"}));
    me.pass_until_asked<ask::Write>();
  }
  ASSERT_LT(stage.now, end);
  auto late = me.land();
  stage.pass(end - stage.now);
  me.tell(late);
  EXPECT_EQ(me.reasons(), std::vector{Reason::lapsed});
  EXPECT_FALSE(me.leads("a"));
}

TEST_F(GroupAllotted, AnEndThatDrainsGetsNoMoreTimeByRenewalsOfTheOthers) {
  const auto end = leave_a_unrenewed();
  me.resign("a");
  const auto done_by = me.all<group_effect::DoneBy>().back().at;
  EXPECT_LE(done_by, end + group_timing.margin) << "another one may lead from there";
  me.renew();
  EXPECT_EQ(me.all<group_effect::DoneBy>().back().at, done_by);
  me.pass(end - stage.now);
  EXPECT_FALSE(me.leads("a")) << "ousting() still runs";
  EXPECT_TRUE(me.leads("b"));
}

TEST_F(GroupAllotted, WhatDrainsUnrenewedIsGivenBackWithItsLeaseThoughItsWorkRunsOn) {
  const auto end = leave_a_unrenewed();
  me.resign("a");
  const auto done_by = me.all<group_effect::DoneBy>().back().at;
  ASSERT_GT(done_by, end);
  me.pass(done_by - stage.now - 1ns);
  EXPECT_FALSE(stage.lead("a").released) << "the work may run for so long";
  me.pass(1ns);
  EXPECT_TRUE(stage.lead("a").released);
}

TEST_F(GroupAllotted, WhatDrainsUnrenewedIsGivenBackOnceItsWorkHasStopped) {
  const auto end = leave_a_unrenewed();
  me.resign("a");
  me.pass(end - stage.now);
  EXPECT_FALSE(stage.lead("a").released);
  me.work_ended("a");
  EXPECT_TRUE(stage.lead("a").released);
}

// ---- the shell ----

/// A store that is away, and notes of which elections it is told.
class Listening : public GroupStore {
 public:
  std::string group() const override { return "g"; }
  void joined(const std::string& election) override { told.push_back("+" + election); }
  void left(const std::string& election) override { told.push_back("-" + election); }
  Result<Look> look(const std::string&, const Limit&) override { return away; }
  Result<Committed> open(SessionId, const Session&, const Limit&) override { return away; }
  Result<Committed> commit(const Commit&, const Limit&) override { return away; }
  Result<bool> end(SessionId, const std::vector<std::uint64_t>&, std::uint64_t, const Limit&) override { return away; }
  Result<int> sweep(const Limit&) override { return away; }
  std::optional<Error> request_step_down(const std::string&, const StepDown&, const Limit&) override { return away; }

  const Error away{Fault::unreachable, "away"};
  std::vector<std::string> told;
};

class Allotting final : public Listening {
 public:
  bool allots() const override { return true; }
};

TEST_F(GroupAllotted, ASpreadThatAStoreWhichAllotsCannotHonourIsRefused) {
  const auto with = [](const Spread& spread) {
    return Elections(std::make_shared<Allotting>(), Candidate{"me"}, group_timing, {}, spread);
  };
  EXPECT_NO_THROW(with({.handovers_at_once = 1}));
  for (const auto& spread : {Spread{.most = 0}, Spread{.most = 7}, Spread{.weight = 2}, Spread{.on = false}}) {
    const auto said = test::refusal_of([&] { with(spread); });
    EXPECT_NE(said.find("allots the elections itself"), said.npos) << said;
  }
  EXPECT_NO_THROW(Elections(std::make_shared<Listening>(), Candidate{"me"}, group_timing, {}, Spread{.most = 0}));
}

TEST_F(GroupAllotted, TheStoreLearnsWhatIsJoinedAndLeft) {
  const auto store = std::make_shared<Listening>();
  Elections elections(store, Candidate{"me"}, group_timing);
  elections.join("a");
  elections.join("b");
  elections.leave("a");
  elections.start();
  elections.stop();
  EXPECT_EQ(store->told, (std::vector<std::string>{"+a", "+b", "-a"}));
}

}  // namespace
}  // namespace tenure
