// SPDX-License-Identifier: Apache-2.0
// Goal: a group whose process was paused leads nothing of what it led, from the first question on, and leads anew
// later. Method: a clock that jumps, as the boot clock does for whoever was stopped, over a model of a store.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/manual_clock.hpp>

#include "eventually.hpp"
#include "model_store.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;

const Timing timing{.term = 10s, .renew = 2s, .retry = 100ms, .margin = 500ms, .call = 1s, .drain = 1s};

TEST(ElectionsPause, EndsAllTenuresAtOnceAndTheyAreLedAnewWithGreaterTokens) {
  std::atomic<int> lapsed{0}, ended{0};
  Hooks hooks{.log = no_log};
  hooks.ousting = [&](const Ousting& o) { ++(o.reason == Reason::lapsed ? lapsed : ended); };
  ManualClock clock;
  Elections elections(std::make_shared<test::ModelStore>(false), {"a", ""}, timing, hooks, {}, 2, clock);
  elections.join(std::vector<std::string>{"x", "y"});
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.led().size() == 2; }));
  const auto x = elections.leadership("x"), y = elections.leadership("y");
  const auto token = x.token(), other = y.token();
  ASSERT_TRUE(token && other);

  clock.advance(timing.term - timing.margin);  // Nothing of ours ran meanwhile, and no renewal was asked for.
  // On a busy machine it may lead anew by now, but not by the lease of before.
  EXPECT_NE(x.token(), token) << "it does not wait for a thread of ours";
  EXPECT_NE(y.token(), other);
  ASSERT_TRUE(eventually([&] { return lapsed == 2; }));
  EXPECT_TRUE(eventually([&] {
    if (elections.led().size() == 2) return true;
    clock.await_parked(2);
    clock.advance(timing.retry);
    return false;
  }));
  EXPECT_GT(x.token(), token);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace tenure
