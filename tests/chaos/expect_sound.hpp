// SPDX-License-Identifier: Apache-2.0
// How a test of sound candidates ends.
#pragma once
#include <gtest/gtest.h>

#include <iostream>
#include <utility>

#include "history.hpp"
#include "lateness.hpp"
#include "nemesis.hpp"

namespace tenure::test {

/// How a test of sound candidates ends: it prints the verdict, in which nothing may be found.
inline Verdict expect_sound(Verdict verdict) {
  print(std::cout, verdict);
  EXPECT_TRUE(verdict.findings.empty()) << TENURE_PROMISE;
  return verdict;
}

}  // namespace tenure::test
