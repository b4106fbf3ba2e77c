// SPDX-License-Identifier: Apache-2.0
// Goal: shares of a group differ by one at most, whoever comes and goes, with the least possible movement; and what the
// processes compute each for itself fits together. Method: groups that change at random.
#include "group/spread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tenure {
namespace {

/// Who leads what, and what each process makes of it.
class Group {
 public:
  explicit Group(std::size_t elections) {
    for (std::size_t i = 0; i < elections; ++i) leader_["job-" + std::to_string(i)] = std::nullopt;
  }
  void join(std::uint64_t id) { sessions_.insert(SessionId{id}); }
  void die(std::uint64_t id) {
    sessions_.erase(SessionId{id});
    for (auto& [election, leader] : leader_)
      if (leader == SessionId{id}) leader.reset();
  }

  Holdings seen_by(SessionId own) const {
    Holdings out{.own = own};
    for (const auto id : sessions_) out.held[id] = 0;
    for (const auto& [election, leader] : leader_) {
      if (leader) {
        ++out.held[*leader];
        out.led.emplace_back(election, *leader);
      } else {
        out.free.push_back(election);
      }
    }
    return out;
  }

  /// Everybody carries out its own part at the same time. Returns how many elections moved.
  std::size_t settle() {
    const auto before = leader_;
    std::map<std::string, SessionId> claimed, given;
    for (const auto id : sessions_) {
      const auto part = allot(seen_by(id));
      for (const auto& election : part.claims) EXPECT_TRUE(claimed.emplace(election, id).second) << "claimed by two";
      for (const auto& [election, heir] : part.gifts) {
        EXPECT_EQ(leader_[election], id) << "given by another";
        EXPECT_TRUE(given.emplace(election, heir).second);
      }
    }
    for (const auto& [election, id] : claimed) leader_[election] = id;
    for (const auto& [election, id] : given) leader_[election] = id;
    return given.size();
  }

  std::pair<std::size_t, std::size_t> least_and_most() const {
    const auto held = seen_by({}).held;
    std::size_t least = leader_.size(), most = 0;
    for (const auto id : sessions_) {
      least = std::min(least, held.at(id));
      most = std::max(most, held.at(id));
    }
    return {least, most};
  }
  std::size_t sessions() const { return sessions_.size(); }
  std::size_t elections() const { return leader_.size(); }

 private:
  std::map<std::string, std::optional<SessionId>> leader_;
  std::set<SessionId> sessions_;
};

void expect_even(const Group& group) {
  const auto [least, most] = group.least_and_most();
  EXPECT_EQ(least, group.elections() / group.sessions());
  EXPECT_EQ(most, (group.elections() + group.sessions() - 1) / group.sessions());
}

TEST(GroupSpread, FreshProcessesShareEvenlyAndNothingMovesAfterwards) {
  for (const std::size_t elections : {1u, 12u, 100u, 1000u}) {
    Group group(elections);
    for (std::uint64_t id = 1; id <= 7; ++id) group.join(id * 7919);
    EXPECT_EQ(group.settle(), 0u);
    expect_even(group);
    EXPECT_EQ(group.settle(), 0u);
  }
}

TEST(GroupSpread, AProcessThatComesTakesItsShareAndNoMoreMoves) {
  Group group(1000);
  for (std::uint64_t id = 1; id <= 3; ++id) group.join(id);
  group.settle();
  group.join(4);
  EXPECT_EQ(group.settle(), 250u);
  expect_even(group);
  EXPECT_EQ(group.settle(), 0u);
}

TEST(GroupSpread, OnlyWhatADeadProcessLedIsTakenOver) {
  Group group(1000);
  for (std::uint64_t id = 1; id <= 4; ++id) group.join(id);
  group.settle();
  group.die(2);
  EXPECT_EQ(group.settle(), 0u);
  expect_even(group);
}

TEST(GroupSpread, WhoeverComesAndGoesTheSharesDifferByOneAtMost) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    Group group(1 + random() % 60);
    std::set<std::uint64_t> alive;
    for (int step = 0; step < 12; ++step) {
      if (alive.empty() || random() % 2) {
        const auto id = random() >> 1;
        alive.insert(id);
        group.join(id);
      } else {
        const auto it = std::next(alive.begin(), static_cast<std::ptrdiff_t>(random() % alive.size()));
        group.die(*it);
        alive.erase(it);
      }
      if (alive.empty()) continue;
      group.settle();
      expect_even(group);
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    }
  }
}

TEST(GroupSpread, AnHeirIsAnotherProcessAndOneThatHoldsLeast) {
  Holdings seen{.own = {1}, .held = {{{1}, 0}, {{2}, 5}, {{3}, 4}, {{4}, 4}}};
  std::set<std::uint64_t> heirs;
  for (int i = 0; i < 100; ++i) heirs.insert(heir_of("job-" + std::to_string(i), seen)->value);
  EXPECT_EQ(heirs, (std::set<std::uint64_t>{3, 4}));
  seen.held = {{{1}, 3}};
  EXPECT_EQ(heir_of("job", seen), std::nullopt);
}

}  // namespace
}  // namespace tenure
