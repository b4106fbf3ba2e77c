// SPDX-License-Identifier: Apache-2.0
// Makes the lock free in a child of fork.
#include "fork_safe.hpp"

#include <pthread.h>

namespace tenure::kafka {

std::mutex& fork_safe_mutex() {
  static auto& it = *new std::mutex;
  // This fails only if memory has run out; then a child may hang, as it would without it.
  [[maybe_unused]] static const int registered = ::pthread_atfork(
      [] { fork_safe_mutex().lock(); }, [] { fork_safe_mutex().unlock(); }, [] { fork_safe_mutex().unlock(); });
  return it;
}

}  // namespace tenure::kafka
