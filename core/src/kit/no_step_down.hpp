// SPDX-License-Identifier: Apache-2.0
// The answer of whoever cannot carry a request to step down.
#pragma once
#include <tenure/error.hpp>

namespace tenure {

/// What a backend or a store answers that does not offer it.
inline Error no_step_down() { return {Fault::misconfigured, "this store cannot carry a request to step down"}; }

}  // namespace tenure
