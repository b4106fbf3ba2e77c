// SPDX-License-Identifier: Apache-2.0
#include "look.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "exit_code.hpp"
#include "health.hpp"
#include "sight.hpp"

namespace tenure::tool {
namespace {

struct Asked {
  Place place;
  std::string patience{"5s"}, id, http;
  bool json{};
};

void add_patience(CLI::App& command, Asked& asked) {
  command.add_option("--timeout", asked.patience, "How long the store may take to answer")
      ->type_name("DUR")
      ->capture_default_str();
}

int status(const Asked& asked) {
  const auto opened = open_place(asked.place, no_log);
  const auto sight = look(*opened.backend, option("--timeout", asked.patience));
  std::cout << (asked.json ? as_json(sight, opened.opening.election) : as_painted_text(sight)) << std::endl;
  if (std::holds_alternative<Unknown>(sight)) return unseen;
  return leader_in(sight) ? ok : vacant;
}

int is_leader(const Asked& asked) {
  const auto patience = option("--timeout", asked.patience);
  if (!asked.http.empty()) return says_that_it_leads(asked.http, patience) ? ok : no;
  if (asked.id.empty()) throw Failed(usage, "name the candidate by --id, or ask it itself by --http");
  const auto opened = open_place(asked.place, no_log);
  const auto sight = look(*opened.backend, patience);
  if (const auto* unknown = std::get_if<Unknown>(&sight)) fail(unknown->error, unseen);
  const auto leader = leader_in(sight);
  return leader && (leader->name == asked.id || leader->incarnation == asked.id) ? ok : no;
}

}  // namespace

Sight look(Backend& backend, Clock::Duration patience) {
  // A store that has just been opened connects first, which may take longer than one question.
  auto& clock = boot_clock();
  const auto end = clock.now() + patience;
  Sight sight;
  do {
    const auto call = std::min<Clock::Duration>(patience, std::chrono::seconds(2));
    sight = backend.observe({clock, std::min(end, clock.now() + call), {}});
    const auto* unknown = std::get_if<Unknown>(&sight);
    if (!unknown || unknown->error.fault == Fault::misconfigured || unknown->error.fault == Fault::forbidden) break;
  } while (sleep_for(std::min<Clock::Duration>(std::chrono::milliseconds(50), end - clock.now())) && clock.now() < end);
  return sight;
}

void add_status(CLI::App& tool, Run& run) {
  const auto asked = std::make_shared<Asked>();
  auto& command = *tool.add_subcommand("status", "Say who leads. Exit code 0: somebody does, 3: nobody, 4: unknown");
  add_election(command, asked->place);
  add_patience(command, *asked);
  command.add_flag("--json", asked->json, "Print one JSON object");
  command.callback([asked, &run] { run = [asked] { return status(*asked); }; });
}

void add_is_leader(CLI::App& tool, Run& run) {
  const auto asked = std::make_shared<Asked>();
  auto& command = *tool.add_subcommand("is-leader", "Exit with 0 if the candidate leads, else with 1");
  add_election(command, asked->place);
  add_patience(command, *asked);
  command.add_option("--id", asked->id, "The candidate's name or incarnation")->type_name("ID");
  command.add_option("--http", asked->http, "Ask the candidate itself, which serves there by run --http")
      ->type_name("HOST:PORT");
  command.callback([asked, &run] { run = [asked] { return is_leader(*asked); }; });
}

}  // namespace tenure::tool
