// SPDX-License-Identifier: Apache-2.0
// A user's tests: of code that asks whether it leads, and of a manager over a store that the test instructs.
#include <gtest/gtest.h>

#include <tenure/gmock.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/manual_clock.hpp>

using namespace std::chrono_literals;

struct Writer {  // the user's code
  tenure::Leadership leadership;
  bool write() const { return leadership.guard(100ms).has_value(); }
};

TEST(Writer, WritesOnlyWhileThereIsTimeLeft) {
  tenure::ManualClock clock;
  tenure::FakeLeadership fake(clock);
  const Writer writer{fake.leadership()};
  EXPECT_FALSE(writer.write());
  fake.lead({7}, 10s);
  EXPECT_TRUE(writer.write());
  clock.advance(9950ms);
  EXPECT_FALSE(writer.write());
}

TEST(Service, LeadsWhenTheStoreGrants) {
  const auto store = std::make_shared<testing::NiceMock<tenure::MockBackend>>();
  EXPECT_CALL(*store, acquire(testing::_)).WillRepeatedly(testing::Return(tenure::Granted{{7}}));
  EXPECT_CALL(*store, release(testing::_));
  tenure::LeaderManager manager(store, tenure::Timing::of(10s));
  manager.start();
  EXPECT_EQ(manager.await_leadership(1h), tenure::Token{7});
}
