// SPDX-License-Identifier: Apache-2.0
// Goal: what several stores say alike says what is wrong, where, and what would be right.
#include <gtest/gtest.h>

#include <tenure/kit/store.hpp>

namespace tenure {
namespace {

TEST(ForkedChild, GetsAnErrorThatNamesWhatToOpenAgain) {
  const auto error = forked_child("/run/reports");
  EXPECT_EQ(error.fault, Fault::misconfigured);
  EXPECT_NE(error.message.find("forked from the one that opened /run/reports"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("open it again"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace tenure
