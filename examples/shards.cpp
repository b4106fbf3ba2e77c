// SPDX-License-Identifier: Apache-2.0
// Shares twelve shards among the processes that run this program: shards URL
#include <csignal>
#include <iostream>
#include <string>

#include <tenure/elections.hpp>
#include <tenure/stores.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: shards postgresql://... | redis://...\n";
    return 2;
  }
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);  // before the first thread, so that sigwait() gets them

  // Hooks of different shards run at the same time: start the work in elected(), and end it in ousting().
  const auto say = [](const char* what, const auto& event) {
    std::cout << what + event.election + ", token " + std::to_string(event.token.value) + "\n" << std::flush;
  };
  const auto opened = tenure::open_many(argv[1], "shards");
  tenure::Elections shards(opened.store, {}, opened.presets.fast,
                           {.elected = [&](const tenure::Elected& e) { say("leading ", e); },
                            .ousting = [&](const tenure::Ousting& o) { say("no longer leading ", o); }});
  for (int i = 0; i < 12; ++i) shards.join("shard " + std::to_string(i));
  shards.start();

  int signal = 0;
  sigwait(&end, &signal);  // leaving main() hands all shards over
}
