// SPDX-License-Identifier: Apache-2.0
// Measures whether a first election takes no longer than it should.
#pragma once
#include <tenure/backend.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

#include "eventually.hpp"
#include "within.hpp"

namespace tenure::test {

/// Whether a candidate leads as soon as its connection is made and two calls have passed. How long a connection takes
/// here, one that only looks tells. `open`: opens a backend of an election that nobody led. The best of some candidates
/// counts, since a busy machine makes one late.
template <class Open>
bool elects_in_time(Open open, const Timing& timing) {
  return eventually([&] {
    const auto began = boot_clock().now();
    open()->observe(within(std::chrono::seconds(20)));
    const auto connected = boot_clock().now() - began;
    LeaderManager candidate(open(), timing, Hooks{.log = no_log});
    candidate.start();
    return candidate.await_leadership(connected + 2 * timing.call).has_value();
  });
}

}  // namespace tenure::test
