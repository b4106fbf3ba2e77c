// SPDX-License-Identifier: Apache-2.0
// The fencing token of a tenure.
#pragma once
#include <compare>
#include <cstdint>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// The fencing token of one tenure, which is one unbroken time of leading.
///
/// A later tenure of the same election has a greater token, as long as the store loses no acknowledged write. A leader
/// sends its token with every write. Whoever stores the writes refuses a token that is smaller than one it has seen.
/// Nothing else can stop the writes of a leader that was paused in the middle of sending them.
struct Token {
  std::uint64_t value{};
  friend auto operator<=>(const Token&, const Token&) = default;
};

}  // namespace tenure
