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

#include <tenure/json_group.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>

#include "messages.hpp"
#include "refusal.hpp"
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

/// The same for groups.
inline OpenedGroup any_group(const Opening& opening) {
  last_opening = opening;
  return {.store = memory::hub("any").group(opening.election), .presets = lock_table_presets()};
}

template <class Read>
std::vector<Finding> findings_of(Read read) {
  try {
    read();
  } catch (const InvalidDocument& e) {
    EXPECT_FALSE(e.findings().empty());
    return e.findings();
  }
  return {};
}

inline std::vector<Finding> findings(std::string_view text, Opener open = any_store) {
  return findings_of([&] { from_json(text, open); });
}
inline std::vector<Finding> findings_of_group(std::string_view text, GroupOpener open = any_group) {
  return findings_of([&] { group_from_json(text, open); });
}

/// "pointer message", the one there is.
inline std::string only(const std::vector<Finding>& all, std::string_view text) {
  EXPECT_EQ(all.size(), 1u) << text;
  return all.empty() ? "accepted" : all[0].pointer + " " + all[0].message;
}
inline std::string finding(std::string_view text, Opener open = any_store) { return only(findings(text, open), text); }
inline std::string finding_of_group(std::string_view text, GroupOpener open = any_group) {
  return only(findings_of_group(text, open), text);
}

}  // namespace tenure::test
