// SPDX-License-Identifier: Apache-2.0
// Goal: after each change of who may lead no more elections move than must, and none to a process that may not lead
// now. Method: several processes over one model of the store, one clock for all, one change at a time; every move is
// counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/kit/who.hpp>

#include "group_scene.hpp"

namespace tenure::test {
namespace {

using Time = Clock::Time;
using Duration = Clock::Duration;

constexpr Duration latency = 2ms;

class Crew {
 public:
  explicit Crew(std::size_t elections) {
    for (std::size_t i = 0; i < elections; ++i) names_.insert("job-" + std::to_string(1000 + i));
    store_.now_ms = 1'700'000'000'000;
  }

  /// A process that takes part in all of them. Says its number.
  std::size_t comes(StallLimits stall = {}) {
    const auto number = crew_.size();
    crew_.push_back(std::make_unique<One>());
    auto& one = *crew_.back();
    one.candidacy = std::make_unique<GroupCandidacy>(
        who_text({"p" + std::to_string(number), ""}, "life" + std::to_string(number)), group_timing,
        [this] { return drawn_ += 0x9e3779b97f4a7c15; }, Spread{});
    for (const auto& name : names_) one.candidacy->join(now_, name, stall);
    one.candidacy->start(now_);
    take(one);
    return number;
  }
  void stops(std::size_t number) { crew_[number]->candidacy->stop(now_), take(*crew_[number]); }
  void dies(std::size_t number) { crew_[number] = std::make_unique<One>(); }
  void resigns_all(std::size_t number, Duration cool_down) {
    for (const auto& name : names_) crew_[number]->candidacy->resign(now_, name, cool_down);
    take(*crew_[number]);
  }
  /// How long its ousting() of this election takes from now on.
  void is_slow(std::size_t number, const std::string& election, Duration takes) {
    crew_[number]->slow[election] = takes;
  }

  void pass(Duration by) {
    const auto until = now_ + by;
    while (next() <= until) {
      now_ = std::max(now_, next());
      store_.now_ms = 1'700'000'000'000 + now_.time_since_epoch() / 1ms;
      for (auto& one : crew_)
        if (one->candidacy) act(*one);
    }
    now_ = until;
  }

  std::size_t led(std::size_t number) const { return crew_[number]->led.size(); }
  std::string first_of(std::size_t number) const { return *crew_[number]->led.begin(); }
  std::size_t vacant() const {
    auto out = names_.size();
    for (const auto& one : crew_) out -= one->led.size();
    return out;
  }
  /// Healthy work that was ended for another process, since the last call.
  std::size_t moved() { return std::exchange(moved_, 0); }

 private:
  struct One {
    std::unique_ptr<GroupCandidacy> candidacy{};
    std::optional<GroupQuestion> asked{};
    Time answer_at{Time::max()};
    std::map<std::string, Time> ousting{};  ///< When it returns.
    std::map<std::string, Duration> slow{};
    std::set<std::string> led{};
  };
  static bool waits(const One& one) { return one.asked && std::holds_alternative<ask::Await>(one.asked->what); }

  Time next() const {
    auto at = Time::max();
    for (const auto& one : crew_) {
      if (!one->candidacy) continue;
      at = std::min({at, one->candidacy->next_alarm(), one->answer_at});
      for (const auto& [election, returns] : one->ousting) at = std::min(at, returns);
    }
    return std::max(at, now_);
  }

  void act(One& one) {
    while (!one.ousting.empty()) {
      const auto it = std::min_element(one.ousting.begin(), one.ousting.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
      if (it->second > now_) break;
      const auto election = one.ousting.extract(it).key();
      one.led.erase(election);
      one.candidacy->ousting_returned(now_, election);
      take(one);
      if (!one.candidacy) return;
    }
    if (one.answer_at <= now_) answer(one);
    if (one.candidacy && one.candidacy->next_alarm() <= now_) one.candidacy->tick(now_), take(one);
  }

  void answer(One& one) {
    const auto question = *std::exchange(one.asked, std::nullopt);
    one.answer_at = Time::max();
    const auto version = store_.version;
    if (waits({.asked = question}))
      one.candidacy->awaited(now_, question.id, std::nullopt);
    else
      hand(*one.candidacy, now_, question.id, carried_out(store_, question, [] { return std::uint64_t{1}; }));
    if (store_.version != version || std::holds_alternative<ask::End>(question.what))
      for (auto& other : crew_)
        if (waits(*other)) other->answer_at = now_ + latency;
    take(one);
  }

  void take(One& one) {
    std::vector<GroupEffect> effects;
    one.candidacy->take_effects(effects);
    bool ended = false;
    for (auto& effect : effects) {
      if (auto* ask = std::get_if<group_effect::Ask>(&effect)) {
        one.asked = ask->question;
        one.answer_at = waits(one) ? ask->question.by : now_ + latency;
      }
      if (std::holds_alternative<group_effect::Interrupt>(effect)) one.answer_at = now_;
      if (const auto* lead = std::get_if<group_effect::Lead>(&effect)) one.led.insert(lead->election);
      if (const auto* end = std::get_if<group_effect::End>(&effect)) {
        const auto slow = one.slow.find(end->election);
        one.ousting[end->election] = now_ + (slow == one.slow.end() ? 1ms : slow->second);
        moved_ += end->reason == Reason::handed_over;
      }
      ended |= std::holds_alternative<group_effect::Ended>(effect);
    }
    if (ended) one = One{};
  }

  std::set<std::string> names_;
  GroupModel store_{};
  Time now_{1h};
  std::uint64_t drawn_{};
  std::vector<std::unique_ptr<One>> crew_;
  std::size_t moved_{};
};

/// By the number of elections.
class GroupMoves : public testing::TestWithParam<std::size_t> {
 protected:
  /// Two that share all of them.
  void SetUp() override {
    a_ = crew_.comes();
    b_ = crew_.comes();
    crew_.pass(30s);
    ASSERT_EQ(crew_.led(a_), half());
    ASSERT_EQ(crew_.led(b_), half());
    crew_.moved();
  }
  static std::size_t all() { return GetParam(); }
  static std::size_t half() { return GetParam() / 2; }
  /// From now on nothing moves.
  void expect_rest(Duration by) {
    crew_.moved();
    crew_.pass(by);
    EXPECT_EQ(crew_.moved(), 0u) << "something moves for ever";
    EXPECT_EQ(crew_.vacant(), 0u);
  }

  Crew crew_{all()};
  std::size_t a_{}, b_{};
};

TEST_P(GroupMoves, WhoComesGetsItsShareAndNoMoreMoves) {
  const auto c = crew_.comes();
  crew_.pass(20s);
  EXPECT_EQ(crew_.moved(), crew_.led(c));
  EXPECT_EQ(crew_.led(c), all() / 3);
  expect_rest(1min);
}

TEST_P(GroupMoves, NothingMovesToOneThatStopsHoweverLongItsLastWorkTakes) {
  crew_.is_slow(a_, crew_.first_of(a_), 4s);
  crew_.stops(a_);
  crew_.pass(20s);
  EXPECT_EQ(crew_.moved(), 0u);
  EXPECT_EQ(crew_.led(b_), all());
  expect_rest(1min);
}

TEST_P(GroupMoves, WhatADeadOneLedIsTakenAndNothingElseMoves) {
  crew_.dies(a_);
  crew_.pass(20s);
  EXPECT_EQ(crew_.moved(), 0u);
  EXPECT_EQ(crew_.led(b_), all());
}

TEST_P(GroupMoves, OneThatDiesAndComesAgainAtOnceGetsWhatItLed) {
  crew_.dies(a_);
  crew_.pass(100ms);
  const auto again = crew_.comes();
  crew_.pass(20s);
  EXPECT_EQ(crew_.moved(), 0u);
  EXPECT_EQ(crew_.led(again), half());
  expect_rest(1min);
}

TEST_P(GroupMoves, NothingMovesToOneThatComesAndDiesAgainAndAgain) {
  for (int round = 0; round < 8; ++round) {
    const auto broken = crew_.comes();
    crew_.pass(100ms);
    crew_.dies(broken);
    crew_.pass(Duration(3s) + round * Duration(2s));
  }
  EXPECT_EQ(crew_.moved(), 0u);
  expect_rest(1min);
}

TEST_P(GroupMoves, NothingMovesToOneThatResignedForLong) {
  crew_.resigns_all(a_, 30min);
  crew_.pass(5s);
  EXPECT_EQ(crew_.led(b_), all());
  EXPECT_EQ(crew_.moved(), 0u);
  expect_rest(1min);
  crew_.pass(29min);
  EXPECT_EQ(crew_.led(a_), half()) << "its cool-down is over";
  EXPECT_EQ(crew_.moved(), half());
  expect_rest(1min);
}

TEST_P(GroupMoves, NothingMovesToOneWhoseWorkStalls) {
  const auto c = crew_.comes({.after = 500ms, .pause = 30min});
  crew_.pass(1min);
  EXPECT_EQ(crew_.led(c), 0u);
  EXPECT_LE(crew_.moved(), 2 * all()) << "each was tried once, and lay once";
  expect_rest(10min);
}

INSTANTIATE_TEST_SUITE_P(Quick, GroupMoves, testing::Values(6, 20, 300), testing::PrintToStringParamName());

}  // namespace
}  // namespace tenure::test
