// SPDX-License-Identifier: Apache-2.0
// The names of reasons, and the limits of what a user gives.
#include <tenure/hooks.hpp>

#include <algorithm>
#include <stdexcept>

#include <tenure/timing.hpp>

#include "election/tenure.hpp"

namespace tenure {
namespace {

/// A longer one means never, and could overflow a Clock::Time.
constexpr Clock::Duration longest_stall = std::chrono::hours(24 * 365 * 100);

}  // namespace

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::lapsed: return "lapsed";
    case Reason::superseded: return "superseded";
    case Reason::step_down: return "step_down";
    case Reason::resigned: return "resigned";
    case Reason::stopped: return "stopped";
    case Reason::ineligible: return "ineligible";
    case Reason::stalled: return "stalled";
    case Reason::handed_over: return "handed_over";
  }
  return "?";
}

StallLimits stall_limits(const Hooks& hooks) {
  if (hooks.stall_after < Clock::Duration::zero())
    throw std::invalid_argument("Hooks::stall_after: it is negative; 0 turns the watch off");
  if (hooks.stall_pause < Clock::Duration::zero() || hooks.stall_pause > max_term)
    throw std::invalid_argument("Hooks::stall_pause: it must be between 0 and 1 h");
  return {std::min(hooks.stall_after, longest_stall), hooks.stall_pause};
}

}  // namespace tenure
