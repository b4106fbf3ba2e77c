// SPDX-License-Identifier: Apache-2.0
// Commands that look once: status, is-leader.
#include "look.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/url.hpp>

#include "commands.hpp"
#include "durations.hpp"
#include "exit_code.hpp"
#include "health.hpp"
#include "list.hpp"
#include "sight.hpp"

namespace tenure::tool {
namespace {

struct Asked {
  Place place;
  std::string patience{"5s"}, id, http, group;
  bool json{}, all{};
  std::size_t most{Listing().most};
};

/// Between two looks.
constexpr Clock::Duration glance = std::chrono::milliseconds(50);

/// These tell of a leader's death at once.
bool knows_the_dead(const Opened& opened) {
  const auto scheme = scheme_of(opened.opening.url);
  return scheme == "file" || scheme == "memory";
}

Clock::Time lease_end(const Incumbent& leader) { return boot_clock().now() + leader.remaining; }

/// As long as one leader does not renew. By the store's clock its lease may have been over before: that clock alone
/// does not prove it.
Sight watched(Backend& backend, const Incumbent& first, Clock::Duration patience) {
  const auto began = boot_clock().now();
  const auto end = lease_end(first);
  const bool told_over = first.remaining <= Clock::Duration::zero();
  for (;;) {
    sleep_for(glance);
    auto sight = look(backend, patience);
    const auto* leader = std::get_if<Incumbent>(&sight);
    const bool over = leader && leader->remaining <= Clock::Duration::zero();
    const bool news = over ? !told_over : leader && lease_end(*leader) > end + glance / 2;
    if (!leader || leader->token != first.token || news) return sight;
    if (boot_clock().now() < began + patience) continue;
    if (over) return sight;
    return Unknown{{Fault::timed_out, printable(first.name) + " led, token " + std::to_string(first.token.value) +
                                          ", but has renewed nothing for " + seconds(patience) +
                                          ": it may have died; that is sure in " + seconds(leader->remaining) +
                                          ", so look for longer by --timeout"}};
  }
}

void add_patience(CLI::App& command, Asked& asked) {
  command.add_option("--timeout", asked.patience, "How long to look, at least: for an answer, and for a renewal")
      ->type_name("DUR")
      ->capture_default_str();
}

int status(Asked asked) {
  const auto patience = option("--timeout", asked.patience);
  const Listing listing{.most = asked.most, .patience = patience, .json = asked.json};
  if (asked.all && !asked.group.empty()) throw Failed(usage, "--all does not go with --group: give one");
  if (asked.all) return print_all(asked.place, listing);
  if (!asked.group.empty()) return print_group(asked.place, asked.group, listing);
  asked.place.asks = true;
  const auto opened = open_place(asked.place, no_log);
  const auto sight = proven(opened, patience);
  std::cout << (asked.json ? as_json(sight, opened.opening.election) : as_text(sight)) << std::endl;
  if (std::holds_alternative<Unknown>(sight)) return unseen;
  return leader_in(sight) ? ok : vacant;
}

int is_leader(Asked asked) {
  const auto patience = option("--timeout", asked.patience);
  if (!asked.http.empty()) {
    asked.place.id = asked.id;
    refuse_given(asked.place, {"--store", "--password-file", "-e", "-c", "--timing", "--term", "--id"},
                 "does not go with --http: that process is asked whether it leads the election that it is in");
    return says_that_it_leads(asked.http, patience) ? ok : no;
  }
  if (asked.id.empty()) throw Failed(usage, "name the candidate by --id, or ask it itself by --http");
  asked.place.asks = true;
  const auto opened = open_place(asked.place, no_log);
  const auto sight = proven(opened, patience);
  if (const auto* unknown = std::get_if<Unknown>(&sight)) fail(unknown->error, unseen);
  const auto leader = leader_in(sight);
  return leader && (leader->name == asked.id || leader->incarnation == asked.id) ? ok : no;
}

}  // namespace

Sight look(Backend& backend, Clock::Duration patience) {
  return asked_until(boot_clock().now() + patience, [&](const Limit& limit) { return backend.observe(limit); });
}

Sight proven(const Opened& opened, Clock::Duration patience) {
  const auto& timing = opened.timing;
  (void)opened.backend->accepts(timing);  // whose term it counts by; a refusal is doctor's to tell
  auto sight = look(*opened.backend, patience);
  const auto* leader = std::get_if<Incumbent>(&sight);
  if (!leader || knows_the_dead(opened)) return sight;
  // The leader's own timing may be another one. Four fifths of a lease are left when it is renewed, or more.
  const auto its_renewal = std::max(timing.renew, leader->remaining / 4);
  return watched(*opened.backend, *leader, std::max(patience, its_renewal + timing.call));
}

void add_status(CLI::App& tool, Run& run) {
  const auto asked = std::make_shared<Asked>();
  auto& command = *tool.add_subcommand("status", "Say who leads. Exit code 0: somebody does, 3: nobody, 4: unknown");
  add_election(command, asked->place);
  add_patience(command, *asked);
  command.add_flag("--json", asked->json, "Print one JSON object; with --all and --group one per line");
  command.add_flag("--all", asked->all, "A row for each election of the store");
  command.add_option("--group", asked->group, "A row for each election of this group, which Elections lead")
      ->type_name("NAME");
  auto* limit = command.add_option("--limit", asked->most, "With --all or --group: at most so many")
                    ->check(CLI::Range(1U, 1000000U).description(""))
                    ->type_name("N")
                    ->capture_default_str();
  command.footer(
      R"(--all: PostgreSQL, Redis without a cluster, etcd, and files list their elections. Kafka cannot: there each election
is a consumer group of its own. The elections of groups are not listed.
--group: those of one group of PostgreSQL or Redis, and of Kafka the one that -e names. Those without a leader come first.
Exit code of both 0: each of them has a leader, 3: one has none, 4: the store does not say.)");
  command.callback([asked, limit, &run] {
    const bool listing = asked->all || !asked->group.empty();
    if (limit->count() > 0 && !listing) throw CLI::RequiresError("--limit", "--all or --group");
    run = [asked] { return status(*asked); };
  });
}

void add_is_leader(CLI::App& tool, Run& run) {
  const auto asked = std::make_shared<Asked>();
  auto& command = *tool.add_subcommand("is-leader", "Exit with 0 if the candidate leads, else with 1");
  add_election(command, asked->place);
  add_patience(command, *asked);
  command.add_option("--id", asked->id, "The candidate's name or incarnation")->type_name("ID");
  command.add_option("--http", asked->http, "Ask the candidate itself, which serves there by run --http")
      ->type_name("HOST:PORT");
  command.footer("Exit codes: 0 it leads, 1 it does not, 4 the store does not say who leads.");
  command.callback([asked, &run] { run = [asked] { return is_leader(*asked); }; });
}

}  // namespace tenure::tool
