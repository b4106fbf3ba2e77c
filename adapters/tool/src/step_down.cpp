// SPDX-License-Identifier: Apache-2.0
// Asks the leader to hand over, and waits until it has.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/url.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "look.hpp"
#include "sight.hpp"

namespace tenure::tool {
namespace {

constexpr Clock::Duration one_call = std::chrono::seconds(2);

struct Request {
  Place place;
  std::string by, why{"asked by tenure step-down"}, wait{"60s"};
  std::optional<std::uint64_t> if_token;
  bool json{};
};

/// Another one leads, or nobody.
bool handed_over(const Sight& sight, Token before) {
  if (std::holds_alternative<Unknown>(sight)) return false;
  const auto leader = leader_in(sight);
  return !leader || leader->token != before;
}

/// Who leads next. A vacancy is only the way there, unless it lasts until the limit.
Sight successor(Backend& backend, Sight seen, Token before, const Limit& limit) {
  while (!limit.passed() && !(handed_over(seen, before) && leader_in(seen))) {
    backend.await_change(seen, limit);
    auto now = backend.observe({limit.clock, std::min(limit.by, limit.clock.now() + one_call), {}});
    if (!std::holds_alternative<Unknown>(now)) seen = std::move(now);
    sleep_for(std::chrono::milliseconds(5));  // a store may wake us for no reason
  }
  return seen;
}

/// Over Kafka a leader hears of requests only if its own URL says so; as a rule that is the same as ours.
void tell_of_deaf_leaders(const Opening& opening) {
  if (scheme_of(opening.url) != "kafka" || parse_url(opening).take("remote_step_down") == "true") return;
  std::cerr << "tenure: over Kafka a leader obeys only if it was opened with remote_step_down=true in its URL or "
               "document; ours has not, so it may never hear of this"
            << std::endl;
}

/// Who leads, if somebody does who lives: as `status` judges. Throws Failed.
Incumbent living_leader(const Opened& opened, Clock::Duration patience) {
  (void)opened.backend->accepts(opened.timing);  // before the first question, as a candidate does
  const auto began = boot_clock().now();
  const auto first = look(*opened.backend, std::min<Clock::Duration>(patience, std::chrono::seconds(10)));
  if (const auto* unknown = std::get_if<Unknown>(&first))
    fail(unknown->error, unknown->error.fault == Fault::corrupt ? unseen : unreachable);
  const auto seen = proven(opened, began + patience - boot_clock().now());
  if (const auto leader = leader_in(seen)) return *leader;
  const auto* unproven = std::get_if<Unknown>(&seen);
  const auto last = leader_in(first);
  if (unproven && !last) fail(unproven->error, unreachable);
  const auto led = last ? printable(last->name) + " led, token " + std::to_string(last->token.value) : "";
  if (unproven) throw Failed(unseen, led + ", but no renewal was seen: it may have died, so nobody is asked");
  throw Failed(vacant, "nobody leads \"" + opened.opening.election + '"' + (last ? "; " + led : ""));
}

int step_down(Request request) {
  const auto patience = option("--wait", request.wait);
  request.place.asks = true;
  const auto opened = open_place(request.place, no_log);
  tell_of_deaf_leaders(opened.opening);
  auto& clock = boot_clock();
  const Limit limit{clock, clock.now() + patience, {}};
  const auto leader = living_leader(opened, patience);
  if (request.if_token && leader.token != Token{*request.if_token})
    throw Failed(no, "the token is " + std::to_string(leader.token.value) + ", and nobody is asked");

  const auto by = request.by.empty() ? checked(Candidate{}).name : request.by;
  if (const auto error = opened.backend->request_step_down(by, request.why, limit)) fail(*error, unreachable);
  std::cerr << "tenure: asked " << printable(leader.name) << ", token " << leader.token.value << ", which "
            << (scheme_of(opened.opening.url) == "file" ? "lives" : "renewed while we looked") << std::endl;
  const auto now = successor(*opened.backend, leader, leader.token, limit);
  if (!handed_over(now, leader.token)) throw Failed(waited, "waited too long: " + as_text(now));
  std::cout << (request.json ? as_json(now, opened.opening.election) : as_text(now)) << std::endl;
  return ok;
}

}  // namespace

void add_step_down(CLI::App& tool, Run& run) {
  const auto request = std::make_shared<Request>();
  auto& command = *tool.add_subcommand("step-down", "Ask the leader to hand over, and wait for its successor");
  add_election(command, request->place);
  command.add_option("--if-token", request->if_token, "Only if the leader's token is this; else exit with 1")
      ->type_name("N");
  command.add_option("--by", request->by, "Who asks (default: host, process and time)");
  command.add_option("--why", request->why, "Why, for the leader's log");
  command.add_option("--wait", request->wait, "How long to wait for the successor")
      ->type_name("DUR")
      ->capture_default_str();
  command.add_flag("--json", request->json, "Print the successor as one JSON object");
  command.footer(
      R"(--if-token: the token is looked at first, and then the request is written. A leader that is elected between the two may
be asked in place of the one that you mean.

Exit codes: 0 another one leads, or nobody does at the end of --wait; 1 the token is another one; 3 nobody led; 4 no
renewal of the leader was seen, so that it may have died, or who leads cannot be read: nobody is asked; 69 the store cannot be reached; 75 the
leader has not handed over when --wait was over.)");
  command.callback([request, &run] { run = [request] { return step_down(*request); }; });
}

}  // namespace tenure::tool
