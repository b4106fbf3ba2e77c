// SPDX-License-Identifier: Apache-2.0
// How the elections of a group are shared among processes.
#pragma once
#include <cstdint>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// How the elections of a group are spread over the processes that take part in the same ones. Everybody's share is in
/// proportion to its weight, but for one election. Whoever holds more hands over to those that hold less, and nothing
/// else moves. Where the store allots the elections itself (GroupStore::allots), only `handovers_at_once` may differ
/// from what stands here.
struct Spread {
  bool on{true};                        ///< Off: we claim whatever is free, and hand nothing over.
  std::uint32_t handovers_at_once{64};  ///< At most this many ousting() hooks run at once to give others their share.
  std::uint32_t most{UINT32_MAX};       ///< We lead no more than these. To watch: GroupObserver.
  std::uint32_t weight{1};              ///< From 1 to 1000.
  friend bool operator==(const Spread&, const Spread&) = default;
};

/// The greatest Spread::weight.
inline constexpr std::uint32_t max_weight = 1000;

}  // namespace tenure
