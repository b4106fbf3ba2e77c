// SPDX-License-Identifier: Apache-2.0
// Goal: every rule of core/src/group/README.md holds, by its number. Method: facts are handed to one GroupCandidacy at
// chosen moments of a clock that is only a number. The test plays the store, and compares what comes out.
#include "group/group_candidacy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include <tenure/kit/who.hpp>

#include "group_scene.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::group_timing;
using test::GroupScene;
using test::GroupStage;
using test::rival;
using Time = Clock::Time;

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("e" + std::to_string(100'000 + i));
  return names;
}

/// A namespace of its own, because the class under test has this name, too.
namespace rules_of_a_group {

using GroupCandidacy = test::GroupTest;

/// It leads "e".
struct GroupCandidacyThatLeads : GroupCandidacy {
  void SetUp() override { me.lead({"e"}); }
};

// ---- rule 1: a session's id is sent once ----

TEST_F(GroupCandidacy, AnIdOfARefusedOrUnansweredOpenIsNeverSentAgain) {
  me.begins();
  for (int i = 0; i < 6; ++i) {
    me.pass_until_asked<ask::Open>();
    if (i % 2)
      me.tell(Result<Committed>(Committed{.look = stage.store.look("")}));
    else
      me.unanswered();
  }
  me.pass(1s);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_EQ(me.opened.size(), 7u);
  EXPECT_EQ(std::set<SessionId>(me.opened.begin(), me.opened.end()).size(), me.opened.size());
}

TEST_F(GroupCandidacy, ARefusedOpenIsNotRepeatedAtOnce) {
  me.begins();
  ASSERT_TRUE(me.asks<ask::Open>());
  me.tell(Result<Committed>(Committed{.look = stage.store.look("")}));
  EXPECT_FALSE(me.asks<ask::Open>());
  me.pass_until_asked<ask::Open>();
}

/// All leads of a great group may take longer than a renewal may. Asked for without end, they would keep the store busy
/// for ever, and nobody would lead.
TEST_F(GroupCandidacy, WithoutASessionEachUnansweredCallGivesTheNextOneTwiceTheTime) {
  me.begins();
  const auto at_most = (group_timing.term - group_timing.margin) / 2;
  for (const auto time : {1 * group_timing.call, 2 * group_timing.call, 4 * group_timing.call, at_most, at_most}) {
    me.pass_until_asked<ask::Open>();
    EXPECT_EQ(me.asked->by - me.asked->asked, time);
    me.unanswered();
  }
  me.pass(1s);
  ASSERT_TRUE(me.leads("e"));
  me.pass_until_asked<ask::Write>();
  EXPECT_EQ(me.asked->by - me.asked->asked, group_timing.call) << "a lease is at stake";
  me.lapse();
  me.pass_until_asked<ask::Open>();
  EXPECT_EQ(me.asked->by - me.asked->asked, group_timing.call) << "it answers again";
}

/// The others would count it as one of them, and hand elections over to nobody.
TEST_F(GroupCandidacy, AnUnansweredOpenThatTookEffectIsEndedByTheNextQuestion) {
  me.begins();
  ASSERT_TRUE(me.asks<ask::Open>());
  me.land();
  me.unanswered();
  const auto ghost = me.opened.front();
  ASSERT_FALSE(stage.store.sessions.at(ghost).record.released);
  me.pass_until_asked<ask::End>();
  EXPECT_EQ(me.opened.size(), 1u) << "before another session is asked for";
  EXPECT_EQ(me.asks<ask::End>()->id, ghost);
  me.answer();
  EXPECT_TRUE(stage.store.sessions.at(ghost).record.released);
  me.pass(1s);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_EQ(me.opened.size(), 2u);
}

/// The counter-example to an id that is used again: others hold the session that stands under it for dead.
TEST_F(GroupCandidacy, AnOpenThatLandsLateIsKilledAndSweptWithoutHarmToTheNextOne) {
  GroupScene a(stage), b(stage, 5000);
  b.lead({"other"});  // 1, 2: B opens a session and claims
  a.join("e");
  a.start();
  ASSERT_TRUE(a.asks<ask::Open>());  // 3: A asks for a session,
  const auto late = *a.asked;
  stage.pass(group_timing.call);
  a.unanswered();  // 4: and hears nothing.
  a.land(late);    // 5: It lands late.
  ASSERT_TRUE(stage.store.sessions.contains(a.opened.front()));
  b.see();      // 6: B sees it,
  b.pass(11s);  // 7, 8: waits for its lease, and ends it.
  ASSERT_TRUE(stage.store.sessions.at(a.opened.front()).record.released);
  b.join("e");  // 9: B also stands for A's election, but does not claim it yet.
  if (b.asked && !b.asks<ask::Await>()) b.unanswered();
  stage.store.sweep();  // 10: The dead session is swept.
  ASSERT_FALSE(stage.store.sessions.contains(a.opened.front()));
  a.tick();
  a.pass_until_asked<ask::Open>();  // 11: A asks again,
  a.answer();                       // 12: which lands and is granted.
  ASSERT_NE(a.opened.front(), a.opened.back());
  a.settle();  // 13: A claims.
  ASSERT_TRUE(a.leads("e"));
  b.pass(1s);   // 14: B, who holds the old id for dead, looks,
  b.join("e");  // 15: wants the election,
  b.pass(1s);   // 16: and claims nothing,
  EXPECT_TRUE(a.leads("e"));
  EXPECT_FALSE(b.leads("e"));  // 17: because the id that leads is another one.
}

// ---- rule 2: one deadline ----

TEST_F(GroupCandidacy, AllTenuresEndOneTermLessTheMarginAfterTheLastGrantedCommitWasAsked) {
  me.lead({"e", "f"});
  me.pass_until_asked<ask::Write>();
  const auto asked = stage.now;
  stage.pass(700ms);
  me.tell(me.land());  // Late: the lease counts from when it was asked for.
  EXPECT_EQ(me.deadline, group_timing.deadline(asked));
  me.pass_without_store(group_timing.deadline(asked) - stage.now - 1ns);
  EXPECT_TRUE(me.leads("e") && me.leads("f"));
  EXPECT_EQ(me.count<group_effect::End>(), 0u);
  me.pass_without_store(1ns);
  EXPECT_FALSE(me.leads("e") || me.leads("f"));
  EXPECT_EQ(me.reasons(), (std::vector{Reason::lapsed, Reason::lapsed}));
}

TEST_F(GroupCandidacyThatLeads, AnAnswerThatComesAtTheDeadlineOrLaterRevivesNothing) {
  const auto session = me.session;
  me.pass_until_asked<ask::Write>();
  const auto asked = *me.asked;
  const auto answer = me.land();
  stage.pass(me.deadline - stage.now);  // Nobody came to judge it before the answer does.
  me.tell(answer);
  EXPECT_FALSE(me.leads("e"));
  EXPECT_EQ(me.reasons(), std::vector{Reason::lapsed});
  EXPECT_FALSE(me.asks<ask::End>()) << "its work still runs";
  me.ousting_returned("e");
  ASSERT_TRUE(me.asks<ask::End>());  // Rule 3: it is ended by ourselves,
  EXPECT_EQ(me.asks<ask::End>()->id, session);
  EXPECT_NE(me.opened.back(), SessionId{});
  me.settle();
  EXPECT_TRUE(me.leads("e"));  // and nobody has to be waited for.
  EXPECT_NE(me.session, session);
}

// Whoever sees the end of a session may lead at once.
TEST_F(GroupCandidacy, ALapsedSessionIsEndedOnceTheWorkOfAllItsTenuresHasStopped) {
  me.lead({"e", "f"});
  const auto session = me.session;
  me.pass_without_store(7s);
  me.resign("e", 1s);  // It drains when the session lapses.
  me.lapse();
  EXPECT_FALSE(me.leads("e") || me.leads("f"));
  ASSERT_EQ(me.reasons(), (std::vector{Reason::resigned, Reason::lapsed})) << "one end each";
  me.pass(100ms);
  me.work_ended("f");
  EXPECT_FALSE(stage.store.sessions.at(session).record.released) << "the work of e still runs";
  me.work_ended("e");
  EXPECT_TRUE(stage.store.sessions.at(session).record.released);
  me.pass(3s);
  EXPECT_TRUE(me.leads("e") && me.leads("f"));
}

TEST_F(GroupCandidacyThatLeads, ALapsedSessionIsEndedWithItsLeaseThoughItsWorkRunsOn) {
  const auto session = me.session;
  me.lapse();
  const auto done_by = me.all<group_effect::DoneBy>().back().at;
  ASSERT_GT(done_by, stage.now);
  me.pass(done_by - stage.now - 1ns);
  EXPECT_FALSE(stage.store.sessions.at(session).record.released);
  me.pass(1ns);
  EXPECT_TRUE(stage.store.sessions.at(session).record.released);
}

TEST_F(GroupCandidacy, AnOpenThatIsAnsweredTooLateIsEndedAndAnotherOneIsAsked) {
  me.begins();
  const auto open = *me.asked;
  const auto answer = me.land();
  stage.pass(group_timing.term - group_timing.margin);
  me.tell(answer);
  EXPECT_EQ(me.count<group_effect::Publish>(), 0u);
  ASSERT_TRUE(me.asks<ask::End>());
  EXPECT_EQ(me.asks<ask::End>()->id, me.opened.front());
  me.settle();
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacy, TenThousandElectionsThatLapseAtOnceAllEndWithOneFact) {
  const auto elections = names(10'000);
  me.lead(elections);
  me.stage.pass(me.deadline - stage.now);
  me.tick();
  std::size_t stops = 0;
  for (const auto& effect : me.newest) stops += std::holds_alternative<group_effect::FireStop>(effect);
  EXPECT_EQ(stops, elections.size());
  EXPECT_TRUE(std::holds_alternative<group_effect::Withdraw>(me.newest.front()));
  const auto is_end = [](const auto& effect) { return std::holds_alternative<group_effect::End>(effect); };
  const auto first_end = std::find_if(me.newest.begin(), me.newest.end(), is_end);
  EXPECT_TRUE(std::none_of(first_end, me.newest.end(), [](const auto& effect) {
    return std::holds_alternative<group_effect::FireStop>(effect);
  })) << "what an end logs holds up no stop token";
  for (const auto& election : elections) me.ousting_returned(election);
  me.settle();
  EXPECT_TRUE(std::all_of(elections.begin(), elections.end(), [&](const auto& e) { return me.leads(e); }));
}

TEST_F(GroupCandidacy, TenThousandTenuresDrainAndReturnOneByOne) {
  const auto elections = names(10'000);
  me.lead(elections);
  for (const auto& election : elections) me.leave(election);
  for (const auto& election : elections) me.ousting_returned(election);
  me.settle();
  for (const auto& election : elections) ASSERT_TRUE(stage.lead(election).released) << election;
}

// ---- rule 3: our own session ----

TEST_F(GroupCandidacyThatLeads, ALapsedSessionIsEndedWithEveryBeatThatMayStandThere) {
  me.pass_until_asked<ask::Write>();
  me.land();
  const auto beat = me.commit().next.record.beat;
  me.unanswered();
  me.lapse();
  while (!me.asks<ask::End>()) me.pass_without_store(100ms);
  const auto beats = me.asks<ask::End>()->beats;
  EXPECT_TRUE(std::find(beats.begin(), beats.end(), beat) != beats.end());
  me.answer();
  EXPECT_TRUE(stage.store.sessions.begin()->second.record.released);
}

TEST_F(GroupCandidacyThatLeads, ABeatThatWeNeverSentBelongsToACopyOfUs) {
  stage.store.sessions.at(me.session).record.beat = 1;
  me.push();  // Something happened: it looks.
  ASSERT_TRUE(me.asks<ask::See>());
  me.answer();
  EXPECT_FALSE(me.leads("e"));
  EXPECT_EQ(me.reasons(), std::vector{Reason::superseded});
  EXPECT_TRUE(me.asks<ask::Open>());
}

// ---- rules 4 and 5: the commit ----

TEST_F(GroupCandidacy, ACommitCarriesTheAcknowledgedBeatEveryLaterOneAndTheMarker) {
  stage.store.can_lose = true;
  me.lead({});
  me.join("e");
  me.settle();
  me.pass_until_asked<ask::Write>();
  const auto first = me.commit();
  EXPECT_EQ(first.beats.size(), 1u);
  EXPECT_EQ(first.marker, stage.store.marker);
  EXPECT_NE(first.marker, 0u);
  me.unanswered();
  me.pass_until_asked<ask::Write>();
  EXPECT_EQ(me.commit().beats, (std::vector{first.beats[0], first.next.record.beat}));
  const auto second = me.commit().next.record.beat;
  EXPECT_NE(second, first.next.record.beat);
  me.answer();
  me.pass_until_asked<ask::Write>();
  EXPECT_EQ(me.commit().beats, std::vector{second});
}

TEST_F(GroupCandidacy, ARefusedCommitEndsTheSessionAndIsWithdrawnBeforeAnyHook) {
  me.lead({"e", "f"});
  me.pass_until_asked<ask::Write>();
  stage.store.sessions.at(me.session).record.released = true;
  me.answer();
  EXPECT_EQ(me.reasons(), (std::vector{Reason::superseded, Reason::superseded}));
  const auto at = [&](auto holds) { return std::find_if(me.newest.begin(), me.newest.end(), holds); };
  EXPECT_LT(at([](const auto& e) { return std::holds_alternative<group_effect::Withdraw>(e); }),
            at([](const auto& e) { return std::holds_alternative<group_effect::End>(e); }));
}

TEST_F(GroupCandidacyThatLeads, ARefusalOfACommitThatStandsThereIsItsSecondDelivery) {
  me.pass_until_asked<ask::Write>();
  me.land();
  me.answer();  // The same bytes once more: the beat that they demand is gone.
  EXPECT_TRUE(me.leads("e"));
  me.pass(1s);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_EQ(me.opened.size(), 1u);
}

TEST_F(GroupCandidacy, AnUnansweredClaimIsNotLedAndClaimedAnewWithAGreaterToken) {  // and rule 9
  me.begins();
  me.answer();
  ASSERT_EQ(me.commit().claims.size(), 1u);
  me.land();
  const auto ghost = stage.lead("e").token;
  me.unanswered();
  EXPECT_FALSE(me.leads("e"));
  me.pass(2s);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_GT(me.led.at("e").token, ghost);
  EXPECT_EQ(me.led.at("e").token, stage.lead("e").token);
}

TEST_F(GroupCandidacyThatLeads, AnUnansweredReleaseIsRepeated) {
  me.resign("e", 5s);
  me.ousting_returned("e");
  ASSERT_EQ(me.commit().releases.size(), 1u);
  me.unanswered();
  me.pass_until_asked<ask::Write>();
  ASSERT_EQ(me.commit().releases.size(), 1u);
  me.answer();
  EXPECT_TRUE(stage.lead("e").released);
}

TEST_F(GroupCandidacy, TwelveHundredClaimsTakeThreeCommits) {
  const auto elections = names(1200);
  me.begins(elections);
  me.answer();
  std::vector<std::size_t> claims;
  while (me.asks<ask::Write>()) {
    EXPECT_EQ(refused_commit(me.commit()), std::nullopt);
    claims.push_back(me.commit().claims.size());
    me.answer();
  }
  EXPECT_EQ(claims, (std::vector<std::size_t>{500, 500, 200}));
  EXPECT_TRUE(std::all_of(elections.begin(), elections.end(), [&](const auto& e) { return me.leads(e); }));
}

TEST_F(GroupCandidacy, ChangesThatTakeLongerThanACallBecomeFewerAndTheSessionLives) {
  const auto elections = names(1200);
  me.begins(elections);
  me.answer();
  std::vector<std::size_t> claims;
  while (me.led.size() < elections.size() && stage.now < Clock::Time{1h + 1min}) {
    me.pass_until_asked<ask::Write>();
    claims.push_back(me.commit().claims.size());
    if (claims.back() <= 100) {
      me.answer();
    } else {
      stage.pass(group_timing.call);
      me.unanswered();
    }
  }
  EXPECT_EQ(me.led.size(), elections.size());
  EXPECT_EQ(me.opened.size(), 1u) << "its session lived";
  claims.resize(12);
  EXPECT_EQ(claims, (std::vector<std::size_t>{500, 16, 281, 16, 157, 16, 87, 97, 109, 16, 60, 67}));
}

TEST_F(GroupCandidacy, AChangeThatIsNeverAnsweredEndsNoSessionAndKeepsNoOtherFromBeingMade) {
  me.begins({"hangs", "led"});
  me.answer();
  std::vector<std::size_t> claims;
  while (stage.now < Clock::Time{1h + 1min}) {
    me.pass_until_asked<ask::Write>();
    const auto wants = me.commit().claims;
    claims.push_back(wants.size());
    if (std::none_of(wants.begin(), wants.end(), [](const auto& claim) { return claim.election == "hangs"; })) {
      me.answer();
    } else {
      stage.pass(group_timing.call);
      me.unanswered();
    }
  }
  EXPECT_EQ(me.opened.size(), 1u) << "its session lived";
  EXPECT_TRUE(me.leads("led"));
  claims.resize(6);
  EXPECT_EQ(claims, (std::vector<std::size_t>{2, 2, 0, 1, 0, 1})) << "the one that hangs, and then the other";
}

TEST_F(GroupCandidacy, OneReleaseThatIsNeverAnsweredKeepsNoChangeFromBeingMade) {
  auto elections = names(40);
  elections.push_back("a hangs");
  me.lead(elections);
  for (const auto& election : elections) me.resign(election, 1h);
  for (const auto& election : elections) me.ousting_returned(election);
  /// Says whether it was without the one that hangs, and answered after so long.
  const auto commit_answered = [&](Clock::Duration after) {
    me.pass_until_asked<ask::Write>();
    const auto& releases = me.commit().releases;
    const bool hangs =
        std::any_of(releases.begin(), releases.end(), [](const auto& r) { return r.election == "a hangs"; });
    stage.pass(hangs ? group_timing.call : after);
    hangs ? me.unanswered() : me.answer();
    return !hangs;
  };
  for (const auto until = stage.now + group_timing.term; stage.now < until;) commit_answered(0s);
  const auto released = [&](const auto& election) { return stage.lead(election).released; };
  EXPECT_EQ(std::count_if(elections.begin(), elections.end(), released), 40);
  int alone = 0;
  for (int i = 0; i < 40; ++i) {
    const auto late = "late " + std::to_string(i);
    me.join(late);
    me.pass_until_asked<ask::Write>();
    const auto changes = me.commit().releases.size() + me.commit().claims.size();
    if (commit_answered(group_timing.call - 100ms)) continue;
    ++alone;
    EXPECT_EQ(changes, 1u) << "what hangs goes alone, whatever else is due";
  }
  EXPECT_GT(alone, 2);
  EXPECT_EQ(me.opened.size(), 1u) << "its session lived";
}

TEST_F(GroupCandidacy, FewReleasesGoAtOnceAfterACommitWithoutAnAnswer) {
  const auto elections = names(40);
  me.lead(elections);
  for (const auto& election : elections) me.resign(election, 1h);
  for (const auto& election : elections) me.ousting_returned(election);
  me.unanswered();
  std::vector<std::size_t> releases;
  for (int i = 0; i < 3; ++i) {
    me.pass_until_asked<ask::Write>();
    releases.push_back(me.commit().releases.size());
    me.answer();
  }
  EXPECT_EQ(releases, (std::vector<std::size_t>{16, 18, 6}));
}

// ---- rule 6: what may be claimed ----

TEST_F(GroupCandidacy, WhatIsAbsentIsClaimedATermAfterTheMarkerWasFirstSeenWhereDataCanBeLost) {
  stage.store.can_lose = true;
  me.takes_part();
  expect_leads_after(group_timing.term);
}

TEST_F(GroupCandidacy, TheLongestTermThatIsKnownCounts) {
  stage.store.can_lose = true;
  stage.store.marker = 9;
  stage.rival(rival, 1);
  stage.store.sessions.at(rival).record.term = 25s;
  me.begins();
  expect_leads_after(25s);
}

TEST_F(GroupCandidacy, ALeadOfALivingSessionIsLeftAlone) {
  rival_leads();
  me.begins();
  for (std::uint64_t beat = 2; beat < 20; ++beat) {
    me.pass(2s);
    stage.rival(rival, beat);
  }
  EXPECT_FALSE(me.leads("e"));
  EXPECT_EQ(stage.lead("e").token, Token{5});
  EXPECT_EQ(me.candidacy.incumbent("e", stage.now)->name, "rival");
}

TEST_F(GroupCandidacy, AnotherLeaderElsewhereIsAChangeAndARenewalIsNone) {
  constexpr SessionId other{8};
  stage.rival(other, 1);
  rival_leads();
  me.takes_part();
  me.see();
  const auto before = me.count<group_effect::Changed>();
  stage.rival(rival, 2);
  stage.rival(other, 2);
  me.see();
  EXPECT_EQ(me.count<group_effect::Changed>(), before);
  stage.lead("e", {6}, other);
  me.see();
  EXPECT_EQ(me.count<group_effect::Changed>(), before + 1);
}

TEST_F(GroupCandidacy, ASessionThatIsAbsentCountsAsDeadATermAfterThatWasNoticed) {
  stage.lead("e", {5}, rival);  // whose session is in no look
  me.begins();
  expect_leads_after(group_timing.term);
}

/// Its lead is old news by then: no look tells it again.
TEST_F(GroupCandidacy, ASessionThatVanishesFromTheStoreCountsAsDeadATermLater) {
  rival_leads();
  me.begins();
  me.pass(3s);
  stage.store.sessions.erase(rival);
  me.see();
  me.pass(group_timing.term - 2s);
  EXPECT_FALSE(me.leads("e"));
  me.pass(2s);
  EXPECT_TRUE(me.leads("e"));
}

/// It may have been renewed since we saw it last. So its lease is not over with the one that we know.
TEST_F(GroupCandidacy, ASessionThatIsGoneWhenItIsToBeEndedCountsAsDeadATermLater) {
  rival_leads();
  me.begins();
  me.pass_until_asked<ask::End>();
  stage.store.sessions.erase(rival);
  me.answer();
  me.pass(group_timing.term - 1s);
  EXPECT_FALSE(me.leads("e"));
  me.pass(2s);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacyThatLeads, OurOwnSessionThatTheStoreLostKeepsNoElectionForEver) {
  me.pass(3s);
  stage.store.sessions.clear();
  me.pass(2s);
  EXPECT_EQ(me.reasons(), std::vector{Reason::superseded});
  me.ousting_returned("e");
  me.pass(group_timing.term - 3s);
  EXPECT_FALSE(me.leads("e"));  // Nobody can know who leads it.
  me.pass(3s);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacy, ASessionThatIsSeenAgainIsNotAbsent) {
  stage.lead("e", {5}, rival);
  me.begins();
  me.pass(9s);
  stage.rival(rival, 1);
  me.pass(1900ms);
  stage.store.sessions.erase(rival);
  me.see();
  me.pass(group_timing.term - 2s);
  EXPECT_FALSE(me.leads("e"));
  me.pass(4s);
  EXPECT_TRUE(me.leads("e"));
}

// ---- pushes, and claims that come to nothing ----

TEST_F(GroupCandidacy, APushedReleaseIsClaimedUnread) {
  rival_leads();
  me.takes_part();
  stage.lead("e", {5}, rival, true);
  me.push(Release{"e", {5}, {}});
  ASSERT_TRUE(me.asks<ask::Write>());
  me.answer();
  EXPECT_TRUE(me.leads("e"));
}

/// The heir may have come after our last look.
TEST_F(GroupCandidacy, AReleaseInFavourOfAnotherIsLeftToItUntilItHasRenewed) {
  for (const bool known : {true, false}) {
    constexpr SessionId heir{777};
    GroupStage its;
    its.rival(rival, 1);
    if (known) its.rival(heir, 1);
    its.lead("e", {5}, rival);
    GroupScene one(its);
    one.takes_part();
    one.pass(1s);
    ASSERT_TRUE(one.asks<ask::Await>());
    its.rival(heir, 2);
    its.lead("e", {5}, rival, true);
    its.store.leads.at("e").lead.heir = heir;
    one.push(Release{"e", {5}, heir});
    EXPECT_TRUE(one.asks<ask::Await>()) << known;
    one.pass(group_timing.renew + group_timing.retry - 1ns);
    EXPECT_FALSE(one.leads("e")) << known;
    one.pass(1ns);
    EXPECT_TRUE(one.leads("e")) << "the heir did not come " << known;
  }
}

TEST_F(GroupCandidacyThatLeads, WhatWasResignedIsLeftToTheOthersUntilTheyHaveRenewed) {
  me.hand_back("e");
  expect_leads_after(group_timing.renew + group_timing.retry);
}

TEST_F(GroupCandidacy, AForgedPushCostsOneClaimAndNobodyHisTenure) {
  rival_leads();
  me.takes_part();
  me.push(Release{"e", {5}, {}});
  ASSERT_TRUE(me.asks<ask::Write>());
  me.answer();
  EXPECT_FALSE(me.leads("e"));
  EXPECT_TRUE(me.asks<ask::Await>()) << "it is not tried again";
  EXPECT_EQ(me.candidacy.incumbent("e", stage.now)->name, "rival");
  me.pass(1s);
  EXPECT_EQ(stage.lead("e").token, Token{5});
}

TEST_F(GroupCandidacy, ALatePushOfAnEarlierTokenIsOnlyALook) {
  rival_leads();
  me.takes_part();
  me.push(Release{"e", {4}, {}});
  ASSERT_TRUE(me.asks<ask::See>());
  me.answer();
  EXPECT_TRUE(me.asks<ask::Await>());
}

/// The clock thread may come first, and do all that was due. Otherwise each plan would cost a look.
TEST_F(GroupCandidacy, AWaitThatEndedAtItsLimitIsNoNews) {
  stage.rival(rival, 1);
  me.takes_part();
  for (const std::uint64_t token : {5U, 6U}) {  // Each is looked at, and the second plan has to wait.
    stage.lead("e", {token}, rival);
    me.look_now();
  }
  ASSERT_TRUE(me.asks<ask::Await>());
  ASSERT_LE(me.asked->by, stage.now + group_timing.retry / 4) << "no plan is due";
  stage.pass(me.asked->by - stage.now);
  me.tick();
  me.push();
  EXPECT_TRUE(me.asks<ask::Await>());
}

TEST_F(GroupCandidacyThatLeads, WakesWithoutEndDoNotBecomeLooksWithoutEnd) {
  int looks = 0;
  for (int i = 0; i < 100; ++i) {
    if (!me.asks<ask::Await>()) break;
    me.push();
    looks += me.asks<ask::See>() != nullptr;
    me.settle();
    stage.pass(1us);
  }
  EXPECT_LT(looks, 12);
  EXPECT_GT(looks, 1);
}

TEST_F(GroupCandidacyThatLeads, WakesWithoutEndDoNotBecomeWaitsWithoutEnd) {
  int waits = 0;
  for (; waits < 100 && me.asks<ask::Await>(); ++waits) {
    me.look_now();
  }
  EXPECT_LT(waits, 12) << "a store that ends each wait at once is waited for in a hot loop";
  me.pass(group_timing.retry);
  EXPECT_TRUE(me.asks<ask::Await>()) << "after a pause it waits again";
}

TEST_F(GroupCandidacyThatLeads, AStoreThatCannotBeWaitedForIsReportedOnceAndAskedWithPauses) {
  const Error none{Fault::unreachable, "no descriptor"};
  int waits = 0;
  const auto until = stage.now + 3 * group_timing.renew;
  while (stage.now < until) {
    if (me.asks<ask::Await>()) {
      me.cannot_wait(none);
      ++waits;
    }
    me.pass(50ms);
  }
  EXPECT_LE(waits, 8) << "each pause is half a renewal at least";
  EXPECT_GE(waits, 3);
  const auto reports = me.all<group_effect::Report>();
  EXPECT_EQ(std::count_if(reports.begin(), reports.end(), [&](const auto& r) { return r.error == none; }), 1);
  EXPECT_TRUE(me.leads("e"));
}

/// Many of them come one after the other where many elections change hands. A wake that names nothing is then worth a
/// look at once, as ever.
TEST_F(GroupCandidacy, PushedReleasesAreNoWakesForNothing) {
  stage.rival(rival, 1);
  for (const auto& election : names(20)) stage.lead(election, {5}, rival);
  me.takes_part(names(20));
  me.pass(1s);
  for (const auto& election : names(20)) {
    stage.lead(election, {5}, rival, true);
    me.push(Release{election, {5}, {}});
    me.settle();
    ASSERT_TRUE(me.leads(election));
  }
  me.push();
  EXPECT_TRUE(me.asks<ask::See>());
}

/// As a store may do that skips what another transaction holds.
TEST_F(GroupCandidacy, ARefusedClaimThatNoLookExplainsIsTriedAgainAfterAPause) {
  for (const bool repeats : {false, true}) {
    SCOPED_TRACE(repeats ? "every look repeats the lead" : "no look shows it again");
    GroupStage its;
    its.rival(rival, 1);
    its.lead("e", {5}, rival, true);
    GroupScene one(its);
    one.begins();
    one.answer();
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(one.commit().claims.size(), 1u);
      const auto commit = one.commit();
      auto refused = Committed{.granted = true, .token = {6}};
      its.store.sessions.at(one.session) = commit.next;
      refused.look = its.store.look(repeats ? "" : commit.cursor);
      one.tell(Result<Committed>(refused));
      ASSERT_FALSE(one.asks<ask::Write>()) << "a hot loop";
      const auto then = its.now;
      one.pass_until_asked<ask::Write>();
      EXPECT_GE(its.now - then, group_timing.retry / 2);
    }
    one.answer();
    EXPECT_TRUE(one.leads("e"));
  }
}

// ---- rule 8: tokens ----

TEST_F(GroupCandidacy, ATokenIsGreaterThanEveryOneThatWasSeenInTheGroup) {
  const Token far{9'000'000'000'000};
  stage.rival(rival, 1);
  stage.lead("foreign", far, rival);
  me.lead({"e"});
  EXPECT_GT(me.led.at("e").token, far);
}

TEST_F(GroupCandidacy, ATokenBelowTheOneThatWasAskedForIsHandedBackUnled) {
  me.begins();
  me.answer();
  const auto commit = me.commit();
  auto answer = std::get<Result<Committed>>(me.land());
  answer->token = Token{commit.at_least.value - 1};
  me.tell(answer);
  EXPECT_FALSE(me.leads("e"));
  EXPECT_EQ(me.count<group_effect::Begin>(), 0u);
  EXPECT_TRUE(me.reported(Fault::corrupt));
}

// ---- rule 9: what is granted and not led ----

TEST_F(GroupCandidacyThatLeads, AClaimThatIsGrantedAfterTheLapseIsNotLed) {
  me.pass(1s);
  me.join("f");
  me.answer();  // the look at it
  ASSERT_EQ(me.commit().claims.size(), 1u);
  const auto answer = me.land();
  stage.pass(me.deadline - stage.now);
  me.tell(answer);
  EXPECT_FALSE(me.leads("f"));
  EXPECT_EQ(me.count<group_effect::Begin>(), 1u);
}

TEST_F(GroupCandidacy, AClaimThatIsGrantedAfterLeaveIsGivenBack) {
  me.begins();
  me.answer();
  const auto answer = me.land();
  me.leave("e");
  me.tell(answer);
  EXPECT_EQ(me.count<group_effect::Begin>(), 0u);
  ASSERT_EQ(me.commit().releases.size(), 1u);
  me.answer();
  EXPECT_TRUE(stage.lead("e").released);
}

TEST_F(GroupCandidacy, AClaimThatLandsUnheardAfterLeaveIsGivenBack) {
  me.begins();
  me.answer();
  me.land();
  me.leave("e");
  me.unanswered();
  me.pass(3s);
  EXPECT_TRUE(stage.lead("e").released);
}

/// We have seen that it names us. No look says that again, so whoever gives it up has to remember it.
TEST_F(GroupCandidacy, WhatNamesUsUnledIsGivenBackByLeaveAndByResign) {
  for (const bool leaves : {true, false}) {
    GroupStage its;
    GroupScene one(its);
    one.begins();
    one.answer();
    one.land();
    one.unanswered();
    one.renew();  // Its look shows the ghost, which is claimed anew at once.
    ASSERT_EQ(one.commit().claims.size(), 1u);
    leaves ? one.leave("e") : one.resign("e", 20s);
    one.unanswered();  // That claim is lost.
    one.pass(5s);
    EXPECT_TRUE(its.lead("e").released) << leaves;
    EXPECT_FALSE(one.leads("e")) << leaves;
  }
}

TEST_F(GroupCandidacy, AClaimThatIsGrantedAfterResignIsGivenBack) {
  me.begins();
  me.answer();
  me.resign("e", 5s);
  me.settle();
  EXPECT_FALSE(me.leads("e"));
  EXPECT_EQ(me.count<group_effect::Begin>(), 0u);
  EXPECT_TRUE(stage.lead("e").released);
  me.pass(4s);
  EXPECT_FALSE(me.leads("e"));
  me.pass(1s);
  EXPECT_TRUE(me.leads("e"));
}

// ---- rule 10: voluntary ends ----

TEST_F(GroupCandidacy, ALeadIsReleasedAfterOustingReturned) {
  me.lead({"e", "f"});
  me.resign("e", 5s);
  EXPECT_TRUE(me.leads("e"));  // until the work has stopped
  EXPECT_EQ(me.reasons(), std::vector{Reason::resigned});
  me.pass(2900ms);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_FALSE(stage.lead("e").released);
  me.ousting_returned("e");
  EXPECT_FALSE(me.leads("e"));
  me.settle();
  EXPECT_TRUE(stage.lead("e").released);
  EXPECT_TRUE(me.leads("f"));
}

TEST_F(GroupCandidacyThatLeads, AResignedElectionIsLeftAloneForItsCoolDownFromItsRelease) {
  me.resign("e", 5s);
  me.pass(1s);
  me.work_ended("e");
  expect_leads_after(5s);
}

TEST_F(GroupCandidacyThatLeads, NoCoolDownIsLongerThanAnHour) {
  me.hand_back("e", 2h);
  expect_leads_after(1h);
}

TEST_F(GroupCandidacyThatLeads, ACoolDownOutlivesTheSession) {
  me.resign("e", 30s);
  me.ousting_returned("e");
  me.unanswered();  // the release
  me.pass_without_store(11s);
  EXPECT_FALSE(me.leads("e"));
  me.pass(15s);
  EXPECT_FALSE(me.leads("e"));
  me.pass(16s);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacy, OustingThatOutlastsTheDrainKeepsTheDeadlineOfThatMomentAndTheOthersAreRenewed) {
  me.lead({"e", "f"});
  me.resign("e", 30s);
  me.pass(group_timing.drain - 1ns);
  EXPECT_EQ(me.count<group_effect::Cap>(), 0u);
  EXPECT_EQ(me.count<group_effect::FireExpired>(), 0u);
  const auto cap = me.deadline;
  me.pass(1ns);
  ASSERT_EQ(me.count<group_effect::Cap>(), 1u);
  EXPECT_EQ(me.all<group_effect::Cap>()[0].at, cap);
  EXPECT_EQ(me.count<group_effect::FireExpired>(), 1u);
  EXPECT_EQ(me.count<group_effect::Overrun>(), 1u);
  EXPECT_TRUE(me.reported(Fault::hook_overran));
  me.pass(cap - stage.now - 1ns);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_FALSE(stage.lead("e").released);
  me.pass(1ns);
  EXPECT_FALSE(me.leads("e"));
  EXPECT_FALSE(stage.lead("e").released) << "its lease runs on";
  me.pass(group_timing.margin - group_timing.clock_allowance());
  EXPECT_TRUE(stage.lead("e").released) << "although the hook still runs";
  const auto given_back = stage.now;
  me.pass(10s);
  EXPECT_TRUE(me.leads("f"));
  EXPECT_EQ(me.count<group_effect::Unlead>(), 1u);
  me.work_ended("e");
  me.pass(given_back + 30s - stage.now - 1ns);
  EXPECT_FALSE(me.leads("e")) << "the cool-down counts from the release";
  me.pass(1ns);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacyThatLeads, ALapseFiresTheStopTokenAtTheDeadlineAndExpiredAtTheEndOfTheLease) {
  const auto asked = me.deadline + group_timing.margin - group_timing.term;
  const auto end = asked + group_timing.term - group_timing.clock_allowance();
  me.lapse();
  ASSERT_EQ(me.count<group_effect::FireStop>(), 1u);
  ASSERT_EQ(me.all<group_effect::DoneBy>().size(), 1u);
  EXPECT_EQ(me.all<group_effect::DoneBy>()[0].at, end);
  me.pass_without_store(end - stage.now - 1ns);
  EXPECT_EQ(me.count<group_effect::FireExpired>(), 0u);
  me.pass_without_store(1ns);
  EXPECT_EQ(me.count<group_effect::FireExpired>(), 1u);
}

TEST_F(GroupCandidacy, ATenureThatAnotherOneReplacedInTheStoreEndsAlone) {
  me.lead({"e", "f"});
  stage.rival(rival, 1);
  stage.lead("e", {stage.lead("e").token.value + 5}, rival);
  me.pass(3s);
  EXPECT_FALSE(me.leads("e"));
  EXPECT_TRUE(me.leads("f"));
  EXPECT_EQ(me.reasons(), std::vector{Reason::superseded});
}

// ---- step-downs ----

TEST_F(GroupCandidacy, AStepDownEndsOneTenureAndLeavesTheElectionAloneForATerm) {
  me.lead({"e", "f"});
  me.pass(1s);
  stage.ask_to_step_down("e");
  me.look_now();
  EXPECT_EQ(me.reasons(), std::vector{Reason::step_down});
  EXPECT_EQ(me.all<group_effect::End>()[0].detail, "asked by ops: drill");
  me.work_ended("e");
  EXPECT_TRUE(stage.lead("e").released);
  me.pass(group_timing.term - 1ns);
  EXPECT_FALSE(me.leads("e"));
  EXPECT_TRUE(me.leads("f"));
  me.pass(1ns);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacyThatLeads, AStepDownOfAnEarlierTokenIsNotOurs) {
  auto& kept = stage.store.leads.at("e");
  kept.lead.step_down = StepDown{Token{kept.lead.token.value - 1}, "ops", "drill"};
  kept.changed = ++stage.store.version;
  me.pass(5s);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_EQ(me.count<group_effect::End>(), 0u);
}

// ---- rule 11: stop ----

TEST_F(GroupCandidacy, StopEndsTheSessionByOneWriteAfterAllWorkIsOver) {
  me.lead({"e", "f"});
  const auto session = me.session;
  me.stop();
  EXPECT_EQ(me.reasons(), (std::vector{Reason::stopped, Reason::stopped}));
  EXPECT_TRUE(me.leads("e") && me.leads("f"));
  me.work_ended("e");
  EXPECT_FALSE(stage.store.sessions.at(session).record.released);
  me.ousting_returned("f");
  ASSERT_TRUE(me.asks<ask::End>());
  EXPECT_FALSE(me.leads("f")) << "withdrawn before the store is told";
  me.answer();
  EXPECT_TRUE(stage.store.sessions.at(session).record.released);
  EXPECT_EQ(me.count<group_effect::Ended>(), 1u);
  EXPECT_TRUE(me.candidacy.over());
  EXPECT_EQ(me.candidacy.next_alarm(), Time::max());
}

/// Each interrupted wait is followed by another one: that would be a hot loop for as long as the work takes to end.
TEST_F(GroupCandidacyThatLeads, StopInterruptsNoWaitWhileOustingRuns) {
  me.settle();
  ASSERT_TRUE(me.asks<ask::Await>());
  const auto before = me.count<group_effect::Interrupt>();
  me.stop();
  for (int i = 0; i < 3; ++i) me.tick();
  EXPECT_EQ(me.count<group_effect::Interrupt>(), before);
  me.ousting_returned("e");
  EXPECT_EQ(me.count<group_effect::Interrupt>(), before + 1) << "the release, or the end of the session, is due";
  me.settle();
  EXPECT_TRUE(me.candidacy.over());
}

TEST_F(GroupCandidacy, StopBeforeStartIsOverAtOnce) {
  me.join("e");
  me.stop();
  EXPECT_TRUE(me.candidacy.over());
  EXPECT_FALSE(me.asked);
}

TEST_F(GroupCandidacy, StopWhileASessionIsOpenedEndsIt) {
  me.begins();
  ASSERT_TRUE(me.asks<ask::Open>());
  me.stop();
  EXPECT_FALSE(me.candidacy.over());
  me.settle();
  EXPECT_TRUE(me.candidacy.over());
  EXPECT_TRUE(stage.store.sessions.begin()->second.record.released);
}

TEST_F(GroupCandidacy, StopWhileAClaimIsOutstandingLeavesNothingBehind) {
  me.begins();
  me.answer();
  ASSERT_EQ(me.commit().claims.size(), 1u);
  me.stop();
  me.settle();
  EXPECT_TRUE(me.candidacy.over());
  EXPECT_EQ(me.count<group_effect::Begin>(), 0u);
  EXPECT_TRUE(stage.store.sessions.begin()->second.record.released);
}

TEST_F(GroupCandidacy, StopWhileItWaitsInterruptsTheWait) {
  rival_leads();
  me.takes_part();
  ASSERT_TRUE(me.asks<ask::Await>());
  me.stop();
  me.settle();
  EXPECT_TRUE(me.candidacy.over());
}

TEST_F(GroupCandidacyThatLeads, StopAfterTheLapseEndsTheLapsedSession) {
  const auto session = me.session;
  me.lapse();
  me.stop();
  me.ousting_returned("e");
  for (int i = 0; i < 20 && !me.asks<ask::End>(); ++i) me.pass_without_store(100ms);
  me.settle();
  EXPECT_TRUE(me.candidacy.over());
  EXPECT_TRUE(stage.store.sessions.at(session).record.released);
}

/// Without a session a call may have half a lease.
TEST_F(GroupCandidacy, StopInterruptsWhatHasHadTheTimeOfOneCall) {
  me.begins();
  for (int i = 0; i < 5; ++i) {
    me.pass_until_asked<ask::Open>();
    me.unanswered();
  }
  me.pass_until_asked<ask::Open>();
  ASSERT_GT(me.asked->by - stage.now, group_timing.call);
  me.stop();
  me.pass_without_store(group_timing.call - 1ns);
  EXPECT_FALSE(me.asks<ask::End>());
  me.pass_without_store(1ns);
  EXPECT_TRUE(me.asks<ask::End>()) << "that may have been carried out";
  me.pass_without_store(group_timing.call);
  EXPECT_TRUE(me.candidacy.over());
}

TEST_F(GroupCandidacy, StopClaimsNothingMore) {
  me.begins(names(1200));
  me.answer();
  me.answer();
  ASSERT_EQ(me.commit().claims.size(), 500u);
  me.stop();
  me.answer();
  for (int i = 0; i < 20 && me.asked && !me.asks<ask::Await>(); ++i) {
    if (const auto* write = me.asks<ask::Write>()) {
      EXPECT_TRUE(write->commit.claims.empty());
    }
    me.answer();
  }
  EXPECT_EQ(stage.store.leads.size(), 1000u);
}

TEST_F(GroupCandidacyThatLeads, StopWaitsForAHookThatOutlivesTheSession) {
  me.stop();
  me.pass(1min);
  EXPECT_FALSE(me.candidacy.over());
  EXPECT_FALSE(me.leads("e"));
  EXPECT_TRUE(stage.lead("e").released);
  me.work_ended("e");
  EXPECT_TRUE(me.candidacy.over());
}

TEST_F(GroupCandidacyThatLeads, StopDoesNotWaitForAStoreThatIsAway) {
  me.stop();
  me.ousting_returned("e");
  me.pass_without_store(3s);
  EXPECT_TRUE(me.candidacy.over());
}

// ---- a store call that ignores its limit ----

TEST_F(GroupCandidacyThatLeads, NothingMoreIsAskedUntilAWedgedCallReturns) {
  me.pass_until_asked<ask::Write>();
  const auto wedged = *std::exchange(me.asked, std::nullopt);
  const auto answer = me.land(wedged);
  for (int i = 0; i < 200; ++i) {
    stage.pass(100ms);
    me.tick();
  }
  EXPECT_FALSE(me.asked);
  EXPECT_TRUE(me.reported(Fault::wedged));
  EXPECT_FALSE(me.leads("e"));
  EXPECT_EQ(me.reasons(), std::vector{Reason::lapsed});
  me.ousting_returned("e");
  me.tell(wedged, answer);
  EXPECT_EQ(me.count<group_effect::Publish>(), 2u) << "its answer is worth nothing";
  me.settle();
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacyThatLeads, AnAnswerThatIsLateForAMomentIsTroubleAndThePauseOfARetryFollows) {
  me.pass_until_asked<ask::Write>();
  const auto late = *std::exchange(me.asked, std::nullopt);
  stage.pass(group_timing.call + LateCall::grace);
  me.tick();
  me.tell(late, me.land(late));
  EXPECT_TRUE(me.asks<ask::Await>()) << "it pauses";
  ASSERT_TRUE(me.candidacy.last_error());
  EXPECT_EQ(me.candidacy.last_error()->fault, Fault::timed_out);
  EXPECT_TRUE(me.reported(Fault::timed_out));
  me.pass(group_timing.retry);
  EXPECT_EQ(me.count<group_effect::Publish>(), 3u) << "and is renewed";
}

TEST_F(GroupCandidacyThatLeads, StopDoesNotWaitForAWedgedCallButForTheHooks) {
  me.pass_until_asked<ask::Write>();
  const auto wedged = *std::exchange(me.asked, std::nullopt);
  for (int i = 0; i < 50; ++i) {
    stage.pass(100ms);
    me.tick();
  }
  me.stop();
  EXPECT_FALSE(me.candidacy.over());
  me.ousting_returned("e");
  ASSERT_EQ(me.count<group_effect::Ended>(), 1u);
  EXPECT_TRUE(me.all<group_effect::Ended>()[0].store_wedged);
  const auto told = me.history.size();
  me.tell(wedged, me.land(wedged));
  EXPECT_EQ(me.history.size(), told) << "nothing is told after the end";
}

// ---- rule 12: the end of another's session ----

TEST_F(GroupCandidacy, AnothersSessionIsEndedByTheVersionThatStoodUnchangedForItsTerm) {
  rival_leads(41, {5});
  me.begins();
  const auto first_seen = stage.now;
  me.pass_until_asked<ask::End>();
  EXPECT_EQ(me.asks<ask::End>()->id, rival);
  EXPECT_EQ(me.asks<ask::End>()->beats, std::vector<std::uint64_t>{41});
  EXPECT_EQ(stage.now, first_seen + group_timing.term);
  EXPECT_FALSE(me.leads("e"));
  me.answer();
  EXPECT_TRUE(stage.store.sessions.at(rival).record.released);
  me.settle();
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacyThatLeads, ASightingCountsFromTheReceiptOfItsAnswer) {
  stage.rival(rival, 41);
  me.pass_until_asked<ask::See>();
  const auto answer = me.land();
  stage.pass(800ms);
  me.tell(answer);
  const auto seen = stage.now;
  me.pass_until_asked<ask::End>();
  EXPECT_EQ(stage.now, seen + group_timing.term);
}

TEST_F(GroupCandidacy, ARefusedEndIsALookAndNotTriedAgainBeforeTheNewVersionWasSeenForATerm) {
  rival_leads(41, {5});
  me.begins();
  me.pass_until_asked<ask::End>();
  stage.rival(rival, 42);
  me.answer();
  ASSERT_TRUE(me.asks<ask::See>());
  me.answer();
  const auto seen = stage.now;
  EXPECT_FALSE(me.leads("e"));
  me.pass_until_asked<ask::End>();
  EXPECT_GE(stage.now, seen + group_timing.term);
  EXPECT_EQ(me.asks<ask::End>()->beats, std::vector<std::uint64_t>{42});
}

TEST_F(GroupCandidacy, ARefusedEndThatNoLookExplainsIsNotAHotLoop) {
  stage.rival(rival, 41);
  me.begins();
  for (int i = 0; i < 3; ++i) {
    me.pass_until_asked<ask::End>();
    const auto then = stage.now;
    me.tell(Result<bool>(false));
    me.settle();
    ASSERT_FALSE(me.asks<ask::End>());
    me.pass_until_asked<ask::End>();
    EXPECT_GE(stage.now - then, group_timing.retry / 2);
  }
}

TEST_F(GroupCandidacy, AnUnansweredEndFreesNothing) {
  rival_leads(41, {5});
  me.begins();
  me.pass_until_asked<ask::End>();
  me.unanswered();
  EXPECT_FALSE(me.asks<ask::Write>() && !me.commit().claims.empty());
  me.pass(3s);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacy, TwoProcessesThatEndEachOtherBothStandAgain) {
  GroupScene a(stage), b(stage, 5000);
  a.lead({"a"});
  b.lead({"b"});
  a.pass(1s);  // Both know each other now.
  b.pass(1s);
  const auto of_a = a.session, of_b = b.session;
  const auto beat_of = [&](SessionId id) { return stage.store.sessions.at(id).record.beat; };
  ASSERT_TRUE(stage.store.end(of_b, {beat_of(of_b)}, 1));
  ASSERT_TRUE(stage.store.end(of_a, {beat_of(of_a)}, 2));
  for (int i = 0; i < 50; ++i) {
    for (auto* scene : {&a, &b}) {
      scene->tick();
      scene->settle();
    }
    for (const auto& end : a.all<group_effect::End>()) a.ousting_returned(end.election);
    for (const auto& end : b.all<group_effect::End>()) b.ousting_returned(end.election);
    stage.pass(100ms);
  }
  EXPECT_TRUE(a.leads("a"));
  EXPECT_TRUE(b.leads("b"));
  EXPECT_NE(a.session, of_a);
  EXPECT_NE(b.session, of_b);
}

TEST_F(GroupCandidacy, WhoJoinsWithoutAPauseEndsTheSessionsOfTheDeadAllTheSame) {
  stage.rival(rival, 1);
  me.lead({"e"});
  const auto until = stage.now + 3 * group_timing.term;
  for (int i = 0; !me.asks<ask::End>(); ++i) {
    ASSERT_LT(stage.now, until) << "nobody ended it";
    if (me.asked && !me.asks<ask::Await>()) me.answer();
    me.join("job " + std::to_string(i));
    stage.pass(50ms);
    me.tick();
  }
}

// ---- rule 24: retired names ----

TEST_F(GroupCandidacy, ALeadThatWasRetiredIsNotLostAndIsClaimedAsItWasSeen) {
  rival_leads(1, {500});
  stage.lead("f", {400}, rival);
  me.takes_part({"e", "f"});
  stage.store.sessions.at(rival).record.released = true;
  for (const auto* election : {"e", "f"}) ASSERT_TRUE(stage.store.retire(election));
  me.pass(2 * group_timing.renew);
  EXPECT_EQ(me.count<group_effect::Report>(), 0u);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_TRUE(me.leads("f"));
  EXPECT_GT(stage.lead("f").token, Token{500});
}

/// The lead of a session that stands cannot have been retired, whatever else was.
TEST_F(GroupCandidacy, ALeadOfAStandingSessionThatIsGoneIsLostWhateverWasRetired) {
  for (const std::uint64_t retired : {499u, 600u}) {
    GroupStage its;
    its.rival(rival, 1);
    its.lead("e", {500}, rival);
    GroupScene one(its);
    one.takes_part();
    its.store.leads.erase("e");
    its.store.retired = {retired};
    its.store.forget_cursors();
    one.pass(2 * group_timing.renew);
    EXPECT_TRUE(one.reported(Fault::corrupt)) << retired;
    EXPECT_FALSE(one.leads("e")) << retired;
  }
}

// ---- rule 13: lost data ----

TEST_F(GroupCandidacy, AnotherMarkerIsReportedAndNothingAbsentIsClaimedForATerm) {
  stage.store.can_lose = true;
  me.begins();
  me.pass(11s);
  ASSERT_TRUE(me.leads("e"));
  stage.store.lose();
  me.pass_until_asked<ask::Open>();  // The renewal was refused.
  EXPECT_FALSE(me.leads("e"));
  EXPECT_EQ(me.reasons(), std::vector{Reason::superseded});
  me.ousting_returned("e");
  me.answer();
  EXPECT_TRUE(me.reported(Fault::corrupt));
  expect_leads_after(group_timing.term);
}

TEST_F(GroupCandidacy, AGroupThatIsFoundedUnderAWatchersEyesHasLostNothing) {
  stage.store.can_lose = true;
  me.start();
  ASSERT_TRUE(me.asks<ask::See>());
  me.settle();
  stage.store.open(rival, Session{.record = {.beat = 1, .term = 10s}}, 77);
  me.look_now();
  EXPECT_FALSE(me.reported(Fault::corrupt));
}

TEST_F(GroupCandidacy, AFallenTokenIsReportedAndNothingIsClaimedForATerm) {
  rival_leads(1, {500});
  me.takes_part();
  stage.lead("e", {400}, rival, true);
  me.look_now();
  const auto told = me.all<group_effect::Report>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].error.fault, Fault::corrupt);
  EXPECT_EQ(told[0].error.message,
            "the store lost data: election e had token 500, and now token 400; restore it, and until then fence every "
            "write with the token");
  expect_leads_after(group_timing.term);
  EXPECT_GT(me.led.at("e").token, Token{500});
}

TEST_F(GroupCandidacy, ManyFallenTokensAreOneReport) {
  stage.rival(rival, 1);
  for (const auto& election : names(100)) stage.lead(election, {500}, rival);
  me.takes_part(names(100));
  for (const auto& election : names(100)) stage.lead(election, {400}, rival, true);
  me.look_now();
  EXPECT_EQ(me.count<group_effect::Report>(), 1u);
}

// ---- rule 14: sweeps ----

TEST_F(GroupCandidacyThatLeads, EndedSessionsAreSweptWithinATermAndNoSweepIsAskedWithoutThem) {
  me.pass(1min);
  EXPECT_FALSE(me.asks<ask::Sweep>());
  stage.rival(rival, 1);
  stage.store.sessions.at(rival).record.released = true;
  const auto then = stage.now;
  me.pass_until_asked<ask::Sweep>();
  EXPECT_LE(stage.now - then, group_timing.term + 2 * group_timing.renew);
  me.answer();
  EXPECT_FALSE(stage.store.sessions.contains(rival));
  EXPECT_TRUE(me.leads("e"));
}

/// An election that nobody takes part in any more names its last leader's session for ever.
TEST_F(GroupCandidacy, SweepsThatRemoveNothingBecomeRare) {
  stage.rival(rival, 1);
  stage.store.sessions.at(rival).record.released = true;
  stage.lead("abandoned", {5}, rival);
  me.lead({"e"});
  const auto sweeps = [&] {
    const auto all = me.all<group_effect::Ask>();
    return std::count_if(all.begin(), all.end(),
                         [](const auto& ask) { return std::holds_alternative<ask::Sweep>(ask.question.what); });
  };
  me.pass(100 * group_timing.term);
  EXPECT_GE(sweeps(), 5);
  EXPECT_LE(sweeps(), 10);
  stage.rival({8}, 1);
  stage.store.sessions.at({8}).record.released = true;
  me.pass(group_timing.term + 2 * group_timing.renew);
  EXPECT_FALSE(stage.store.sessions.contains({8})) << "soon, when another one has ended";
}

TEST_F(GroupCandidacy, WhoEndsASessionTellsThatAndSweepsItSoon) {
  stage.rival(rival, 1);
  stage.store.sessions.at(rival).record.released = true;
  stage.lead("abandoned", {5}, rival);
  me.lead({"e"});
  me.pass(100 * group_timing.term);
  stage.rival({8}, 1);
  me.see();
  me.pass_until_asked<ask::End>();
  me.answer();
  EXPECT_TRUE(std::any_of(me.newest.begin(), me.newest.end(),
                          [](const auto& effect) { return std::holds_alternative<group_effect::Changed>(effect); }));
  me.pass(group_timing.term + 2 * group_timing.renew);
  EXPECT_FALSE(stage.store.sessions.contains({8}));
}

// ---- commits that tell no leads ----

TEST_F(GroupCandidacyThatLeads, TheLeaseCountsFromACommitThatShowedNoLeadsOnceALookHasShownThem) {
  me.pass_until_asked<ask::Write>();
  const auto asked = me.asked->asked;
  const auto before = me.deadline;
  stage.store.forget_cursors();
  me.answer();
  EXPECT_EQ(me.deadline, before) << "another may lead it, as a look will show";
  ASSERT_TRUE(me.asks<ask::See>());
  EXPECT_EQ(me.asks<ask::See>()->cursor, "");
  stage.pass(300ms);
  me.tell(me.land());
  EXPECT_EQ(me.deadline, group_timing.deadline(asked));
  me.pass(3 * group_timing.term);
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacyThatLeads, ALookBesideALeaseGetsTwiceTheTimeOfTheUnansweredOneAndLeavesHalfOfTheLease) {
  me.pass_until_asked<ask::Write>();
  stage.store.forget_cursors();
  me.answer();
  for (const auto time : {1 * group_timing.call, 2 * group_timing.call, 4 * group_timing.call}) {
    me.pass_until_asked<ask::See>();
    EXPECT_EQ(me.asked->by - me.asked->asked, std::min<Clock::Duration>(time, (me.deadline - stage.now) / 2));
    stage.pass(me.asked->by - stage.now);
    me.unanswered();
  }
  me.pass(3 * group_timing.term);
  EXPECT_TRUE(me.leads("e"));
  EXPECT_EQ(me.count<group_effect::End>(), 0u);
}

TEST_F(GroupCandidacyThatLeads, TheLookThatIsOwedComesBeforeMoreClaims) {
  for (const auto& election : names(1200)) me.join(election);
  me.pass_until_asked<ask::Write>();
  stage.store.forget_cursors();
  me.answer();
  ASSERT_TRUE(me.asks<ask::See>());
  me.answer();
  EXPECT_EQ(me.commit().claims.size(), 500u);
}

TEST_F(GroupCandidacy, TheLookThatIsOwedComesAlsoIfACommitTookLongerThanTheTimeToTheNext) {
  auto timing = group_timing;
  timing.renew = 300ms;
  me.candidacy = tenure::GroupCandidacy(
      who_text({"me", "here"}, "life"), timing, [drawn = std::uint64_t{}]() mutable { return ++drawn; },
      Spread{.on = false});
  me.lead({"e"});
  me.pass_until_asked<ask::Write>();
  stage.store.forget_cursors();
  const auto answer = me.land();
  stage.pass(800ms);
  me.tell(answer);
  EXPECT_TRUE(me.asks<ask::See>()) << "or the lease never counts, however many commits are granted";
}

TEST_F(GroupCandidacy, ALookForAllLeadsGetsTwiceTheTimeThatTheyTookLast) {
  me.begins();
  me.pass_until_asked<ask::Open>();
  const auto opened = me.land();
  stage.pass(900ms);
  me.tell(opened);
  me.settle();
  ASSERT_TRUE(me.leads("e"));
  me.pass_until_asked<ask::Write>();
  stage.store.forget_cursors();
  me.answer();
  ASSERT_TRUE(me.asks<ask::See>());
  EXPECT_EQ(me.asked->by - me.asked->asked, 1800ms);
}

TEST_F(GroupCandidacy, AnOpenThatReturnsLongAfterItsLimitIsEnded) {
  me.begins();
  ASSERT_TRUE(me.asks<ask::Open>());
  const auto landed = me.land();
  stage.pass(me.asked->by + LateCall::grace - stage.now);
  me.tick();
  EXPECT_FALSE(me.reported(Fault::wedged)) << "that wakes somebody, so it is told later";
  const auto id = me.opened.back();
  me.tell(landed);
  stage.pass(group_timing.retry);
  me.tick();
  ASSERT_TRUE(me.asks<ask::End>()) << "or the others count it as one of them for a term";
  EXPECT_EQ(me.asks<ask::End>()->id, id);
}

// ---- rule 15: the grid ----

TEST_F(GroupCandidacy, RenewalsStayOnTheGridOfTheStoresClockAndKeepTheirJitter) {
  std::uint64_t drawn = 0;
  me.candidacy = tenure::GroupCandidacy(
      who_text({"me", "here"}, "life"), group_timing, [&drawn] { return drawn += 0x9e3779b97f4a7c15; },
      Spread{.on = false});
  me.lead({"e"});
  me.pass(1min);
  Clock::Duration late = 0s;
  for (int i = 0; i < 50; ++i) {
    me.pass_until_asked<ask::Write>();
    const auto off = std::chrono::milliseconds(stage.store.now_ms % (group_timing.renew / 1ms));
    EXPECT_LE(off, 101ms);
    late = std::max<Clock::Duration>(late, i < 25 ? 0ms : off);
    stage.pass(5ms);
    me.answer();
  }
  EXPECT_GT(late, 50ms) << "the jitter has worn off, and all processes ask at once";
}

TEST_F(GroupCandidacyThatLeads, AClockOfTheStoreThatIsUselessCostsNoRenewal) {
  for (int i = 0; i < 10; ++i) {
    me.pass_until_asked<ask::Write>();
    const auto asked = stage.now;
    stage.store.now_ms = i % 2 ? 0 : -5;
    me.answer();
    me.pass_until_asked<ask::Write>();
    EXPECT_EQ(stage.now, asked + group_timing.renew);
    me.answer();
  }
}

// ---- those that only watch ----

TEST_F(GroupCandidacy, WhoTakesPartInNothingLooksAndNothingElse) {
  rival_leads();
  me.start();
  const auto began = stage.now;
  for (int i = 0; i < 5; ++i) {
    me.pass_until_asked<ask::See>();
    me.answer();
  }
  EXPECT_EQ(stage.now - began, 4 * (group_timing.term - group_timing.renew));
  EXPECT_TRUE(me.opened.empty());
  EXPECT_FALSE(me.candidacy.incumbent("e", stage.now)) << "of a million names that others use it keeps none";
}

TEST_F(GroupCandidacyThatLeads, WhoLeftEverythingAndLapsedGoesOnLooking) {
  me.leave("e");
  me.work_ended("e");
  me.pass_without_store(12s);
  me.pass(3s);
  stage.rival(rival, 1);
  stage.lead("e", {stage.lead("e").token.value + 1}, rival);
  const auto before = me.count<group_effect::Ask>();
  me.pass(9s);
  EXPECT_GT(me.count<group_effect::Ask>(), before);
  me.join("e");
  me.settle();
  ASSERT_TRUE(me.candidacy.incumbent("e", stage.now));
  EXPECT_EQ(me.candidacy.incumbent("e", stage.now)->name, "rival");
}

TEST_F(GroupCandidacy, AtRestItAsksOncePerRenewalHoweverManyElections) {
  for (const std::size_t elections : {1u, 1000u}) {
    GroupStage its;
    GroupScene one(its);
    one.lead(names(elections));
    one.pass(10s);
    const auto before = one.count<group_effect::Ask>();
    one.pass(100s);
    EXPECT_NEAR(static_cast<double>(one.count<group_effect::Ask>() - before), 2 * 50 + 50 / 3, 4)
        << "a commit and a wait each, and a look at the sessions after each third";
  }
}

// ---- a hand-over to a name ----

/// A process that crashed and came back has two sessions for a while. The store's clock was ahead when the old one
/// wrote.
TEST_F(GroupCandidacyThatLeads, ANamedHeirIsTheProcessWhoseLeaseEndsLastByOurClock) {
  const auto comes = [&](SessionId id) {
    stage.rival(id, 1);
    stage.store.sessions[id].joined = 1;
    stage.store.sessions[id].names = hash_of("e");
  };
  const auto heir = [&] { return me.candidacy.heir_named(stage.now, "e", "rival"); };
  const SessionId old{1}, young{2};
  comes(old);
  stage.store.sessions[old].record.written_ms += 3'600'000;
  me.see();
  EXPECT_EQ(heir(), old);
  comes(young);
  me.see();
  EXPECT_EQ(heir(), young);
  me.pass_until_asked<ask::End>();
  EXPECT_EQ(heir(), young) << "the old one is over";
  me.answer();
  me.pass_until_asked<ask::End>();
  EXPECT_EQ(heir(), std::nullopt) << "so is the young one, though nobody has ended it yet";
}

// ---- the work of one fact ----

/// Two processes whose calls are answered at once.
struct Two {
  void pass(Clock::Duration by) {
    for (const auto to = stage.now + by; stage.now < to && !testing::Test::HasFatalFailure(); stage.pass(10ms))
      for (auto* each : {&a, &b}) {
        each->tick();
        each->settle();
        if (each->asks<ask::Await>() && stage.now >= each->asked->by) each->push();
        meanwhile(*each);
      }
  }

  std::function<void(GroupScene&)> meanwhile = [](GroupScene&) {};
  GroupStage stage{};
  GroupScene a{stage, 100, Spread{.handovers_at_once = 4}}, b{stage, 900, Spread{.handovers_at_once = 4}};
};

/// They share elections, and their work stops when it has to.
struct SharingPair : Two {
  SharingPair(std::size_t elections, Clock::Duration b_comes_after) {
    meanwhile = [this](GroupScene& each) {
      for (const auto& election : ends_of(each)) each.ousting_returned(election);
    };
    for (auto* each : {&a, &b}) {
      each->begins(names(elections));
      pass(b_comes_after);
    }
    pass(10 * group_timing.renew);
  }
  std::vector<std::string> ends_of(const GroupScene& scene) {
    std::vector<std::string> ends;
    for (auto& seen = seen_[&scene]; seen < scene.history.size(); ++seen)
      if (const auto* end = std::get_if<group_effect::End>(&scene.history[seen])) ends.push_back(end->election);
    return ends;
  }

 private:
  std::map<const GroupScene*, std::size_t> seen_{};
};

TEST_F(GroupCandidacy, NeitherARenewalNorAHandOverLooksThroughAllElections) {
  SharingPair pair(301, 0s);
  auto& from = pair.a.led.size() > pair.b.led.size() ? pair.a : pair.b;
  auto& to = &from == &pair.a ? pair.b : pair.a;
  ASSERT_EQ(from.led.size(), 151u);
  ASSERT_EQ(to.led.size(), 150u);
  const auto before_from = from.candidacy.looked_through(), before_to = to.candidacy.looked_through();
  const auto election = from.led.begin()->first;
  from.resign(election, 30ms);
  from.ousting_returned(election);
  ASSERT_EQ(from.commit().releases.size(), 1u);
  const auto release = from.commit().releases.front();
  from.answer();
  EXPECT_EQ(release.heir, to.session);
  to.push(release);
  ASSERT_EQ(to.commit().claims.size(), 1u);
  to.answer();
  EXPECT_TRUE(to.leads(election));
  pair.pass(3 * group_timing.renew);
  EXPECT_EQ(to.led.size(), 151u);
  EXPECT_LE(from.candidacy.looked_through(), before_from + 9) << "but the one that was free";
  EXPECT_LE(to.candidacy.looked_through(), before_to + 9);
}

TEST_F(GroupCandidacy, WhatIsHandedOverAFewAtATimeIsFoundOnce) {
  SharingPair pair(300, 5 * group_timing.renew);
  EXPECT_EQ(pair.a.led.size(), 150u);
  EXPECT_EQ(pair.b.led.size(), 150u);
  EXPECT_EQ(pair.a.count<group_effect::End>(), 150u);
  EXPECT_LE(pair.a.candidacy.looked_through(), 8u * 300 + 20u * 150) << "each that is free for a moment is seen too";
}

// ---- the spread ----

TEST_F(GroupCandidacy, WhoMayLeadThreeClaimsNoMore) {
  me.run_with(Spread{.most = 3});
  me.begins(names(10));
  me.pass(3 * group_timing.renew);
  EXPECT_EQ(me.led.size(), 3u);
}

TEST_F(GroupCandidacy, WhatIsResignedAgainAndAgainIsKeptOnce) {
  me.run_with(Spread{.most = 0});
  me.takes_part();
  for (int i = 0; i < 100; ++i) {
    stage.pass(1ms);
    me.resign("e", 1h);
  }
  EXPECT_LE(me.candidacy.kept(), 2u) << "the election, and when it may be claimed";
}

/// `a` leads twenty, and `b` comes just before a renewal of `a`. No work stops.
struct Newcomer : Two {
  Newcomer() {
    a.begins(names(20));
    a.pass(5 * group_timing.renew);
    a.pass_until_asked<ask::Write>();
    b.takes_part(names(20));
    a.answer();
  }
};

TEST_F(GroupCandidacy, NothingIsHandedOverBeforeARenewalHasPassedSinceSomebodyCame) {
  Newcomer scene;
  ASSERT_EQ(scene.a.led.size(), 20u);
  scene.pass(group_timing.renew - 20ms);
  EXPECT_EQ(scene.a.count<group_effect::End>(), 0u) << "others may still come, or the newcomer may go";
}

TEST_F(GroupCandidacy, NoMoreWorkStopsAtATimeThanMayBeHandedOver) {
  Newcomer scene;
  scene.pass(3 * group_timing.renew);
  EXPECT_EQ(scene.a.count<group_effect::End>(), 4u);
}

TEST_F(GroupCandidacy, WhatIsHandedOverGoesByTheNumbersOfThatMoment) {
  Newcomer scene;
  scene.pass(3 * group_timing.renew);
  ASSERT_EQ(scene.a.count<group_effect::End>(), 4u);
  for (const auto& end : scene.a.all<group_effect::End>()) scene.a.ousting_returned(end.election);
  std::size_t ended = 4;
  const auto leading = scene.a.led;  // While these stop, some more are given back by hand.
  for (auto it = leading.rbegin(); ended < 8 && it != leading.rend(); ++it)
    if (scene.a.leads(it->first)) scene.a.resign(it->first, 1h), ++ended;
  while (!testing::Test::HasFatalFailure()) {
    const auto ends = scene.a.all<group_effect::End>();
    for (std::size_t i = 4; i < ends.size(); ++i) scene.a.ousting_returned(ends[i].election);
    scene.pass(500ms);
    if (scene.a.count<group_effect::End>() == ends.size()) break;
  }
  EXPECT_EQ(scene.a.count<group_effect::End>(), 10u) << "two more were to go, not four";
}

/// `me` and a rival that claims nothing are to share so many elections. Each call takes so long.
struct SlowStart {
  SlowStart(std::size_t elections, Clock::Duration call) : shared(names(elections)), call_time(call) {
    renew_rival();
    for (const auto& election : shared) me.join(election);
    me.start();
  }
  void pass(Clock::Duration by) {
    for (const auto to = stage.now + by; stage.now < to && !testing::Test::HasFatalFailure(); stage.pass(10ms)) {
      if (stage.now - renewed >= group_timing.renew) renew_rival();
      me.tick();
      if (me.asks<ask::Await>() && stage.now >= me.asked->by) me.push();
      if (me.asked && !me.asks<ask::Await>() && stage.now - me.asked->asked >= call_time) me.answer();
    }
  }

  GroupStage stage{};
  GroupScene me{stage, 100, Spread{}};

 private:
  void renew_rival() {
    renewed = stage.now;
    stage.rival(SessionId{1}, ++beat);
    auto& session = stage.store.sessions[SessionId{1}];
    session.joined = static_cast<std::uint32_t>(shared.size());
    for (const auto& election : shared) session.names ^= hash_of(election);
  }
  std::vector<std::string> shared;
  Clock::Duration call_time;
  Clock::Time renewed{};
  std::uint64_t beat{};
};

TEST_F(GroupCandidacy, WhoeverNeedsManyCommitsForItsShareIsGivenTheTimeForThem) {
  SlowStart scene(4000, 300ms);
  scene.pass(group_timing.renew + group_timing.retry + 2s);
  EXPECT_EQ(scene.me.led.size(), 2000u) << "the rest is the rival's, and four commits of 0.3 s are not much";
  scene.pass(20s);
  EXPECT_GE(scene.me.count<group_effect::Begin>(), 4000u) << "but nothing stays free for long";
}

TEST_F(GroupCandidacy, ManyClaimsArePlannedOnceAndNotWithEachCommit) {
  SlowStart scene(10'000, 60ms);
  scene.pass(2s);
  EXPECT_EQ(scene.me.led.size(), 5000u);
  EXPECT_LE(scene.me.candidacy.looked_through(), 6u * 10'000);
}

// ---- who can take what ----

constexpr SessionId peer{7};

/// It takes part in the same elections, and was just renewed.
Session& renew_peer(GroupStage& stage, const std::vector<std::string>& elections, std::uint64_t beat) {
  stage.rival(peer, beat);
  auto& session = stage.store.sessions[peer];
  session.joined = static_cast<std::uint32_t>(elections.size());
  for (const auto& election : elections) session.names ^= hash_of(election);
  return session;
}

TEST_F(GroupCandidacyThatLeads, WhatAnotherCallsItselfIsPrintableInTheReasonOfTheEnd) {
  const std::string name = "rival\x1b[2J\n";
  stage.rival(SessionId{1}, 1);
  auto& session = stage.store.sessions[SessionId{1}];
  session.record.who = who_text({name, ""}, "other");
  session.joined = 1;
  session.names = hash_of("e");
  me.see();
  me.hand_over("e", name);
  ASSERT_EQ(me.count<group_effect::End>(), 1u);
  const auto detail = me.all<group_effect::End>()[0].detail;
  EXPECT_EQ(detail.find_first_of("\x1b\n"), detail.npos) << detail;
  EXPECT_NE(detail.find("rival"), detail.npos) << detail;
}

TEST_F(GroupCandidacy, ASessionSaysHowManyElectionsItMayLeadNow) {
  const auto most = [&] { return stage.store.sessions.at(me.session).most; };
  me.lead({"a", "b", "c"});
  me.pass(group_timing.renew);
  EXPECT_EQ(most(), 3u);
  me.hand_back("a", 1min);
  EXPECT_EQ(most(), 2u) << "with the release itself";
  me.resign("b", group_timing.retry);
  me.ousting_returned("b");
  me.pass(1s);
  EXPECT_EQ(most(), 2u) << "a moment does not count";
  me.pass(1min);
  EXPECT_EQ(most(), 3u);
  me.stop();
  me.work_ended("a");
  EXPECT_EQ(most(), 0u);
}

TEST_F(GroupCandidacy, WhoLetsAGiftLieTakesNothingForATermAndThenOne) {
  me.run_with(Spread{});
  const auto all = names(12);
  me.lead(all);
  std::uint64_t beat = 0;
  std::size_t returned = 0;
  const auto gifts_after = [&](Clock::Duration by) {
    for (const auto until = stage.now + by; stage.now < until;) {
      renew_peer(stage, all, ++beat);
      me.pass(200ms);
      for (; returned < me.count<group_effect::End>(); ++returned)
        me.ousting_returned(me.all<group_effect::End>()[returned].election);
      me.settle();
    }
    return me.count<group_effect::End>();
  };
  EXPECT_EQ(gifts_after(9s), 6u) << "its share";
  EXPECT_EQ(gifts_after(5s), 6u);
  EXPECT_EQ(gifts_after(9s), 7u);
  EXPECT_EQ(gifts_after(9s), 7u) << "each that lies gives the next one twice the time";
  EXPECT_EQ(gifts_after(11s), 8u);
  EXPECT_EQ(gifts_after(200s), 13u) << "four terms at most, and then what lay goes again: it may take it now";
}

TEST_F(GroupCandidacy, NothingIsHandedByNameToOneThatLeadsAllItMay) {
  me.lead({"a", "b"});
  auto& session = renew_peer(stage, {"a", "b"}, 1);
  session.most = 0;
  me.see();
  EXPECT_FALSE(me.candidacy.heir_named(stage.now, "a", "rival"));
  renew_peer(stage, {"a", "b"}, 2).most = 1;
  me.see();
  EXPECT_EQ(me.candidacy.heir_named(stage.now, "a", "rival"), peer);
  renew_peer(stage, {"a", "c"}, 3);
  me.see();
  EXPECT_FALSE(me.candidacy.heir_named(stage.now, "a", "rival")) << "it takes part in others";
}

TEST_F(GroupCandidacy, WhatIsReleasedAtOnceGoesToAllOthersAlike) {
  me.run_with(Spread{.handovers_at_once = 0});
  const std::vector<std::string> all{"a", "b", "c", "d"};
  me.lead(all);
  renew_peer(stage, all, 1);
  stage.store.sessions[{8}] = stage.store.sessions[peer];
  me.see();
  for (const auto& election : all) me.resign(election, 1min);
  for (const auto& election : all) me.candidacy.ousting_returned(stage.now, election);
  me.tick();
  me.settle();
  std::map<std::optional<SessionId>, int> heirs;
  for (const auto& election : all) ++heirs[stage.lead(election).heir];
  EXPECT_EQ(heirs, (std::map<std::optional<SessionId>, int>{{peer, 2}, {SessionId{8}, 2}}));
}

TEST_F(GroupCandidacy, WhatIsReleasedIsClaimedAtOnceAndNoHeirThatHasEndedIsWaitedFor) {
  stage.rival(peer, 1);
  stage.store.sessions[peer].record.released = true;
  stage.lead("e", {5}, peer, true);
  stage.store.leads.at("e").lead.heir = peer;
  me.takes_part();
  EXPECT_TRUE(me.leads("e"));
}

TEST_F(GroupCandidacyThatLeads, ARenewalGivesWhatDrainsTheTimeOfItsDrain) {
  me.pass_without_store(8s);
  me.resign("e");
  const auto drain_by = stage.now + group_timing.drain;
  EXPECT_LT(me.all<group_effect::DoneBy>().back().at, drain_by) << "the lease ends sooner";
  me.pass(1s);
  EXPECT_EQ(me.all<group_effect::DoneBy>().back().at, drain_by);
}

TEST_F(GroupCandidacy, NothingIsClaimedWhileAllHookThreadsHang) {
  me.run_with(Spread{.on = false}, 1);
  me.lead({"a", "b"});
  me.resign("a", 0s);
  me.pass(group_timing.drain);
  ASSERT_EQ(me.count<group_effect::Overrun>(), 1u);
  me.join("c");
  me.pass(5s);
  EXPECT_FALSE(me.leads("c"));
  EXPECT_TRUE(me.leads("b")) << "its work has begun";
  EXPECT_EQ(stage.store.sessions.at(me.session).most, 1u);
  me.work_ended("a");
  EXPECT_TRUE(me.leads("c"));
}

TEST_F(GroupCandidacy, NothingIsClaimedWhileAHookWaitsForAThread) {
  me.run_with(Spread{.on = false}, 1);
  me.lead({"a"});
  me.hooks_hang(true);
  EXPECT_TRUE(me.reported(Fault::hook_overran));
  me.join("b");
  me.pass(5s);
  EXPECT_FALSE(me.leads("b"));
  EXPECT_TRUE(me.leads("a"));
  EXPECT_EQ(stage.store.sessions.at(me.session).most, 1u);
  me.hooks_hang(false);
  me.settle();
  EXPECT_TRUE(me.leads("b"));
}

}  // namespace rules_of_a_group
}  // namespace
}  // namespace tenure
