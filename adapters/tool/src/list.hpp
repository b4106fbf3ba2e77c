// SPDX-License-Identifier: Apache-2.0
// status --all.
#pragma once
#include <cstddef>
#include <string>

#include "place.hpp"

namespace tenure::tool {

struct Listing {
  std::size_t most{1000};  ///< Elections.
  Clock::Duration patience{};
  bool json{};
};

/// status --all: prints a row per election of the store, in the order of their names. Returns the exit code.
int print_all(const Place& place, const Listing& listing);

/// status --group: a row per election of the group, those without a leader first. Returns the exit code.
int print_group(const Place& place, const std::string& group, const Listing& listing);

}  // namespace tenure::tool
