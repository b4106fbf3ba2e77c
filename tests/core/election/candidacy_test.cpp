// SPDX-License-Identifier: Apache-2.0
// Goal: every rule of time and order holds. Method: facts are handed to one Candidacy at chosen moments of a clock that
// is only a number, and the effects that come out are compared.
#include "election/candidacy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace tenure {
namespace {

using namespace std::chrono_literals;
using Time = Clock::Time;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};
const Incumbent other{.name = "other", .incarnation = "i2", .address = {}, .token = {7}, .remaining = 3s};

/// A Candidacy with its effects sorted as they come.
class Election {
 public:
  explicit Election(const Timing& t = timing, StallLimits stall = {}) : candidacy(t, 1, stall) {}

  void start() { candidacy.start(now), take(); }
  void advance(Clock::Duration by) { advance_to(now + by); }
  /// Stops at every alarm on the way, as the clock thread does.
  void advance_to(Time to) {
    for (auto alarm = candidacy.next_alarm(); alarm <= to; alarm = candidacy.next_alarm()) {
      ASSERT_GT(alarm, now) << "an alarm that does not move is a hot loop";
      now = alarm;
      tick();
    }
    now = to;
    tick();
  }
  void tick() { candidacy.tick(now), take(); }
  void answer(Answer a) {
    ASSERT_TRUE(asked) << "nothing was asked";
    answer(asked->id, std::move(a));
  }
  void answer(std::uint64_t id, Answer a) {
    if (asked && asked->id == id) asked.reset();
    candidacy.answered(now, id, std::move(a)), take();
  }
  void unanswered() { answer(Unknown{{Fault::unreachable, "away"}}); }
  void ineligible() { candidacy.ineligible(now, std::exchange(asked, std::nullopt)->id), take(); }
  void released(std::optional<Error> error = {}) {
    ASSERT_TRUE(asks(Verb::release));
    candidacy.released(now, std::exchange(asked, std::nullopt)->id, std::move(error)), take();
  }
  void change_awaited(std::optional<Error> error = {}) {
    ASSERT_TRUE(asks(Verb::await_change));
    candidacy.change_awaited(now, std::exchange(asked, std::nullopt)->id, std::move(error)), take();
  }
  /// Its work has stopped, and the store knows.
  void hand_back() { ousting_returned(), released(); }
  void resign(std::optional<Clock::Duration> cool_down = {}) { candidacy.resign(now, cool_down), take(); }
  void progressed() { candidacy.progressed(now), tick(); }
  void stop() { candidacy.stop(now), take(); }
  void ousting_returned() { candidacy.ousting_returned(now), take(); }
  /// Started, and somebody else leads.
  void follow() { start(), answer(Denied{other}); }
  /// Started, and elected with this token by an answer that took `after`.
  void lead(Token token = {5}, Clock::Duration after = 10ms) {
    start();
    advance(after);
    answer(Granted{token});
  }
  /// Until so long after its election, when a renewal is outstanding.
  void until_renewal(Clock::Duration after = timing.renew) {
    advance(after);
    ASSERT_TRUE(asks(Verb::renew));
  }
  /// It asks nothing before that time, and campaigns then.
  void expect_campaign_after(Clock::Duration pause) {
    advance(pause - 1ns);
    EXPECT_FALSE(asked);
    advance(1ns);
    EXPECT_TRUE(asks(Verb::acquire));
  }

  /// Until a renewal is outstanding that was asked no earlier than `from`.
  void fail_renewals_until(Time from) {
    while (!asks(Verb::renew) || asked->asked < from) {
      if (asked) unanswered();
      advance(10ms);
    }
  }

  bool leads() const { return published && now < published->deadline; }
  bool asks(Verb verb) const { return asked && asked->verb == verb; }
  template <class E>
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::count_if(history.begin(), history.end(), [](const auto& e) { return std::holds_alternative<E>(e); }));
  }
  template <class E>
  const E& last() const {
    const auto it =
        std::find_if(history.rbegin(), history.rend(), [](const auto& e) { return std::holds_alternative<E>(e); });
    return std::get<E>(*it);
  }
  template <class E>
  std::size_t first() const {
    const auto it =
        std::find_if(history.begin(), history.end(), [](const auto& e) { return std::holds_alternative<E>(e); });
    return static_cast<std::size_t>(it - history.begin());
  }

  Time now{Time{1h}};
  Candidacy candidacy;
  std::optional<Question> asked;
  std::optional<effect::Publish> published;
  std::vector<Effect> history;

 private:
  void take() {
    std::vector<Effect> effects;
    candidacy.take_effects(effects);
    for (auto& e : effects) {
      if (auto* ask = std::get_if<effect::Ask>(&e)) {
        ASSERT_FALSE(asked) << "two questions at a time";
        asked = ask->question;
      }
      if (auto* p = std::get_if<effect::Publish>(&e)) published = *p;
      if (std::holds_alternative<effect::Unlead>(e)) published.reset();
      history.push_back(std::move(e));
    }
  }
};

/// A namespace of its own, because the class under test has this name, too.
namespace rules_of_an_election {

struct Candidacy : testing::Test {
  Election e;
};

/// It was elected just now, with token 5.
struct CandidacyThatLeads : Candidacy {
  void SetUp() override { e.lead(); }
};

// ---- rule 1: time is taken before the question leaves ----

TEST_F(Candidacy, DeadlineCountsFromTheQuestionNotFromTheAnswer) {
  const auto asked = e.now;
  e.lead({5}, 900ms);
  ASSERT_TRUE(e.leads());
  EXPECT_EQ(e.published->deadline, asked + timing.term - timing.margin);
}

TEST_F(CandidacyThatLeads, RenewalMovesTheDeadlineToItsOwnQuestion) {
  e.until_renewal(3s);
  const auto asked = e.asked->asked;
  e.answer(Granted{{5}});
  EXPECT_EQ(e.published->deadline, asked + timing.term - timing.margin);
}

TEST_F(Candidacy, GrantAfterItsOwnDeadlineElectsNobody) {
  e.start();
  const auto id = e.asked->id;
  e.now += timing.term - timing.margin;  // a paused process: no alarm was served on the way
  e.answer(id, Granted{{5}});
  EXPECT_EQ(e.count<effect::Begin>(), 0u);
  EXPECT_FALSE(e.published);
  EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::timed_out);
}

TEST_F(Candidacy, ClockAllowanceIsTakenFromTheUsersTimeToStop) {
  const auto asked = e.now;
  e.lead();
  e.advance_to(asked + timing.term);
  EXPECT_EQ(e.last<effect::DoneBy>().at, asked + timing.term - timing.clock_allowance());
  EXPECT_GT(timing.clock_allowance(), 0ns);
}

// ---- rule 3: expiry is judged before any answer that arrives with it ----

TEST_F(CandidacyThatLeads, RenewalGrantedAtTheDeadlineComesTooLate) {
  const auto deadline = e.published->deadline;
  e.fail_renewals_until(deadline - 500ms);
  const auto id = e.asked->id;
  e.now = deadline;
  e.answer(id, Granted{{5}});
  EXPECT_FALSE(e.leads());
  ASSERT_EQ(e.count<effect::End>(), 1u);
  EXPECT_EQ(e.last<effect::End>().reason, Reason::lapsed);
}

TEST_F(CandidacyThatLeads, RenewalGrantedJustBeforeTheDeadlineCounts) {
  const auto deadline = e.published->deadline;
  e.fail_renewals_until(deadline - 500ms);
  e.now = deadline - 1ns;
  e.answer(Granted{{5}});
  EXPECT_TRUE(e.leads());
  EXPECT_GT(e.published->deadline, deadline);
}

TEST_F(CandidacyThatLeads, RenewalGrantedWhileOustingRunsExtendsNothing) {
  const auto deadline = e.published->deadline;
  e.fail_renewals_until(deadline - 500ms);
  const auto id = e.asked->id;
  e.advance_to(deadline + 10ms);
  ASSERT_EQ(e.count<effect::End>(), 1u);
  const auto published = e.count<effect::Publish>();
  e.answer(id, Granted{{5}});
  EXPECT_EQ(e.count<effect::Publish>(), published);
  EXPECT_FALSE(e.leads());
}

TEST_F(CandidacyThatLeads, LapsedTenureIsNotRevivedByALateAnswer) {
  e.until_renewal();
  const auto id = e.asked->id;
  e.now += 30s;  // stopped and resumed
  e.tick();
  ASSERT_EQ(e.count<effect::End>(), 1u);
  e.ousting_returned();
  e.answer(id, Granted{{5}});
  EXPECT_FALSE(e.leads());
  EXPECT_TRUE(e.asks(Verb::acquire)) << "leading again means acquiring again";
  e.answer(Granted{{6}});
  EXPECT_EQ(e.published->token, Token{6});
}

TEST_F(Candidacy, TokenThatDoesNotRiseIsNotLedBy) {
  for (const std::uint64_t again : {4u, 5u}) {
    e = Election();
    e.lead({5});
    e.advance(30s);
    e.ousting_returned();
    e.answer(e.asked ? e.asked->id : 0, Unknown{});
    e.advance(1s);
    ASSERT_TRUE(e.asks(Verb::acquire));
    e.answer(Granted{{again}});
    EXPECT_EQ(e.count<effect::Begin>(), 1u);
    EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::corrupt);
    EXPECT_TRUE(e.asks(Verb::release));
  }
}

// ---- rule 4: order at an end ----

TEST_F(CandidacyThatLeads, StopTokenFiresBeforeOustingAndBothBeforeTheRelease) {
  e.resign();
  EXPECT_LT(e.first<effect::FireStop>(), e.first<effect::End>());
  EXPECT_FALSE(e.asks(Verb::release));
  EXPECT_TRUE(e.leads()) << "the token stays valid while the user drains";
  e.ousting_returned();
  EXPECT_FALSE(e.published) << "not leader from before the release";
  EXPECT_TRUE(e.asks(Verb::release));
}

TEST_F(CandidacyThatLeads, RenewalsGoOnWhileDraining) {
  e.advance(1s);
  e.resign();
  e.until_renewal(1500ms);
  EXPECT_FALSE(e.asked->if_eligible) << "it ends anyway: the user is not asked again";
  const auto before = e.published->deadline;
  e.answer(Granted{{5}});
  EXPECT_GT(e.published->deadline, before);
  EXPECT_EQ(e.count<effect::End>(), 1u);
}

TEST_F(CandidacyThatLeads, DrainEndsRenewalsAndExpires) {
  e.resign();
  const auto drained = e.now + timing.drain;
  while (e.now < drained) {
    if (e.asks(Verb::renew)) e.answer(Granted{{5}});
    e.advance(100ms);
  }
  EXPECT_EQ(e.count<effect::FireExpired>(), 1u);
  EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::hook_overran);
  EXPECT_EQ(e.count<effect::Overrun>(), 1u);
  EXPECT_TRUE(e.leads()) << "never silently released early: the lease runs out";
  if (e.asked) e.answer(Unknown{});
  e.advance(20s);
  EXPECT_FALSE(e.published);
  EXPECT_FALSE(e.asks(Verb::release)) << "the hook has not returned";
  e.ousting_returned();
  EXPECT_TRUE(e.asks(Verb::release));
}

/// Of such a tenure the store is told nothing any more.
TEST_F(CandidacyThatLeads, WhatIsSaidOfAnOverrunHoldsAlsoAfterALapse) {
  e.advance(timing.term);
  ASSERT_EQ(e.count<effect::Overrun>(), 1u);
  EXPECT_EQ(e.last<effect::Report>().error,
            (Error{Fault::hook_overran,
                   "ousting() of token 5 had not returned when its time was up: the work may run on without a lease. "
                   "Make it stop sooner, or raise margin and drain"}));
}

TEST_F(Candidacy, DoneByNeverLiesBeyondTheLease) {
  auto t = timing;
  t.drain = 1min;
  e = Election(t);
  const auto asked = e.now;
  e.lead();
  e.resign();
  EXPECT_EQ(e.last<effect::DoneBy>().at, asked + t.term - t.clock_allowance());
  e.advance(t.renew);
  ASSERT_TRUE(e.asks(Verb::renew));
  const auto renewed = e.asked->asked;
  e.answer(Granted{{5}});
  EXPECT_EQ(e.last<effect::DoneBy>().at, renewed + t.term - t.clock_allowance());
}

TEST_F(CandidacyThatLeads, LapseFiresStopAtTheDeadlineAndExpiredAtTheLeasesEnd) {
  const auto deadline = e.published->deadline;
  e.advance_to(deadline - 1ns);
  EXPECT_EQ(e.count<effect::FireStop>(), 0u);
  e.advance_to(deadline);
  EXPECT_EQ(e.count<effect::FireStop>(), 1u);
  EXPECT_EQ(e.count<effect::End>(), 1u);
  EXPECT_EQ(e.count<effect::FireExpired>(), 0u);
  e.advance(timing.margin);
  EXPECT_EQ(e.count<effect::FireExpired>(), 1u);
}

TEST_F(CandidacyThatLeads, AlarmIsSetForEveryMomentEvenWhileTheStoreIsWedged) {
  const auto deadline = e.published->deadline;
  e.advance_to(e.now + 8s);  // the renewal is not answered: wedged
  EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::wedged);
  EXPECT_EQ(e.candidacy.next_alarm(), deadline);
}

TEST_F(CandidacyThatLeads, SupersededEndsAtOnce) {
  e.advance(2s);
  e.answer(Denied{other});
  EXPECT_FALSE(e.published);
  const auto& end = e.last<effect::End>();
  EXPECT_EQ(end.reason, Reason::superseded);
  EXPECT_EQ(end.successor, other);
  EXPECT_EQ(e.last<effect::DoneBy>().at, e.now);
  EXPECT_EQ(e.count<effect::FireExpired>(), 1u);
}

TEST_F(CandidacyThatLeads, DeniedWhileDrainingWithdrawsButOustsOnce) {
  e.advance(1s);
  e.resign();
  e.advance(1100ms);
  ASSERT_TRUE(e.asks(Verb::renew));
  e.answer(Denied{other});
  EXPECT_FALSE(e.published);
  EXPECT_EQ(e.count<effect::End>(), 1u);
  EXPECT_EQ(e.count<effect::FireStop>(), 1u);
}

TEST_F(CandidacyThatLeads, AFencedLeaderLeadsOnToItsDeadlineAndIsSupersededThen) {
  e.advance(2s);
  e.answer(Unknown{{Fault::fenced, "assigned to somebody else"}});
  EXPECT_TRUE(e.leads());
  const auto deadline = e.published->deadline;
  while (e.now < deadline) {
    if (e.asks(Verb::renew)) e.answer(Unknown{{Fault::fenced, "assigned to somebody else"}});
    e.advance(50ms);
  }
  EXPECT_EQ(e.last<effect::End>().reason, Reason::superseded);
  EXPECT_EQ(e.last<effect::End>().detail, "assigned to somebody else");
}

// ---- rule 5: elected and ousting in pairs ----

TEST_F(CandidacyThatLeads, NobodyIsElectedWhileOustingRuns) {
  e.advance(11s);
  if (e.asked) e.answer(Unknown{});
  e.advance(1min);
  EXPECT_FALSE(e.asks(Verb::acquire));
  e.ousting_returned();
  EXPECT_TRUE(e.asks(Verb::acquire));
}

TEST_F(CandidacyThatLeads, NothingHappensAfterTheEnd) {
  e.stop();
  e.hand_back();
  ASSERT_TRUE(e.candidacy.over());
  const auto before = e.history.size();
  e.resign();
  e.stop();
  e.advance(1min);
  EXPECT_EQ(e.history.size(), before);
  EXPECT_EQ(e.candidacy.next_alarm(), Time::max());
}

TEST_F(CandidacyThatLeads, WhoResignsLeavesATermToTheOthers) {
  e.advance(1s);
  e.resign();
  e.hand_back();
  e.expect_campaign_after(timing.term);  // A follower that no push reaches looks within a term.
}

TEST_F(Candidacy, AFollowersResignationCostsItARetry) {
  e.follow();
  e.resign();
  e.change_awaited();
  ASSERT_TRUE(e.asks(Verb::release));
  e.released();
  e.advance(timing.retry);
  EXPECT_TRUE(e.asks(Verb::acquire)) << "it has nothing to leave to others";
}

// ---- rule 6: failures, late and unknown answers ----

TEST_F(CandidacyThatLeads, OneFailedRenewalIsNotALoss) {
  e.advance(2s);
  const auto deadline = e.published->deadline;
  e.unanswered();
  EXPECT_TRUE(e.leads());
  EXPECT_EQ(e.published->deadline, deadline);
  e.advance(timing.retry * 3 / 2);
  ASSERT_TRUE(e.asks(Verb::renew));
  e.answer(Granted{{5}});
  EXPECT_GT(e.published->deadline, deadline);
}

// ---- pauses ----

TEST_F(Candidacy, AStoreInTroubleIsLeftAloneAfterAWhileButNotByALeader) {
  e.start();
  for (int i = 0; i < 8; ++i) {
    e.unanswered();
    EXPECT_LE(e.candidacy.next_alarm(), e.now + timing.retry);
    e.advance_to(e.candidacy.next_alarm());
  }
  e.unanswered();
  EXPECT_GE(e.candidacy.next_alarm(), e.now + timing.renew / 2);
  EXPECT_LE(e.candidacy.next_alarm(), e.now + timing.renew);
  e.advance_to(e.candidacy.next_alarm());
  e.answer(Granted{{5}});
  e.advance_to(e.asked ? e.now : e.candidacy.next_alarm());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(e.asks(Verb::renew));
    e.unanswered();
    EXPECT_LE(e.candidacy.next_alarm(), e.now + timing.retry);
    e.advance_to(e.candidacy.next_alarm());
  }
}

TEST_F(Candidacy, RetriesCarryJitter) {
  const auto pause = [](std::uint64_t seed) {
    tenure::Candidacy c(timing, seed);
    const Time now{1h};
    c.start(now);
    c.answered(now, 1, Unknown{{Fault::unreachable, "away"}});
    return c.next_alarm() - now;
  };
  EXPECT_NE(pause(1), pause(2));
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_GE(pause(seed), timing.retry / 2);
    EXPECT_LE(pause(seed), timing.retry) << "the outage that is ridden out counts on it";
  }
}

TEST_F(Candidacy, AnswerOfAnEarlierQuestionIsIgnored) {
  e.start();
  const auto old = e.asked->id;
  e.answer(Unknown{});
  e.advance(1s);
  ASSERT_TRUE(e.asks(Verb::acquire));
  e.candidacy.answered(e.now, old, Granted{{5}});
  e.tick();
  EXPECT_EQ(e.count<effect::Begin>(), 0u);
}

TEST_F(Candidacy, RenewalAnsweredForAnotherTokenExtendsNothing) {
  e.lead({5});
  e.advance(2s);
  const auto deadline = e.published->deadline;
  e.answer(Granted{{6}});
  EXPECT_EQ(e.published->deadline, deadline);
  EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::corrupt);
}

TEST_F(Candidacy, StopAfterAnUnknownAcquireStillReleases) {
  e.start();
  e.answer(Unknown{{Fault::timed_out, "maybe"}});
  e.stop();
  ASSERT_TRUE(e.asks(Verb::release));
  EXPECT_EQ(e.count<effect::Ended>(), 0u);
  e.released();
  EXPECT_TRUE(e.candidacy.over());
}

TEST_F(Candidacy, GrantThatCrossesStopIsHandedBackUnled) {
  e.start();
  const auto id = e.asked->id;
  e.stop();
  EXPECT_EQ(e.count<effect::Interrupt>(), 1u);
  e.answer(id, Granted{{5}});
  EXPECT_EQ(e.count<effect::Begin>(), 0u);
  EXPECT_TRUE(e.asks(Verb::release));
}

TEST_F(Candidacy, GrantThatCrossesResignIsHandedBackUnled) {
  e.start();
  const auto id = e.asked->id;
  e.resign(5s);
  e.answer(id, Granted{{5}});
  EXPECT_EQ(e.count<effect::Begin>(), 0u);
  ASSERT_TRUE(e.asks(Verb::release));
  e.released();
  e.expect_campaign_after(5s);
}

TEST_F(CandidacyThatLeads, ReleaseWinsOverARenewalInFlight) {
  e.until_renewal();
  const auto id = e.asked->id;
  e.resign();
  e.ousting_returned();
  EXPECT_FALSE(e.published);
  e.answer(id, Granted{{5}});
  EXPECT_FALSE(e.published) << "the late answer is ignored";
  EXPECT_TRUE(e.asks(Verb::release));
}

TEST_F(Candidacy, TroubleIsReportedOncePerChangeOfState) {
  e.start();
  for (int i = 0; i < 50; ++i) {
    if (e.asked) e.unanswered();
    e.advance(timing.retry);
  }
  EXPECT_EQ(e.count<effect::Report>(), 1u);
}

// ---- rules 7 and 8 ----

TEST_F(CandidacyThatLeads, StopReturnsAlthoughTheStoreIsWedged) {
  e.until_renewal();
  e.advance(1060ms);
  e.stop();
  EXPECT_FALSE(e.candidacy.over());
  e.ousting_returned();
  EXPECT_TRUE(e.candidacy.over());
  EXPECT_TRUE(e.last<effect::Ended>().store_wedged);
}

TEST_F(Candidacy, AfterOustingStopTakesTwiceACallAtMostWhateverTheDrain) {
  auto t = timing;
  t.drain = 0s;
  e = Election(t);
  e.lead();
  e.advance(t.renew);
  ASSERT_TRUE(e.asks(Verb::renew));
  e.stop();
  e.ousting_returned();
  const auto returned = e.now;
  e.advance_to(e.asked->by);
  e.answer(Unknown{{Fault::timed_out, "no answer"}});
  ASSERT_TRUE(e.asks(Verb::release));
  e.advance_to(e.asked->by);
  e.released(Error{Fault::timed_out, "no answer"});
  EXPECT_TRUE(e.candidacy.over());
  EXPECT_LE(e.now - returned, 2 * t.call);
}

TEST_F(CandidacyThatLeads, AWedgedCallThatReturnsAfterTheEndIsNotReported) {
  e.advance(timing.renew + timing.call + 60ms);
  ASSERT_TRUE(e.asks(Verb::renew));
  e.stop();
  e.ousting_returned();
  ASSERT_TRUE(e.candidacy.over());
  const auto before = e.history.size();
  e.answer(Granted{{5}});
  EXPECT_EQ(e.history.size(), before);
}

TEST_F(Candidacy, StopIsBoundedWhenAwaitChangeHangs) {
  e.follow();
  ASSERT_TRUE(e.asks(Verb::await_change));
  EXPECT_GT(e.candidacy.answer_by(), e.now);
  e.stop();
  EXPECT_EQ(e.count<effect::Interrupt>(), 1u);
  EXPECT_EQ(e.candidacy.answer_by(), e.now) << "a wait that is interrupted returns at once";
  e.advance(LateCall::grace);
  EXPECT_TRUE(e.candidacy.over());
}

TEST_F(Candidacy, WedgedStoreIsAskedNothingUntilItsCallReturns) {
  e.start();
  const auto id = e.asked->id;
  e.advance(timing.call + LateCall::grace);
  EXPECT_TRUE(e.candidacy.wedged());
  e.advance(5min);
  EXPECT_EQ(e.count<effect::Report>(), 1u);
  EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::wedged);
  EXPECT_EQ(e.count<effect::Ask>(), 1u);
  e.answer(id, Granted{{5}});
  EXPECT_EQ(e.count<effect::Begin>(), 0u) << "its answer is worth nothing";
  EXPECT_TRUE(e.asks(Verb::acquire));
}

/// So late that its answer counts for nothing, and too soon for a report of a wedged call.
constexpr auto late_for_a_moment = timing.call + LateCall::grace + 10ms;

TEST_F(Candidacy, AnAnswerThatIsLateForAMomentIsTroubleAndThePauseOfARetryFollows) {
  e.start();
  e.advance(late_for_a_moment);
  ASSERT_TRUE(e.candidacy.wedged());
  e.answer(Granted{{5}});
  EXPECT_EQ(e.count<effect::Begin>(), 0u) << "its answer is worth nothing";
  ASSERT_TRUE(e.candidacy.last_error());
  EXPECT_EQ(e.candidacy.last_error()->fault, Fault::timed_out);
  EXPECT_EQ(e.count<effect::Report>(), 1u);
  EXPECT_FALSE(e.asked) << "it pauses";
  e.advance(timing.retry);
  EXPECT_TRUE(e.asks(Verb::acquire));
}

TEST_F(CandidacyThatLeads, AnswersThatAreLateForAMomentEachTimeAreTheReasonOfTheLapse) {
  while (e.leads()) {
    e.advance(e.asks(Verb::renew) ? late_for_a_moment : 10ms);
    if (e.candidacy.wedged()) e.answer(Granted{{5}});
  }
  EXPECT_EQ(e.last<effect::End>().reason, Reason::lapsed);
  EXPECT_NE(e.last<effect::End>().detail.find("longer than it may"), std::string::npos) << e.last<effect::End>().detail;
}

TEST_F(CandidacyThatLeads, TheUsersNoCountsHoweverLateItComes) {
  e.until_renewal();
  e.advance(late_for_a_moment);
  e.ineligible();
  EXPECT_EQ(e.last<effect::End>().reason, Reason::ineligible);
}

TEST_F(Candidacy, ACallThatWasLateBecauseWeWereStoppedIsNotBlamed) {
  e.start();
  e.now += 30s;  // the process was stopped, and the call with it
  e.tick();
  EXPECT_EQ(e.count<effect::Report>(), 0u);
  e.answer(Unknown{{Fault::timed_out, "no answer"}});
  EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::timed_out);
  e.advance(timing.retry);
  ASSERT_TRUE(e.asks(Verb::acquire));
  e.now += 30s;
  e.tick();
  EXPECT_FALSE(e.candidacy.wedged());
  e.advance(LateCall::grace);
  EXPECT_TRUE(e.candidacy.wedged()) << "it had its time once more";
}

/// That wakes somebody, and on a busy host many calls are late for a moment.
TEST_F(Candidacy, AWedgedCallIsReportedOnlyWhenItIsLateByAnotherCall) {
  for (const Clock::Duration call : {200ms, 1500ms}) {
    auto t = timing;
    t.call = call;
    e = Election(t);
    e.start();
    const auto by = e.asked->by, told = by + std::max<Clock::Duration>(call, 1s);
    e.advance_to(told - 1ns);
    EXPECT_TRUE(e.candidacy.wedged());
    EXPECT_EQ(e.count<effect::Report>(), 0u);
    e.answer(Unknown{});
    EXPECT_EQ(e.count<effect::Report>(), 1u);
    EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::timed_out) << "of what was not told it is not told that "
                                                                         "it is over";
    e.advance(t.retry);
    e.advance_to(e.asked->by + std::max<Clock::Duration>(call, 1s));
    EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::wedged);
    e.answer(Unknown{});
    EXPECT_EQ(e.last<effect::Report>().error.message, "the store call that ignored its limit has returned");
  }
}

TEST_F(Candidacy, TheSameTroubleIsReportedOnceAMinuteWithItsCount) {
  e.start();
  std::vector<std::string> told;
  for (const auto end = e.now + 2min; e.now < end;) {
    if (e.asked)
      e.answer(Unknown{{Fault::timed_out, "no answer in " + std::to_string(e.now.time_since_epoch() / 1ms)}});
    e.advance_to(e.candidacy.next_alarm());
  }
  for (const auto& effect : e.history)
    if (const auto* report = std::get_if<effect::Report>(&effect)) told.push_back(report->error.message);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], "no answer in 3600000");
  EXPECT_TRUE(told[1].ends_with(" more since the last report)")) << told[1];
  ASSERT_TRUE(e.candidacy.last_error());
  EXPECT_TRUE(e.candidacy.last_error()->message.starts_with("no answer in 37")) << "who asks hears of the last one";
  e.answer(Granted{{5}});
  EXPECT_FALSE(e.candidacy.last_error());
}

/// Whoever may ask for a step-down writes these words, and a server its own.
TEST_F(CandidacyThatLeads, WhatLedToAnEndIsPrintable) {
  const std::string raw = "\x1b[31m\nforged", shown = "?[31m?forged";
  e.until_renewal();
  e.answer(Unknown{{Fault::unreachable, raw}});
  EXPECT_EQ(e.last<effect::Report>().error.message, shown);
  e.advance_to(e.published->deadline);
  EXPECT_EQ(e.last<effect::End>().detail, shown);
  Election asked;
  asked.lead();
  asked.until_renewal();
  asked.answer(StepDownRequested{{5}, raw, raw});
  EXPECT_EQ(asked.last<effect::End>().detail, "asked by " + shown + ": " + shown);
}

TEST_F(Candidacy, AStoreThatCannotBeWaitedForIsAskedWithPausesAndReportedOnce) {
  e.start();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(e.asks(Verb::acquire)) << i;
    e.answer(Denied{other});
    e.change_awaited(Error{Fault::unreachable, "too many open files"});
    EXPECT_FALSE(e.asked);
    e.advance(timing.renew);
  }
  EXPECT_EQ(e.count<effect::Report>(), 1u);
  EXPECT_EQ(e.last<effect::Report>().error.message, "too many open files");
}

TEST_F(CandidacyThatLeads, StopReleasesOnceEvenIfThatFails) {
  e.stop();
  e.ousting_returned();
  e.released(Error{Fault::unreachable, "away"});
  EXPECT_TRUE(e.candidacy.over());
  EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::unreachable);
}

TEST_F(Candidacy, StopBeforeAnythingWasAskedAsksNothing) {
  e.stop();
  EXPECT_TRUE(e.candidacy.over());
  EXPECT_EQ(e.count<effect::Ask>(), 0u);
}

// ---- campaigning ----

TEST_F(Candidacy, DeniedWaitsForAChangeAndThenAsksAgain) {
  e.follow();
  ASSERT_TRUE(e.asks(Verb::await_change));
  EXPECT_EQ(std::get<Incumbent>(e.asked->seen), other);
  EXPECT_EQ(e.last<effect::Heard>().incumbent, other);
  EXPECT_EQ(e.last<effect::Heard>().until, e.now + other.remaining);
  e.change_awaited();
  EXPECT_TRUE(e.asks(Verb::acquire));
}

TEST_F(Candidacy, StoreThatWakesForNothingMakesNoHotLoop) {
  e.start();
  for (int i = 0; i < 10'000; ++i) {
    if (e.asks(Verb::acquire)) e.answer(Denied{other});
    if (e.asks(Verb::await_change)) e.change_awaited();
    e.advance(1ms);
  }
  // Ten seconds hold at most 100 pauses of half a retry, two questions each, after some prompt ones.
  EXPECT_LE(e.count<effect::Ask>(), 220u);
}

TEST_F(Candidacy, WhoIsElectedInBetweenIsNotWokenForNothing) {
  e.start();
  for (std::uint64_t round = 1; round <= 20; ++round) {
    ASSERT_TRUE(e.asks(Verb::acquire)) << round;
    e.answer(Denied{other});
    ASSERT_TRUE(e.asks(Verb::await_change)) << round;
    e.change_awaited();
    ASSERT_TRUE(e.asks(Verb::acquire)) << round;
    e.answer(Granted{{round}});
    e.resign(0s);
    e.hand_back();
  }
}

TEST_F(CandidacyThatLeads, ResignCoolsDownFromTheReleaseOn) {
  e.resign(3s);
  e.advance(1s);
  e.ousting_returned();
  e.advance(500ms);
  e.released();
  e.expect_campaign_after(3s);
}

TEST_F(CandidacyThatLeads, WhoIsAskedToStepDownHandsOverAndLeavesATermToOthers) {
  e.advance(2s);
  e.answer(StepDownRequested{{5}, "operator", "maintenance"});
  EXPECT_EQ(e.last<effect::End>().reason, Reason::step_down);
  EXPECT_EQ(e.last<effect::End>().detail, "asked by operator: maintenance");
  EXPECT_TRUE(e.leads());
  e.hand_back();
  e.expect_campaign_after(timing.term);
}

TEST_F(Candidacy, AStepDownThatComesWithTheGrantIsObeyed) {
  e.start();
  e.answer(StepDownRequested{{5}, "operator", "maintenance"});
  EXPECT_EQ(e.count<effect::Begin>(), 1u);
  EXPECT_EQ(e.last<effect::End>().reason, Reason::step_down);
  EXPECT_EQ(e.last<effect::End>().detail, "asked by operator: maintenance");
}

TEST_F(CandidacyThatLeads, ARequestThatComesWhileTheWorkEndsAlreadyChangesNothing) {
  e.advance(1s);
  e.resign(0s);
  e.advance(1s);
  e.answer(StepDownRequested{{5}, "operator", "maintenance"});
  EXPECT_EQ(e.count<effect::End>(), 1u);
  e.hand_back();
  EXPECT_TRUE(e.asks(Verb::acquire)) << "it resigned for no longer";
}

TEST_F(CandidacyThatLeads, NoCoolDownIsLongerThanAnHour) {
  e.resign(2h);
  e.hand_back();
  e.expect_campaign_after(1h);
}

TEST_F(Candidacy, AFollowerThatResignsDoesNotWaitForTheChangeItAskedFor) {
  e.follow();
  ASSERT_TRUE(e.asks(Verb::await_change));
  e.resign(1s);
  EXPECT_EQ(e.count<effect::Interrupt>(), 1u);
}

TEST_F(CandidacyThatLeads, AFormerTroubleIsNotTheReasonOfALaterLapse) {
  e.advance(2s);
  e.unanswered();
  e.advance(timing.retry);
  e.answer(Granted{{5}});
  e.advance_to(e.published->deadline);
  EXPECT_EQ(e.last<effect::End>().reason, Reason::lapsed);
  EXPECT_EQ(e.last<effect::End>().detail, "");
}

TEST_F(Candidacy, WorkThatGoesOnAfterItsStallContendsSoonAfterTheRelease) {
  e = Election(timing, {.after = 1s, .pause = 10min});
  e.lead();
  e.advance(1s);
  ASSERT_EQ(e.last<effect::End>().reason, Reason::stalled);
  e.progressed();
  e.hand_back();
  e.advance(timing.retry);
  EXPECT_TRUE(e.asks(Verb::acquire));
}

TEST_F(CandidacyThatLeads, IneligibleLeaderHandsBackAndAsksTheUserAgainEachRenew) {
  e.advance(2s);
  ASSERT_TRUE(e.asked->if_eligible);
  e.ineligible();
  EXPECT_EQ(e.last<effect::End>().reason, Reason::ineligible);
  e.hand_back();
  ASSERT_TRUE(e.asks(Verb::acquire));
  e.ineligible();
  EXPECT_FALSE(e.asked) << "nothing is held: nothing to release";
  e.advance(timing.renew);
  EXPECT_TRUE(e.asks(Verb::acquire));
}

TEST_F(Candidacy, IneligibleFollowerLeavesTheQueue) {
  e.follow();
  e.change_awaited();
  ASSERT_TRUE(e.asks(Verb::acquire));
  e.ineligible();
  EXPECT_TRUE(e.asks(Verb::release));
}

TEST_F(CandidacyThatLeads, ASecondResignWhileDrainingLeavesTheRenewalsAlone) {
  e.advance(1s);
  e.resign(30s);
  e.resign(30s);
  e.until_renewal(1500ms);
  const auto asked = e.asked->asked;
  e.answer(Granted{{5}});
  EXPECT_EQ(e.published->deadline, asked + timing.term - timing.margin);
  e.hand_back();
  e.expect_campaign_after(30s);
}

/// As where somebody clicks twice. Others look within a term.
TEST_F(CandidacyThatLeads, ASecondResignWhileDrainingShortensNoCoolDown) {
  for (const Clock::Duration first : {30s, 0s}) {
    e = Election();
    e.lead();
    e.resign(first);
    e.resign();
    e.hand_back();
    e.expect_campaign_after(std::max<Clock::Duration>(first, timing.term));
  }
}

TEST_F(CandidacyThatLeads, WhoResignsWhileASupersededTenureEndsPausesToo) {
  e.advance(2s);
  e.answer(Denied{});
  ASSERT_EQ(e.last<effect::End>().reason, Reason::superseded);
  e.resign(30s);
  e.ousting_returned();
  e.released();
  e.expect_campaign_after(30s);
}

TEST_F(Candidacy, ACoolDownIsSpentByTheResignationThatBroughtIt) {
  e.resign(30min);  // of nothing
  e.start();
  e.advance(30min);
  ASSERT_TRUE(e.asks(Verb::acquire));
  e.answer(Granted{{5}});
  e.advance(2s);
  e.ineligible();
  e.hand_back();
  EXPECT_TRUE(e.asks(Verb::acquire)) << "at once: nobody asked for a pause";
}

TEST_F(Candidacy, AnIneligibleCandidateKeepsTheCoolDownOfItsResignation) {
  e.start();
  e.answer(Unknown{});  // it may be held
  e.advance(timing.retry);
  ASSERT_TRUE(e.asks(Verb::acquire));
  e.resign(30min);
  e.ineligible();
  e.released();
  e.expect_campaign_after(30min);
}

TEST_F(CandidacyThatLeads, NothingIsAskedInAHurryAfterADrainThatWasSleptThrough) {
  e.advance(1s);
  e.resign();
  e.now += timing.drain + 1s;  // the process was stopped
  e.tick();
  EXPECT_GT(e.candidacy.next_alarm(), e.now);
  e.advance(1s);
}

TEST_F(CandidacyThatLeads, ARenewalThatReturnsAfterTheDrainIsNotFollowedInAHurry) {
  e.advance(1s);
  e.resign();
  e.advance(1s);
  ASSERT_TRUE(e.asks(Verb::renew));
  e.advance(timing.drain);
  e.answer(Granted{{5}});
  EXPECT_GT(e.candidacy.next_alarm(), e.now);
}

TEST_F(Candidacy, TokenBelowOneThatWasHeardOfIsNotLedBy) {
  for (const std::uint64_t low : {3u, 7u}) {
    e = Election();
    e.follow();  // of token 7
    e.change_awaited();
    e.answer(Granted{{low}});
    EXPECT_EQ(e.count<effect::Begin>(), 0u) << low;
    EXPECT_EQ(e.last<effect::Report>().error.fault, Fault::corrupt);
    EXPECT_TRUE(e.asks(Verb::release));
  }
}

TEST_F(CandidacyThatLeads, LapsedIsNotReleasedButAcquiredAnew) {
  e.advance(2s);
  e.unanswered();
  e.advance_to(e.published->deadline);
  if (e.asked) e.answer(Unknown{});
  e.ousting_returned();
  EXPECT_TRUE(e.asks(Verb::acquire));
  EXPECT_EQ(e.last<effect::End>().detail, "away");
}

TEST_F(CandidacyThatLeads, IsCopyable) {
  auto copy = e.candidacy;
  copy.resign(e.now, {});
  std::vector<Effect> of_copy, of_original;
  copy.take_effects(of_copy);
  e.candidacy.take_effects(of_original);
  EXPECT_FALSE(of_copy.empty());
  EXPECT_TRUE(of_original.empty());
}

}  // namespace rules_of_an_election
}  // namespace
}  // namespace tenure
