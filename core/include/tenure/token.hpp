// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <compare>
#include <cstdint>

namespace tenure {

/// Fencing token of one tenure: one unbroken time of leading.
///
/// Issued by the store; a later tenure of the same election always has a greater one. A leader sends it with every
/// write it makes, and whatever stores the write refuses a smaller one than it has seen: that alone stops the
/// writes of a leader that was paused in the middle of making them.
struct Token {
  std::uint64_t value{};
  friend auto operator<=>(const Token&, const Token&) = default;
};

}  // namespace tenure
