// SPDX-License-Identifier: Apache-2.0
// Goal: shares of a group differ by one at most, whoever comes and goes, with the least possible movement; and what the
// processes compute each for itself fits together. Method: groups that change at random.
#include "group/spread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include <tenure/spread.hpp>

namespace tenure {
namespace {

/// Who leads what, and what each process makes of it.
class Group {
 public:
  explicit Group(std::size_t elections) {
    for (std::size_t i = 0; i < elections; ++i) leader_["job-" + std::to_string(i)] = std::nullopt;
  }
  void join(std::uint64_t id, Member member = {}) { sessions_[SessionId{id}] = member; }
  void die(std::uint64_t id) {
    sessions_.erase(SessionId{id});
    for (auto& [election, leader] : leader_)
      if (leader == SessionId{id}) leader.reset();
  }

  Holdings seen_by(SessionId own) const {
    Holdings out{.own = own};
    for (const auto& [id, member] : sessions_) out.members[id] = member;
    for (const auto& [election, leader] : leader_) {
      if (leader) {
        ++out.members[*leader].held;
        out.led.push_back({election, *leader, Token{since_.at(election)}});
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
    for (const auto& [id, member] : sessions_) {
      const auto part = allot(seen_by(id));
      for (const auto& election : part.claims) EXPECT_TRUE(claimed.emplace(election, id).second) << "claimed by two";
      for (const auto& [election, heir] : part.gifts) {
        EXPECT_EQ(leader_[election], id) << "given by another";
        EXPECT_TRUE(given.emplace(election, heir).second);
      }
    }
    for (const auto& [election, id] : claimed) lead(election, id);
    for (const auto& [election, id] : given) lead(election, id);
    return given.size();
  }
  void lead(const std::string& election, SessionId id) {
    leader_[election] = id;
    since_[election] = ++tokens_;
  }

  std::pair<std::size_t, std::size_t> least_and_most() const {
    std::size_t least = leader_.size(), most = 0;
    for (const auto& [id, member] : seen_by({}).members) {
      least = std::min(least, member.held);
      most = std::max(most, member.held);
    }
    return {least, most};
  }
  std::optional<SessionId> leader(std::size_t i) const { return leader_.at("job-" + std::to_string(i)); }
  std::size_t sessions() const { return sessions_.size(); }
  std::size_t elections() const { return leader_.size(); }

 private:
  std::map<std::string, std::optional<SessionId>> leader_;
  std::map<std::string, std::uint64_t> since_;
  std::uint64_t tokens_{};
  std::map<SessionId, Member> sessions_;
};

/// What each has, in weights, and how many of it have to move from how it is now. Nobody may lead fewer.
std::size_t least_moves(const Holdings& now, std::size_t elections) {
  std::uint64_t weights = 0;
  for (const auto& [id, member] : now.members) weights += member.weight;
  std::size_t above = 0, would_stay = 0, rest = elections;
  for (const auto& [id, member] : now.members) {
    const auto down = elections * member.weight / weights;
    rest -= down;
    above += member.held > down ? member.held - down : 0;
    would_stay += member.held > down && elections * member.weight % weights != 0;
  }
  return above - std::min(would_stay, rest);
}

void expect_by_weight(const Group& group) {
  const auto seen = group.seen_by({});
  std::uint64_t weights = 0;
  for (const auto& [id, member] : seen.members) weights += member.weight;
  for (const auto& [id, member] : seen.members) {
    const auto part = group.elections() * member.weight;
    EXPECT_LT(member.held * weights, part + weights) << id.value;
    EXPECT_GT((member.held + 1) * weights, part) << id.value;
  }
}

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

/// Processes come and go at random, as `member` draws them. After each change this is expected.
template <class Draw, class Expect>
void expect_after_each_change(std::uint64_t seeds, std::size_t elections, Draw member, Expect expect) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Group group(1 + random() % elections);
    std::set<std::uint64_t> alive;
    for (int step = 0; step < 12; ++step) {
      if (alive.empty() || random() % 2) {
        const auto id = random() >> 1;
        alive.insert(id);
        group.join(id, member(random));
      } else {
        const auto it = std::next(alive.begin(), static_cast<std::ptrdiff_t>(random() % alive.size()));
        group.die(*it);
        alive.erase(it);
      }
      if (!alive.empty()) expect(group);
      ASSERT_FALSE(testing::Test::HasFailure());
    }
  }
}

TEST(GroupSpread, WhoeverComesAndGoesTheSharesDifferByOneAtMost) {
  expect_after_each_change(
      200, 60, [](auto&) { return Member{}; },
      [](Group& group) {
        group.settle();
        expect_even(group);
      });
}

TEST(GroupSpread, SharesAreInProportionToWeightsAndNoMoreMovesThanMust) {
  const auto weighted = [](auto& random) {
    return Member{.weight = static_cast<std::uint32_t>(1 + random() % (random() % 2 ? 5 : max_weight))};
  };
  expect_after_each_change(300, 80, weighted, [](Group& group) {
    const auto least = least_moves(group.seen_by({}), group.elections());
    EXPECT_EQ(group.settle(), least);
    expect_by_weight(group);
    EXPECT_EQ(group.settle(), 0u) << "it was calm";
  });
}

TEST(GroupSpread, WhoMayLeadFewerLeadsThoseAndTheOthersShareTheRest) {
  Group group(100);
  group.join(1, {.weight = 1, .most = 10});
  group.join(2, {.weight = 2});
  group.join(3, {.weight = 1});
  group.join(4, {.weight = 1000, .most = 0});
  group.settle();
  const auto members = group.seen_by({}).members;
  EXPECT_EQ(members.at({1}).held, 10u);
  EXPECT_EQ(members.at({2}).held, 60u);
  EXPECT_EQ(members.at({3}).held, 30u);
  EXPECT_EQ(members.at({4}).held, 0u);
  group.die(2);
  group.die(3);
  EXPECT_EQ(group.settle(), 0u);
  EXPECT_EQ(group.seen_by({}).members.at({1}).held, 10u) << "the others stay free";
}

TEST(GroupSpread, WhatWasHandedOverStaysAndAnotherOneGoesBack) {
  Group group(10);
  group.join(1);
  group.join(2);
  group.settle();
  std::size_t i = 0;
  while (group.leader(i) != SessionId{1}) ++i;
  group.lead("job-" + std::to_string(i), {2});
  EXPECT_EQ(group.settle(), 1u);
  EXPECT_EQ(group.leader(i), SessionId{2});
  EXPECT_EQ(group.settle(), 0u);
}

TEST(GroupSpread, AnHeirIsAnotherProcessAndOneThatHoldsLeast) {
  Holdings seen{.own = {1}, .members = {{{1}, {0}}, {{2}, {5}}, {{3}, {4}}, {{4}, {4}}}};
  std::set<std::uint64_t> heirs;
  for (int i = 0; i < 100; ++i) heirs.insert(heir_of("job-" + std::to_string(i), seen)->value);
  EXPECT_EQ(heirs, (std::set<std::uint64_t>{3, 4}));
  seen.members[{2}].weight = 2;
  EXPECT_EQ(heir_of("job", seen), SessionId{2}) << "it holds least for its weight";
  seen.members[{2}].most = 5;
  EXPECT_NE(heir_of("job", seen), SessionId{2});
  seen.members = {{{1}, {3}}};
  EXPECT_EQ(heir_of("job", seen), std::nullopt);
}

TEST(GroupSpread, NumbersAloneSayWhatIsClaimedAndHowManyAreHandedOver) {
  std::mt19937_64 random(5);
  int left_out = 0, moved = 0;
  for (int round = 0; round < 200; ++round) {
    Group group(1 + random() % 60);
    std::uint64_t next = 1;
    for (int change = 0; change < 6; ++change) {
      if (next < 3 || random() % 3 != 0)
        group.join(next++, {.weight = static_cast<std::uint32_t>(1 + random() % 3), .most = 5 + random() % 60});
      else
        group.die(1 + random() % (next - 1));
      for (std::uint64_t id = 1; id < next; ++id) {
        auto seen = group.seen_by(SessionId{id});
        if (!seen.members.contains(SessionId{id})) continue;
        const auto all = allot(seen);
        moved += !all.gifts.empty();
        left_out += !std::exchange(seen.led, {}).empty();
        const auto by_number = allot(seen);
        EXPECT_EQ(by_number.claims, all.claims);
        EXPECT_EQ(by_number.room, all.room);
        EXPECT_EQ(by_number.excess, all.gifts.size());
        EXPECT_EQ(all.excess, all.gifts.size());
      }
      group.settle();
    }
  }
  EXPECT_GT(left_out, 100);
  EXPECT_GT(moved, 100);
}

}  // namespace
}  // namespace tenure
