// SPDX-License-Identifier: Apache-2.0
// Goal: whatever the order of events, no role is led by two processes at once, and its tokens rise. Method: whole
// processes play with the model of a coordinator in roles_world.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "roles_world.hpp"

namespace tenure::kafka {
namespace {

using namespace test;

const Timing timing{.term = 6250ms,
                    .renew = 500ms,
                    .retry = 100ms,
                    .margin = 250ms,
                    .call = 2s,
                    .drain = 3s,
                    .clock_rate_error = 0.0005};

EitherRoles machine_of(int units, const std::string& incarnation) {
  return Roles({.units = units,
                .lease = timing.term,
                .margin = timing.margin,
                .observe_every = 125ms,
                .incarnation = incarnation});
}
EitherRoles machine(const std::string& incarnation) { return machine_of(sim_units, incarnation); }

void crash(World& world, Process& victim) {
  victim.crashed = true;
  for (auto& m : world.members)
    if (m.process == &victim) m.silent = true, m.last_heard = world.now;
}

void run(World& world, Duration length, int shake_one_in) {
  std::uint64_t seed = world.random();
  world.run(length, [&] {
    world.check_exclusive();
    if (shake_one_in == 0 || !world.chance(shake_one_in)) return;
    auto& victim = *world.processes[world.random() % world.processes.size()];
    switch (world.random() % 4) {
      case 0: {  // A crash, and another process in its place.
        crash(world, victim);
        world.start(++seed);
        break;
      }
      case 1:  // It is cut off for longer than a session, and does not notice.
        for (auto& m : world.members)
          if (m.process == &victim) m.silent = true, m.last_heard = world.now;
        break;
      case 2:
        if (!victim.crashed) {
          victim.candidacy.stop(world.now);
          victim.take_effects();
          world.start(++seed);
        }
        break;
      default: world.rebalance(); world.complete();
    }
  });
}

void play(std::uint64_t seed, Duration length, int shake_one_in) {
  World world(seed, timing, machine);
  for (std::uint64_t i = 0; i < 3; ++i) world.start(seed * 100 + i);
  run(world, length, shake_one_in);
  ASSERT_EQ(world.wrong, "") << "at " << (world.now - Time{1h}) / 1ms << " ms";
  // In the end all comes to rest, and every role is led.
  world.faults = false;
  run(world, 60s, 0);
  ASSERT_EQ(world.wrong, "");
  for (const auto& role : sim_roles()) EXPECT_EQ(world.leaders(role), 1) << role;
  static std::size_t tenures = 0, commits = 0, late_copies = 0;
  static int evictions = 0, generations = 0, moves = 0;
  tenures += world.tenures, commits += world.commits, late_copies += world.late_copies, evictions += world.evictions,
      generations += world.generation, moves += world.moves;
  testing::Test::RecordProperty("tenures", static_cast<int>(tenures));
  std::printf(
      "seed %llu: so far %zu tenures, %d hand-overs, %zu commits, %zu late copies, %d evictions, %d generations\n",
      static_cast<unsigned long long>(seed), tenures, moves, commits, late_copies, evictions, generations);
}

class RolesSim : public Simulation {};
TENURE_SIMULATION(RolesSim);

TEST(RolesSimOnce, AtRestEachRoleIsLedOnceAndOneCommitPerRenewalKeepsThemAll) {
  World world(1, timing, machine);
  world.faults = false;
  for (std::uint64_t i = 0; i < 3; ++i) world.start(100 + i);
  run(world, 60s, 0);
  const auto before = world.commits;
  const auto tenures = world.tenures;
  run(world, 60s, 0);
  EXPECT_EQ(world.wrong, "");
  EXPECT_EQ(world.tenures, tenures);
  EXPECT_LE(world.commits - before, 3u * 120 + 3);
  EXPECT_GE(world.commits - before, 3u * 100);
}

TEST_P(RolesSim, NoRoleIsLedByTwoAndTokensRise) {
  test::for_each_seed(seeds(6), [](std::uint64_t seed) { play(seed, 180s, 6000); });
}

#ifndef __SANITIZE_ADDRESS__  // That a broken rule is found is nothing that a sanitizer must see.
TEST(RolesSimOnce, WhoClaimsWhenIsLeaderIsFalseAndTheWorkMayStillGoOnIsFound) {
  const auto hasty = [](const std::string& incarnation) {
    return Roles({.units = sim_units,
                  .lease = timing.term - timing.margin,
                  .margin = timing.margin,
                  .observe_every = 125ms,
                  .incarnation = incarnation});
  };
  std::string wrong;
  for (std::uint64_t seed = 1; seed <= 16 && wrong.empty(); ++seed) {
    World world(seed, timing, hasty);
    for (std::uint64_t i = 0; i < 3; ++i) world.start(seed * 100 + i);
    run(world, 120s, 3000);
    wrong = world.wrong;
  }
  EXPECT_NE(wrong.find("the work of"), wrong.npos) << wrong;
}
#endif

// ---- R15: the number of units grows ----

/// Whoever is started later knows the number from before, or the one that the topic has room for.
void play_growth(std::uint64_t seed, int shake_one_in) {
  std::vector<int> known{sim_units};
  World world(seed, timing, nullptr);
  world.make = [&](const std::string& incarnation) {
    return machine_of(known[world.random() % known.size()], incarnation);
  };
  for (std::uint64_t i = 0; i < 3; ++i) world.start(seed * 100 + i);
  run(world, 15s, shake_one_in);
  for (const int units : {2 * sim_units, 6 * sim_units}) {
    world.topic_units = units;
    known.push_back(units);
    run(world, 5s, shake_one_in);
    world.start(seed * 1000 + static_cast<std::uint64_t>(units));
    run(world, 40s, shake_one_in);
  }
  ASSERT_EQ(world.wrong, "") << "at " << (world.now - Time{1h}) / 1ms << " ms";
  world.faults = false;
  run(world, 90s, 0);
  ASSERT_EQ(world.wrong, "");
  for (const auto& role : sim_roles()) EXPECT_EQ(world.leaders(role), 1) << role;
  for (const auto& member : world.members) EXPECT_EQ(member.process->units(), 6 * sim_units);
}

TEST_P(RolesSim, WhileUnitsGrowNoRoleIsLedByTwoAndTokensRise) {
  test::for_each_seed(seeds(12), [](std::uint64_t seed) { play_growth(seed, seed % 2 == 0 ? 0 : 3000); });
}

/// All processes crash, or some, while some units do not tell the number of unit 0 yet. Who follows knows a larger one,
/// or may. Returns whether it came to that.
bool play_growth_that_stops(std::uint64_t seed) {
  std::vector<int> known{sim_units};
  World world(seed, timing, nullptr);
  world.make = [&](const std::string& incarnation) {
    return machine_of(known[world.random() % known.size()], incarnation);
  };
  for (std::uint64_t i = 0; i < 3; ++i) world.start(seed * 100 + i);
  run(world, 15s, 0);
  constexpr int grown = 2 * sim_units;
  constexpr int larger = 4 * sim_units;
  world.topic_units = grown;
  world.rebalance();
  world.complete();
  const auto numbers = [&world] { return UnitNumbers(world.read(partitions_of(grown))); };
  for (int i = 0; i < 6000 && numbers().units() != grown; ++i) run(world, 10ms, 0);
  run(world, std::chrono::milliseconds(world.random() % 400), 0);
  const bool stopped = numbers().units() == grown && !numbers().complete();
  const bool all = seed % 2 == 0;
  for (const auto& process : world.processes)
    if (all || world.chance(3)) crash(world, *process);
  world.topic_units = larger;
  known = all ? std::vector{larger} : std::vector{sim_units, grown, larger};
  for (std::uint64_t i = 0; i < 3; ++i) world.start(seed * 1000 + i);
  run(world, 60s, seed % 4 < 2 ? 0 : 3000);
  EXPECT_EQ(world.wrong, "") << "at " << (world.now - Time{1h}) / 1ms << " ms";
  world.faults = false;
  run(world, 90s, 0);
  EXPECT_EQ(world.wrong, "");
  for (const auto& role : sim_roles()) EXPECT_EQ(world.leaders(role), 1) << role;
  for (const auto& member : world.members) EXPECT_EQ(member.process->units(), larger);
  return stopped;
}

TEST_P(RolesSim, AGrowthThatStoppedHalfWayIsFinishedByWhoKnowsALargerNumber) {
  int stopped = 0;
  const bool all = test::for_each_seed(seeds(8), [&](std::uint64_t seed) { stopped += play_growth_that_stops(seed); });
  EXPECT_TRUE(!all || stopped > 0) << "or this is not the case that is meant";
}

}  // namespace
}  // namespace tenure::kafka
