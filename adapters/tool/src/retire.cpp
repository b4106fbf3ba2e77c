// SPDX-License-Identifier: Apache-2.0
// Removes what a group keeps of elections that nobody joins any more.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <tenure/kit/logging.hpp>
#include <tenure/stores.hpp>

#include "commands.hpp"
#include "exit_code.hpp"
#include "place.hpp"

namespace tenure::tool {
namespace {

struct Retirement {
  Place place;
  std::string group;
  std::vector<std::string> names;
};

Limit ten_seconds() { return {boot_clock(), boot_clock().now() + std::chrono::seconds(10), {}}; }

Look looked(GroupStore& store) {
  auto look = store.look({}, ten_seconds());
  if (!look) fail(look.error(), unreachable);
  return *std::move(look);
}

/// Nobody leads it, as far as the store shows.
bool is_free(const Look& look, const Lead& lead) {
  const auto session = look.sessions.find(lead.session);
  return lead.released || (session != look.sessions.end() && session->second.record.released);
}

/// Of the sessions that have not ended. Zero: there is none.
Clock::Duration longest_term(const Look& look) {
  Clock::Duration longest{};
  for (const auto& [id, session] : look.sessions)
    if (!session.record.released) longest = std::max(longest, session.record.term);
  return std::min<Clock::Duration>(longest, max_term);
}

void say(const std::string& name, const char* what) { std::cout << printable(name, 200) << ": " << what << std::endl; }

int retire(const Retirement& what) try {
  auto opening = opening_of(what.place);
  only_ask(opening);
  opening.election = what.group;
  const auto store = open_many(opening).store;
  if (store->allots())
    throw Failed(usage, "over Kafka a group keeps no names of its elections, so that there is nothing to retire");
  for (const auto& name : what.names) store->joined(name);  // so that it reads these alone
  const auto look = looked(*store);
  std::map<std::string, Token> free;
  int refused = 0;
  for (const auto& name : std::set(what.names.begin(), what.names.end())) {
    const auto lead = look.leads.find(name);
    if (lead != look.leads.end() && is_free(look, lead->second)) {
      free.emplace(name, lead->second.token);
    } else if (lead == look.leads.end() && !look.unreadable.contains(name)) {
      say(name, "is not there: nobody has led it, or it was retired");
    } else {
      say(name, lead == look.leads.end() ? "cannot be read; mend it first"
                                         : "is led, or its leader is not known to have ended");
      ++refused;
    }
  }
  // Whoever has joined one of them and may lead it has claimed it by then, so that its token is another one.
  if (!free.empty()) sleep_for(longest_term(look));
  while (!free.empty()) {
    std::map<std::string, Token> some;
    while (!free.empty() && some.size() < max_changes) some.insert(free.extract(free.begin()));
    const auto done = store->retire(some, ten_seconds());
    if (!done) fail(done.error(), unreachable);
    const auto left = looked(*store).leads;
    for (const auto& [name, token] : some) {
      say(name, left.contains(name) ? "was claimed meanwhile: somebody has joined it" : "retired");
      refused += left.contains(name) ? 1 : 0;
    }
  }
  return refused == 0 ? ok : no;
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
}

}  // namespace

void add_retire(CLI::App& tool, Run& run) {
  const auto what = std::make_shared<Retirement>();
  auto& command = *tool.add_subcommand("retire", "Remove the names of elections of a group that nobody joins any more");
  add_store(command, what->place);
  command.add_option("--group", what->group, "The group's name")->type_name("NAME")->required();
  command.add_option("names", what->names, "The elections")->type_name("ELECTION")->required();
  command.footer(
      R"(While a process of the group lives, this waits for one term: who has joined such an election leads it by then, and it
stays. A name that comes back later gets a token that is greater than all that were retired.

Exit codes: 0 none of them is there any more; 1 one is led, or cannot be read; 69 the store cannot be reached.)");
  command.callback([what, &run] { run = [what] { return retire(*what); }; });
}

}  // namespace tenure::tool
