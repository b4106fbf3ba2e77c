// SPDX-License-Identifier: Apache-2.0
// The main program of our tests. A test that failed only because this machine stood still, or was too busy, is
// repeated, at most twice, and says so; tests/run counts that. See lateness.hpp.
#include <gmock/gmock.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lateness.hpp"

namespace tenure::test {
namespace {

constexpr auto tries_variable = "TENURE_TEST_TRIES";
constexpr int most_tries = 3;

/// For as long as the process lives.
void measure_lateness() {
  const auto next = [] { return (boot_clock().now() + machine_is_late).time_since_epoch().count(); };
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a signal is the test's
  machine_due = next();                           // the sleeper may begin late, too
  std::thread([next] {
    for (;;) {
      const auto due = Clock::Time(Clock::Duration(machine_due));
      std::this_thread::sleep_for(due - boot_clock().now());
      const auto late = boot_clock().now() - due;
      // In this order: who looks in between counts it twice. The other way he would not see it at all.
      if (late > machine_is_late) machine_lost += late.count();
      machine_due = next();
    }
  }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Sorts the failed tests into those that the machine excuses and others. The first failure of a test decides, since
/// more may follow from it; but a broken promise is never excused.
class Judge final : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override {
    machine_starved = false;
    test_began = boot_clock().now().time_since_epoch().count();
    pressed_before_test = waited_for_machine().count();
    failure_excused = failed_ = false;
  }
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    if (!failed_) failure_excused = machine_starved.load();
    failed_ = true;
    if (std::string_view(part.message()).find(TENURE_PROMISE) != std::string_view::npos) failure_excused = false;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!failed_) return;
    if (failure_excused)
      starved.push_back(std::string(test.test_suite_name()) + "." + test.name());
    else
      all_excused = false;
  }

  std::vector<std::string> starved;
  bool all_excused = true;

 private:
  bool failed_{};
};

int tries() {
  const auto* value = std::getenv(tries_variable);
  return value == nullptr ? 1 : std::atoi(value);
}

/// In a process of its own, since a test may leave threads behind. Returns only where there is no program to start.
void repeat(const std::vector<std::string>& tests, char** argv) {
  std::string filter;
  for (const auto& test : tests) {
    std::cout << "[ REPEATED ] " << test
              << ": the machine stood still for more than a quarter of a limit, or was busy\n";
    filter += (filter.empty() ? "--gtest_filter=" : ":") + test;
  }
  std::cout.flush();
  ::setenv(tries_variable, std::to_string(tries() + 1).c_str(), 1);
  for (const auto* shard : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) ::unsetenv(shard);  // another's is not ours
  ::execl("/proc/self/exe", argv[0], filter.c_str(), static_cast<char*>(nullptr));
}

int run(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  measure_lateness();
  auto* judge = new Judge;  // the listeners own it
  testing::UnitTest::GetInstance()->listeners().Append(judge);
  const int result = RUN_ALL_TESTS();
  if (result != 0 && judge->all_excused && !judge->starved.empty() && tries() < most_tries)
    repeat(judge->starved, argv);
  return result;
}

}  // namespace
}  // namespace tenure::test

int main(int argc, char** argv) { return tenure::test::run(argc, argv); }
