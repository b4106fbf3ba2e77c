// SPDX-License-Identifier: Apache-2.0
// poll() that also holds where there are more descriptors than it takes.
#pragma once
#include <poll.h>

#include <cerrno>
#include <cstddef>

namespace tenure {

/// Waits until one of them is ready. poll() refuses more of them than RLIMIT_NOFILE, which may be lower than what is
/// open already. Then this returns after a moment, so that who waits in a loop looks again and does not spin.
template <std::size_t n>
void poll_all(pollfd (&&descriptors)[n]) {
  constexpr int moment_ms = 10;
  while (::poll(descriptors, n, -1) < 0)
    if (errno != EINTR) {
      ::poll(nullptr, 0, moment_ms);
      return;
    }
}

}  // namespace tenure
