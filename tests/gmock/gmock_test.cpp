// SPDX-License-Identifier: Apache-2.0
// Goal: a forgotten expectation elects nobody, writes nothing and does not spin. Method: mocks that were told
// nothing.
#include <gtest/gtest.h>

#include <tenure/gmock.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/manual_clock.hpp>
#include <thread>

namespace tenure {
namespace {

using testing::_;
using testing::NiceMock;

TEST(MockBackend, ToldNothingAnswersUnknown) {
  ManualClock clock;
  NiceMock<MockBackend> backend;
  const Limit limit{clock, clock.now() + std::chrono::seconds(1), {}};
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend.acquire(limit)));
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend.renew(Token{1}, limit)));
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend.observe(limit)));
  EXPECT_EQ(backend.accepts(Timing::of(std::chrono::seconds(1))), std::nullopt);
}

TEST(MockBackend, ToldNothingWaitsOutItsLimit) {
  ManualClock clock;
  NiceMock<MockBackend> backend;
  const auto by = clock.now() + std::chrono::seconds(1);
  std::jthread waiter([&] { backend.await_change(Vacant{}, Limit{clock, by, {}}); });
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(clock.next_alarm(), by);
  clock.advance_to(by);
}

TEST(MockBackend, DoesAsTold) {
  ManualClock clock;
  MockBackend backend;
  EXPECT_CALL(backend, acquire(_)).WillOnce(testing::Return(Granted{Token{7}}));
  const auto answer = backend.acquire(Limit{clock, clock.now() + std::chrono::seconds(1), {}});
  ASSERT_TRUE(std::holds_alternative<Granted>(answer));
  EXPECT_EQ(std::get<Granted>(answer).token, Token{7});
}

TEST(MockConditionalStore, ToldNothingElectsNobody) {
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
