// SPDX-License-Identifier: Apache-2.0
// Goal: a simulation runs the seeds that it is told to, and a failure says how to repeat it.
#include "seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <vector>

namespace tenure::test {
namespace {

std::vector<std::uint64_t> run_with(const char* wanted) {
  if (wanted)
    ::setenv("TENURE_SEED", wanted, 1);
  else
    ::unsetenv("TENURE_SEED");
  std::vector<std::uint64_t> out;
  const bool all = for_each_seed(3, [&out](std::uint64_t seed) { out.push_back(seed); });
  ::unsetenv("TENURE_SEED");
  EXPECT_EQ(all, wanted == nullptr && one_seed_of == 1);
  return out;
}

TEST(Seeds, AllAreRunOrTheOneThatIsWanted) {
  auto all = std::vector<std::uint64_t>{1, 2, 3};
  if (one_seed_of > 1) all.resize(1);
  EXPECT_EQ(run_with(nullptr), all);
  EXPECT_EQ(run_with("2"), std::vector<std::uint64_t>{2});
  EXPECT_EQ(run_with("18446744073709551615"), std::vector<std::uint64_t>{18446744073709551615U}) << "the last there is";
}

TEST(Seeds, WhatIsNoNumberIsRefused) {
  for (const auto* wanted : {"", "x", "7x", "-1", " 7", "18446744073709551616"})
    EXPECT_THROW(run_with(wanted), std::invalid_argument) << wanted;
  ::unsetenv("TENURE_SEED");
}

TEST(Seeds, AFailureNamesTheCommandThatRepeatsIt) {
  const auto command = "again: TENURE_SEED=1 /.*support_test --gtest_filter=Seeds.AFailureNamesTheCommandThatRepeatsIt";
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter caught(&failures);
    for_each_seed(1, [](std::uint64_t) { ADD_FAILURE() << "wrong"; });
  }
  ASSERT_EQ(failures.size(), 1);
  EXPECT_THAT(std::string(failures.GetTestPartResult(0).message()), testing::ContainsRegex(command));
}

}  // namespace
}  // namespace tenure::test
