// SPDX-License-Identifier: Apache-2.0
// At most N processes do a work at once, whatever runs this program: holders URL N. Each seat is an election, and a
// process takes one seat at most. With N + 1 processes one waits, and takes the first seat that is given up.
//! [all]
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include <tenure/elections.hpp>
#include <tenure/stores.hpp>

int main(int argc, char** argv) {
  const int seats = argc == 3 ? std::atoi(argv[2]) : 0;
  if (seats < 1) {
    std::cerr << "usage: holders postgresql://...|redis://... SEATS\n";
    return 2;
  }
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);  // before the first thread, so that sigwait() gets them

  // Each seat has a fencing token of its own: send the seat's name with it.
  const auto say = [](const char* what, const auto& event) {
    std::cout << what + event.election + ", token " + std::to_string(event.token.value) + "\n" << std::flush;
  };
  const auto opened = tenure::open_many(argv[1], "holders");
  tenure::Elections work(opened.store, {}, opened.presets.fast,
                         {.elected = [&](const tenure::Elected& e) { say("holding ", e); },
                          .ousting = [&](const tenure::Ousting& o) { say("no longer holding ", o); }},
                         tenure::Spread{.most = 1});
  for (int i = 1; i <= seats; ++i) work.join("seat " + std::to_string(i));
  work.start();

  int signal = 0;
  sigwait(&end, &signal);  // leaving main() gives the seat to somebody who waits
}
//! [all]
