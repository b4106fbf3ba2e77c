// SPDX-License-Identifier: Apache-2.0
// Runs a check in a child of fork.
#pragma once
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace tenure::test {

/// Asks in a child of fork. SIGALRM ends the child if the function does not return.
inline void in_child(const std::function<bool()>& well) {
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    std::_Exit(well() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace tenure::test
