// SPDX-License-Identifier: Apache-2.0
// The defaults of a backend.
#include <tenure/backend.hpp>

namespace tenure {

std::optional<Error> Backend::accepts(const Timing&) { return std::nullopt; }

std::string Backend::election() const { return {}; }

}  // namespace tenure
