// SPDX-License-Identifier: Apache-2.0
// Goal: processes that share many elections are stopped for a while, and each election has at most one leader. The
// judge would notice otherwise. Method: real processes and a Redis server of the test's own. Each fault meets the sound
// build, and a build with one rule broken on purpose that this fault must show.
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>
#include <optional>

#include "expect_sound.hpp"
#include "nemesis.hpp"
#include "scratch.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr Clock::Duration term = 1s;
constexpr std::size_t elections = 40;

class ManyChaos : public ::testing::Test {
 protected:
  void SetUp() override {
    TENURE_NEEDS_REDIS();
    server_.emplace();
  }

  Fleet fleet(const char* program) {
    return {
        program,
        {"--store", "redis://" + server_->address(), "--election", "chaos", "--elections", std::to_string(elections),
         "--term-ms", std::to_string(term / 1ms), "--sample-us", "2000", "--note-ms", "20"},
        scratch_ / ("journal" + std::to_string(++fleets_))};
  }

  /// A broken rule shows only in some moments, and on a busy machine a round may miss them.
  template <class Round>
  bool shows(const char* broken, Breach breach, Round round) {
    for (int i = 0; i < 5; ++i) {
      auto candidates = fleet(broken);
      if (round(candidates).count(breach) > 0) return true;
    }
    return false;
  }

  Scratch scratch_;
  std::optional<redis::test::Server> server_;

 private:
  int fleets_{};
};

/// How many elections a process leads by what it sampled last.
std::size_t led(Fleet& fleet, pid_t pid) {
  History history;
  for (const auto& event : fleet.events()) history.take(event);
  const auto all = history.led(boot_clock().now());
  return all.contains(pid) ? all.at(pid) : 0;
}

Verdict end_all(Fleet& fleet) {
  fleet.end_all(30s);
  return judge(fleet.events());
}

/// One that leads half of them is stopped, until the other one leads at least one of these; at most that long.
Verdict stop_one(Fleet& fleet, Clock::Duration for_that_long) {
  const auto first = fleet.start("first");
  EXPECT_TRUE(redis::test::eventually([&] { return led(fleet, first) == elections; }));
  const auto second = fleet.start("second");
  EXPECT_TRUE(redis::test::eventually([&] { return led(fleet, second) == elections / 2; }));
  const auto from = fleet.events().size();
  fleet.stop(first);
  fleet.await(from, is("lead", second), for_that_long);
  const auto resumed = fleet.events().size();
  fleet.resume(first);
  fleet.await(
      resumed, [&](const Event& e) { return (e.what == "follow" || e.what == "holds") && e.pid == first; }, term * 4);
  return end_all(fleet);
}

constexpr Clock::Duration moment = term / 3, long_enough = term * 10;

Verdict long_stop(Fleet& fleet) { return stop_one(fleet, long_enough); }

TEST_F(ManyChaos, AShortStopBreaksNoPromise) {
  auto candidates = fleet(TENURE_CANDIDATE);
  expect_sound(stop_one(candidates, moment));
}

TEST_F(ManyChaos, ALongStopBreaksNoPromise) {
  auto candidates = fleet(TENURE_CANDIDATE);
  expect_sound(long_stop(candidates));
}

/// The work of each tenure takes a while to stop, and half of them are handed over.
Verdict hand_over_half(Fleet& fleet) {
  const auto first = fleet.start("first", {"--work-ms", "100"});
  EXPECT_TRUE(redis::test::eventually([&] { return led(fleet, first) == elections; }));
  const auto second = fleet.start("second");
  EXPECT_TRUE(redis::test::eventually([&] { return led(fleet, second) == elections / 2; }));
  return end_all(fleet);
}

TEST_F(ManyChaos, AHandOverBreaksNoPromise) {
  auto candidates = fleet(TENURE_CANDIDATE);
  expect_sound(hand_over_half(candidates));
}

#ifdef TENURE_CANDIDATE_MANY_LATE  // where the builds with a broken rule are built

TEST_F(ManyChaos, ABuildThatEndsSessionsUnderALeaseIsFound) {
  EXPECT_TRUE(shows(TENURE_CANDIDATE_MANY_NO_WAIT, Breach::overlap, long_stop));
}

TEST_F(ManyChaos, ABuildThatLeadsOnPastItsDeadlineIsFound) {
  EXPECT_TRUE(shows(TENURE_CANDIDATE_MANY_LATE, Breach::overlap, long_stop));
}

TEST_F(ManyChaos, ABuildThatOustsTwiceIsFound) {
  EXPECT_TRUE(shows(TENURE_CANDIDATE_MANY_TWICE, Breach::hooks, hand_over_half));
}

#endif

}  // namespace
}  // namespace tenure::test
