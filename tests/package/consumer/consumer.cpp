// SPDX-License-Identifier: Apache-2.0
// The smallest program of a user.
#include <chrono>
#include <cstdio>

#include <tenure/leader_manager.hpp>
#include <tenure/memory.hpp>
#include <tenure/version.hpp>

int main() {
  const tenure::memory::Hub hub;
  tenure::LeaderManager manager(tenure::memory::open(hub, "jobs"), tenure::memory::presets().fast);
  manager.start();
  if (!manager.await_leadership(std::chrono::seconds(20))) return 1;
  std::printf("leads, version %s, %d\n", tenure::version(), TENURE_VERSION_NUMBER);
}
