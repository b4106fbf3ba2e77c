// SPDX-License-Identifier: Apache-2.0
// A line per change, until a signal ends it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <memory>

#include <tenure/observer.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "place.hpp"
#include "sight.hpp"
#include "wakeup.hpp"

namespace tenure::tool {
namespace {

struct Watched {
  Place place;
  bool json{};
};

int observe(Watched watched) try {
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGPIPE);  // which we send to ourselves
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(signal)) sigaddset(&end, signal);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);  // before the first thread
  watched.place.asks = true;
  const auto opened = open_place(watched.place, no_log);
  const auto election = opened.opening.election;
  const Observer observer(opened.backend, opened.timing, [&](const Sight& sight) {
    std::cout << (watched.json ? as_json(sight, election) : as_text(sight)) << std::endl;
    if (!std::cout) ::kill(::getpid(), SIGPIPE);  // whoever read us has gone
  });
  int signal = 0;
  sigwait(&end, &signal);
  ::_exit(by_signal + signal);  // Each line was flushed. Nobody waits for one that a full pipe does not take.
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
}

}  // namespace

void add_observe(CLI::App& tool, Run& run) {
  const auto watched = std::make_shared<Watched>();
  auto& command = *tool.add_subcommand("observe", "Print a line whenever the leader changes, until a signal comes");
  add_election(command, watched->place);
  command.add_flag("--json", watched->json, "Print one JSON object per line");
  command.callback([watched, &run] { run = [watched] { return observe(*watched); }; });
}

}  // namespace tenure::tool
