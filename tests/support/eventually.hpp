// SPDX-License-Identifier: Apache-2.0
// Waits for a condition that others bring about.
#pragma once

#include <chrono>
#include <thread>

#include <tenure/clock.hpp>

#include "lateness.hpp"

namespace tenure::test {

/// Waits until `holds`, which another thread, process or server brings about. Returns false after so long a time that
/// only a machine that stood still can be the reason: then main.cpp repeats the test. Needs no file descriptor.
template <class Holds>
bool eventually(Holds holds, Clock::Duration patience = std::chrono::seconds(30)) {
  const Lateness lateness;
  while (!holds()) {
    if (!in_time(lateness, patience)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace tenure::test
