// SPDX-License-Identifier: Apache-2.0
// Goal: a row that the store cannot write just now, because somebody has locked it, costs its own election or session
// alone, and no longer than it lasts. Method: as in group_candidacy_test.cpp. The model of the store locks rows.
#include <gtest/gtest.h>

#include "group_scene.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::group_timing;
using test::rival;
using GroupRefused = test::GroupTest;

constexpr SessionId another{8};

std::size_t told_of(const test::GroupScene& scene, const std::string& election) {
  const auto all = scene.all<group_effect::Report>();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& report) {
    return report.election == election && report.error.message.find("cannot be written") != std::string::npos;
  }));
}

// ---- sessions ----

TEST_F(GroupRefused, ASessionThatCannotBeEndedKeepsNobodyFromAnothersElections) {
  rival_leads();
  stage.rival(another, 1);
  stage.lead("f", {6}, another);
  stage.store.stuck = {rival};
  me.begins({"e", "f"});
  me.pass(2 * group_timing.term);
  EXPECT_TRUE(me.leads("f"));
  EXPECT_FALSE(me.leads("e"));
  stage.store.stuck.clear();
  me.pass(group_timing.term);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupRefused, ADeadSessionThatCannotBeEndedHoldsUpNoGiftAndIsOfferedNothing) {
  const std::vector<std::string> all{"a", "b", "c", "d"};
  std::uint64_t beat = 0;
  const auto renews = [&](SessionId id) {
    stage.rival(id, ++beat);
    auto& session = stage.store.sessions[id];
    session.joined = 4;
    for (const auto& election : all) session.names ^= hash_of(election);
  };
  me.run_with(Spread{});
  renews(rival);
  stage.store.stuck = {rival};
  me.takes_part(all);
  me.pass(2 * group_timing.term);
  for (const auto& election : all) ASSERT_TRUE(me.leads(election));
  for (int i = 0; i < 5; ++i) {
    renews(another);
    me.pass(group_timing.renew);
  }
  const auto gifts = me.all<group_effect::End>();
  ASSERT_EQ(gifts.size(), 2u) << "the share of the one that lives";
  for (const auto& gift : gifts) EXPECT_EQ(gift.reason, Reason::handed_over);
  for (const auto& election : all)
    if (me.led.contains(election) && election != gifts[0].election && election != gifts[1].election) {
      me.hand_back(election, 1h);
      EXPECT_EQ(stage.lead(election).heir, another);
    }
}

TEST_F(GroupRefused, ASessionThatCannotBeEndedIsTriedEverMoreSeldom) {
  rival_leads();
  stage.store.stuck = {rival};
  me.takes_part();
  me.pass(group_timing.term);
  int ends = 0;
  for (const auto until = stage.now + 10 * group_timing.term; stage.now < until; ++ends) {
    me.pass_until_asked<ask::End>();
    me.answer();
  }
  EXPECT_LE(ends, 10 + 10);
}

TEST_F(GroupRefused, AProcessWhoseOwnLapsedSessionCannotBeEndedTakesPartAgainByAnother) {
  me.lead({"e"});
  me.lapse();
  stage.store.stuck =
      stage.store.sessions.empty() ? std::set<SessionId>{} : std::set{stage.store.sessions.begin()->first};
  for (const auto& end : me.all<group_effect::End>()) me.ousting_returned(end.election);
  me.join("f");
  me.pass(group_timing.term);
  EXPECT_TRUE(me.leads("f"));
}

TEST_F(GroupRefused, ASessionThatWasOpenedWhileItStopsIsEnded) {
  me.begins();
  me.pass_until_asked<ask::Open>();
  me.land();
  me.stop();
  me.settle();
  for (const auto& [id, session] : stage.store.sessions) EXPECT_TRUE(session.record.released);
}

// ---- leads ----

TEST_F(GroupRefused, ALeadWhoseReleaseIsRefusedIsGivenBackOnceItCanBeWritten) {
  me.lead({"e", "other"});
  stage.store.locked = {"e"};
  me.leave("e");
  me.work_ended("e");
  me.pass(group_timing.renew);
  EXPECT_FALSE(stage.lead("e").released);
  stage.store.locked.clear();
  me.pass(group_timing.term / 2);
  EXPECT_TRUE(stage.lead("e").released) << "though nobody here takes part in it";
  EXPECT_TRUE(me.leads("other"));
}

TEST_F(GroupRefused, ALeadThatCouldNotBeWrittenForAMomentIsClaimedSoonAfter) {
  rival_leads(1, {5}, true);
  stage.store.locked = {"e"};
  me.begins();
  me.pass(1s);
  EXPECT_FALSE(me.leads("e"));
  EXPECT_EQ(told_of(me, "e"), 1U) << "not at each try";
  stage.store.locked.clear();
  me.pass(group_timing.renew);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupRefused, EachElectionThatCannotBeWrittenIsToldOfThoughTheirNamesAreAlikeAndMany) {
  std::vector<std::string> elections;
  for (int i = 1; i <= 20; ++i)
    elections.push_back((i % 2 != 0 ? "e" : std::string(static_cast<unsigned>(i), 'x')) + std::to_string(i));
  for (const auto& election : elections) stage.store.locked.insert(election);
  me.begins(elections);
  me.pass(1s);
  for (const auto& election : elections) EXPECT_EQ(told_of(me, election), 1U) << election;
}

TEST_F(GroupRefused, ALeadThatCannotBeWrittenForLongIsTriedEverMoreSeldom) {
  rival_leads(1, {5}, true);
  stage.store.locked = {"e"};
  me.begins();
  me.pass(group_timing.term);
  int claims = 0;
  for (const auto until = stage.now + 10 * group_timing.term; stage.now < until;) {
    me.pass_until_asked<ask::Write>();
    claims += me.commit().claims.empty() ? 0 : 1;
    me.answer();
  }
  EXPECT_LE(claims, 20 + 2);
}

TEST_F(GroupRefused, OfAnElectionThatWasLeftNothingIsKept) {
  me.takes_part({"x"});
  const auto kept = me.candidacy.kept();
  stage.store.locked = {"e"};
  me.join("e");
  me.pass(1s);
  ASSERT_EQ(told_of(me, "e"), 1U);
  me.leave("e");
  EXPECT_EQ(me.candidacy.kept(), kept);
}

TEST_F(GroupRefused, ALeadThatNamesUsWhileNoHookCanRunIsGivenBack) {
  me.run_with(Spread{.on = false}, 1);
  me.lead({"x"});
  me.resign("x");
  me.pass(2 * group_timing.term);
  ASSERT_TRUE(me.reported(Fault::hook_overran));
  me.join("e");
  stage.lead("e", {9}, me.session);  // A claim was not answered, and landed.
  me.pass(group_timing.term);
  EXPECT_TRUE(stage.lead("e").released);
}

}  // namespace
}  // namespace tenure
