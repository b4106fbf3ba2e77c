// SPDX-License-Identifier: Apache-2.0
// Goal: a lead that cannot be read costs its own election alone, and nobody leads it twice when it is mended: rule 21
// of core/src/group/README.md. Method: as in group_candidacy_test.cpp. The model of the store spoils a lead and mends
// it.
#include <gtest/gtest.h>

#include "group_scene.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::group_timing;
using test::GroupScene;
using test::GroupStage;
using test::rival;
using GroupUnreadable = test::GroupTest;

/// What was told of one election.
std::vector<std::string> told_of(const GroupScene& scene, const std::string& election) {
  std::vector<std::string> out;
  for (const auto& report : scene.all<group_effect::Report>())
    if (report.election == election) out.push_back(report.error.message);
  return out;
}

TEST_F(GroupUnreadable, IsClaimedByNobodyAndTheOtherElectionsGoOn) {
  stage.rival(rival, 1);
  stage.lead("good", {5}, rival, true);
  stage.lead("spoilt", {6}, rival, true);
  stage.store.spoil("spoilt", true);
  me.begins({"good", "spoilt", "new"});
  me.pass(5 * group_timing.term);
  EXPECT_TRUE(me.leads("good"));
  EXPECT_TRUE(me.leads("new"));
  EXPECT_FALSE(me.leads("spoilt"));
  EXPECT_EQ(me.candidacy.incumbent("spoilt", stage.now), std::nullopt) << "nobody knows who leads it";
  EXPECT_EQ(me.count<group_effect::End>(), 0u);
}

TEST_F(GroupUnreadable, HasNoIncumbentWhoeverItWasBefore) {
  rival_leads();
  me.takes_part();
  ASSERT_TRUE(me.candidacy.incumbent("e", stage.now));
  stage.store.spoil("e", true);
  me.pass(2 * group_timing.renew);
  EXPECT_FALSE(me.candidacy.incumbent("e", stage.now));
}

TEST_F(GroupUnreadable, IsReportedOnceAndWithItsRemedy) {
  me.lead({"e", "f"});
  stage.store.spoil("e", true);
  stage.store.spoil("g", true);
  me.pass(3 * group_timing.term);
  ASSERT_EQ(told_of(me, "e").size(), 1u) << "not at each look";
  EXPECT_NE(told_of(me, "e")[0].find("election e cannot be read"), std::string::npos) << told_of(me, "e")[0];
  EXPECT_NE(told_of(me, "e")[0].find("garbage at e"), std::string::npos) << "what the store says of it";
  EXPECT_EQ(told_of(me, "f").size() + told_of(me, "").size(), 0u);
  EXPECT_EQ(told_of(me, "g").size(), 0u) << "nobody here takes part in it";
  me.join("g");
  EXPECT_EQ(told_of(me, "g").size(), 1u);
}

TEST_F(GroupUnreadable, DoesNotEndTheTenureOfWhoLeadsIt) {
  me.lead({"e"});
  const auto token = me.led.at("e").token;
  stage.store.spoil("e", true);
  me.pass(3 * group_timing.term);
  EXPECT_TRUE(me.leads("e"));
  stage.store.restore("e", true);
  me.pass(3 * group_timing.term);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_EQ(me.led.at("e").token, token) << "the same tenure";
}

TEST_F(GroupUnreadable, IsLeftToNobodyWhenItsLeaderEnds) {
  me.lead({"e"});
  stage.store.spoil("e", true);
  me.pass(group_timing.renew);
  me.resign("e");
  me.ousting_returned("e");
  me.pass(3 * group_timing.term);
  EXPECT_FALSE(me.leads("e"));
  EXPECT_TRUE(stage.store.spoilt.contains("e"));
}

TEST_F(GroupUnreadable, IsNotHandedOver) {
  me.run_with(Spread{});
  me.lead({"e"});
  stage.rival(rival, 1);
  stage.store.sessions[rival].joined = 1;
  stage.store.sessions[rival].names = hash_of("e");
  me.see();
  ASSERT_TRUE(me.candidacy.heir_named(stage.now, "e", "rival"));
  stage.store.spoil("e", true);
  me.pass(2 * group_timing.renew);
  EXPECT_FALSE(me.candidacy.heir_named(stage.now, "e", "rival")) << "nobody could take it";
  EXPECT_TRUE(me.leads("e"));
}

/// Nobody was told that it is spoilt, nor that it is mended.
TEST_F(GroupUnreadable, IsGivenBackOnceItIsMendedIfItsReleaseWasRefused) {
  me.lead({"e", "other"});
  stage.store.spoil("e", false);
  me.leave("e");
  me.ousting_returned("e");
  me.pass(group_timing.term);
  stage.store.restore("e", false);
  me.pass(group_timing.term);
  EXPECT_TRUE(stage.lead("e").released);
}

/// Whoever leads it learns what it says by his next commit. So he leads no longer than a term.
TEST_F(GroupUnreadable, OnceMendedIsClaimedATermLaterWhateverItSays) {
  for (const bool released : {false, true}) {
    GroupStage its;
    its.rival(rival, 1);
    its.lead("e", {5}, rival, true);
    its.store.spoil("e", true);
    GroupScene one(its);
    one.begins();
    one.pass(3 * group_timing.term);
    if (released)
      its.store.restore("e", true);
    else
      its.store.mend("e");
    one.renew();
    one.pass(group_timing.term - 1ns);
    EXPECT_FALSE(one.leads("e")) << released;
    one.pass(1ns);
    EXPECT_TRUE(one.leads("e")) << released;
  }
}

TEST_F(GroupUnreadable, OnceMendedIsLeftAloneAlsoByWhoLeftAndJoinedAgain) {
  rival_leads(1, {5}, true);
  stage.store.spoil("e", true);
  me.join("e");
  me.begins({"other"});
  me.pass(group_timing.renew);
  stage.store.restore("e", true);
  me.pass(group_timing.renew);
  me.leave("e");
  me.join("e");
  me.pass(group_timing.term - 2 * group_timing.renew);
  EXPECT_FALSE(me.leads("e"));
  me.pass(2 * group_timing.renew);
  EXPECT_TRUE(me.leads("e"));
}

/// The session that the remedy writes may have been absent for long: another lead was mended with it.
TEST_F(GroupUnreadable, OnceMendedIsClaimedATermLaterAlsoByWhoNeverSawItSpoilt) {
  stage.rival(rival, 1);
  stage.lead("old", {5}, rival, true);
  stage.lead("e", {6}, rival);
  stage.store.spoil("old", true);
  stage.store.mend("old");
  me.join("old");
  me.begins();
  for (std::uint64_t beat = 2; beat < 10; ++beat) {
    me.pass(group_timing.renew);
    stage.rival(rival, beat);
  }
  ASSERT_TRUE(me.leads("old"));
  stage.store.spoil("e", true);
  stage.store.mend("e");
  me.renew();
  me.pass(group_timing.term - 1ns);
  EXPECT_FALSE(me.leads("e")) << "who led it may not know yet";
  me.pass(1ns);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupUnreadable, EndsTheTenureOnceItIsMendedInAnotherWay) {
  me.lead({"e"});
  stage.store.spoil("e", true);
  me.pass(group_timing.term);
  stage.store.mend("e");
  me.renew();
  EXPECT_EQ(me.reasons(), std::vector{Reason::superseded});
}

TEST_F(GroupUnreadable, IsSeenToBeMendedAlsoIfNoLookShowsAChange) {
  rival_leads(1, {5}, true);
  stage.store.spoil("e", true);
  me.begins();
  me.pass(group_timing.term);
  stage.store.restore("e", false);
  me.pass(2 * group_timing.term);
  EXPECT_TRUE(me.leads("e"));
  const auto looks = me.count<group_effect::Ask>();
  me.pass(group_timing.term);
  EXPECT_LT(me.count<group_effect::Ask>() - looks, 20u) << "renewals and waits, and no more whole looks";
}

TEST_F(GroupUnreadable, IsFoundByWhoClaimsItInVainIfNoLookShowsAChange) {
  rival_leads();
  me.begins();
  me.pass(group_timing.renew);
  stage.store.spoil("e", false);
  stage.store.sessions[rival].record.released = true;
  me.pass(2 * group_timing.term);
  EXPECT_EQ(told_of(me, "e").size(), 1u);
  const auto asked = me.count<group_effect::Ask>();
  me.pass(group_timing.term);
  EXPECT_LT(me.count<group_effect::Ask>() - asked, 20u) << "it is not claimed in vain for ever";
}

/// A whole look may take a busy store longer than a renewal may.
TEST_F(GroupUnreadable, IsLookedForApartFromTheRenewalsAndAlsoNotAgainAtOnce) {
  me.lead({"e"});
  stage.store.spoil("e", true);
  me.pass(group_timing.renew);
  me.pass_until_asked<ask::See>();
  if (!me.asks<ask::See>()->cursor.empty()) {  // at the sessions
    me.answer();
    me.pass_until_asked<ask::See>();
  }
  EXPECT_EQ(me.asks<ask::See>()->cursor, "");
  me.unanswered();
  me.pass(group_timing.term / 2 - 1ms);
  EXPECT_TRUE(me.leads("e"));
  std::size_t whole = 0;
  for (const auto& ask : me.all<group_effect::Ask>()) {
    const auto& what = ask.question.what;
    if (const auto* see = std::get_if<ask::See>(&what)) whole += see->cursor.empty();
    if (const auto* write = std::get_if<ask::Write>(&what)) {
      EXPECT_NE(write->commit.cursor, "");
    }
  }
  EXPECT_EQ(whole, 1u);
}

}  // namespace
}  // namespace tenure
