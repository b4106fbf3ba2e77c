// SPDX-License-Identifier: Apache-2.0
// Goal: a leader whose work hangs gives the lead back, and does not take it again before the work goes on or the pause
// is over. Method: the machine alone, whose time the test sets.
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <stdexcept>
#include <vector>

#include <tenure/leader_manager.hpp>
#include <tenure/manual_clock.hpp>

#include "election/candidacy.hpp"
#include "scripted_backend.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::ScriptedBackend;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

/// A store that grants everything at once, and work that stops when it is told to.
class Stall : public testing::Test {
 protected:
  void start(StallLimits limits) {
    candidacy = std::make_unique<Candidacy>(timing, 1, limits);
    candidacy->start(now);
    settle();
  }
  /// Lives through all that is due until then.
  void pass(Clock::Duration d) {
    for (const auto until = now + d; now < until;) {
      ASSERT_GT(candidacy->next_alarm(), now) << "it would look again and again";
      now = std::min(until, candidacy->next_alarm());
      tick();
    }
  }
  void tick() {
    candidacy->progressed(progressed_at);
    candidacy->tick(now);
    settle();
  }
  void progress() { progressed_at = now; }
  bool leads() const { return leading; }

  Clock::Time now{1h};
  Clock::Time progressed_at{};
  std::unique_ptr<Candidacy> candidacy;
  std::vector<Reason> reasons;
  int acquires{};
  bool leading{};
  Token last{};

 private:
  void settle() {
    std::vector<Effect> effects;
    for (candidacy->take_effects(effects); !effects.empty(); candidacy->take_effects(effects))
      for (const auto& any : effects) {
        if (std::holds_alternative<effect::Begin>(any)) leading = true;
        if (const auto* end = std::get_if<effect::End>(&any)) {
          reasons.push_back(end->reason);
          leading = false;
          candidacy->ousting_returned(now);
        }
        if (const auto* ask = std::get_if<effect::Ask>(&any)) answer(ask->question);
      }
  }
  void answer(const Question& q) {
    if (q.verb == Verb::release) return candidacy->released(now, q.id, std::nullopt);
    if (q.verb == Verb::acquire) last = {last.value + 1}, ++acquires;
    candidacy->answered(now, q.id, Granted{last});
  }
};

TEST_F(Stall, AWorkThatReportsItsProgressInTimeLeadsOn) {
  start({.after = 3s, .pause = 1min});
  for (int i = 0; i < 50; ++i) {
    pass(3s - 1ms);
    ASSERT_TRUE(leads());
    progress();
    tick();
  }
  EXPECT_TRUE(reasons.empty());
}

TEST_F(Stall, AWorkThatReportsNoneEndsItsTenureAtThatVeryInstant) {
  start({.after = 3s, .pause = 1min});
  pass(3s - 1ns);
  EXPECT_TRUE(leads());
  pass(1ns);
  EXPECT_FALSE(leads());
  EXPECT_EQ(reasons, std::vector{Reason::stalled});
}

/// The process was stopped, and the work with it.
TEST_F(Stall, AWorkThatWasStoppedTogetherWithUsHasItsTimeOnceMore) {
  start({.after = 3s, .pause = 1min});
  now += 4s;
  tick();
  EXPECT_TRUE(leads());
  pass(3s - 1ns);
  EXPECT_TRUE(leads());
  progress();
  pass(3s - 1ns);
  EXPECT_TRUE(leads());
  pass(1ns);
  EXPECT_FALSE(leads()) << "then it really stalled";
}

TEST_F(Stall, AWorkThatStalledEndsItsTenureThoughWeAreLateEachTime) {
  start({.after = 3s, .pause = 1min});
  now += 4s;
  tick();
  now += 4s;
  tick();
  EXPECT_EQ(reasons, std::vector{Reason::stalled});
}

TEST_F(Stall, ItCampaignsAgainWhenThePauseIsOver) {
  start({.after = 3s, .pause = 1min});
  pass(3s);
  ASSERT_FALSE(leads());
  pass(1min - 1ns);
  EXPECT_EQ(acquires, 1);
  pass(1ns);
  EXPECT_EQ(acquires, 2);
  EXPECT_TRUE(leads());
}

TEST_F(Stall, ItCampaignsAgainSoonAfterTheWorkWentOn) {
  start({.after = 3s, .pause = 1min});
  pass(3s);
  pass(10s);
  EXPECT_EQ(acquires, 1);
  progress();
  pass(timing.retry);
  EXPECT_EQ(acquires, 2);
  EXPECT_TRUE(leads());
}

TEST_F(Stall, ANewTenureHasItsWholeTimeUntilItsFirstProgress) {
  start({.after = 3s, .pause = 1s});
  pass(3s + 1s);
  ASSERT_TRUE(leads());
  EXPECT_FALSE(candidacy->stalled());
  EXPECT_EQ(candidacy->next_alarm(), now + timing.renew) << "nobody looks for progress any more";
  pass(3s - 1ns);
  EXPECT_TRUE(leads());
  pass(1ns);
  EXPECT_FALSE(leads());
}

/// Whoever resigns says himself when he campaigns again.
TEST_F(Stall, ProgressDoesNotShortenTheCoolDownOfALaterResign) {
  start({.after = 3s, .pause = 10s});
  pass(3s);
  candidacy->resign(now, 30s);
  progress();
  pass(30s - 1ns);
  EXPECT_EQ(acquires, 1);
  pass(1ns);
  EXPECT_EQ(acquires, 2);
}

TEST_F(Stall, WithoutALimitNobodyNeedsToReportProgress) {
  start({});
  pass(1h);
  EXPECT_TRUE(leads());
}

TEST_F(Stall, TheLongestLimitThereIsMeansNever) {
  start(stall_limits({.stall_after = Clock::Duration::max()}));
  pass(1h);
  EXPECT_TRUE(leads());
  EXPECT_TRUE(reasons.empty());
}

TEST(StallOfAManager, ProgressReachesItByItsHandle) {
  const auto backend = std::make_shared<ScriptedBackend>();
  auto& clock = backend->clock;
  std::atomic<bool> stalled{false};
  Hooks hooks{.elected = [&](const Elected&) { backend->note("elected"); },
              .ousting = [&](const Ousting& o) { stalled = o.reason == Reason::stalled; },
              .log = no_log,
              .stall_after = 3s};
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(1500ms);
  manager.leadership().progressed();
  clock.advance(500ms);
  ASSERT_TRUE(backend->await("renew"));
  ASSERT_TRUE(eventually([&] { return clock.next_alarm() == clock.now() + timing.renew; }));
  clock.advance(2s);
  ASSERT_TRUE(backend->await("renew", 2));
  ASSERT_TRUE(eventually([&] { return clock.next_alarm() == clock.now() + 500ms; })) << "3 s after the progress";
  EXPECT_TRUE(manager.leadership().is_leader());
  EXPECT_EQ(manager.metrics().since_progress, 2500ms);
  EXPECT_FALSE(manager.metrics().stalled);
  clock.advance(500ms);
  EXPECT_TRUE(eventually([&] { return stalled.load(); }));
  EXPECT_TRUE(eventually([&] { return manager.metrics().stalled; }));
  EXPECT_EQ(manager.metrics().since_progress, std::nullopt);
  manager.leadership().progressed();
  EXPECT_TRUE(eventually([&] { return !manager.metrics().stalled || (clock.advance(timing.retry), false); }));
}

}  // namespace
}  // namespace tenure
