// SPDX-License-Identifier: Apache-2.0
// For those who write a backend or an adapter: a poll() that also holds where there are more descriptors than it takes.
#pragma once
#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// Waits until one of them is ready, or for so many milliseconds; -1: without end. poll() refuses more of them than
/// RLIMIT_NOFILE, which may be lower than what is open already. Then this returns after a moment, so that who waits in
/// a loop looks again and does not spin.
inline void poll_all(std::span<pollfd> descriptors, int ms) {
  constexpr int moment_ms = 10;
  while (::poll(descriptors.data(), descriptors.size(), ms) < 0)
    if (errno != EINTR) {
      ::poll(nullptr, 0, moment_ms);
      return;
    }
}

/// The same, without end, of an array that is made for it.
template <std::size_t n>
void poll_all(pollfd (&&descriptors)[n]) {
  poll_all(descriptors, -1);
}

}  // namespace tenure
