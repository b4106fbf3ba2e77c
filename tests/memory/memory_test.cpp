// SPDX-License-Identifier: Apache-2.0
// Goal: the hub elects, and its fault switches do what they say. Method: seats driven verb by verb,
// ManualClock.
#include <gtest/gtest.h>

#include <tenure/manual_clock.hpp>
#include <tenure/memory.hpp>

namespace tenure {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Memory, TheFirstLeadsTheOtherIsDeniedAndFollowsAtOnceUponRelease) {
  ManualClock clock;
  const memory::Hub hub;
  const auto a = memory::open(hub, "jobs", {"a", ""});
  const auto b = memory::open(hub, "jobs", {"b", ""});
  const auto limit = [&] { return Limit{clock, clock.now() + seconds(1), {}}; };
  const auto granted = a->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Granted>(granted));
  const auto denied = b->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Denied>(denied));
  EXPECT_EQ(std::get<Denied>(denied).holder->name, "a");
  EXPECT_EQ(a->release(limit()), std::nullopt);
  const auto next = b->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Granted>(next));
  EXPECT_GT(std::get<Granted>(next).token, std::get<Granted>(granted).token);
}

}  // namespace
}  // namespace tenure
