// SPDX-License-Identifier: Apache-2.0
// Goal: candidates in one directory are stopped and killed, and at most one leads. The judge would notice otherwise.
// Method: real processes, judged by the journal that they write. Each fault meets the sound build, and a build with one
// rule broken on purpose that this fault must show.
#include <gtest/gtest.h>

#include <csignal>

#include "expect_sound.hpp"
#include "scratch.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr Clock::Duration term = 500ms;

class FileChaos : public ::testing::Test {
 protected:
  Fleet fleet(const char* program, const std::string& go = "") const {
    return {program,
            {"--store", "file://" + (scratch_ / "store").string(), "--election", "chaos" + go, "--term-ms",
             std::to_string(term / 1ms), "--note-ms", "5"},
            scratch_ / ("journal" + go)};
  }

  const Scratch scratch_;
};

/// The leader is stopped for a third of its term just after a renewal, while another one contends.
Verdict stop_a_leader_for_a_moment(Fleet& fleet) {
  const auto waits = term * 20;
  const auto first = fleet.start("first");
  const auto led = fleet.await(0, is("elected", first), waits);
  if (led == Fleet::npos) throw std::runtime_error("nobody leads");
  fleet.start("second");
  const auto begun = fleet.await(led, is("start"), waits);
  const auto renewed = fleet.await(begun, is("lead"), waits);
  fleet.stop(first);
  fleet.await(renewed, is_of_another("lead", first), term / 3);
  fleet.resume(first);
  fleet.await(fleet.events().size(), is("quit"), term / 3);
  fleet.end_all(waits);
  return judge(fleet.events());
}

TEST_F(FileChaos, AShortStopOfTheLeaderBreaksNoPromise) {
  auto candidates = fleet(TENURE_CANDIDATE);
  expect_sound(stop_a_leader_for_a_moment(candidates));
}

/// Waits for a tenure of the process, and for both threads that note it: either may be the first.
void await_tenure(Fleet& fleet, pid_t of) {
  for (const char* noted : {"elected", "lead"})
    if (fleet.await(0, is(noted, of), term * 20) == Fleet::npos)
      throw std::runtime_error(noted + std::string(" is not noted"));
}

/// The leader is killed, and its successor leads. The successor starts after that death, because a candidate that has
/// seen a token believes no lower one.
Verdict kill_a_leader(Fleet& fleet) {
  const auto first = fleet.start("first");
  await_tenure(fleet, first);
  fleet.note(done_to::killed, first);
  fleet.signal(first, SIGKILL);
  fleet.reap(first, term * 20);
  await_tenure(fleet, fleet.start("second"));
  return judge(fleet.events());
}

TEST_F(FileChaos, TheSuccessorOfAKilledLeaderHasAGreaterToken) {
  auto candidates = fleet(TENURE_CANDIDATE);
  const auto verdict = expect_sound(kill_a_leader(candidates));
  EXPECT_EQ(verdict.tenures, 2u);
}

#ifdef TENURE_CANDIDATE_NO_LEASE  // where the builds with a broken rule are built

/// On a busy machine the other one may come too late for the moment. So a broken build gets a few goes.
template <class FleetOfGo>
bool two_lead_in_some_go(const FleetOfGo& fleet) {
  for (int go = 1; go <= 5; ++go) {
    auto candidates = fleet(std::to_string(go));
    if (stop_a_leader_for_a_moment(candidates).count(Breach::overlap) > 0) return true;
  }
  return false;
}

TEST_F(FileChaos, ABuildThatIgnoresLeasesIsFound) {
  EXPECT_TRUE(two_lead_in_some_go([this](const auto& go) { return fleet(TENURE_CANDIDATE_NO_LEASE, go); }));
}

TEST_F(FileChaos, ABuildThatTakesEveryHolderForDeadIsFound) {
  EXPECT_TRUE(two_lead_in_some_go([this](const auto& go) { return fleet(TENURE_CANDIDATE_NO_LOCK, go); }));
}

TEST_F(FileChaos, ABuildThatRaisesNoTokenIsFound) {
  auto candidates = fleet(TENURE_CANDIDATE_NO_RISE);
  EXPECT_GE(kill_a_leader(candidates).count(Breach::token), 1u);
}

#endif

}  // namespace
}  // namespace tenure::test
