// SPDX-License-Identifier: Apache-2.0
// Observing: who leads? For those who are no candidates, a router for instance.
#include <csignal>
#include <iostream>

#include <tenure/file.hpp>
#include <tenure/observer.hpp>

int main() {
  sigset_t end;
  sigemptyset(&end), sigaddset(&end, SIGINT), sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);

  auto backend = tenure::file::open("/tmp/tenure-example", "reports");
  //! [observing]
  tenure::Observer observer(backend, tenure::file::presets().fast, [](const tenure::Sight& sight) {
    if (const auto* who = std::get_if<tenure::Incumbent>(&sight))
      std::cout << who->name << " leads, at " << who->address << std::endl;
    else if (const auto* unknown = std::get_if<tenure::Unknown>(&sight))
      std::cout << "cannot see: " << unknown->error.message << std::endl;
    else
      std::cout << "nobody leads" << std::endl;
  });
  //! [observing]

  int signal = 0;
  sigwait(&end, &signal);  // observer.incumbent() answers meanwhile, from any thread
}
