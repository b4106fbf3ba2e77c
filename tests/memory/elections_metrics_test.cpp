// SPDX-License-Identifier: Apache-2.0
// Goal: Elections::metrics() tells what happened to the session and to all tenures together, and what hangs. Method:
// one process on the memory store, on a clock that moves only by hand.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/manual_clock.hpp>
#include <tenure/memory.hpp>

#include "eventually.hpp"
#include "in_child.hpp"

namespace tenure::memory {
namespace {

using namespace std::chrono_literals;
using tenure::test::eventually;

const Timing timing{.term = 10s, .renew = 2s, .retry = 500ms, .margin = 100ms, .call = 1s, .drain = 1s};

/// The next commit is asked for within so long.
const auto next_commit = timing.renew + timing.renew / 20;

/// Its commits take 30 ms.
class Slow final : public GroupStore {
 public:
  Slow(std::shared_ptr<GroupStore> store, ManualClock& clock) : store_(std::move(store)), clock_(clock) {}
  std::atomic<bool> fails{false};

  std::string group() const override { return store_->group(); }
  Result<Look> look(const std::string& cursor, const Limit& limit) override { return store_->look(cursor, limit); }
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    return store_->open(id, session, limit);
  }
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    clock_.advance(30ms);
    if (fails.exchange(false)) return Error{Fault::unreachable, "cut"};
    return store_->commit(commit, limit);
  }
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    return store_->end(id, beats, new_beat, limit);
  }
  Result<int> sweep(const Limit& limit) override { return store_->sweep(limit); }
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    return store_->request_step_down(election, request, limit);
  }
  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    return store_->await_change(cursor, limit);
  }

 private:
  const std::shared_ptr<GroupStore> store_;
  ManualClock& clock_;
};

struct ElectionsMetrics : testing::Test {
  /// Nothing is left to do at this instant: one thread waits for the next alarm, and one in the store.
  bool rests() { return clock.await_parked(2); }
  Metrics session() const { return elections->metrics().session; }
  void make(Hooks hooks = {}) {
    if (!hooks.log) hooks.log = no_log;
    elections.emplace(store, Candidate{"a", ""}, timing, std::move(hooks), Spread{}, 1, clock);
  }
  bool lead(const std::vector<std::string>& names) {
    elections->join(names);
    elections->start();
    return eventually([&] { return elections->metrics().led == names.size(); }) && rests();
  }

  ManualClock clock;
  Hub hub;
  std::shared_ptr<Slow> store = std::make_shared<Slow>(hub.group("tenants"), clock);
  std::optional<Elections> elections;
};

TEST_F(ElectionsMetrics, SumsOverAllTenuresAndShowsTheSharedLease) {
  make({.ousting = [this](const Ousting&) { clock.advance(10ms); }});
  ASSERT_TRUE(lead({"a", "b", "c"}));
  auto metrics = elections->metrics();
  EXPECT_EQ(metrics.group, "tenants");
  EXPECT_EQ(metrics.session.election, "tenants");
  EXPECT_EQ(metrics.joined, 3u);
  EXPECT_TRUE(metrics.session.is_leader);
  EXPECT_FALSE(metrics.session.token) << "each election has its own";
  EXPECT_EQ(metrics.session.elected, 3u);
  EXPECT_EQ(metrics.session.remaining, timing.term - timing.margin - *metrics.session.since_granted);
  EXPECT_EQ(metrics.session.rides_out, metrics.session.remaining - 2 * timing.call - timing.retry);
  EXPECT_EQ(metrics.session.calls.at("commit").durations.sum, 30ms);
  elections->leave("b");
  ASSERT_TRUE(eventually([&] { return elections->metrics().led == 2; }));
  elections->stop();
  metrics = elections->metrics();
  EXPECT_EQ(metrics.joined, 2u);
  EXPECT_EQ(metrics.led, 0u);
  EXPECT_EQ(metrics.session.ousted.at(Reason::stopped), 2u);
  EXPECT_EQ(metrics.session.hooks.at("ousting").count(), 3u);
  EXPECT_GE(metrics.session.hooks.at("ousting").sum, 30ms);
  EXPECT_EQ(metrics.session.calls.at("end").durations.count(), 1u);
  clock.advance(1h);
  EXPECT_EQ(session().overdue, 0s) << "what has stopped need not act";
}

TEST_F(ElectionsMetrics, ACommitWithoutAnAnswerIsAnErrorOfItsVerbAndOfTheGroup) {
  make();
  ASSERT_TRUE(lead({"a"}));
  store->fails = true;
  clock.advance(next_commit);
  ASSERT_TRUE(eventually([&] { return session().errors.at(Fault::unreachable) == 1; }));
  EXPECT_EQ(session().calls.at("commit").errors.at(Fault::unreachable), 1u);
  EXPECT_GE(*session().since_granted, timing.renew) << "a commit that failed renews nothing";
}

/// "b" is no worse for it.
TEST_F(ElectionsMetrics, AWorkThatStalledIsCountedUntilItGoesOn) {
  make({.stall_after = 3s});
  elections->join("b", std::make_shared<const Hooks>(Hooks{.log = no_log}));
  ASSERT_TRUE(lead({"a", "b"}));
  const auto work = elections->leadership("a");
  clock.advance(1900ms);
  work.progressed();
  ASSERT_TRUE(rests());
  clock.advance(2900ms);
  ASSERT_TRUE(rests());
  EXPECT_TRUE(work.is_leader()) << "2.9 s after its progress";
  EXPECT_FALSE(session().stalled);
  clock.advance(100ms);
  ASSERT_TRUE(eventually([&] { return session().ousted.at(Reason::stalled) == 1; }));
  EXPECT_TRUE(eventually([&] { return elections->metrics().stalled == 1; }));
  EXPECT_TRUE(session().stalled);
  EXPECT_TRUE(elections->is_leader("b"));
  EXPECT_EQ(elections->metrics().joined, 2u);
  work.progressed();
  EXPECT_TRUE(eventually([&] { return elections->metrics().stalled == 0 || (clock.advance(timing.retry), false); }));
  EXPECT_TRUE(eventually([&] { return work.is_leader() || (clock.advance(timing.retry), false); }));
}

TEST_F(ElectionsMetrics, TheLongestStallTimeThereIsMeansNever) {
  make({.stall_after = Clock::Duration::max()});
  elections->join("b", std::make_shared<const Hooks>(Hooks{.log = no_log, .stall_after = Clock::Duration::max()}));
  ASSERT_TRUE(lead({"a", "b"}));
  clock.advance(1900ms);
  ASSERT_TRUE(rests());
  EXPECT_TRUE(elections->is_leader("a") && elections->is_leader("b"));
  EXPECT_EQ(session().ousted.at(Reason::stalled), 0u);
}

/// Many tenures on a clock that runs: whoever sees one is faster than the thread that began it, now and then. A busy
/// machine has fewer of them in the time.
TEST(ElectionsMetricsInTime, WhoSeesATenureSeesItCounted) {
  Hub hub;
  const Timing slow{.term = 30s, .renew = 3s, .retry = 500ms, .margin = 1s, .call = 5s, .drain = 5s};
  Elections elections(hub.group("tenants"), {"a", ""}, slow, {.log = no_log});
  const auto lead = elections.leadership("a");
  elections.join("a");
  elections.start();
  std::optional<Token> seen;
  const auto enough = boot_clock().now() + 20s;
  for (std::uint64_t tenures = 1; tenures <= 1000 && boot_clock().now() < enough; ++tenures) {
    const auto until = boot_clock().now() + 30s;
    auto token = lead.token();
    for (; !token || token == seen; token = lead.token()) ASSERT_LT(boot_clock().now(), until) << tenures;
    seen = token;
    const auto metrics = elections.metrics();
    ASSERT_EQ(metrics.session.elected, tenures);
    ASSERT_TRUE(metrics.session.is_leader);
    ASSERT_GT(metrics.session.remaining, 0s);
    elections.resign("a", 0s);
  }
}

TEST_F(ElectionsMetrics, AForkedChildGetsNoFigures) {
  make();
  ASSERT_TRUE(lead({"a"}));
  tenure::test::in_child([&] {
    const auto metrics = elections->metrics();
    return metrics.joined == 0 && metrics.led == 0 && metrics.session.calls.empty() && elections->led().empty() &&
           !elections->is_leader("a") && !elections->leadership("another").is_leader();
  });
}

}  // namespace
}  // namespace tenure::memory
