// SPDX-License-Identifier: Apache-2.0
// The names of roles' members, and the sessions of strangers.
#include "role_facts.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "owner_search.hpp"

namespace tenure::kafka {

std::string role_member_name(std::int64_t unix_ms, const std::string& incarnation) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%013lld.", static_cast<long long>(unix_ms));
  return std::string(role_prefix) + digits + incarnation;
}

SessionId session_of_stranger(int unit, const std::string& incarnation) {
  const auto hash = std::hash<std::string>()(incarnation + "/" + std::to_string(unit));
  return {std::max<std::uint64_t>(hash >> 1, 1)};
}

}  // namespace tenure::kafka
