// SPDX-License-Identifier: Apache-2.0
// Asking: a program that has its own threads, and asks before each act.
#include <csignal>
#include <iostream>
#include <thread>

#include <tenure/file.hpp>
#include <tenure/leader_manager.hpp>

using namespace std::chrono_literals;

int main() {
  sigset_t end;
  sigemptyset(&end), sigaddset(&end, SIGINT), sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);

  auto backend = tenure::file::open("/tmp/tenure-example", "reports");
  tenure::LeaderManager manager(backend, tenure::file::presets().fast);
  manager.start();

  //! [asking]
  std::jthread worker([leadership = manager.leadership()](std::stop_token stop) {
    while (tenure::sleep_for(500ms, stop)) {
      if (const auto token = leadership.guard(20ms))  // leader, for at least 20 ms more: enough for this write
        std::cout << "writes with token " << token->value << std::endl;
      else if (const auto who = leadership.incumbent())
        std::cout << "follows " << who->name << std::endl;
    }
  });
  //! [asking]

  int signal = 0;
  sigwait(&end, &signal);
}
