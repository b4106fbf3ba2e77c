// SPDX-License-Identifier: Apache-2.0
// A former leader and a later one, for tests of fences.
#pragma once
#include <gtest/gtest.h>

#include <tenure/lock_table.hpp>
#include <tenure/manual_clock.hpp>
#include <tenure/memory.hpp>
#include <utility>
#include <variant>

namespace tenure::test {

/// The tokens of a leader that was paused for longer than its term, and of the one that then led in its place.
inline std::pair<Token, Token> two_leaders() {
  ManualClock clock;
  const memory::Hub hub;
  const auto timing = lock_table_presets().fast;
  const auto acquire = [&](Backend& backend) {
    EXPECT_FALSE(backend.accepts(timing));
    const auto answer = backend.acquire({clock, clock.now() + timing.call, {}});
    const auto* granted = std::get_if<Granted>(&answer);
    return granted ? granted->token : Token{};
  };
  const auto first = memory::open(hub, "jobs"), second = memory::open(hub, "jobs");
  const auto stale = acquire(*first);
  EXPECT_EQ(acquire(*second), Token{}) << "the first one leads";
  clock.advance(timing.term);
  const auto later = acquire(*second);
  EXPECT_LT(stale, later);
  return {stale, later};
}

}  // namespace tenure::test
