// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

#include <tenure/clock.hpp>

namespace tenure::test {

/// Waits until `holds`, which another thread, process or server brings about. Returns false after so long a time that a
/// slow machine cannot be the reason. Needs no file descriptor.
template <class Holds>
bool eventually(Holds holds, Clock::Duration patience = std::chrono::seconds(30)) {
  const auto end = boot_clock().now() + patience;
  while (!holds()) {
    if (boot_clock().now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace tenure::test
