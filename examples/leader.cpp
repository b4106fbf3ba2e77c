// SPDX-License-Identifier: Apache-2.0
// The README's twenty lines: work that exactly one of several processes does. Start it in several terminals.
#include <csignal>
#include <cstdio>

#include <tenure/file.hpp>
#include <tenure/leader_task.hpp>

using namespace std::chrono_literals;

int main() {
  sigset_t end;
  sigemptyset(&end), sigaddset(&end, SIGINT), sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);

  auto seat = tenure::file::open("/tmp/tenure-example", "reports");
  tenure::LeaderTask task(seat, tenure::file::presets().fast, [](std::stop_token stop, tenure::Token token) {
    std::printf("leading with token %llu\n", static_cast<unsigned long long>(token.value));
    while (tenure::sleep_for(50ms, stop)) {
      // work in steps shorter than Timing::margin; send the token with every write
    }
    std::puts("no longer leading");
  });
  task.manager().start();

  int signal = 0;
  sigwait(&end, &signal);  // leaving main() hands the lead over
}
