// SPDX-License-Identifier: Apache-2.0
// Goal: a FakeLeadership answers what its test said.
#include <tenure/fake_leadership.hpp>

#include <gtest/gtest.h>

#include <tenure/manual_clock.hpp>

namespace tenure {
namespace {

using namespace std::chrono_literals;

TEST(FakeLeadership, DoesWhatATestSays) {
  ManualClock clock;
  FakeLeadership fake(clock);
  const auto leadership = fake.leadership();
  EXPECT_FALSE(leadership.is_leader());
  fake.lead({7}, 10s);
  EXPECT_EQ(leadership.token(), Token{7});
  clock.advance(10s);
  EXPECT_FALSE(leadership.is_leader());
  fake.lead({8}, 10s);
  fake.end();
  EXPECT_FALSE(leadership.is_leader());
  fake.follow({.name = "b", .incarnation = {}, .address = "host:1", .token = {9}, .remaining = 5s});
  EXPECT_EQ(leadership.incumbent().value().address, "host:1");
  clock.advance(2s);
  EXPECT_EQ(leadership.incumbent().value().remaining, 3s);
  clock.advance(3s);
  EXPECT_EQ(leadership.incumbent(), std::nullopt);
}

TEST(FakeLeadership, LeadsAndFollowsForEverIfATestSaysSo) {
  ManualClock clock;
  FakeLeadership fake(clock);
  const auto leadership = fake.leadership();
  fake.lead({7}, Clock::Duration::max());
  clock.advance(24h * 365);
  EXPECT_TRUE(leadership.is_leader());
  fake.follow({.name = "b", .incarnation = {}, .address = {}, .token = {9}, .remaining = Clock::Duration::max()});
  clock.advance(24h * 365);
  EXPECT_TRUE(leadership.incumbent());
}

}  // namespace
}  // namespace tenure
