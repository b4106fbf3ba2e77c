// SPDX-License-Identifier: Apache-2.0
// Goal: the threads carry faithfully: order of hooks and store, time when everything else hangs, every way to wait and
// to end. Method: a scripted backend and a ManualClock; conditions are awaited, nothing sleeps.
#include <tenure/leader_manager.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include <tenure/manual_clock.hpp>

#include "election/late_call.hpp"
#include "refusal.hpp"
#include "scripted_backend.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::ScriptedBackend;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

class Manager : public testing::Test {
 protected:
  Hooks noting() {
    Hooks hooks;
    hooks.elected = [this](const Elected&) { backend->note("elected"); };
    hooks.ousting = [this](const Ousting& o) {
      reason = o.reason;
      backend->note("ousting");
    };
    hooks.error = [this](const Error& e) {
      const std::lock_guard lock(mutex);
      errors.push_back(e);
    };
    return hooks;
  }
  /// Waits until the clock thread has digested what happened so far, known by what it waits for next.
  bool alarm_in(Clock::Duration d) {
    return eventually([&] { return clock.next_alarm() == clock.now() + d; });
  }
  std::vector<Error> seen_errors() {
    const std::lock_guard lock(mutex);
    return errors;
  }

  std::shared_ptr<ScriptedBackend> backend = std::make_shared<ScriptedBackend>();
  ManualClock& clock = backend->clock;
  std::atomic<Reason> reason{};
  std::mutex mutex;
  std::vector<Error> errors;
};

TEST_F(Manager, LeadsUntilTheClockSaysOtherwise) {
  LeaderManager manager(backend, timing, noting(), clock);
  const auto leadership = manager.leadership();
  EXPECT_FALSE(leadership.is_leader());
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  EXPECT_EQ(leadership.token(), Token{1});
  EXPECT_EQ(leadership.remaining(), timing.term - timing.margin);
  EXPECT_EQ(leadership.guard(9500ms), Token{1});
  EXPECT_EQ(leadership.guard(9501ms), std::nullopt);
  backend->hang();
  clock.advance(timing.term - timing.margin);
  EXPECT_FALSE(leadership.is_leader()) << "at once: no thread has to run for that";
  backend->let_go();
}

TEST_F(Manager, ReleasesOnlyAfterOustingReturned) {
  std::promise<void> release_hook;
  auto hooks = noting();
  hooks.ousting = [&](const Ousting&) {
    backend->note("ousting");
    release_hook.get_future().wait();
    backend->note("ousting");
  };
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  manager.resign();
  ASSERT_TRUE(backend->await("ousting"));
  EXPECT_TRUE(manager.leadership().is_leader());
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(timing.renew);
  ASSERT_TRUE(backend->await("renew")) << "renewals go on while the hook drains";
  release_hook.set_value();
  ASSERT_TRUE(backend->await("release"));
  EXPECT_EQ(backend->diary(),
            (std::vector<std::string>{"acquire", "elected", "ousting", "renew", "ousting", "release"}));
  EXPECT_FALSE(manager.leadership().is_leader());
}

TEST_F(Manager, LeaseRunsOutOnSupersession) {
  LeaderManager manager(backend, timing, noting(), clock);
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  backend->refuse(true);
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(timing.renew);
  ASSERT_TRUE(backend->await("ousting"));
  EXPECT_EQ(reason, Reason::superseded);
  EXPECT_FALSE(manager.leadership().is_leader());
  ASSERT_TRUE(backend->await("await_change"));
  EXPECT_EQ(manager.leadership().incumbent().value().name, "other");
  backend->refuse(false);
  backend->push();
  ASSERT_TRUE(backend->await("elected", 2));
  EXPECT_EQ(manager.leadership().token(), Token{2});
}

TEST_F(Manager, IneligibleIsAskedBeforeTheStore) {
  std::atomic<bool> fit{false};
  auto hooks = noting();
  hooks.eligible = [&] {
    const bool answer = fit;
    backend->note("eligible");
    return answer;
  };
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  ASSERT_TRUE(backend->await("eligible"));
  ASSERT_TRUE(alarm_in(timing.renew));
  fit = true;
  clock.advance(timing.renew);
  ASSERT_TRUE(backend->await("elected"));
  fit = false;
  ASSERT_TRUE(alarm_in(timing.renew));
  clock.advance(timing.renew);
  ASSERT_TRUE(backend->await("eligible", 4));
  EXPECT_EQ(reason, Reason::ineligible);
  EXPECT_EQ(backend->diary(), (std::vector<std::string>{"eligible", "eligible", "acquire", "elected", "eligible",
                                                        "ousting", "release", "eligible"}));
}

/// Counts how often anybody is woken.
struct CountingClock final : Clock {
  struct Counting final : Waker {
    Counting(std::unique_ptr<Waker> waker, std::atomic<int>& wakes) : one(std::move(waker)), all(wakes) {}
    void set(Time until) override { one->set(until); }
    bool wait() override { return one->wait(); }
    void wake() noexcept override {
      ++all;
      one->wake();
    }
    const std::unique_ptr<Waker> one;
    std::atomic<int>& all;
  };
  explicit CountingClock(ManualClock& clock) : real(clock) {}
  Time now() const noexcept override { return real.now(); }
  std::unique_ptr<Waker> make_waker() override { return std::make_unique<Counting>(real.make_waker(), wakes); }
  std::int64_t unix_ms() const noexcept override { return real.unix_ms(); }
  ManualClock& real;
  std::atomic<int> wakes{0};
};

TEST_F(Manager, AnAnswerIsActedUponByTheThreadThatBroughtIt) {
  CountingClock counting(clock);
  LeaderManager manager(backend, timing, noting(), counting);
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  EXPECT_EQ(counting.wakes, 1) << "start()";
  ASSERT_TRUE(alarm_in(timing.renew));
  clock.advance(timing.renew);
  ASSERT_TRUE(eventually([&] { return manager.leadership().remaining() == timing.term - timing.margin; }));
  EXPECT_EQ(counting.wakes, 1) << "its time had come";
  manager.resign(1h);
  ASSERT_TRUE(backend->await("release"));
  EXPECT_EQ(counting.wakes, 1) << "resign(), by a thread that had nothing to do";
}

TEST_F(Manager, AHandOverIsOftenDoneByOneThread) {
  struct Noting : ScriptedBackend {
    Answer acquire(const Limit& limit) override {
      at_store = std::this_thread::get_id();
      return ScriptedBackend::acquire(limit);
    }
    std::optional<Error> release(const Limit& limit) override {
      if (std::this_thread::get_id() == ousted_on) ++same;
      return ScriptedBackend::release(limit);
    }
    std::atomic<std::thread::id> at_store, ousted_on;
    std::atomic<int> same{0};
  };
  constexpr int rounds = 50;
  const auto store = std::make_shared<Noting>();
  Hooks hooks;
  hooks.elected = [&](const Elected&) {
    if (std::this_thread::get_id() == store->at_store) ++store->same;
    store->note("elected");
  };
  hooks.ousting = [&](const Ousting&) { store->ousted_on = std::this_thread::get_id(); };
  LeaderManager manager(store, timing, hooks, store->clock);
  manager.start();
  for (int round = 1; round <= rounds; ++round) {
    ASSERT_TRUE(store->await("elected", round));
    manager.resign(0s);
  }
  manager.stop();
  EXPECT_GT(store->same, rounds) << "of twice as many: who is with the store calls the hook, and the other way round";
}

TEST_F(Manager, TheClockThreadDoesNotSpinWhileAnotherThreadDecides) {
  std::latch decides(1), goes_on(1);
  auto hooks = noting();
  hooks.log = [&](const LogLine& line) {
    if (line.message != "elected") return;
    decides.count_down();
    goes_on.wait();
  };
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  decides.wait();
  clock.advance(2 * timing.call);  // the alarm that was set before has passed
  EXPECT_TRUE(clock.await_parked(1));
  goes_on.count_down();
}

TEST_F(Manager, AQuestionThatComesTogetherWithAHookIsAskedBesideIt) {
  std::latch goes_on(1);
  auto hooks = noting();
  hooks.error = [&](const Error& e) {
    if (e.message.ends_with("has returned")) goes_on.wait();
  };
  LeaderManager manager(backend, timing, hooks, clock);
  backend->hang();
  manager.start();
  EXPECT_TRUE(backend->await("acquire"));
  // A thread that waits while another one decides is parked, and does not know yet for what it waits.
  EXPECT_TRUE(alarm_in(timing.call + LateCall::grace));
  clock.advance(timing.call + LateCall::grace);
  EXPECT_TRUE(alarm_in(LateCall::told_after(timing.call) - LateCall::grace));
  clock.advance(LateCall::told_after(timing.call));
  EXPECT_TRUE(eventually([&] { return manager.metrics().errors.at(Fault::wedged) == 1; }));
  backend->let_go();
  EXPECT_TRUE(backend->await("acquire", 2));
  goes_on.count_down();
}

// ---- waiting ----

TEST_F(Manager, AwaitLeadership) {
  backend->refuse(true);
  LeaderManager manager(backend, timing, noting(), clock);
  manager.start();
  ASSERT_TRUE(backend->await("await_change"));
  EXPECT_EQ(manager.await_leadership(0s), std::nullopt);
  auto token = std::async(std::launch::async, [&] { return manager.await_leadership(1h); });
  backend->refuse(false);
  backend->push();
  EXPECT_EQ(token.get(), Token{1});
}

TEST_F(Manager, AwaitLeadershipTimesOutByTheClockItWasGiven) {
  backend->refuse(true);
  LeaderManager manager(backend, timing, noting(), clock);
  manager.start();
  ASSERT_TRUE(backend->await("await_change"));
  auto token = std::async(std::launch::async, [&] { return manager.await_leadership(3s); });
  ASSERT_TRUE(clock.await_parked(3));  // the clock thread, the one with the store, and ours
  clock.advance(3s);
  EXPECT_EQ(token.get(), std::nullopt);
}

TEST_F(Manager, AwaitLeadershipEndsByItsStopTokenAndByStop) {
  backend->refuse(true);
  LeaderManager manager(backend, timing, noting(), clock);
  manager.start();
  std::stop_source source;
  auto one = std::async(std::launch::async, [&] { return manager.await_leadership(1h, source.get_token()); });
  source.request_stop();
  EXPECT_EQ(one.get(), std::nullopt);
  auto two = std::async(std::launch::async, [&] { return manager.await_leadership(1h); });
  auto three = std::async(std::launch::async, [&] { return manager.await_ended(1h); });
  manager.stop();
  EXPECT_EQ(two.get(), std::nullopt);
  EXPECT_TRUE(three.get());
}

// ---- ends ----

TEST_F(Manager, EligibleIsNotCalledAfterStopReturned) {
  const auto scripted = std::make_shared<ScriptedBackend>();
  std::atomic<int> asked{0};
  Hooks hooks;
  hooks.eligible = [&] { return ++asked > 0; };
  {
    LeaderManager manager(scripted, timing, hooks, scripted->clock);
    manager.start();
    ASSERT_TRUE(manager.await_leadership(1h));
    scripted->hang();
    ASSERT_TRUE(scripted->clock.await_parked(1));
    scripted->clock.advance(timing.renew);
    ASSERT_TRUE(scripted->await("renew"));
    ASSERT_TRUE(scripted->clock.await_parked(1));
    scripted->clock.advance(timing.call + LateCall::grace);
    manager.stop();
  }
  const int before = asked;
  const std::weak_ptr<ScriptedBackend> left = scripted;
  scripted->let_go();
  ASSERT_TRUE(eventually([&] { return left.use_count() == 1; })) << "the thread that was left behind has ended";
  EXPECT_EQ(asked, before);
}

TEST_F(Manager, AnEligibleThatIsSlowEachTimeIsTroubleAndItsNoCounts) {
  std::atomic<int> asked{0};
  auto hooks = noting();
  hooks.log = no_log;
  hooks.eligible = [&] {
    const int call = ++asked;
    if (call == 2 || call == 3) {
      clock.advance(timing.call + 60ms);
      EXPECT_TRUE(alarm_in(LateCall::told_after(timing.call) - 60ms)) << "the call counts as wedged";
    }
    return call < 3;
  };
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  ASSERT_TRUE(alarm_in(timing.renew));
  clock.advance(timing.renew);
  ASSERT_TRUE(eventually([&] { return manager.last_error().has_value(); }));
  EXPECT_EQ(manager.last_error()->fault, Fault::timed_out);
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(asked, 2) << "it pauses";
  clock.advance(timing.retry);
  ASSERT_TRUE(backend->await("ousting"));
  EXPECT_EQ(reason, Reason::ineligible);
}

/// What the store was asked of a manager that is stopped while eligible() runs, and wedged.
std::vector<std::string> asked_of_one_stopped_in_eligible() {
  const auto backend = std::make_shared<test::ScriptedBackend>();
  std::promise<void> go;
  std::atomic<bool> stopping{false}, returned{false};
  Hooks hooks;
  hooks.log = no_log;
  hooks.eligible = [&] {
    backend->note("eligible");
    go.get_future().wait();
    returned = true;
    return true;
  };
  LeaderManager manager(backend, timing, hooks, backend->clock);
  manager.start();
  EXPECT_TRUE(backend->await("eligible"));
  EXPECT_TRUE(backend->clock.await_parked(1));
  backend->clock.advance(timing.call + LateCall::grace);  // wedged: the end does not wait for the store
  std::jthread stopper([&] {
    stopping = true;
    manager.stop();
    EXPECT_TRUE(returned);
  });
  EXPECT_TRUE(eventually([&] { return stopping.load(); }));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(manager.await_ended(0s));
    std::this_thread::yield();
  }
  go.set_value();
  stopper.join();
  return backend->diary();
}

/// Nothing shows that stop() has been entered: on a busy machine eligible() may return first, and is believed then.
TEST_F(Manager, StopWaitsForARunningEligibleAndAsksTheStoreNothingMore) {
  EXPECT_TRUE(eventually([&] { return asked_of_one_stopped_in_eligible() == std::vector<std::string>{"eligible"}; }));
}

TEST_F(Manager, ErrorsWaitInBoundedNumberForAHookThatIsBusyAndTheLogHasThemAll) {
  constexpr int rounds = 400;
  std::promise<void> go;
  std::atomic<int> told{0}, logged{0};
  Hooks hooks;
  hooks.eligible = []() -> bool { throw std::runtime_error("trouble"); };
  hooks.error = [&](const Error&) {
    if (++told == 1) go.get_future().wait();
  };
  hooks.log = [&](const LogLine&) { ++logged; };
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  EXPECT_TRUE(eventually([&] {  // A step that comes before the next question is due moves nothing.
    clock.advance(timing.renew);
    return logged >= rounds;
  }));
  go.set_value();
  manager.stop();
  EXPECT_GE(logged, rounds);
  EXPECT_GT(told, 200);
  EXPECT_LT(told, 300);
}

TEST_F(Manager, StopFiresAtOnceAlthoughBothWorkersAreBusy) {
  std::atomic<bool> working{false}, told{false};
  auto hooks = noting();
  hooks.elected = [&](const Elected& e) {
    std::stop_callback on_stop(e.stop, [&] { told = true; });
    working = true;
    while (!e.stop.stop_requested()) std::this_thread::yield();
  };
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  ASSERT_TRUE(eventually([&] { return working.load(); }));
  backend->hang();
  ASSERT_TRUE(alarm_in(timing.renew));
  clock.advance(timing.renew);
  ASSERT_TRUE(backend->await("renew"));
  ASSERT_TRUE(clock.await_parked(1));
  manager.resign();
  EXPECT_TRUE(eventually([&] { return told.load(); })) << "the clock stands still: nothing else wakes anybody";
  backend->let_go();
}

TEST_F(Manager, AnotherIncumbentIsAChange) {
  backend->refuse(true);
  LeaderManager manager(backend, timing, {}, clock);
  manager.start();
  EXPECT_TRUE(eventually([&] { return manager.changes() > 0; }));
  EXPECT_TRUE(manager.leadership().incumbent());
  EXPECT_EQ(manager.metrics().since_granted, std::nullopt) << "a denial grants nothing";
}

TEST_F(Manager, AStopCallbackOnTheThreadThatLearntOfTheEndMayCallAnything) {
  LeaderManager* self = nullptr;
  std::atomic<bool> led{true};
  auto hooks = noting();
  hooks.elected = [&](const Elected& e) {
    std::stop_callback callback(e.stop, [&] {
      led = self->leadership().is_leader();
      self->resign();
      self->await_change(0, 0s);
      self->stop();
    });
    backend->note("elected");
    while (!e.stop.stop_requested()) std::this_thread::yield();
  };
  LeaderManager manager(backend, timing, hooks, clock);
  self = &manager;
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  backend->refuse(true);
  ASSERT_TRUE(alarm_in(timing.renew));
  clock.advance(timing.renew);
  EXPECT_TRUE(manager.await_ended(1h));
  EXPECT_EQ(reason, Reason::superseded);
  EXPECT_FALSE(led);
}

TEST_F(Manager, LeadershipOutlivesTheManager) {
  std::optional<Leadership> leadership;
  {
    LeaderManager manager(backend, timing, noting(), clock);
    leadership = manager.leadership();
    manager.start();
    ASSERT_TRUE(backend->await("elected"));
  }
  EXPECT_FALSE(leadership->is_leader());
  EXPECT_EQ(leadership->incumbent(), std::nullopt);
}

TEST_F(Manager, RefusesTimingsWithNumbersThatWork) {
  auto bad = timing;
  bad.renew = 9s;
  EXPECT_THROW(LeaderManager(backend, bad, {}, clock), std::invalid_argument);
  EXPECT_EQ(test::refusal_of([&] { LeaderManager(backend, Timing::of(45min), {}, clock); }),
            "Timing: term: at most 30 minutes here");
  EXPECT_THROW(LeaderManager(nullptr, timing, {}, clock), std::invalid_argument);
}

using ManagerDeathTest = Manager;

TEST_F(ManagerDeathTest, ExitInAHookThatDestroysItAbortsWithAdviceThatFits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        static auto scripted = std::make_shared<ScriptedBackend>();
        static std::unique_ptr<LeaderManager> manager;
        Hooks hooks;
        hooks.elected = [](const Elected&) { std::exit(0); };
        manager = std::make_unique<LeaderManager>(scripted, timing, hooks);
        manager->start();
        scripted->await("never");
      },
      "or exit\\(\\) was called there");
}

}  // namespace
}  // namespace tenure
