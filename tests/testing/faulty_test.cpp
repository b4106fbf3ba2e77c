// SPDX-License-Identifier: Apache-2.0
// Goal: faults on demand are what they are called. Method: mocks that count what arrives, and a ManualClock.
#include <tenure/faulty.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include <tenure/gmock.hpp>
#include <tenure/manual_clock.hpp>

namespace tenure {
namespace {

using namespace std::chrono_literals;
using testing::_;
using testing::NiceMock;
using testing::Return;

class FaultyTest : public testing::Test {
 protected:
  Limit limit() { return {clock, clock.now() + 1s, {}}; }
  static std::optional<Fault> fault_of(const Answer& answer) {
    const auto* unknown = std::get_if<Unknown>(&answer);
    return unknown ? std::optional(unknown->error.fault) : std::nullopt;
  }

  ManualClock clock;
  std::shared_ptr<NiceMock<MockBackend>> real = std::make_shared<NiceMock<MockBackend>>();
  FaultyBackend backend{real};
  std::shared_ptr<NiceMock<MockConditionalStore>> real_store = std::make_shared<NiceMock<MockConditionalStore>>();
  FaultyStore store{real_store};
};

TEST_F(FaultyTest, WithoutAScriptNothingIsChanged) {
  EXPECT_CALL(*real, acquire(_)).WillOnce(Return(Granted{{7}}));
  EXPECT_CALL(*real, election()).WillOnce(Return("jobs"));
  EXPECT_EQ(std::get<Granted>(backend.acquire(limit())).token, Token{7});
  EXPECT_EQ(backend.election(), "jobs");
  EXPECT_EQ(backend.mishaps(), 0u);
}

TEST_F(FaultyTest, WhatIsUnsentDoesNotArrive) {
  backend.next(Mishap::unsent, 3);
  EXPECT_CALL(*real, acquire(_)).Times(0);
  EXPECT_CALL(*real, renew(_, _)).Times(0);
  EXPECT_CALL(*real, release(_)).WillOnce(Return(std::nullopt));
  EXPECT_EQ(fault_of(backend.acquire(limit())), Fault::unreachable);
  EXPECT_EQ(fault_of(backend.renew({7}, limit())), Fault::unreachable);
  EXPECT_EQ(backend.release(limit())->fault, Fault::unreachable);
  EXPECT_EQ(backend.release(limit()), std::nullopt);
  EXPECT_EQ(backend.mishaps(), 3u);
}

TEST_F(FaultyTest, ALostAnswerHasTakenEffect) {
  backend.next(Mishap::none);
  backend.next(Mishap::answer_lost);
  EXPECT_CALL(*real, renew(Token{7}, _)).Times(2).WillRepeatedly(Return(Granted{{7}}));
  EXPECT_EQ(fault_of(backend.renew({7}, limit())), std::nullopt);
  EXPECT_EQ(fault_of(backend.renew({7}, limit())), Fault::timed_out);
}

TEST_F(FaultyTest, OfARepeatedWriteTheFirstAnswerCounts) {
  backend.next(Mishap::repeated);
  EXPECT_CALL(*real, renew(_, _)).WillOnce(Return(Granted{{7}})).WillOnce(Return(Denied{}));
  EXPECT_EQ(fault_of(backend.renew({7}, limit())), std::nullopt);
  store.next(Mishap::repeated);
  EXPECT_CALL(*real_store, compare_and_set(_, _, _)).WillOnce(Return(Swap{true, {}})).WillOnce(Return(Swap{false, {}}));
  EXPECT_TRUE(store.compare_and_set(std::nullopt, {}, limit())->applied);
}

TEST_F(FaultyTest, AHeldWriteArrivesLater) {
  store.next(Mishap::held);
  EXPECT_CALL(*real_store, compare_and_set(_, _, _)).Times(0);
  EXPECT_EQ(store.compare_and_set(std::nullopt, {.token = {7}}, limit()).error().fault, Fault::timed_out);
  testing::Mock::VerifyAndClear(real_store.get());
  EXPECT_CALL(*real_store, compare_and_set(_, Record{.token = {7}}, _)).WillOnce(Return(Swap{true, {}}));
  EXPECT_EQ(store.deliver_held(limit()), 1u);
  EXPECT_EQ(store.deliver_held(limit()), 0u);
  EXPECT_THROW(backend.next(Mishap::held), std::invalid_argument);
}

TEST_F(FaultyTest, AStoreThatIsUnreachableAnswersNothing) {
  backend.unreachable(true);
  store.unreachable(true);
  EXPECT_CALL(*real, observe(_)).Times(0);
  EXPECT_CALL(*real_store, read(_)).Times(0);
  EXPECT_EQ(std::get<Unknown>(backend.observe(limit())).error.fault, Fault::unreachable);
  EXPECT_EQ(store.read(limit()).error().fault, Fault::unreachable);
  EXPECT_EQ(store.request_step_down({}, limit())->fault, Fault::unreachable);
  backend.unreachable(false);
  EXPECT_CALL(*real, renew(_, _)).WillOnce(Return(Granted{{7}}));
  EXPECT_EQ(fault_of(backend.renew({7}, limit())), std::nullopt);
}

TEST_F(FaultyTest, AStoreThatHangsEndsEachCallAtItsLimit) {
  backend.hang(true);
  EXPECT_CALL(*real, acquire(_)).Times(0);
  EXPECT_CALL(*real, await_change(_, _)).Times(0);
  const auto at_its_limit = [&](auto call) {
    const auto within = limit();
    std::jthread caller([&] { call(within); });
    EXPECT_TRUE(clock.await_parked(1));
    EXPECT_EQ(clock.next_alarm(), within.by);
    clock.advance_to(within.by);
  };
  at_its_limit([&](const Limit& within) { EXPECT_EQ(fault_of(backend.acquire(within)), Fault::timed_out); });
  at_its_limit([&](const Limit& within) { backend.await_change(Vacant{}, within); });
}

TEST_F(FaultyTest, ASlowAnswerComesLaterOrIsLostAtTheLimit) {
  ON_CALL(*real, renew(_, _)).WillByDefault(Return(Granted{{7}}));
  const auto answered_after = [&](Clock::Duration delay) {
    backend.slow(delay);
    const auto began = clock.now();
    Answer answer;
    {
      std::jthread caller([&, within = limit()] { answer = backend.renew({7}, within); });
      EXPECT_TRUE(clock.await_parked(1));
      clock.advance_to(clock.next_alarm());
    }
    return std::pair(clock.now() - began, fault_of(answer));
  };
  EXPECT_EQ(answered_after(300ms), std::pair(Clock::Duration(300ms), std::optional<Fault>()));
  EXPECT_EQ(answered_after(3s), std::pair(Clock::Duration(1s), std::optional(Fault::timed_out)));
}

TEST_F(FaultyTest, ASeedRepeatsTheMishaps) {
  ON_CALL(*real, renew(_, _)).WillByDefault(Return(Granted{{7}}));
  const auto story = [&](std::uint64_t seed, double share) {
    backend.at_random(seed, share);
    std::vector<std::optional<Fault>> out;
    for (int i = 0; i < 200; ++i) out.push_back(fault_of(backend.renew({7}, limit())));
    return out;
  };
  EXPECT_EQ(story(1, 0.5), story(1, 0.5));
  EXPECT_NE(story(1, 0.5), story(2, 0.5));
  EXPECT_EQ(story(1, 0), std::vector<std::optional<Fault>>(200));
  const auto all = story(1, 1);
  EXPECT_GT(std::count(all.begin(), all.end(), Fault::unreachable), 0);
  EXPECT_GT(std::count(all.begin(), all.end(), Fault::timed_out), 0);
  EXPECT_GT(std::count(all.begin(), all.end(), std::nullopt), 0) << "repeated";
  EXPECT_THROW(backend.at_random(1, 1.5), std::invalid_argument);
}

TEST_F(FaultyTest, ByChanceHeldWritesArriveWithLaterOnes) {
  int arrived = 0;
  ON_CALL(*real_store, compare_and_set(_, _, _)).WillByDefault([&](const auto&, const auto&, const auto&) {
    ++arrived;
    return Swap{true, {}};
  });
  store.next(Mishap::held);
  static_cast<void>(store.compare_and_set(std::nullopt, {}, limit()));
  EXPECT_EQ(arrived, 0);
  store.at_random(1, 1e-9);
  for (int i = 0; i < 100; ++i) static_cast<void>(store.compare_and_set(std::nullopt, {}, limit()));
  EXPECT_EQ(arrived, 101);
  store.clear();
  EXPECT_EQ(store.deliver_held(limit()), 0u);
}

}  // namespace
}  // namespace tenure
