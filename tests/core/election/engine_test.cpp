// SPDX-License-Identifier: Apache-2.0
// Goal: what the engine promises holds for one election and for many alike: its hooks, its ends, what it tells of
// itself. Method: each test runs over both forms, on stores that hang or throw when told to, and on a ManualClock.
#include "election/engine.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

#include <tenure/elections.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/manual_clock.hpp>

#include "election/late_call.hpp"
#include "group/model_store.hpp"
#include "in_child.hpp"
#include "scripted_backend.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

struct One {
  using Owner = LeaderManager;
  static constexpr const char* verbs[] = {"acquire", "renew", "release"};
  static constexpr const char* threw = "the backend threw: no such host";
  std::shared_ptr<test::ScriptedBackend> store = std::make_shared<test::ScriptedBackend>();
  std::optional<LeaderManager> owner{};

  void make(Hooks hooks, Clock& clock) { owner.emplace(store, timing, std::move(hooks), clock); }
  Leadership leadership() const { return owner->leadership(); }
  Metrics metrics() const { return owner->metrics(); }
  void resign(std::optional<Clock::Duration> cool_down) { owner->resign(cool_down); }
  bool hangs() { return store->await("renew"); }
};

struct ModelThatHangs final : test::ModelStore {
  ModelThatHangs() : ModelStore(false) {}
  ManualClock clock;  ///< It is kept here because a thread in a wedged call outlives the test, and with it this.
  std::atomic<bool> held{false}, holds{false}, throws{false};
  void hang() { holds = true; }
  void throwing(bool on) { throws = on; }
  void let_go() {
    holds = false;
    holds.notify_all();
  }
  void pass() {
    held = holds.load();
    holds.wait(true);
    if (throws) throw std::runtime_error("no such host");
  }
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    pass();
    return ModelStore::open(id, session, limit);
  }
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    pass();
    return ModelStore::commit(commit, limit);
  }
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t beat,
                   const Limit& limit) override {
    pass();
    return ModelStore::end(id, beats, beat, limit);
  }
  std::optional<Error> accepts(const Timing& wanted) override {
    if (wanted.term > 30min) return Error{Fault::misconfigured, "term: at most 30 minutes here"};
    return std::nullopt;
  }
};

struct Many {
  using Owner = Elections;
  static constexpr const char* verbs[] = {"open", "commit", "look", "end", "sweep"};
  static constexpr const char* threw = "the store threw: no such host";
  std::shared_ptr<ModelThatHangs> store = std::make_shared<ModelThatHangs>();
  std::optional<Elections> owner{};

  void make(Hooks hooks, Clock& clock) {
    owner.emplace(store, Candidate{"a", ""}, timing, std::move(hooks), Spread{}, 2, clock);
    owner->join("e");
  }
  Leadership leadership() const { return owner->leadership("e"); }
  Metrics metrics() const { return owner->metrics().session; }
  void resign(std::optional<Clock::Duration> cool_down) { owner->resign("e", cool_down); }
  bool hangs() {
    return eventually([&] { return store->held.load(); });
  }
};

template <class Form>
struct EngineOfEither : testing::Test, Form {
  ManualClock& clock = this->store->clock;
  std::atomic<int> elected{0}, ousted{0};
  std::atomic<Reason> reason{};
  std::mutex mutex;
  std::vector<Error> heard;

  ~EngineOfEither() override {
    this->store->let_go();
    this->owner.reset();  // Its hooks reach what stands here, which would go before it.
  }
  Hooks noting() {
    return {.elected = [this](const Elected&) { ++elected; },
            .ousting =
                [this](const Ousting& o) {
                  reason = o.reason;
                  ++ousted;
                },
            .error =
                [this](const Error& e) {
                  const std::lock_guard lock(mutex);
                  heard.push_back(e);
                },
            .log = no_log};
  }
  std::vector<Error> errors() {
    const std::lock_guard lock(mutex);
    return heard;
  }
  void start(Hooks hooks) {
    this->make(std::move(hooks), clock);
    this->owner->start();
  }
  bool leads() const { return this->leadership().is_leader(); }
  bool starts_to_lead(Hooks hooks) {
    start(std::move(hooks));
    return eventually([&] { return leads(); }) && clock.await_parked(1);
  }
  bool told(Fault fault, std::uint64_t times = 1) {
    return eventually([&] { return this->metrics().errors.at(fault) >= times; });
  }
  /// The next renewal hangs, and has outlasted its limit by a moment.
  bool wedge() {
    this->store->hang();
    clock.advance(timing.renew + timing.renew / 20);
    if (!this->hangs() || !settled()) return false;
    clock.advance(timing.call + LateCall::grace);
    return settled();
  }
  /// Who waits while another thread decides is parked, and does not know yet until when.
  bool settled() {
    return eventually([&] { return clock.now() < clock.next_alarm() && clock.next_alarm() < Clock::Time::max(); }) &&
           clock.await_parked(1);
  }
};

struct Named {
  template <class Form>
  static std::string GetName(int) {
    return std::is_same_v<Form, One> ? "One" : "Many";
  }
};
using Forms = testing::Types<One, Many>;
TYPED_TEST_SUITE(EngineOfEither, Forms, Named);

// ---- hooks ----

TYPED_TEST(EngineOfEither, WhatAHookThrowsBecomesAnErrorAndTheElectionLivesOn) {
  auto hooks = this->noting();
  hooks.elected = [](const Elected&) { throw std::runtime_error("no disk"); };
  this->start(hooks);
  ASSERT_TRUE(eventually([&] { return !this->errors().empty(); }));
  EXPECT_EQ(this->errors().front(), (Error{Fault::hook_threw, "elected() threw: no disk"}));
  EXPECT_TRUE(this->leads());
}

TYPED_TEST(EngineOfEither, WhatTheStoreThrowsBecomesAnErrorAndItIsAskedAgain) {
  this->store->throwing(true);
  this->start(this->noting());
  ASSERT_TRUE(eventually([&] { return !this->errors().empty(); }));
  EXPECT_EQ(this->errors().front(), (Error{Fault::unreachable, TypeParam::threw}));
  this->store->throwing(false);
  EXPECT_TRUE(eventually([&] { return this->leads() || (this->clock.advance(timing.retry), false); }));
}

/// Also where a thread is free for the next one.
TYPED_TEST(EngineOfEither, HooksOfOneElectionAreCalledOneAtATime) {
  std::latch released(1);
  std::atomic<bool> runs{false};
  auto hooks = this->noting();
  hooks.elected = [&](const Elected&) {
    runs = true;
    released.wait();
    runs = false;
  };
  hooks.ousting = [&](const Ousting&) {
    EXPECT_FALSE(runs) << TENURE_PROMISE;
    ++this->ousted;
  };
  this->start(hooks);
  ASSERT_TRUE(eventually([&] { return runs.load(); }));
  this->resign(1h);
  ASSERT_TRUE(eventually([&] { return this->metrics().ousted.at(Reason::resigned) == 1; }));
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  released.count_down();
  EXPECT_TRUE(eventually([&] { return this->ousted == 1; }));
}

TYPED_TEST(EngineOfEither, AnErrorThatNobodyHearsGoesToStderr) {
  testing::internal::CaptureStderr();
  Hooks hooks;
  hooks.elected = [](const Elected&) { throw std::runtime_error("spoon"); };
  this->start(hooks);
  EXPECT_TRUE(this->told(Fault::hook_threw));
  this->owner->stop();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("spoon"), std::string::npos);
}

TYPED_TEST(EngineOfEither, StopFiresThoughTheStoreHangsAndWorkRunsInsideElected) {
  std::atomic<bool> told{false};
  auto hooks = this->noting();
  hooks.elected = [&](const Elected& e) {
    const std::stop_callback on_stop(e.stop, [&] { told = true; });
    ++this->elected;
    while (!e.stop.stop_requested()) std::this_thread::yield();  // the leader's work
  };
  ASSERT_TRUE(this->starts_to_lead(hooks));
  ASSERT_TRUE(eventually([&] { return this->elected == 1; }));
  ASSERT_TRUE(this->wedge());
  EXPECT_FALSE(told);
  this->clock.advance(timing.term);
  EXPECT_TRUE(eventually([&] { return told && this->ousted == 1; }));
  EXPECT_EQ(this->reason, Reason::lapsed);
  this->owner->stop();  // returns, although the renewal never does
}

// ---- ends ----

TYPED_TEST(EngineOfEither, NothingIsCalledAfterStopReturned) {
  ASSERT_TRUE(this->starts_to_lead(this->noting()));
  this->owner->stop();
  EXPECT_EQ(this->elected, 1);
  EXPECT_EQ(this->ousted, 1);
  EXPECT_EQ(this->reason, Reason::stopped);
  this->owner->stop();
  this->owner->start();
  this->resign(0s);
  this->clock.advance(1h);
  EXPECT_EQ(this->elected, 1);
  EXPECT_FALSE(this->leads());
}

TYPED_TEST(EngineOfEither, NeverStartedItStopsAtOnce) {
  this->make(this->noting(), this->clock);
  this->owner->stop();
  this->owner->start();
  EXPECT_FALSE(this->leads());
}

TYPED_TEST(EngineOfEither, StopInsideAHookOrAStopCallbackOnlyRequests) {
  auto hooks = this->noting();
  std::atomic<bool> in_callback{false};
  hooks.elected = [&](const Elected& e) {
    const std::stop_callback callback(e.stop, [&] {
      this->owner->stop();
      in_callback = true;
    });
    this->owner->stop();
    while (!e.stop.stop_requested()) std::this_thread::yield();
  };
  this->start(hooks);
  EXPECT_TRUE(eventually([&] { return this->ousted == 1; }));
  EXPECT_TRUE(in_callback);
  this->owner->stop();
  EXPECT_FALSE(this->leads());
}

TYPED_TEST(EngineOfEither, StopWaitsForARunningErrorHook) {
  std::promise<void> go;
  std::atomic<bool> running{false}, returned{false}, stopped{false};
  Hooks hooks{.error =
                  [&](const Error&) {
                    running = true;
                    go.get_future().wait();
                    returned = true;
                  },
              .log = no_log};
  this->store->throwing(true);
  this->start(hooks);
  ASSERT_TRUE(eventually([&] { return running.load(); }));
  this->store->throwing(false);
  std::jthread stopper([&] {
    this->owner->stop();
    EXPECT_TRUE(returned);
    stopped = true;
  });
  ASSERT_TRUE(eventually([&] { return this->clock.next_alarm() == Clock::Time::max(); })) << "everything is decided";
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(stopped);
  go.set_value();
}

TYPED_TEST(EngineOfEither, StopFromManyThreadsAtOnce) {
  ASSERT_TRUE(this->starts_to_lead(this->noting()));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      this->owner->stop();
      EXPECT_FALSE(this->leads());
    });
}

TYPED_TEST(EngineOfEither, AStoreCallThatEndsAfterItWasGivenUpCallsNobody) {
  const auto hanging = this->store;
  std::atomic<int> told{0};
  std::weak_ptr<int> alive;
  {
    const auto life = std::make_shared<int>();
    alive = life;
    Hooks hooks;
    hooks.error = [&told, life](const Error&) { ++told; };
    hooks.log = [&told](const LogLine&) { ++told; };
    ASSERT_TRUE(this->starts_to_lead(hooks));
    ASSERT_TRUE(this->wedge());
    this->owner->stop();
    this->owner.reset();
  }
  const int before = told;
  EXPECT_FALSE(alive.expired()) << "its thread is left behind";
  hanging->throwing(true);
  hanging->let_go();
  EXPECT_TRUE(eventually([&] { return alive.expired(); }));
  EXPECT_EQ(told, before);
}

TYPED_TEST(EngineOfEither, InAForkedChildNothingRunsAndNothingWaits) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer does not follow a child of a process with threads";
#endif
  ASSERT_TRUE(this->starts_to_lead(this->noting()));
  const auto leadership = this->leadership();
  TypeParam idle;
  idle.make({}, this->clock);
  test::in_child([&] {
    try {
      idle.owner->start();
      return false;
    } catch (const std::logic_error&) {
    }
    this->resign(0s);
    this->owner->stop();
    idle.owner->stop();
    this->owner->await_change(this->owner->changes(), 1h);
    return !leadership.is_leader() && !leadership.token() && !leadership.incumbent() && leadership.remaining() == 0ns &&
           this->metrics().calls.empty();
  });
  EXPECT_TRUE(leadership.is_leader()) << "the parent is unharmed";
}

// ---- waiting ----

TYPED_TEST(EngineOfEither, ChangesAreCountedAndNoneIsMissed) {
  this->make(this->noting(), this->clock);
  EXPECT_EQ(this->owner->changes(), 0u);
  this->owner->start();
  EXPECT_GT(this->owner->await_change(0, 1h), 0u);
  ASSERT_TRUE(eventually([&] { return this->elected == 1; }));
  const auto before = this->owner->changes();
  this->resign(1h);
  EXPECT_GT(this->owner->await_change(before, 1h), before);
  EXPECT_EQ(this->owner->await_change(0, 1h), this->owner->changes()) << "what is past is not waited for";
}

TYPED_TEST(EngineOfEither, WhoWaitedInVainHearsWhatTheStoreDidAndErrorOnceAMinute) {
  this->store->throwing(true);
  const auto began = this->clock.now();
  this->make(this->noting(), this->clock);
  EXPECT_EQ(this->owner->last_error(), std::nullopt);
  this->owner->start();
  const Error why{Fault::unreachable, TypeParam::threw};
  ASSERT_TRUE(eventually([&] { return this->owner->last_error() == why; }));
  EXPECT_EQ(this->owner->await_change(this->owner->changes(), 0s), this->owner->changes());
  const auto thrown = [&] {  // A call that this clock leaps over is told as wedged, which is another trouble.
    auto all = this->errors();
    std::erase_if(all, [&](const Error& error) { return error.fault != why.fault; });
    return all;
  };
  ASSERT_TRUE(eventually([&] {
    const auto next = this->clock.next_alarm();
    if (next > this->clock.now() && next < Clock::Time::max()) this->clock.advance_to(next);
    return thrown().size() >= 2;
  }));
  EXPECT_GE(this->clock.now(), began + 1min);
  EXPECT_NE(thrown().back().message.find("more since the last report"), std::string::npos);
  this->store->throwing(false);
  ASSERT_TRUE(eventually([&] { return this->leads() || (this->clock.advance(timing.retry), false); }));
  EXPECT_EQ(this->owner->last_error(), std::nullopt);
}

using EngineOfMany = EngineOfEither<Many>;

/// This clock stands still, so that nobody else wakes who waits.
TEST_F(EngineOfMany, WhatAnotherLeadsWakesWhoWaitsForAChange) {
  ASSERT_TRUE(starts_to_lead(noting()));
  Elections watcher(store, {"b", ""}, timing, {.log = no_log}, Spread{.most = 0}, 1, clock);
  watcher.join("e");
  watcher.start();
  const auto look_on = [&](auto&& holds) {
    return eventually([&] { return holds() || (clock.advance(timing.retry), false); });
  };
  ASSERT_TRUE(look_on([&] { return watcher.leadership("e").incumbent().has_value(); }));
  const auto before = watcher.changes();
  resign(1h);
  EXPECT_TRUE(look_on([&] { return watcher.changes() > before; }));
}

/// elected() may be the work of one election; of many it must start it. Two threads run hooks here.
TEST_F(EngineOfMany, HooksThatHoldAllTheirThreadsForATermWhileAnotherWaitsAreReportedAndNothingIsClaimed) {
  std::atomic<bool> hold{true};
  auto hooks = noting();
  hooks.elected = [&](const Elected&) {
    ++elected;
    hold.wait(true);
  };
  const auto renew = [&] {
    const auto before = metrics().calls.at("commit").durations.count();
    clock.advance(timing.renew);
    return eventually([&] { return metrics().calls.at("commit").durations.count() > before; }) && clock.await_parked(1);
  };
  ASSERT_TRUE(starts_to_lead(hooks));
  owner->join("second");
  ASSERT_TRUE(eventually([&] { return elected == 2; }));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(renew());
  EXPECT_EQ(metrics().errors.at(Fault::hook_overran), 0u) << "no other hook waits";
  owner->join("third");
  ASSERT_TRUE(eventually([&] { return owner->is_leader("third"); }));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(renew());
  EXPECT_EQ(metrics().errors.at(Fault::hook_overran), 0u) << "not for a term";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(renew());
  EXPECT_TRUE(told(Fault::hook_overran));
  owner->join("fourth");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(renew());
  EXPECT_FALSE(owner->is_leader("fourth"));
  EXPECT_EQ(owner->led().size(), 3u);
  hold = false;
  hold.notify_all();
  EXPECT_TRUE(eventually([&] { return elected == 3; }));
  ASSERT_TRUE(renew());
  EXPECT_TRUE(eventually([&] { return elected == 4; }));
}

// ---- what it tells of itself ----

TYPED_TEST(EngineOfEither, BeforeTheStartEverythingIsNamedAndZero) {
  this->make({}, this->clock);
  this->clock.advance(1h);
  const auto metrics = this->metrics();
  EXPECT_FALSE(metrics.election.empty());
  EXPECT_FALSE(metrics.is_leader || metrics.token || metrics.since_granted);
  EXPECT_EQ(metrics.remaining + metrics.rides_out + metrics.overdue + metrics.wedged + metrics.overrun, 0s);
  EXPECT_EQ(metrics.ousted.at(Reason::lapsed) + metrics.errors.at(Fault::hook_overran), 0u);
  for (const auto* verb : TypeParam::verbs) {
    EXPECT_EQ(metrics.calls.at(verb).durations.count(), 0u) << verb;
    EXPECT_EQ(metrics.calls.at(verb).errors.at(Fault::timed_out), 0u) << verb;
  }
  EXPECT_EQ(metrics.hooks.at("elected").count(), 0u);
}

/// The first lateness is excused: it may be our own.
TYPED_TEST(EngineOfEither, ACallThatIgnoresItsLimitIsReportedWithItsDuration) {
  ASSERT_TRUE(this->starts_to_lead(this->noting()));
  ASSERT_TRUE(this->wedge());
  EXPECT_EQ(this->metrics().wedged, LateCall::grace);
  EXPECT_EQ(this->metrics().errors.at(Fault::wedged), 0u) << "that wakes somebody, so it is told later";
  this->clock.advance(2s);
  EXPECT_TRUE(this->told(Fault::wedged));
  EXPECT_EQ(this->metrics().wedged, 2s + LateCall::grace);
  this->store->let_go();
  EXPECT_TRUE(eventually([&] { return this->metrics().wedged == 0s; }));
}

TYPED_TEST(EngineOfEither, AnOustingThatTakesTooLongIsReportedWithItsDuration) {
  std::latch ousting(1), released(1);
  auto hooks = this->noting();
  hooks.ousting = [&](const Ousting& o) {
    EXPECT_EQ(o.remaining(), timing.drain);
    ousting.count_down();
    released.wait();
    EXPECT_EQ(o.remaining(), 0s);
    EXPECT_TRUE(o.expired.stop_requested());
    ++this->ousted;
  };
  ASSERT_TRUE(this->starts_to_lead(hooks));
  this->resign(1h);
  ousting.wait();
  EXPECT_EQ(this->metrics().overrun, 0s);
  ASSERT_TRUE(this->clock.await_parked(1));
  this->clock.advance(timing.drain + 3s);
  EXPECT_EQ(this->metrics().overrun, 3s);
  EXPECT_TRUE(this->told(Fault::hook_overran));
  released.count_down();
  EXPECT_TRUE(eventually([&] { return this->metrics().overrun == 0s && this->ousted == 1; }));
}

/// A log hook that blocks, which it must not, stops the engine. It leads from before the line on, and says so.
TYPED_TEST(EngineOfEither, MetricsShowForHowLongItDoesNotAct) {
  std::latch blocked(1), released(1);
  Hooks hooks{.log =
                  [&](const LogLine& line) {
                    if (line.message != "elected") return;
                    blocked.count_down();
                    released.wait();
                  },
              .stall_after = 3s};
  this->start(hooks);
  blocked.wait();
  const auto metrics = this->metrics();
  EXPECT_TRUE(metrics.is_leader);
  EXPECT_EQ(metrics.elected, 1u);
  const auto before = metrics.overdue;
  this->clock.advance(2s);
  this->leadership().progressed();
  this->clock.advance(2s);
  EXPECT_EQ(this->metrics().overdue, before + 4s);
  released.count_down();
  EXPECT_TRUE(eventually([&] { return this->metrics().overdue == 0s; }));
  EXPECT_EQ(this->metrics().ousted.at(Reason::stalled), 0u) << "what the work told counts for every fact";
  EXPECT_TRUE(this->leads());
}

// ---- what is refused ----

TYPED_TEST(EngineOfEither, BadOptionsAreRefusedAtOnce) {
  EXPECT_THROW(this->make({.stall_after = -1ns}, this->clock), std::invalid_argument);
  EXPECT_THROW(this->make({.stall_after = 1s, .stall_pause = -1ns}, this->clock), std::invalid_argument);
  EXPECT_THROW(this->make({.stall_after = 1s, .stall_pause = 1h + 1ns}, this->clock), std::invalid_argument);
}

template <class Form>
struct EngineDeathTest : EngineOfEither<Form> {};
TYPED_TEST_SUITE(EngineDeathTest, Forms, Named);

TYPED_TEST(EngineDeathTest, DestroyedInsideItsOwnHookItAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Hooks hooks;
        hooks.elected = [&](const Elected&) { this->owner.reset(); };
        this->start(hooks);
        eventually([] { return false; });
      },
      "destroyed inside a hook of its own");
}

TYPED_TEST(EngineDeathTest, AbortsOnOverrunIfAsked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto hooks = this->noting();
        hooks.abort_on_overrun = true;
        hooks.ousting = [](const Ousting&) { eventually([] { return false; }); };
        this->starts_to_lead(hooks);
        this->clock.advance(1h);
        eventually([&] { return this->clock.await_parked(1) && (this->clock.advance(1h), false); });
      },
      "ousting\\(\\) had not returned");
}

}  // namespace
}  // namespace tenure
