// SPDX-License-Identifier: Apache-2.0
// Goal: an observer tells every change and nothing else. Method: a scripted backend and a ManualClock.
#include <tenure/observer.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include <tenure/manual_clock.hpp>

#include "in_child.hpp"
#include "scripted_backend.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::ScriptedBackend;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

Incumbent holder(std::uint64_t token, Clock::Duration remaining = 5s) {
  return {.name = "n", .incarnation = "i", .address = "a", .token = {token}, .remaining = remaining};
}

class Observing : public testing::Test {
 protected:
  Observer::Changed noting() {
    return [this](const Sight& sight) {
      const std::lock_guard lock(mutex);
      if (const auto* who = std::get_if<Incumbent>(&sight))
        seen += std::to_string(who->token.value) + " ";
      else
        seen += std::holds_alternative<Vacant>(sight) ? "vacant " : "unknown ";
    };
  }
  std::string so_far() {
    const std::lock_guard lock(mutex);
    return seen;
  }
  std::shared_ptr<ScriptedBackend> backend = std::make_shared<ScriptedBackend>();
  ManualClock& clock = backend->clock;
  std::mutex mutex;
  std::string seen;
};

TEST_F(Observing, ReportsEveryChangeOnceAndNeverAcquires) {
  Observer observer(backend, timing, noting(), clock);
  ASSERT_TRUE(eventually([&] { return so_far() == "vacant "; }));
  EXPECT_EQ(observer.incumbent(), std::nullopt);
  backend->see(holder(1));
  ASSERT_TRUE(eventually([&] { return so_far() == "vacant 1 "; }));
  EXPECT_EQ(observer.incumbent().value().name, "n");
  backend->see(holder(1, 4s));  // renewed: no news
  backend->see(holder(2));
  ASSERT_TRUE(eventually([&] { return so_far() == "vacant 1 2 "; }));
  backend->see(Vacant{});
  ASSERT_TRUE(eventually([&] { return so_far() == "vacant 1 2 vacant "; }));
  const auto diary = backend->diary();
  EXPECT_EQ(std::count(diary.begin(), diary.end(), "acquire"), 0);
}

TEST_F(Observing, ForgetsAnIncumbentWhoseLeaseHasEnded) {
  backend->see(holder(1));
  Observer observer(backend, timing, {}, clock);
  ASSERT_GT(observer.await_change(0, 1h), 0u);
  ASSERT_TRUE(observer.incumbent());
  ASSERT_TRUE(backend->await("await_change", 2)) << "no other look is on its way";
  backend->hang();
  clock.advance(5s);
  EXPECT_EQ(observer.incumbent(), std::nullopt);
  backend->let_go();
}

TEST_F(Observing, ReportsThatALeaseEnded) {
  backend->see(holder(1, 5s));
  Observer observer(backend, timing, noting(), clock);
  ASSERT_TRUE(eventually([&] { return so_far() == "1 "; }));
  ASSERT_TRUE(clock.await_parked(1));
  const auto changes = observer.changes();
  backend->set_sight(holder(1, 0s));  // as a store tells it that has no push for a leader's death
  clock.advance(5s);
  EXPECT_EQ(observer.await_change(changes, 1h), changes + 1);
  EXPECT_TRUE(eventually([&] { return so_far() == "1 vacant "; })) << so_far();
  ASSERT_TRUE(clock.await_parked(1));
  backend->see(holder(1, 5s));
  EXPECT_TRUE(eventually([&] { return so_far() == "1 vacant 1 "; })) << "it was renewed after all: " << so_far();
}

TEST_F(Observing, ReportsThatALeaseEndedAlthoughTheStoreDoesNotAnswer) {
  backend->see(holder(1, 5s));
  Observer observer(backend, timing, noting(), clock);
  ASSERT_TRUE(eventually([&] { return so_far() == "1 "; }));
  backend->see(Unknown{{Fault::timed_out, "no answer"}});
  ASSERT_TRUE(eventually([&] { return so_far() == "1 unknown "; }));
  const auto changes = observer.changes();
  for (int i = 0; i < 25; ++i) {
    ASSERT_TRUE(clock.await_parked(1));
    clock.advance(timing.retry);
  }
  EXPECT_TRUE(eventually([&] { return so_far() == "1 unknown vacant "; })) << so_far();
  EXPECT_EQ(observer.changes(), changes + 1);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(clock.await_parked(1));
    clock.advance(timing.retry);
  }
  EXPECT_EQ(so_far(), "1 unknown vacant ") << "once";
}

TEST_F(Observing, ACalleeThatIsSlowerThanALeaseHearsOfNoEndThatTheStoreDoesNotShow) {
  backend->see(holder(1, 5s));
  const auto noted = noting();
  Observer observer(
      backend, timing,
      [&](const Sight& sight) {
        noted(sight);
        clock.advance(6s);
      },
      clock);
  ASSERT_TRUE(backend->await("observe", 2)) << "it looks again before it says anything";
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(so_far(), "1 ");
  EXPECT_TRUE(observer.incumbent());
}

TEST_F(Observing, TroubleIsReportedOnceAndTheNextQuestionComesAfterRetry) {
  backend->see(Unknown{{Fault::unreachable, "away"}});
  Observer observer(backend, timing, noting(), clock);
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(backend->await("observe", i));
    ASSERT_TRUE(clock.await_parked(1));
    clock.advance(timing.retry);
  }
  EXPECT_EQ(so_far(), "unknown ");
}

TEST_F(Observing, AnIncumbentIsKnownUntilItsLeaseEndsAlthoughTheStoreDoesNotAnswer) {
  backend->see(holder(1, 9s));
  Observer observer(backend, timing, noting(), clock);
  ASSERT_TRUE(eventually([&] { return so_far() == "1 "; }));
  const auto changes = observer.changes();
  backend->see(Unknown{{Fault::timed_out, "no answer"}});
  ASSERT_TRUE(eventually([&] { return so_far() == "1 unknown "; }));
  EXPECT_EQ(observer.incumbent().value().token, Token{1});
  ASSERT_TRUE(clock.await_parked(1));
  backend->see(holder(1, 8s));
  clock.advance(timing.retry);
  ASSERT_TRUE(eventually([&] { return so_far() == "1 unknown 1 "; }));
  EXPECT_EQ(observer.changes(), changes) << "it led all the time";
  EXPECT_EQ(observer.incumbent().value().remaining, 8s);
  backend->see(Unknown{{Fault::timed_out, "no answer"}});
  ASSERT_TRUE(eventually([&] { return so_far() == "1 unknown 1 unknown "; }));
  clock.advance(8s);
  EXPECT_EQ(observer.incumbent(), std::nullopt);
}

TEST_F(Observing, StoreThatWakesForNothingMakesNoHotLoop) {
  Observer observer(backend, timing, noting(), clock);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(clock.await_parked(1));
    backend->push();
  }
  const auto diary = backend->diary();
  EXPECT_LE(std::count(diary.begin(), diary.end(), "observe"), 10) << "the clock stands still: prompt looks only";
}

TEST_F(Observing, IsGoneOnlyAfterItsCalleeReturned) {
  std::promise<void> go;
  std::atomic<bool> called{false}, returned{false};
  auto observer = std::make_unique<Observer>(
      backend, timing,
      [&](const Sight&) {
        called = true;
        go.get_future().wait();
        returned = true;
      },
      clock);
  ASSERT_TRUE(eventually([&] { return called.load(); }));
  std::atomic<bool> destroying{false};
  std::jthread destroyer([&] {
    destroying = true;
    observer.reset();
    EXPECT_TRUE(returned);
  });
  ASSERT_TRUE(eventually([&] { return destroying.load(); }));
  for (int i = 0; i < 100; ++i) {  // its patience with the store is over many times
    clock.advance(timing.call);
    std::this_thread::yield();
  }
  go.set_value();
}

TEST_F(Observing, AnExceptionOfItsCalleeEndsNothing) {
  const auto noted = noting();
  Observer observer(
      backend, timing,
      [&](const Sight& sight) {
        noted(sight);
        throw std::runtime_error("no disk");
      },
      clock);
  ASSERT_TRUE(eventually([&] { return so_far() == "vacant "; }));
  backend->see(holder(1));
  EXPECT_TRUE(eventually([&] { return so_far() == "vacant 1 "; }));
}

TEST_F(Observing, IsGoneAlthoughWhatItsCalleeThrewCouldNotBeSaid) {
  struct Nameless : ScriptedBackend {
    std::string election() const override {
      if (!asked.exchange(true)) throw std::bad_alloc();
      return "nameless";
    }
    mutable std::atomic<bool> asked{false};
  };
  const auto nameless = std::make_shared<Nameless>();
  std::optional<Observer> observer(
      std::in_place, nameless, timing, [](const Sight&) { throw std::runtime_error("no disk"); }, nameless->clock);
  ASSERT_TRUE(eventually([&] { return nameless->asked.load(); }));
  observer.reset();  // It would wait for ever for the callee to return.
}

TEST_F(Observing, ABackendThatThrowsAnythingIsUnknown) {
  struct Odd : ScriptedBackend {
    Sight observe(const Limit&) override { throw 7; }
  };
  const auto odd = std::make_shared<Odd>();
  std::promise<Sight> told;
  Observer observer(
      odd, timing, [&](const Sight& sight) { told.set_value(sight); }, odd->clock);
  EXPECT_TRUE(std::holds_alternative<Unknown>(told.get_future().get()));
}

TEST_F(Observing, IsGoneAtOnceInAForkedChild) {
  auto observer = std::make_unique<Observer>(backend, timing, noting(), clock);
  ASSERT_TRUE(backend->await("await_change"));
  test::in_child([&] {
    const bool none = !observer->incumbent() && observer->await_change(observer->changes(), 1h) > 0;
    observer.reset();
    return none;
  });
}

TEST_F(Observing, DestroyedWhileTheStoreHangs) {
  auto observer = std::make_unique<Observer>(backend, timing, noting(), clock);
  ASSERT_TRUE(backend->await("await_change"));
  backend->hang();
  backend->push();
  ASSERT_TRUE(backend->await("observe", 2));
  std::jthread destroyer([&] { observer.reset(); });
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(timing.call + 1s);
  destroyer.join();
  backend->let_go();
}

/// Counts who uses it, or a waker of it, once it is gone.
struct MortalClock final : Clock {
  struct Mortal final : Waker {
    explicit Mortal(MortalClock& all) : clock(all), one(all.real.make_waker()) {}
    ~Mortal() override { clock.used(); }
    void set(Time until) override {
      clock.used();
      one->set(until);
    }
    bool wait() override {
      clock.used();
      return one->wait();
    }
    void wake() noexcept override {
      clock.used();
      one->wake();
    }
    MortalClock& clock;
    const std::unique_ptr<Waker> one;
  };
  Time now() const noexcept override {
    used();
    return real.now();
  }
  std::unique_ptr<Waker> make_waker() override { return std::make_unique<Mortal>(*this); }
  std::int64_t unix_ms() const noexcept override { return real.unix_ms(); }
  void used() const noexcept {
    if (gone) ++uses;
  }
  ManualClock real;
  std::atomic<bool> gone{false};
  mutable std::atomic<int> uses{0};
};

TEST_F(Observing, ACallThatThrowsAfterItWasLeftBehindTouchesNoClock) {
  struct Torn : ScriptedBackend {
    void await_change(const Sight&, const Limit&) override {
      note("await_change");
      tears.wait();
      throw std::runtime_error("connection torn");
    }
    std::latch tears{1};
  };
  const auto torn = std::make_shared<Torn>();
  MortalClock mortal;
  auto observer = std::make_unique<Observer>(torn, timing, noting(), mortal);
  ASSERT_TRUE(torn->await("await_change"));
  std::jthread destroyer([&] { observer.reset(); });
  ASSERT_TRUE(mortal.real.await_parked(1));
  mortal.real.advance(timing.call + 1s);
  destroyer.join();
  mortal.gone = true;
  torn->tears.count_down();
  EXPECT_TRUE(eventually([&] { return torn.use_count() == 1; })) << "what was left behind has ended";
  EXPECT_EQ(mortal.uses, 0);
}

}  // namespace
}  // namespace tenure
