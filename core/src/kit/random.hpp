// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace tenure {

/// From the kernel: a generator of the process would give a restored or cloned one the same numbers.
std::uint64_t random_u64();

}  // namespace tenure
