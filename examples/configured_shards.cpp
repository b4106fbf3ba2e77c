// SPDX-License-Identifier: Apache-2.0
// Shares the elections that a document lists among the processes that run this program.
//   configured_shards shards.json
//! [all]
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

#include <tenure/elections.hpp>
#include <tenure/json_group.hpp>
#include <tenure/stores.hpp>

static void say(const std::string& what) { std::cout << what + "\n" << std::flush; }

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: configured_shards FILE.json\n";
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (const auto one : {SIGINT, SIGTERM}) sigaddset(&signals, one);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before the first thread, so that sigwait() gets them

  const auto group = tenure::group_from_json_file(argv[1], tenure::open_many);
  tenure::Elections shards(group.store, group.candidate, group.timing,
                           {.elected = [](const tenure::Elected& e) { say("leading " + e.election); },
                            .ousting = [](const tenure::Ousting& o) { say("no longer leading " + o.election); }},
                           group.spread, group.hook_threads);
  shards.join(group.elections);
  shards.start();

  int signal = 0;
  sigwait(&signals, &signal);  // leaving main() hands all leads over
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
//! [all]
