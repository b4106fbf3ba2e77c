// SPDX-License-Identifier: Apache-2.0
// The command that the guarded test runs: it appends its token, its process and the time to a file each millisecond.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tenure/clock.hpp>
#include <tenure/kit/wait.hpp>

/// ticker FILE [stubborn]: then SIGTERM does not end it.
int main(int argc, char** argv) {
  const auto* token = std::getenv("TENURE_TOKEN");
  if (argc < 2 || token == nullptr) return 2;
  if (argc > 2) std::signal(SIGTERM, SIG_IGN);
  const int log = ::open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const auto pid = static_cast<long>(::getpid());
  auto& clock = tenure::boot_clock();
  for (;;) {
    std::array<char, 100> line{};
    const auto now = static_cast<long long>(clock.now().time_since_epoch().count());
    const int size = std::snprintf(line.data(), line.size(), "%s %ld %lld\n", token, pid, now);
    if (::write(log, line.data(), static_cast<std::size_t>(size)) != size) return 3;
    tenure::wait_out({clock, clock.now() + std::chrono::milliseconds(1), {}});
  }
}
