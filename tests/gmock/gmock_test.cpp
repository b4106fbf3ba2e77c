// SPDX-License-Identifier: Apache-2.0
// Goal: a forgotten expectation elects nobody, writes nothing, and makes no loop run hot. Method: mocks without an
// instruction.
#include <gtest/gtest.h>

#include <tenure/gmock.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/manual_clock.hpp>
#include <thread>

namespace tenure {
namespace {

using testing::_;
using testing::NiceMock;

TEST(MockBackend, WithoutAnInstructionVerbsAnswerUnknown) {
  ManualClock clock;
  NiceMock<MockBackend> backend;
  const Limit limit{clock, clock.now() + std::chrono::seconds(1), {}};
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend.acquire(limit)));
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend.renew(Token{1}, limit)));
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend.observe(limit)));
  EXPECT_EQ(backend.accepts(Timing::of(std::chrono::seconds(1))), std::nullopt);
}

TEST(MockBackend, WithoutAnInstructionAwaitChangeSleepsUntilItsLimit) {
  ManualClock clock;
  NiceMock<MockBackend> backend;
  const auto by = clock.now() + std::chrono::seconds(1);
  std::jthread waiter([&] { backend.await_change(Vacant{}, Limit{clock, by, {}}); });
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(clock.next_alarm(), by);
  clock.advance_to(by);
}

TEST(MockConditionalStore, WithoutAnInstructionNobodyIsElected) {
  ManualClock clock;
  const auto store = std::make_shared<NiceMock<MockConditionalStore>>();
  const auto backend = lock_table(store, "jobs", {"a", ""});
  const Limit limit{clock, clock.now() + std::chrono::seconds(1), {}};
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend->acquire(limit)));
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend->observe(limit)));
  EXPECT_EQ(backend->release(limit), std::nullopt);
}

}  // namespace
}  // namespace tenure
