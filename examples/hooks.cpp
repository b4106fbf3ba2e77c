// SPDX-License-Identifier: Apache-2.0
// Hooks: being told. All of them, with their signatures; each may be left out.
#include <csignal>
#include <filesystem>
#include <iostream>

#include <tenure/file.hpp>
#include <tenure/leader_manager.hpp>

int main() {
  sigset_t end;
  sigemptyset(&end), sigaddset(&end, SIGINT), sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);

  //! [hooks]
  tenure::Hooks hooks;
  hooks.elected = [](const tenure::Elected& e) {  // may run as long as it leads; e.stop is requested at the end
    std::cout << "leads " << e.election << " with token " << e.token.value << std::endl;
  };
  hooks.ousting = [](const tenure::Ousting& o) {  // returns once the work has stopped, before o.remaining() is zero
    std::cout << "ends: " << to_string(o.reason) << " " << o.detail << std::endl;
  };
  hooks.error = [](const tenure::Error& e) {  // the manager has reacted already; for your metrics
    std::cout << "trouble: " << to_string(e.fault) << std::endl;
  };
  hooks.eligible = [] { return !std::filesystem::exists("/tmp/tenure-maintenance"); };  // false: resigns
  hooks.log = [](const tenure::LogLine& line) {  // without it warnings and errors go to stderr
    std::clog << to_string(line.level) << ": " << line.message << std::endl;
  };

  auto backend =
      tenure::file::open("/tmp/tenure-example", "reports", {.name = "a", .address = "10.0.0.7:80"}, hooks.log);
  tenure::LeaderManager manager(backend, tenure::file::presets().fast, hooks);
  manager.start();
  //! [hooks]

  int signal = 0;
  sigwait(&end, &signal);
  manager.stop();  // ousting() first, then the store is told, so that the next one leads at once
}
