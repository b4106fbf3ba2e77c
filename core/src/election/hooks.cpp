// SPDX-License-Identifier: Apache-2.0
// The names of reasons.
#include <tenure/hooks.hpp>

namespace tenure {

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

}  // namespace tenure
