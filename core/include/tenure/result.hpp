// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <variant>

#include <tenure/error.hpp>

namespace tenure {

/// Error stands first: it is what a mock answers that was told nothing.
template <class T>
using Result = std::variant<Error, T>;

}  // namespace tenure
