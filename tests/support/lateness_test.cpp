// SPDX-License-Identifier: Apache-2.0
// Goal: a test whose wait ended without its condition, while the machine stood still, is repeated, and no other one.
// Method: a program whose tests fail on purpose. To stop its process is to let the machine stand still.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "late.hpp"
#include "process.hpp"
#include "scratch.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class LatenessTest : public testing::Test {
 protected:
  void start(const std::string& test, const std::vector<std::string>& variables = {}) {
    std::vector<std::string> words{"env", std::string(late_file) + "=" + file()};
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), {TENURE_LATE_PROGRAM, "--gtest_filter=Late." + test});
    program_.emplace(words);
  }
  /// `wait` is the first, the second...
  void begins_wait(int wait) {
    ASSERT_TRUE(eventually([&] { return said(late_waits) == wait || !program_->running(); })) << program_->out();
  }
  /// Its process stands still for half of the time for which it waits.
  void stops_in_wait(int wait) {
    begins_wait(wait);
    program_->signal(SIGSTOP);
    const auto until = boot_clock().now() + late_limit / 2;
    ASSERT_TRUE(eventually([&] { return boot_clock().now() >= until; }));
    program_->signal(SIGCONT);
  }
  /// That wait is not in vain.
  void passes_in_wait(int wait) {
    begins_wait(wait);
    std::ofstream(file()) << "now";
  }

  std::string pressure() const { return (scratch_ / "pressure").string(); }
  /// How long tasks have waited for a processor, as Linux would tell it.
  void tells_pressure(Clock::Duration waited) {
    std::ofstream(pressure()) << "some avg10=1.00 avg60=0.00 avg300=0.00 total=" << waited / 1us << "\n";
  }

  /// A machine that really stood still meanwhile, or was busy, spoils this test too.
  void ends(int status, int repeated) {
    const bool well = program_->ended() == status && said("[ REPEATED ]") == repeated;
    if (!well) lateness_.starved(late_limit / 2);
    if (!well) excuse_if_busy();
    EXPECT_TRUE(well) << "expected status " << status << " and " << repeated << " repetitions of\n" << program_->out();
  }

 private:
  std::string file() const { return (scratch_ / "file").string(); }
  int said(const std::string& what) const {
    const auto all = program_->out();
    int times = 0;
    for (auto at = all.find(what); at != all.npos; at = all.find(what, at + 1)) ++times;
    return times;
  }

  Scratch scratch_;
  const Lateness lateness_{};
  std::optional<Process> program_;
};

TEST_F(LatenessTest, WhatAMachineThatStoodStillSpoiltIsRepeated) {
  start("Waits");
  stops_in_wait(1);
  passes_in_wait(2);
  ends(0, 1);
}

/// Who runs alone is of the first shard.
TEST_F(LatenessTest, ATestOfAnotherShardThanTheFirstIsRepeatedToo) {
  start("Passes:Late.Waits", {"GTEST_TOTAL_SHARDS=2", "GTEST_SHARD_INDEX=1"});
  stops_in_wait(1);
  ends(1, 1);
}

TEST_F(LatenessTest, ThreeTriesAreAll) {
  start("Waits");
  for (const int wait : {1, 2, 3}) stops_in_wait(wait);
  ends(1, 2);
}

TEST_F(LatenessTest, AWaitInVainOnAMachineThatWorkedIsAFailure) {
  start("Waits");
  ends(1, 0);
}

TEST_F(LatenessTest, AnAnswerThatWasLateIsRepeatedOnABusyMachineAlone) {
  tells_pressure(0s);
  start("IsAnsweredTooLate", {"TENURE_PRESSURE=" + pressure()});
  begins_wait(1);
  tells_pressure(late_limit / 3);
  ends(1, 0);
  start("IsAnsweredTooLate", {"TENURE_PRESSURE=" + pressure()});
  begins_wait(1);
  tells_pressure(late_limit);
  ends(1, 1);
}

TEST_F(LatenessTest, ABrokenPromiseIsNeverExcused) {
  start("BreaksAPromise");
  stops_in_wait(1);
  ends(1, 0);
}

TEST_F(LatenessTest, WhatFailedBeforeIsNotExcused) {
  start("FailsBeforeItWaits");
  stops_in_wait(1);
  ends(1, 0);
}

TEST_F(LatenessTest, AFailureOfNothingThatWasWaitedForIsNotExcused) {
  start("FailsThoughNoWaitEnded");
  stops_in_wait(1);
  ends(1, 0);
}

}  // namespace
}  // namespace tenure::test
