// SPDX-License-Identifier: Apache-2.0
// Goal: a thread that is left behind does not run on in what the end of the process takes down, and never holds that
// end up for long. Method: processes that exit while such a thread runs, with a handler in place of a library's.
#include <tenure/kit/leave_behind.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <tenure/kit/wait.hpp>
#include <thread>

#include "within.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;

constexpr int used_what_is_gone = 3;
std::atomic<bool> exiting{false}, gone{false}, over{false};

/// As OpenSSL does, which frees at exit what its calls in other threads use.
void take_down_the_library() {
  gone = true;
  while (!over) std::this_thread::yield();
}

[[noreturn]] void exit_while_a_left_thread_uses_a_library() {
  std::atexit(take_down_the_library);
  leave_behind(std::thread([] {
    while (!exiting) std::this_thread::yield();
    wait_out(test::within(50ms));  // as long as a call of the library may take
    if (gone) ::_exit(used_what_is_gone);
    over = true;
  }));
  std::atexit([] { exiting = true; });
  std::exit(0);
}

[[noreturn]] void exit_while_a_left_thread_sleeps_for_ever() {
  leave_behind(std::thread([] {
    for (;;) wait_out(test::within(1h));
  }));
  std::exit(0);
}

/// ThreadSanitizer looks for threads that nobody joined once a second more has passed.
[[noreturn]] void exit_while_a_left_thread_ends_too_late() {
  leave_behind(std::thread([] {
    while (!exiting) std::this_thread::yield();
    wait_out(test::within(1500ms));
  }));
  std::atexit([] { exiting = true; });
  std::exit(0);
}

/// Reserved addresses, with the stacks of threads that nobody joined.
long mapped_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmSize:") {
      long kib = 0;
      status >> kib;
      return kib / 1024;
    }
  return 0;
}

struct LeaveBehind : testing::Test {
  LeaveBehind() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LeaveBehind, TheEndOfTheProcessWaitsForTheThreadBeforeALibraryIsTakenDown) {
  EXPECT_EXIT(exit_while_a_left_thread_uses_a_library(), testing::ExitedWithCode(0), "");
}

TEST_F(LeaveBehind, AThreadThatNeverEndsDoesNotKeepTheProcessAlive) {
  EXPECT_EXIT(exit_while_a_left_thread_sleeps_for_ever(), testing::ExitedWithCode(0), "");
}

TEST_F(LeaveBehind, AThreadThatIsWaitedForNoLongerIsNoLeak) {
  EXPECT_EXIT(exit_while_a_left_thread_ends_too_late(), testing::ExitedWithCode(0), "");
}

TEST_F(LeaveBehind, ThreadsThatHaveEndedKeepNoStacks) {
  const auto before = mapped_mib();
  for (int i = 0; i < 400; ++i) {
    std::atomic<bool> ran{false};
    leave_behind(std::thread([&] { ran = true; }));
    while (!ran) std::this_thread::yield();
  }
  EXPECT_LT(mapped_mib() - before, 1600) << "half of what 400 stacks take";
}

}  // namespace
}  // namespace tenure
