// SPDX-License-Identifier: Apache-2.0
// status --all.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "place.hpp"
#include "sight.hpp"

namespace tenure::tool {

struct Listing {
  std::size_t most{1000};  ///< Elections.
  Clock::Duration patience{};
  bool json{};
};

struct Row {
  std::string election;
  Sight sight;
  std::string remark{};  ///< Follows the sight, in text.
  About about{};         ///< In JSON.
};
/// Prints as many as are asked for, and says if there are more.
void print(const std::vector<Row>& rows, const Listing& listing);
/// The exit code of all.
int code_of(const std::vector<Row>& rows);

/// status --all: prints a row per election of the store, in the order of their names. Returns the exit code.
int print_all(const Place& place, const Listing& listing);

/// status --group: a row per election of the group, those without a leader first. Returns the exit code.
int print_group(const Place& place, const std::string& group, const Listing& listing);

}  // namespace tenure::tool
