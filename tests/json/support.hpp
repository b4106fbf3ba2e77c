// SPDX-License-Identifier: Apache-2.0
// What the tests of adapters/json share: findings as text, files with secrets, a store that takes any URL.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/json.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>

#include "messages.hpp"
#include "scratch.hpp"

namespace tenure::test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// What was opened last.
inline Opening last_opening;

/// Takes any URL.
inline Opened any_store(const Opening& opening) {
  last_opening = opening;
  return {.backend = memory::open(memory::hub("any"), opening.election, opening.candidate, opening.log),
          .presets = lock_table_presets()};
}

inline std::vector<Finding> findings(std::string_view text, Opener open = any_store) {
  try {
    from_json(text, open);
  } catch (const InvalidDocument& e) {
    EXPECT_FALSE(e.findings().empty());
    return e.findings();
  }
  return {};
}

/// "pointer message", the one there is.
inline std::string finding(std::string_view text, Opener open = any_store) {
  const auto all = findings(text, open);
  EXPECT_EQ(all.size(), 1u) << text;
  return all.empty() ? "accepted" : all[0].pointer + " " + all[0].message;
}

}  // namespace tenure::test
