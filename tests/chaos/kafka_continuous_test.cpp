// SPDX-License-Identifier: Apache-2.0
// Goal: if two disjoint groups lead the same roles (examples/continuous.cpp), no role is without a leader at any
// moment, whichever process is killed. Method: real processes over a real broker, and some of them are killed at
// random moments: five, or twenty in `tests/run all`. The judge reads the journal. Of the processes of one group alone
// it must find a gap after every kill.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tenure/kit/wait.hpp>

#include "coverage.hpp"
#include "eventually.hpp"
#include "nemesis.hpp"
#include "scratch.hpp"
#include "seeds.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr int processes_per_group = 2, number_of_roles = 12;

std::set<std::string> roles() {
  std::set<std::string> out;
  for (int i = 0; i < number_of_roles; ++i) out.insert(std::to_string(i));
  return out;
}

/// By the number of losses.
class KafkaContinuous : public ::testing::TestWithParam<int> {
 protected:
  struct Process {
    pid_t pid;
    std::string side;
  };

  void SetUp() override {
    const auto* brokers = std::getenv("TENURE_KAFKA_BROKERS");
    if (brokers == nullptr) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
    // Sessions of 3.3 s, which the brokers of tests/run allow. What is not renewed is led for 14.7 s. With a third of
    // that, a broker that a busy machine starved for some seconds answered later than the promise presumes.
    fleet_.emplace(
        TENURE_CANDIDATE,
        std::vector<std::string>{"--store",
                                 "kafka://" + std::string(brokers) +
                                     "?exclusive=no&units=6&min_session_ms=100&socket.timeout.ms=1500&"
                                     "create_topic=true",
                                 "--elections", std::to_string(number_of_roles), "--term-ms", "15000", "--renew-ms",
                                 "900", "--call-ms", "1500", "--sample-us", "5000", "--note-ms", "20"},
        scratch_ / "journal");
    std::cout << "chaos: again: " << again(seed_) << '\n';
  }

  void start(const std::string& side) {
    const auto group = scratch_.path().filename().string() + "-" + side;
    running_.push_back({fleet_->start(side, {"--election", group}), side});
    sides_[running_.back().pid] = side;
  }

  /// Kills one of them without a warning. Another one starts in its place.
  Event lose_one() {
    const auto victim = running_.begin() + std::uniform_int_distribution<long>(0, std::ssize(running_) - 1)(random_);
    const auto side = victim->side;
    fleet_->note(done_to::killed, victim->pid);
    fleet_->signal(victim->pid, SIGKILL);
    EXPECT_TRUE(fleet_->reap(victim->pid, 10s));
    running_.erase(victim);
    start(side);
    const auto& events = fleet_->events();
    return *std::find_if(events.rbegin(), events.rend(), [](const Event& e) { return e.what == done_to::killed; });
  }

  /// In each group each role is led by one process, and each process leads some.
  bool all_are_back() {
    std::map<pid_t, std::set<std::string>> led;
    for (const auto& e : fleet_->events()) {
      if (e.what == "lead") led[e.pid].insert(e.election);
      if (e.what == "follow") led[e.pid].erase(e.election);
    }
    std::map<std::string, std::multiset<std::string>> of_side;
    for (const auto& process : running_) {
      const auto& its = led[process.pid];
      if (its.empty()) return false;
      of_side[process.side].insert(its.begin(), its.end());
    }
    const auto once = roles();
    return std::all_of(of_side.begin(), of_side.end(), [&](const auto& side) {
      return std::equal(side.second.begin(), side.second.end(), once.begin(), once.end());
    });
  }

  std::vector<Event> journal_of(const std::string& side) {
    std::vector<Event> out;
    for (const auto& e : fleet_->events())
      if (sides_.contains(e.pid) && sides_.at(e.pid) == side) out.push_back(e);
    return out;
  }

  void wait_a_random_moment() {
    const std::chrono::milliseconds moment(std::uniform_int_distribution<int>(0, 1000)(random_));
    wait_out({boot_clock(), boot_clock().now() + moment, {}});
  }

  Scratch scratch_;
  std::optional<Fleet> fleet_;
  std::vector<Process> running_;
  std::map<pid_t, std::string> sides_;  ///< Of all that ever ran.

 private:
  const std::uint64_t seed_{Plan::from_environment({}).seed};
  std::mt19937_64 random_{seed_};
};

INSTANTIATE_TEST_SUITE_P(Quick, KafkaContinuous, testing::Values(5), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Long, KafkaContinuous, testing::Values(20), testing::PrintToStringParamName());

TEST_P(KafkaContinuous, NoRoleIsWithoutALeaderWhicheverProcessIsLost) {
  const int losses = GetParam();
  for (int i = 0; i < processes_per_group; ++i)
    for (const auto* side : {"north", "south"}) start(side);
  const auto back = [this] { return all_are_back(); };
  ASSERT_TRUE(eventually(back, 120s));
  const auto from = boot_clock().now();
  std::vector<Event> lost;
  for (int i = 0; i < losses; ++i) {
    wait_a_random_moment();
    lost.push_back(lose_one());
    ASSERT_TRUE(eventually(back, 120s)) << "after " << i + 1 << " losses";
  }
  const auto to = boot_clock().now();
  fleet_->events();
  for (const auto& gap : gaps(fleet_->events(), roles(), from, to))
    ADD_FAILURE() << "role " << gap.election << " had no leader for " << (gap.to - gap.from) / 1ms << " ms "
                  << TENURE_PROMISE;

  Clock::Duration longest{};
  for (const auto& kill : lost) {
    const auto alone = gaps(journal_of(sides_.at(kill.pid)), roles(), from, to);
    const auto its = std::find_if(alone.begin(), alone.end(), [&](const Gap& gap) { return gap.from == kill.at; });
    EXPECT_TRUE(its != alone.end()) << "its own group had no gap after a kill";
    if (its != alone.end()) longest = std::max(longest, its->to - its->from);
  }
  std::cout << "chaos: " << losses << " killed in " << (to - from) / 1s
            << " s; without the other group a role had no leader for up to " << longest / 1ms << " ms\n";
}

}  // namespace
}  // namespace tenure::test
