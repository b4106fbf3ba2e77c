// SPDX-License-Identifier: Apache-2.0
// Goal: pauses differ, and are never longer than said, nor shorter than half of that.
#include <tenure/kit/jitter.hpp>

#include <gtest/gtest.h>

#include <set>

namespace tenure {
namespace {

using namespace std::chrono_literals;

TEST(Jitter, APauseIsBetweenHalfOfItAndAllOfIt) {
  std::set<Clock::Duration> pauses;
  for (int i = 0; i < 100; ++i) pauses.insert(jittered(1s));
  EXPECT_GE(*pauses.begin(), 500ms);
  EXPECT_LE(*pauses.rbegin(), 1s);
  EXPECT_GT(pauses.size(), 90u);
  EXPECT_EQ(jittered(Clock::Duration::zero()), Clock::Duration::zero());
  EXPECT_EQ(jittered(Clock::Duration(1)), Clock::Duration(1));
}

}  // namespace
}  // namespace tenure
