// SPDX-License-Identifier: Apache-2.0
// Goal: the task runs exactly while we lead. Method: a scripted backend and a ManualClock.
#include <tenure/leader_task.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include <tenure/manual_clock.hpp>

#include "election/work_thread.hpp"
#include "scripted_backend.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::ScriptedBackend;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

class Task : public testing::Test {
 protected:
  LeaderTask::Work until_stopped() {
    return [this](std::stop_token stop, Token token) {
      backend->note("begin " + std::to_string(token.value));
      while (!stop.stop_requested()) std::this_thread::yield();
      backend->note("end " + std::to_string(token.value));
    };
  }
  std::shared_ptr<ScriptedBackend> backend = std::make_shared<ScriptedBackend>();
  ManualClock& clock = backend->clock;
};

TEST_F(Task, StartsAtEachElectionAndEndsBeforeTheRelease) {
  LeaderTask task(backend, timing, until_stopped(), LeaderTask::OnReturn::stay, {}, clock);
  ASSERT_TRUE(backend->await("begin 1"));
  task.manager().resign(0s);
  ASSERT_TRUE(backend->await("begin 2"));
  task.manager().stop();
  EXPECT_EQ(backend->diary(), (std::vector<std::string>{"acquire", "begin 1", "end 1", "release", "acquire", "begin 2",
                                                        "end 2", "release"}));
}

TEST_F(Task, IsAskedToStopWhenTheLeaseLapses) {
  LeaderTask task(backend, timing, until_stopped(), LeaderTask::OnReturn::stay, {}, clock);
  ASSERT_TRUE(backend->await("begin 1"));
  backend->refuse(true);
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(timing.term);
  EXPECT_TRUE(backend->await("end 1"));
}

TEST_F(Task, ReturningEarlyStaysLeader) {
  std::atomic<bool> returned{false};
  LeaderTask task(
      backend, timing, [&](std::stop_token, Token) { returned = true; }, LeaderTask::OnReturn::stay, {}, clock);
  ASSERT_TRUE(eventually([&] { return returned.load(); }));
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(timing.renew);
  EXPECT_TRUE(backend->await("renew"));
  EXPECT_TRUE(task.manager().leadership().is_leader());
}

TEST_F(Task, ReturningEarlyResignsIfAsked) {
  LeaderTask task(
      backend, timing, [](std::stop_token, Token) {}, LeaderTask::OnReturn::resign, {}, clock);
  ASSERT_TRUE(backend->await("release"));
  ASSERT_TRUE(eventually([&] { return clock.next_alarm() == clock.now() + timing.term; }));
  clock.advance(timing.term);
  EXPECT_TRUE(backend->await("release", 2)) << "it campaigns on";
}

TEST_F(Task, ReturningEarlyWorksAgainAfterAPauseIfAsked) {
  std::atomic<int> calls{0};
  std::atomic<bool> told{false};
  Hooks hooks;
  hooks.error = [&](const Error&) { told = true; };
  LeaderTask task(
      backend, timing,
      [&](std::stop_token, Token) {
        if (++calls == 2) throw std::runtime_error("no disk");
      },
      LeaderTask::OnReturn::again(1ms), hooks, clock);
  EXPECT_TRUE(eventually([&] { return calls >= 5; }));
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  EXPECT_TRUE(task.manager().leadership().is_leader());
  task.manager().stop();
  const int before = calls;
  EXPECT_EQ(backend->diary(), (std::vector<std::string>{"acquire", "release"}));
  EXPECT_EQ(calls, before) << "the tenure is over";
}

TEST_F(Task, APauseEndsWithTheTenure) {
  std::atomic<int> calls{0};
  LeaderTask task(
      backend, timing, [&](std::stop_token, Token) { ++calls; }, LeaderTask::OnReturn::again(24h), {}, clock);
  ASSERT_TRUE(eventually([&] { return calls == 1; }));
  task.manager().resign(0s);
  ASSERT_TRUE(eventually([&] { return calls == 2; })) << "the next tenure works at once";
}

/// Its cool-down would keep it from leading again.
TEST(WorkThread, WorkThatReturnsBecauseItWasAskedToDoesNotResign) {
  std::atomic<bool> resigned{false};
  std::stop_source stop;
  WorkThread worker(
      [](std::stop_token end, Token) {
        while (!end.stop_requested()) std::this_thread::yield();
      },
      LeaderTask::OnReturn::resign, {.runs_on = {}, .report = {}, .resign = [&] { resigned = true; }});
  worker.begin({"jobs", {1}, stop.get_token()});
  stop.request_stop();
  worker.await_return();
  EXPECT_FALSE(resigned);
}

TEST_F(Task, ThrowingBecomesAnErrorAndCountsAsReturning) {
  std::atomic<bool> told{false};
  Hooks hooks;
  hooks.error = [&](const Error& e) { told = e == Error{Fault::hook_threw, "the task threw: no disk"}; };
  LeaderTask task(
      backend, timing, [](std::stop_token, Token) { throw std::runtime_error("no disk"); },
      LeaderTask::OnReturn::resign, hooks, clock);
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  EXPECT_TRUE(backend->await("release"));
}

TEST_F(Task, HooksMayStandBesideTheWork) {
  Hooks hooks;
  hooks.elected = [&](const Elected&) { backend->note("elected"); };
  hooks.ousting = [&](const Ousting&) { backend->note("ousting"); };
  LeaderTask task(backend, timing, until_stopped(), LeaderTask::OnReturn::stay, hooks, clock);
  ASSERT_TRUE(backend->await("elected"));
  ASSERT_TRUE(backend->await("begin 1"));
  task.manager().stop();
  const auto diary = backend->diary();
  const auto at = [&](const char* what) { return std::find(diary.begin(), diary.end(), what) - diary.begin(); };
  EXPECT_LT(at("end 1"), at("ousting"));
  EXPECT_LT(at("ousting"), at("release"));
}

TEST_F(Task, StopInsideItsWorkOnlyRequests) {
  std::promise<LeaderTask*> self;
  LeaderTask task(
      backend, timing,
      [&](std::stop_token stop, Token) {
        self.get_future().get()->manager().stop();
        while (!stop.stop_requested()) std::this_thread::yield();
        backend->note("end");
      },
      LeaderTask::OnReturn::stay, {}, clock);
  self.set_value(&task);
  EXPECT_TRUE(task.manager().await_ended(1h));
  EXPECT_EQ(backend->diary(), (std::vector<std::string>{"acquire", "end", "release"}));
}

TEST_F(Task, WorksOnOneThreadFromTenureToTenure) {
  std::atomic<std::thread::id> last;
  std::atomic<int> same{0};
  LeaderTask task(
      backend, timing,
      [&](std::stop_token, Token) {
        if (last.exchange(std::this_thread::get_id()) == std::this_thread::get_id()) ++same;
      },
      LeaderTask::OnReturn::stay, {}, clock);
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(backend->await("acquire", i));
    ASSERT_TRUE(task.manager().await_leadership(1h));
    task.manager().resign(0s);
    ASSERT_TRUE(backend->await("release", i));
  }
  task.manager().stop();
  EXPECT_GE(same, 4);
}

TEST_F(Task, DestroyedInsideItsOwnWorkAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto scripted = std::make_shared<ScriptedBackend>();
        std::promise<std::unique_ptr<LeaderTask>*> where;
        auto task = std::make_unique<LeaderTask>(scripted, timing,
                                                 [&](std::stop_token, Token) { where.get_future().get()->reset(); });
        where.set_value(&task);
        scripted->await("never");
      },
      "destroyed inside its own work");
}

TEST_F(Task, NeedsWork) { EXPECT_THROW(LeaderTask(backend, timing, nullptr), std::invalid_argument); }

}  // namespace
}  // namespace tenure
