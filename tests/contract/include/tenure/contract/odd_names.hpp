// SPDX-License-Identifier: Apache-2.0
// Names by which stores were found to confuse elections.
#pragma once
#include <string>
#include <tenure/candidate.hpp>
#include <vector>

namespace tenure::contract {

/// A name of 200 bytes that ends in `tail`. Such names collide if a store cuts them short.
inline std::string full_length(const std::string& tail) {
  return std::string(max_election_bytes - tail.size(), 'x') + tail;
}

/// Names that differ little, or do harm where they are joined with other text.
inline std::vector<std::string> odd_names() {
  return {"plain",
          "PLAIN",
          "plain ",
          "..",
          ".",
          "/",
          "a/b",
          "a/../b",
          "a/b.",
          "%s%n%d",
          "'; drop table x; --",
          "\"quoted\"",
          "{tag}a",
          "{tag}b",
          "KEYS[1]",
          "*?[a-z]",
          "\n",
          "\r\n",
          "\x01\x1b[31m\x7f",
          "\xc3\xa4\xf0\x9f\x91\x91",
          "\xff\xfe",
          full_length("'\n\x01{}$1\\"),
          full_length("'\n\x01{}$2\\")};
}

}  // namespace tenure::contract
