// SPDX-License-Identifier: Apache-2.0
// Goal: handles and threads end though nobody waits for them, in a child of fork and at the end of the process, too.
// Method: processes of the test's own; no broker.
#include "reaper.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "in_child.hpp"

namespace tenure::kafka {
namespace {

TEST(Reaper, AChildOfForkMakesItsOwnWhateverAnotherThreadDidMeanwhile) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "such a child's threads get stacks that the sanitizer takes for the parent's, or none at all";
#endif
  Reaper::instance();
  const std::jthread other([](std::stop_token stop) {
    while (!stop.stop_requested()) Reaper::instance();
  });
  for (int i = 0; i < 100 && !HasFailure(); ++i)
    tenure::test::in_child([] {
      Reaper::instance();
      return true;
    });
}

/// A backend in a static variable may leave a read behind that goes on blocking.
TEST(Reaper, AThreadThatOutlivesTheExitEndsNoProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exits = [] {
    // At the end these run from the last to the first: that of the reaper's between them.
    std::atexit([] { std::_Exit(0); });
    std::atexit([] {
      std::thread endless([] {
        for (;;) ::pause();
      });
      Reaper::instance().join(std::move(endless), std::make_shared<const std::atomic<bool>>(false));
    });
    Reaper::instance();
    std::exit(2);
  };
  EXPECT_EXIT(exits(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tenure::kafka
