// SPDX-License-Identifier: Apache-2.0
// How you test what your program does when its store is in trouble. Any backend can be wrapped; here it is memory's.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include <tenure/faulty.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/manual_clock.hpp>
#include <tenure/memory.hpp>

using namespace std::chrono_literals;

namespace {

constexpr auto patience = 1min;  // of a test that fails
const auto timing = tenure::Timing::of(3s);

//! [faults]
TEST(MyService, LeadsAlthoughTheAnswerToItsFirstClaimIsLost) {
  const auto backend = std::make_shared<tenure::FaultyBackend>(tenure::memory::open(tenure::memory::Hub(), "reports"));
  backend->next(tenure::Mishap::answer_lost);
  tenure::LeaderManager manager(backend, timing);
  manager.start();
  EXPECT_TRUE(manager.await_leadership(patience));
  EXPECT_EQ(backend->mishaps(), 1u);
}
//! [faults]

TEST(MyService, IsToldToStopIfTheStoreHangsAndLeadsAgainAfterwards) {
  const auto backend = std::make_shared<tenure::FaultyBackend>(tenure::memory::open(tenure::memory::Hub(), "reports"));
  std::atomic<int> stopped{0};
  tenure::Hooks hooks;
  hooks.ousting = [&](const tenure::Ousting&) { ++stopped; };
  tenure::LeaderManager manager(backend, timing, hooks);
  manager.start();
  const auto first = manager.await_leadership(patience);
  ASSERT_TRUE(first);
  auto seen = manager.changes();
  backend->hang(true);
  while (manager.leadership().is_leader()) seen = manager.await_change(seen, timing.term);
  backend->hang(false);
  const auto next = manager.await_leadership(patience);
  EXPECT_EQ(stopped, 1);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, *first);
}

/// Verb by verb, in time that the test steps. Each candidate has a network of its own, which loses, repeats and holds
/// back its writes. A seed repeats what it does.
TEST(TwoCandidates, NeverHoldALeaseAtOnceWhateverTheNetworkDoes) {
  tenure::ManualClock clock;
  const tenure::memory::Hub hub;
  struct Candidate {
    std::shared_ptr<tenure::Backend> backend;
    std::optional<tenure::Token> token{};
    tenure::Clock::Time leads_until{};
  };
  const auto candidate = [&](std::uint64_t seed) {
    const auto store = std::make_shared<tenure::FaultyStore>(hub.store("reports"));
    store->at_random(seed, 0.6);
    Candidate out{.backend = tenure::lock_table(store, "reports")};
    EXPECT_EQ(out.backend->accepts(timing), std::nullopt);
    return out;
  };
  Candidate candidates[] = {candidate(1), candidate(2)};
  tenure::Token last{};
  int tenures = 0;
  for (int step = 0; step < 2000; ++step, clock.advance(timing.renew / 2)) {
    for (auto& c : candidates) {
      const auto asked = clock.now();
      const tenure::Limit limit{clock, asked + timing.call, {}};
      const auto answer = c.token ? c.backend->renew(*c.token, limit) : c.backend->acquire(limit);
      if (const auto* granted = std::get_if<tenure::Granted>(&answer)) {
        EXPECT_TRUE(c.token || granted->token > last) << "tokens rise";
        tenures += !c.token;
        c.token = last = granted->token;
        c.leads_until = asked + timing.term;
      } else if (std::holds_alternative<tenure::Denied>(answer) || clock.now() >= c.leads_until) {
        c.token.reset();
      }
      if (c.token && step % 20 == 0) {
        c.token.reset(), c.leads_until = {};
        static_cast<void>(c.backend->release(limit));  // the answer may be lost
      }
    }
    const auto& [a, b] = candidates;
    ASSERT_FALSE(a.token && b.token && std::min(a.leads_until, b.leads_until) > clock.now()) << "step " << step;
  }
  EXPECT_GT(tenures, 50);
}

}  // namespace
