// SPDX-License-Identifier: Apache-2.0
// The names of faults.
#include <tenure/error.hpp>

namespace tenure {

std::string_view to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::unreachable: return "unreachable";
    case Fault::timed_out: return "timed out";
    case Fault::wedged: return "wedged";
    case Fault::fenced: return "fenced";
    case Fault::forbidden: return "forbidden";
    case Fault::misconfigured: return "misconfigured";
    case Fault::corrupt: return "corrupt";
    case Fault::hook_threw: return "hook threw";
    case Fault::hook_overran: return "hook overran";
  }
  return "?";
}

}  // namespace tenure
