// SPDX-License-Identifier: Apache-2.0
// What `tenure status --all --json` has printed.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace tenure::test {

/// By the elections' names, each of which stands there once.
inline std::map<std::string, nlohmann::json> rows_of(const std::string& printed) {
  std::map<std::string, nlohmann::json> rows;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    EXPECT_EQ(row.at("version"), 1);
    EXPECT_TRUE(rows.emplace(row.at("election"), row).second) << line;
  }
  return rows;
}

}  // namespace tenure::test
