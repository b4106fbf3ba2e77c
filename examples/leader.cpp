// SPDX-License-Identifier: Apache-2.0
// A task: work that exactly one of several processes does. Start it in several terminals.
//! [all]
#include <csignal>
#include <iostream>

#include <tenure/file.hpp>
#include <tenure/leader_task.hpp>

using namespace std::chrono_literals;

int main() {
  sigset_t end;
  sigemptyset(&end), sigaddset(&end, SIGINT), sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);  // before the first thread, so that sigwait() gets them

  auto backend = tenure::file::open("/tmp/tenure-example", "reports");
  tenure::LeaderTask task(backend, tenure::file::presets().fast, [](std::stop_token stop, tenure::Token token) {
    std::cout << "leading with token " << token.value << std::endl;
    while (tenure::sleep_for(50ms, stop)) {
      // one step of your work, shorter than Timing::margin; send the token with every write
    }
    std::cout << "no longer leading" << std::endl;
  });

  int signal = 0;
  sigwait(&end, &signal);  // leaving main() hands the lead over
}
//! [all]
