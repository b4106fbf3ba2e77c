// SPDX-License-Identifier: Apache-2.0
// How you test your own program: Reports stands for a class of yours that works while this process leads.
#include <gtest/gtest.h>

#include <tenure/fake_election.hpp>

using namespace std::chrono_literals;

namespace {

/// Yours. It writes reports while it leads.
class Reports {
 public:
  tenure::Hooks hooks() {
    tenure::Hooks hooks;
    hooks.elected = [this](const tenure::Elected& e) { token_ = e.token; };
    hooks.ousting = [this](const tenure::Ousting&) { token_.reset(); };
    return hooks;
  }
  bool running() const { return token_.has_value(); }

 private:
  std::optional<tenure::Token> token_;
};

//! [hooks]
TEST(Reports, StopBeforeTheLeaseEnds) {
  Reports reports;
  tenure::FakeElection election(reports.hooks());
  election.elect();
  ASSERT_TRUE(reports.running());

  election.hang_store();
  election.advance(election.leadership().remaining());
  EXPECT_FALSE(reports.running());               // stopped,
  EXPECT_GT(election.others_may_lead_in(), 0s);  // and nobody else may lead yet
}
//! [hooks]

TEST(Reports, GoOnThroughAShortOutage) {
  Reports reports;
  tenure::FakeElection election(reports.hooks());
  election.elect();
  election.fail_store({tenure::Fault::unreachable, "no route to host"});
  election.advance(election.timing().rides_out());
  election.mend_store();
  election.advance(1h);
  EXPECT_TRUE(reports.running());
}

TEST(Reports, BeginAnewAfterSomebodyElseHasLed) {
  Reports reports;
  tenure::FakeElection election(reports.hooks());
  const auto first = election.elect();
  election.oust();
  EXPECT_FALSE(reports.running());
  EXPECT_GT(election.elect(), first);
  EXPECT_TRUE(reports.running());
}

TEST(Reports, GiveWayIfSomebodyAsks) {
  Reports reports;
  tenure::FakeElection election(reports.hooks());
  election.elect();
  election.ask_to_step_down("ops", "upgrade");
  EXPECT_FALSE(reports.running());
}

/// Yours, as work of a LeaderTask: it runs on a thread of its own until it is told to stop.
void work(std::stop_token stop, tenure::Token, std::atomic<int>& running) {
  ++running;
  while (tenure::sleep_for(1ms, stop)) {
    // one step
  }
  --running;
}

TEST(Work, HasEndedBeforeTheLeaseEnds) {
  std::atomic<int> running{0};
  tenure::FakeElection election([&](std::stop_token stop, tenure::Token token) { work(stop, token, running); });
  election.elect();
  election.hang_store();
  election.advance(election.leadership().remaining());
  EXPECT_EQ(running, 0);
  EXPECT_GT(election.others_may_lead_in(), 0s);
}

}  // namespace
