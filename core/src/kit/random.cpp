// SPDX-License-Identifier: Apache-2.0
// Asks the kernel for random numbers.
#include "kit/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace tenure {

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  // Up to 256 bytes come whole; a signal may only interrupt it before the kernel's pool is first filled.
  while (::getrandom(&value, sizeof value, 0) != sizeof value)
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  return value;
}

}  // namespace tenure
