// SPDX-License-Identifier: Apache-2.0
// The defaults of a backend.
#include <tenure/backend.hpp>

#include "kit/no_step_down.hpp"

namespace tenure {

std::optional<Error> Backend::accepts(const Timing&) { return std::nullopt; }

std::optional<Error> Backend::request_step_down(const std::string&, const std::string&, const Limit&) {
  return no_step_down();
}

std::string Backend::election() const { return {}; }

}  // namespace tenure
