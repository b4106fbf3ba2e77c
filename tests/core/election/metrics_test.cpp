// SPDX-License-Identifier: Apache-2.0
// Goal: a manager tells what happened, once for each time that it happened. Method: a scripted backend and a
// ManualClock.
#include <tenure/metrics.hpp>

#include <gtest/gtest.h>

#include <latch>
#include <memory>

#include <tenure/leader_manager.hpp>
#include <tenure/manual_clock.hpp>

#include "scripted_backend.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::ScriptedBackend;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

std::uint64_t sum(const std::map<Fault, std::uint64_t>& counts) {
  std::uint64_t out = 0;
  for (const auto& [fault, count] : counts) out += count;
  return out;
}

class ManagerMetrics : public testing::Test {
 protected:
  Hooks taking(Clock::Duration elected, Clock::Duration ousting) {
    Hooks hooks;
    hooks.log = no_log;
    hooks.elected = [this, elected](const Elected&) {
      clock.advance(elected);
      backend->note("elected");
    };
    hooks.ousting = [this, ousting](const Ousting&) {
      clock.advance(ousting);
      backend->note("ousting");
    };
    return hooks;
  }
  /// So many calls of this verb have been counted.
  bool counted(const LeaderManager& manager, const std::string& verb, std::uint64_t calls) {
    return eventually([&] { return manager.metrics().calls.at(verb).durations.count() >= calls; });
  }

  std::shared_ptr<ScriptedBackend> backend = std::make_shared<ScriptedBackend>();
  ManualClock& clock = backend->clock;
};

TEST(HistogramTest, EachDurationIsCountedInTheFirstBucketThatItFitsInto) {
  Histogram histogram;
  for (const auto took : std::initializer_list<Clock::Duration>{0ms, 1ms, 1ms + 1ns, 5s, 5s + 1ns}) histogram.add(took);
  EXPECT_EQ(histogram.counts.front(), 2u);
  EXPECT_EQ(histogram.counts[1], 1u);
  EXPECT_EQ(histogram.counts[histogram.counts.size() - 2], 1u);
  EXPECT_EQ(histogram.counts.back(), 1u);
  EXPECT_EQ(histogram.count(), 5u);
  EXPECT_EQ(histogram.sum, 10s + 2ms + 2ns);
}

TEST_F(ManagerMetrics, ALeaderSaysWhatIsLeftOfItsLease) {
  LeaderManager manager(backend, timing, taking(0s, 0s), clock);
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  ASSERT_TRUE(counted(manager, "acquire", 1));
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(1s);
  const auto metrics = manager.metrics();
  EXPECT_TRUE(metrics.is_leader);
  EXPECT_EQ(metrics.token, Token{1});
  EXPECT_EQ(metrics.remaining, timing.term - timing.margin - 1s);
  EXPECT_EQ(metrics.rides_out, metrics.remaining - 2 * timing.call - timing.retry);
  EXPECT_EQ(metrics.since_granted, 1s);
  EXPECT_EQ(metrics.elected, 1u);
}

TEST_F(ManagerMetrics, ARenewalBeginsTheTimeSinceTheLastGrantAnew) {
  LeaderManager manager(backend, timing, taking(0s, 0s), clock);
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(timing.renew);
  ASSERT_TRUE(counted(manager, "renew", 1));
  EXPECT_TRUE(eventually([&] { return manager.metrics().since_granted == Clock::Duration(0); }));
}

/// A log hook that blocks, which it must not, stops the manager at the line "elected". It leads from before that line
/// on, and is_leader() says so.
TEST_F(ManagerMetrics, WhoSeesATenureSeesAllThatMetricsSayOfIt) {
  std::latch blocked{1}, released{1};
  auto hooks = taking(0s, 0s);
  hooks.log = [&](const LogLine& line) {
    if (line.message != "elected") return;
    blocked.count_down();
    released.wait();
  };
  hooks.stall_after = 30s;
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  blocked.wait();
  const auto metrics = manager.metrics();
  released.count_down();
  EXPECT_TRUE(metrics.is_leader);
  EXPECT_EQ(metrics.elected, 1u);
  EXPECT_EQ(metrics.since_progress, 0s);
}

TEST_F(ManagerMetrics, HooksAndReasonsAreCountedWithTheirDurations) {
  LeaderManager manager(backend, timing, taking(30ms, 300ms), clock);
  manager.start();
  ASSERT_TRUE(backend->await("elected"));
  manager.stop();
  const auto metrics = manager.metrics();
  EXPECT_EQ(metrics.ousted.at(Reason::stopped), 1u);
  EXPECT_EQ(metrics.hooks.at("elected").sum, 30ms);
  EXPECT_EQ(metrics.hooks.at("ousting").sum, 300ms);
  EXPECT_EQ(metrics.calls.at("release").durations.count(), 1u);
  clock.advance(1h);
  EXPECT_EQ(manager.metrics().overdue, 0s) << "what has stopped need not act";
}

TEST_F(ManagerMetrics, ACallWithoutAnAnswerIsAnErrorOfItsVerbAndOneThatIsReportedIsAnErrorOfTheManager) {
  backend->throwing(true);
  auto hooks = taking(0s, 0s);
  hooks.error = [](const Error&) {};
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  const auto told_once = [&] { return manager.metrics().errors.at(Fault::unreachable) == 1; };
  ASSERT_TRUE(eventually(told_once));  // a call is counted before it is known when the next one is due
  clock.advance(timing.retry);
  ASSERT_TRUE(counted(manager, "acquire", 2));
  manager.stop();  // By then it has told what it had to tell of the second call.
  EXPECT_TRUE(told_once()) << "the same trouble is told once";
  const auto metrics = manager.metrics();
  EXPECT_EQ(metrics.calls.at("acquire").errors.at(Fault::unreachable), metrics.calls.at("acquire").durations.count());
  EXPECT_EQ(sum(metrics.calls.at("renew").errors), 0u);
}

}  // namespace
}  // namespace tenure
