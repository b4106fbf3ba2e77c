// SPDX-License-Identifier: Apache-2.0
// Goal: a FakeElection does to hooks and work what a LeaderManager does, and says what a test does wrong. Method: a
// diary of hooks with the times of a ManualClock; for one story the diary of a real manager beside it.
#include <tenure/fake_election.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "scripted_backend.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::ScriptedBackend;
using Diary = std::vector<std::string>;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

std::string ms(Clock::Duration d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

/// Hooks that write down what they hear, and when.
class Scribe {
 public:
  Hooks hooks() {
    Hooks hooks;
    hooks.elected = [this](const Elected& e) { diary.push_back("elected " + std::to_string(e.token.value) + at()); };
    hooks.ousting = [this](const Ousting& o) {
      diary.push_back("ousting " + std::to_string(o.token.value) + " " + std::string(to_string(o.reason)) +
                      (o.successor ? " by " + o.successor->name : "") + ", " + ms(o.remaining()) + " left" + at());
    };
    hooks.error = [this](const Error& e) {
      errors.push_back(std::string(to_string(e.fault)) + ": " + e.message + at());
    };
    return hooks;
  }
  void counts(const Clock& clock) { clock_ = &clock, start_ = clock.now(); }

  Diary diary, errors;

 private:
  std::string at() const { return clock_ ? " at " + ms(clock_->now() - start_) : ""; }
  const Clock* clock_{};
  Clock::Time start_{};
};

class Fake : public testing::Test {
 protected:
  Fake() { scribe.counts(election.clock()); }
  Scribe scribe;
  FakeElection election{scribe.hooks(), timing};
};

/// The text of what is thrown.
template <class Call>
std::string thrown_by(Call call) {
  try {
    call();
  } catch (const std::logic_error& e) {
    return e.what();
  }
  return "nothing";
}

TEST_F(Fake, NobodyLeadsBeforeElect) {
  election.advance(1h);
  EXPECT_FALSE(election.leadership().is_leader());
  EXPECT_EQ(scribe.diary, Diary{});
  EXPECT_EQ(election.others_may_lead_in(), 0s);
}

TEST_F(Fake, LeadsAsLongAsTheStoreAnswers) {
  EXPECT_EQ(election.elect(), Token{1});
  election.advance(1h);
  EXPECT_EQ(election.leadership().token(), Token{1});
  EXPECT_EQ(election.others_may_lead_in(), timing.term) << "renewed at this very moment";
  EXPECT_EQ(scribe.diary, (Diary{"elected 1 at 0"}));
  EXPECT_EQ(scribe.errors, Diary{});
}

TEST_F(Fake, AStoreThatHangsEndsTheTenureAtItsDeadline) {
  election.elect();
  election.hang_store();
  election.advance(9'500ms - 1ns);
  EXPECT_TRUE(election.leadership().is_leader());
  election.advance(1ns);
  EXPECT_FALSE(election.leadership().is_leader());
  EXPECT_EQ(election.others_may_lead_in(), 500ms);
  EXPECT_EQ(scribe.diary, (Diary{"elected 1 at 0", "ousting 1 lapsed, 490 left at 9500"}));
  EXPECT_EQ(scribe.errors, (Diary{"timed out: the store hangs at 3000"}));
}

TEST_F(Fake, AStoreThatFailsIsAskedAgain) {
  election.elect();
  election.fail_store({Fault::unreachable, "no route to host"});
  election.advance(7s);
  election.mend_store();
  election.advance(1h);
  EXPECT_TRUE(election.leadership().is_leader());
  EXPECT_EQ(scribe.errors, (Diary{"unreachable: no route to host at 2000"}));
}

TEST_F(Fake, AnOustedLeaderLearnsTheSuccessorWithTheNextRenewal) {
  election.elect();
  election.advance(1s);
  election.oust("b");
  EXPECT_EQ(scribe.diary, (Diary{"elected 1 at 0", "ousting 1 superseded by b, 0 left at 2000"}));
  ASSERT_TRUE(election.leadership().incumbent());
  EXPECT_EQ(election.leadership().incumbent()->name, "b");
  EXPECT_EQ(election.leadership().incumbent()->token, Token{2});
  EXPECT_EQ(election.elect(), Token{3});
  EXPECT_EQ(election.leadership().incumbent(), std::nullopt);
}

TEST_F(Fake, ARequestToStepDownEndsTheTenureAndLeavesATermToOthers) {
  std::string detail;
  Hooks hooks;
  hooks.ousting = [&](const Ousting& o) { detail = o.detail; };
  FakeElection asked(hooks, timing);
  asked.elect();
  asked.ask_to_step_down("ops", "upgrade");
  EXPECT_EQ(detail, "asked by ops: upgrade");
  EXPECT_EQ(asked.others_may_lead_in(), 0s) << "it released";
  const auto before = asked.clock().now();
  asked.elect();
  EXPECT_EQ(asked.clock().now() - before, timing.term);
}

TEST_F(Fake, AResignedLeaderContendsAgainAfterTheCoolDown) {
  election.elect();
  election.resign(3s);
  EXPECT_FALSE(election.leadership().is_leader());
  EXPECT_EQ(election.elect(), Token{2});
  EXPECT_EQ(scribe.diary, (Diary{"elected 1 at 0", "ousting 1 resigned, 4000 left at 0", "elected 2 at 3000"}));
}

TEST_F(Fake, AProcessThatWasPausedNoLongerLeadsWhenItWakes) {
  election.elect();
  election.pause(1min);
  EXPECT_EQ(scribe.diary, (Diary{"elected 1 at 0", "ousting 1 lapsed, 0 left at 60000"}));
}

TEST_F(Fake, StopEndsTheTenureAndTheElection) {
  election.elect();
  election.stop();
  EXPECT_EQ(scribe.diary, (Diary{"elected 1 at 0", "ousting 1 stopped, 4000 left at 0"}));
  EXPECT_NE(thrown_by([&] { election.elect(); }).find("does not claim"), std::string::npos);
}

TEST_F(Fake, SaysWhatATestDoesWrong) {
  EXPECT_EQ(thrown_by([&] { election.oust(); }), "FakeElection::oust(): it does not lead; call elect() first");
  election.elect();
  EXPECT_EQ(thrown_by([&] { election.elect(); }), "FakeElection::elect(): it leads already, with token 1");
  election.hang_store();
  EXPECT_EQ(thrown_by([&] { election.ask_to_step_down(); }),
            "FakeElection::ask_to_step_down(): the store does not answer; call mend_store() first");
  EXPECT_EQ(thrown_by([&] { election.await_work(); }),
            "FakeElection::await_work(): this election has hooks, and no work");
  EXPECT_THROW(FakeElection({}, Timing{}), std::invalid_argument);
}

TEST(FakeElectionHooks, AnOustingThatTakesTooLongIsSeen) {
  FakeElection* fake{};
  bool expired = false;
  Hooks hooks;
  hooks.ousting = [&](const Ousting& o) {
    fake->advance(o.remaining() - 1ns);
    EXPECT_FALSE(o.expired.stop_requested() || fake->overran());
    EXPECT_GT(fake->others_may_lead_in(), 0s);
    fake->advance(1ns);
    expired = o.expired.stop_requested();
  };
  hooks.abort_on_overrun = true;
  hooks.log = no_log;
  FakeElection election(hooks, timing);
  fake = &election;
  election.elect();
  election.hang_store();
  election.advance(10s);
  EXPECT_TRUE(expired);
  EXPECT_TRUE(election.overran());
}

TEST(FakeElectionHooks, AreCalledOneAtATime) {
  FakeElection* fake{};
  Diary diary;
  Hooks hooks;
  hooks.elected = [&](const Elected& e) {
    fake->hang_store();
    fake->advance(1min);
    EXPECT_TRUE(e.stop.stop_requested());
    diary.push_back("elected returns");
  };
  hooks.ousting = [&](const Ousting&) { diary.push_back("ousting"); };
  hooks.log = no_log;
  FakeElection election(hooks, timing);
  fake = &election;
  election.elect();
  EXPECT_EQ(diary, (Diary{"elected returns", "ousting"}));
}

TEST(FakeElectionHooks, StopTokenEligibleAndStallsAreThoseOfAManager) {
  bool may = true;
  Diary diary;
  std::optional<std::stop_callback<std::function<void()>>> told;
  Hooks hooks;
  hooks.elected = [&](const Elected& e) { told.emplace(e.stop, [&] { diary.push_back("stop"); }); };
  hooks.ousting = [&](const Ousting& o) { diary.push_back(std::string(to_string(o.reason))); };
  hooks.eligible = [&] { return may; };
  hooks.stall_after = 30s;
  FakeElection election(hooks, timing);
  election.elect();
  election.advance(29s);
  election.leadership().progressed();
  election.advance(29s);
  EXPECT_EQ(diary, Diary{});
  election.advance(1s);
  EXPECT_EQ(diary, (Diary{"stop", "stalled"}));
  election.elect();
  may = false;
  election.advance(timing.renew);
  EXPECT_EQ(diary, (Diary{"stop", "stalled", "stop", "ineligible"}));
  EXPECT_THROW(election.elect(), std::logic_error);
}

/// As any other hook. What it is asked of is answered once, and by what it returns.
TEST(FakeElectionHooks, EligibleMayLetTimePassAndEndTheElection) {
  Diary diary;
  std::function<bool()> says = [] { return true; };
  FakeElection* fake = nullptr;
  Hooks hooks;
  hooks.elected = [&](const Elected&) { diary.push_back("elected"); };
  hooks.ousting = [&](const Ousting& o) { diary.push_back(std::string(to_string(o.reason))); };
  hooks.eligible = [&] { return says(); };
  FakeElection election(hooks, timing);
  fake = &election;
  says = [&] { return fake->advance(1ms), false; };
  EXPECT_THROW(election.elect(), std::logic_error) << "it does not claim";
  EXPECT_EQ(diary, Diary{});
  says = [] { return true; };
  election.elect();
  says = [&] { return fake->stop(), diary.push_back("asked"), false; };
  election.advance(timing.renew);
  EXPECT_EQ(diary, (Diary{"elected", "asked", "stopped"})) << "no hook runs within it";
}

TEST(FakeElectionHooks, WhatAHookThrowsBecomesAnError) {
  Diary errors;
  Hooks hooks;
  hooks.elected = [](const Elected&) { throw std::runtime_error("no disk"); };
  hooks.error = [&](const Error& e) { errors.push_back(e.message); };
  FakeElection election(hooks, timing);
  election.elect();
  EXPECT_EQ(errors, (Diary{"elected() threw: no disk"}));
}

TEST(FakeElectionHooks, WhatErrorItselfThrowsIsLoggedAndTheElectionLivesOn) {
  int calls = 0;
  Diary logged;
  Hooks hooks;
  hooks.elected = [](const Elected&) { throw std::runtime_error("no disk"); };
  hooks.error = [&](const Error&) {
    if (++calls < 100) throw std::runtime_error("no pager");
  };
  hooks.log = [&](const LogLine& line) { logged.push_back(line.message); };
  FakeElection election(hooks, timing);
  election.elect();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(logged, (Diary{"hook threw: elected() threw: no disk", "error() itself threw: no pager"}));
  EXPECT_TRUE(election.leadership().is_leader());
}

TEST(FakeElectionWork, EndsWithEachTenureAndBeginsWithTheNext) {
  std::atomic<std::uint64_t> running{0};
  FakeElection election([&](std::stop_token stop, Token token) {
    running = token.value;
    while (!stop.stop_requested()) std::this_thread::yield();
    running = 0;
  });
  for (const auto token : {1u, 3u, 5u}) {
    ASSERT_EQ(election.elect(), Token{token});
    EXPECT_TRUE(test::eventually([&] { return running == token; }));
    election.oust();
    EXPECT_EQ(running, 0u);
  }
}

TEST(FakeElectionWork, ThatReturnsResignsIfItIsTo) {
  int runs = 0;
  FakeElection election([&](std::stop_token, Token) { ++runs; }, LeaderTask::OnReturn::resign);
  for (int n = 1; n <= 3; ++n) {
    election.elect();
    election.await_work();
    EXPECT_EQ(runs, n);
    EXPECT_FALSE(election.leadership().is_leader());
  }
}

TEST(FakeElectionWork, ThatThrowsIsAnError) {
  Diary errors;
  Hooks hooks;
  hooks.error = [&](const Error& e) { errors.push_back(e.message); };
  FakeElection election([](std::stop_token, Token) { throw std::runtime_error("no disk"); }, LeaderTask::OnReturn::stay,
                        hooks, timing);
  election.elect();
  election.await_work();
  EXPECT_EQ(errors, (Diary{"the task threw: no disk"}));
  EXPECT_TRUE(election.leadership().is_leader());
}

/// What a manager with its threads tells of: a renewal, a store that hangs, and the end of the lease.
Diary told_by_a_manager() {
  const auto backend = std::make_shared<ScriptedBackend>();
  auto& clock = backend->clock;
  Scribe scribe;
  scribe.counts(clock);
  LeaderManager manager(backend, timing, scribe.hooks(), clock);
  struct LetGo {
    ScriptedBackend& backend;
    ~LetGo() { backend.refuse(true), backend.let_go(); }
  } const let_go{*backend};
  manager.start();
  const auto called = [&](const std::string& hook) {
    return test::eventually([&] { return manager.metrics().hooks[hook].count() == 1; });
  };
  EXPECT_TRUE(called("elected"));
  const auto start = clock.now();
  const auto next_alarm_is = [&](Clock::Duration at) {
    return test::eventually([&] { return clock.next_alarm() == start + at; });
  };
  EXPECT_TRUE(next_alarm_is(2s));
  clock.advance(2s);
  EXPECT_TRUE(next_alarm_is(4s)) << "renewed";
  backend->hang();
  clock.advance(2s);
  EXPECT_TRUE(next_alarm_is(5s + 50ms)) << "that call should have returned";
  clock.advance_to(start + 11'500ms);
  EXPECT_TRUE(called("ousting"));
  return scribe.diary;
}

TEST(FakeElectionHooks, HearTheSameFromAManager) {
  Scribe fake;
  FakeElection election(fake.hooks(), timing);
  fake.counts(election.clock());
  election.elect();
  election.advance(2s);
  election.hang_store();
  election.advance(9'500ms);
  EXPECT_EQ(fake.diary, told_by_a_manager());
}

}  // namespace
}  // namespace tenure
