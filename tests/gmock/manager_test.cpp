// SPDX-License-Identifier: Apache-2.0
// Goal: users can test code that uses a LeaderManager with GoogleMock alone. An expectation that they forget elects
// nobody.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include <tenure/gmock.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/manual_clock.hpp>

namespace tenure {
namespace {

using namespace std::chrono_literals;
using testing::_;
using testing::NiceMock;
using testing::Return;
using testing::StrictMock;

constexpr Timing timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};

TEST(ManagerOverMock, AForgottenExpectationElectsNobody) {
  ManualClock clock;
  const auto backend = std::make_shared<NiceMock<MockBackend>>();
  std::atomic<int> asked{0};
  std::atomic<bool> elected{false};
  ON_CALL(*backend, acquire(_)).WillByDefault([&](const Limit&) {
    ++asked;
    return Answer{};  // as GoogleMock does without an instruction
  });
  Hooks hooks;
  hooks.elected = [&](const Elected&) { elected = true; };
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  while (asked < 50) {
    ASSERT_TRUE(clock.await_parked(1));
    clock.advance(timing.retry);
    EXPECT_FALSE(manager.leadership().is_leader());
  }
  manager.stop();
  EXPECT_FALSE(elected);
}

TEST(ManagerOverMock, AManagerLeadsRenewsAndOustsAsTheMockAnswers) {
  ManualClock clock;
  const auto backend = std::make_shared<NiceMock<MockBackend>>();
  const Incumbent other{.name = "b", .incarnation = "2", .address = "b:1", .token = {8}, .remaining = 9s};
  EXPECT_CALL(*backend, acquire(_)).WillOnce(Return(Granted{{7}})).WillRepeatedly(Return(Denied{other}));
  EXPECT_CALL(*backend, renew(Token{7}, _)).WillOnce(Return(Denied{other}));
  EXPECT_CALL(*backend, release(_));
  std::promise<Ousting> ousted;
  Hooks hooks;
  hooks.ousting = [&](const Ousting& o) { ousted.set_value(o); };
  LeaderManager manager(backend, timing, hooks, clock);
  manager.start();
  ASSERT_EQ(manager.await_leadership(1h), Token{7});
  ASSERT_TRUE(clock.await_parked(1));
  clock.advance(timing.renew);
  const auto end = ousted.get_future().get();
  EXPECT_EQ(end.election, "mock");
  EXPECT_EQ(end.reason, Reason::superseded);
  EXPECT_EQ(end.successor, other);
  EXPECT_FALSE(manager.leadership().is_leader());
  manager.stop();
}

}  // namespace
}  // namespace tenure
