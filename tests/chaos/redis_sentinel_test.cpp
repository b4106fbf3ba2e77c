// SPDX-License-Identifier: Apache-2.0
// Goal: when Sentinels name another master, all candidates go there at once. Method: real processes, real servers and
// Sentinels; the judge reads the journal.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <stdexcept>

#include "history.hpp"
#include "nemesis.hpp"
#include "watched.hpp"

namespace tenure::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using redis::test::eventually;
using redis::test::Watched;

constexpr auto waits = 30s;

bool leads(const Event& e) { return e.what == "lead"; }

class RedisSentinel : public ::testing::Test {
 protected:
  void SetUp() override { TENURE_NEEDS_REDIS(); }
  void watch(int replicas, std::chrono::milliseconds pause) {
    watched_.emplace(3, replicas, pause);
    ASSERT_TRUE(eventually([&] { return watched_->in_step(); })) << watched_->sentinels[0]->log();
  }
  Fleet fleet(Clock::Duration term, const std::string& more = {}) {
    timing_ = Timing::of(term);
    fs::remove(scratch_ / "journal");
    return {TENURE_CANDIDATE,
            {"--store", watched_->url() + more, "--election", "jobs", "--term-ms", std::to_string(term / 1ms),
             "--note-ms", "20"},
            scratch_ / "journal"};
  }

  /// Waits until a candidate leads and the replica knows of it.
  static void begin(Fleet& fleet, int candidates) {
    for (int i = 0; i < candidates; ++i) fleet.start("c" + std::to_string(i));
    if (fleet.await(0, leads, waits) == Fleet::npos) throw std::runtime_error("nobody is elected");
    const auto stands_by = is("sees");
    for (std::size_t from = 0; --candidates > 0; ++from)
      if ((from = fleet.await(from, stands_by, waits)) == Fleet::npos) throw std::runtime_error("one does not follow");
  }

  bool promoted() const {
    const auto old = "127.0.0.1 " + std::to_string(watched_->first.port());
    for (const auto& sentinel : watched_->sentinels)
      if (sentinel->ask({"SENTINEL", "get-master-addr-by-name", "main"}) == old) return false;
    return true;
  }

  /// Waits for a lease that was asked for after this call.
  std::size_t await_lease(Fleet& fleet, Clock::Time asked) const {
    const auto later = [&](const Event& e) { return leads(e) && e.until - timing_.term + timing_.margin > asked; };
    return fleet.await(0, later, waits);
  }

  /// Sentinels kill all its connections then, also the one that asks this.
  bool demoted() {
    try {
      return watched_->first.info("role") == "slave";
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  bool follow_a_planned_fail_over();

  static Verdict end(Fleet& fleet) {
    fleet.end_all(waits);
    auto verdict = judge(fleet.events());
    print(std::cout, verdict);
    return verdict;
  }

  Timing timing_{};
  test::Scratch scratch_;
  std::optional<Watched> watched_;
};

class RedisSentinelTerms : public RedisSentinel, public ::testing::WithParamInterface<int> {};

TEST_P(RedisSentinelTerms, AFrozenMasterThatComesBackMakesNoSecondLeader) {
  // So it takes itself for the master for two terms, and more.
  const auto term = std::chrono::milliseconds(GetParam());
  ASSERT_NO_FATAL_FAILURE(watch(1, term / 2));
  auto candidates = fleet(term);
  begin(candidates, 4);
  watched_->first.freeze(true);
  ASSERT_TRUE(eventually([&] { return promoted(); })) << watched_->sentinels[0]->log();
  watched_->first.freeze(false);
  // Until Sentinels have told it, it takes itself for the master, and takes writes.
  bool over = false;
  for (int patience = 0; patience < 6 && !over; ++patience) over = eventually([&] { return demoted(); });
  ASSERT_TRUE(over) << watched_->sentinels[0]->log();
  EXPECT_NE(await_lease(candidates, boot_clock().now()), Fleet::npos);
  const auto verdict = end(candidates);
  EXPECT_EQ(verdict.count(Breach::overlap), 0u) << TENURE_PROMISE;
  EXPECT_EQ(verdict.count(Breach::token), 0u) << TENURE_PROMISE;
}
INSTANTIATE_TEST_SUITE_P(Terms, RedisSentinelTerms, testing::Values(1000, 2000));

/// True if the candidates went to the new master before Sentinels demoted the old one.
bool RedisSentinel::follow_a_planned_fail_over() {
  watch(2, 2s);  // of which one is left for the new master
  auto candidates = fleet(10s, "&replicas=1&first_claim=at_once");
  begin(candidates, 3);
  EXPECT_EQ(watched_->sentinels[0]->ask({"SENTINEL", "FAILOVER", "main"}), "OK");
  EXPECT_TRUE(eventually([&] { return promoted(); })) << watched_->sentinels[0]->log();
  const auto switched = boot_clock().now();
  const auto at = await_lease(candidates, switched);
  if (at == Fleet::npos) throw std::runtime_error("no lease on the new master");
  const bool before = !demoted();
  std::cout << "a lease on the new master " << (candidates.events()[at].at - switched) / 1ms
            << " ms after the switch\n";
  const auto& events = candidates.events();
  EXPECT_EQ(std::count_if(events.begin(), events.end(), is("elected")), 1) << "the leader went with it";
  EXPECT_TRUE(end(candidates).findings.empty()) << TENURE_PROMISE;
  return before;
}

TEST_F(RedisSentinel, APlannedFailOverIsFollowedBeforeTheOldMasterKnows) {
  bool before = false;  // Sentinels leave some seconds for it, and a busy machine may need them.
  for (int tries = 0; tries < 3 && !before; ++tries) before = follow_a_planned_fail_over();
  EXPECT_TRUE(before);
}

}  // namespace
}  // namespace tenure::test
