// SPDX-License-Identifier: Apache-2.0
// Tests that fail on purpose: lateness_test.cpp runs them, and stops their process meanwhile.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "eventually.hpp"
#include "late.hpp"
#include "store_calls.hpp"

namespace tenure::test {
namespace {

/// For a file that is there only if lateness_test.cpp has made it.
bool waits() {
  std::cout << late_waits << std::endl;
  const auto before = lost_until_now();
  const bool came = eventually([] { return std::filesystem::exists(std::getenv(late_file)); }, late_limit);
  std::cout << "the machine stood still for " << (lost_until_now() - before) / 1'000'000 << " ms" << std::endl;
  return came;
}

TEST(Late, Passes) {}

TEST(Late, Waits) { EXPECT_TRUE(waits()); }

TEST(Late, BreaksAPromise) {
  EXPECT_TRUE(waits());
  ADD_FAILURE() << TENURE_PROMISE;
}

TEST(Late, FailsBeforeItWaits) {
  ADD_FAILURE() << "before anything was late";
  EXPECT_TRUE(waits());
}

TEST(Late, IsAnsweredTooLate) {
  std::cout << late_waits << std::endl;
  EXPECT_FALSE(eventually([] { return std::filesystem::exists(std::getenv(late_file)); }, late_limit));
  value(Result<bool>(Error{Fault::timed_out, "no answer came"}));
}

TEST(Late, FailsThoughNoWaitEnded) {
  std::cout << late_waits << std::endl;
  eventually([] { return lost_until_now() > late_limit.count() / 4; });
  ADD_FAILURE() << "of nothing that was waited for";
}

}  // namespace
}  // namespace tenure::test
