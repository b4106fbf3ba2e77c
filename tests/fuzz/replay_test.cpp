// SPDX-License-Identifier: Apache-2.0
// Goal: a fault that a fuzzer has found does not come back. Method: every file of the corpus, without a fuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz.hpp"

namespace {

TEST(Corpus, HoldsForEveryText) {
  for (const auto& target : tenure::fuzz::targets) {
    SCOPED_TRACE(target.name);
    std::size_t seen = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TENURE_CORPUS + std::string(target.name))) {
      SCOPED_TRACE(entry.path());
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      for (std::size_t size = 0; size <= text.size(); ++size) target.check(text.substr(0, size));
      ++seen;
    }
    EXPECT_GE(seen, 5u);
  }
}

}  // namespace
