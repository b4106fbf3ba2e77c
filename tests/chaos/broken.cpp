// SPDX-License-Identifier: Apache-2.0
// Reads from the program's name which rule is broken.
#include "broken.hpp"

#include <cerrno>
#include <cstring>
#include <string>

namespace tenure::test {
namespace {

std::string rule_of_name() {
  constexpr const char prefix[] = "candidate_";
  const std::string name = program_invocation_short_name;
  return name.starts_with(prefix) ? name.substr(sizeof prefix - 1) : "";
}

}  // namespace

bool broken(const char* rule) {
  static const auto name = rule_of_name();
  return ::strcasecmp(name.c_str(), rule) == 0;
}

}  // namespace tenure::test
