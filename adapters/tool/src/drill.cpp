// SPDX-License-Identifier: Apache-2.0
// Elects members on the real store, hurts the leader, and measures how long nobody leads.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include <tenure/kit/text.hpp>
#include <tenure/kit/url.hpp>

#include "commands.hpp"
#include "durations.hpp"
#include "exit_code.hpp"
#include "look.hpp"
#include "paint.hpp"
#include "place.hpp"
#include "troupe.hpp"

namespace tenure::tool {
namespace {

struct Drill {
  Place place;
  unsigned rounds{3};
};

struct Harm {
  const char* name;
  const char* what;
  int signal;
  bool voluntary{};
};
constexpr Harm harms[] = {{"killed", "SIGKILL to the leader", SIGKILL},
                          {"stopped", "SIGSTOP to the leader", SIGSTOP},
                          {"cut off", "its connections break, and it gets no new ones", Troupe::cut},
                          {"ended", "SIGTERM: it hands over", SIGTERM, true}};
constexpr std::size_t candidates = 3;

std::string summary(std::vector<Clock::Duration> gaps) {
  std::sort(gaps.begin(), gaps.end());
  return gaps.front() == gaps.back() ? seconds(gaps.front()) : seconds(gaps.front()) + " to " + seconds(gaps.back());
}

void line(const std::string& fault, const std::string& what, const std::string& measured, const std::string& promised) {
  std::cout << std::left << std::setw(9) << fault << std::setw(49) << what << std::setw(22) << measured << promised
            << std::endl;
}

/// A moment at random, so that the fault meets the leader anywhere between two renewals. All followers have come by
/// then.
void let_lead(const Timing& timing, std::uint64_t dice) {
  const auto beat = timing.renew.count();
  sleep_for(timing.renew + Clock::Duration(static_cast<Clock::rep>(dice % static_cast<std::uint64_t>(beat))));
}

/// True: it kept the promise in each round.
bool suffer(Troupe& troupe, const Harm& harm, const Timing& timing, unsigned rounds) {
  const auto promise = timing.term + timing.call;
  std::vector<Clock::Duration> gaps;
  for (unsigned i = 0; i < rounds; ++i) {
    troupe.fill(candidates);
    const auto leader = troupe.await_leader();
    let_lead(timing, fnv1a(std::to_string(boot_clock().now().time_since_epoch().count())));
    if (troupe.await_leader().who != leader.who) continue;  // a loss of its own, which this is not about
    const auto hurt = boot_clock().now();
    troupe.hurt(leader.who, harm.signal);
    gaps.push_back(troupe.await_leader_after(leader).at - hurt);
    troupe.heal(leader, harm.signal);
  }
  if (gaps.empty()) throw Failed(no, "the members lost the lead again and again without any fault of ours");
  const bool kept = harm.voluntary || *std::max_element(gaps.begin(), gaps.end()) <= promise;
  const auto promised = harm.voluntary ? "at once" : "at most " + seconds(promise);
  line(harm.name, harm.what, summary(gaps), kept ? promised : painted(Colour::bad, promised + ": NOT KEPT"));
  return kept;
}

int drill(Drill asked) {
  auto& place = asked.place;
  if (place.election.empty() && place.file.empty())
    place.election = "tenure-drill-" + hex(static_cast<std::uint64_t>(boot_clock().unix_ms()));
  Troupe troupe(place, candidates + asked.rounds * std::size(harms));  // before the first thread
  const auto opened = open_place(place, no_log);
  if (const auto sight = look(*opened.backend, std::chrono::seconds(10)); std::holds_alternative<Unknown>(sight))
    fail(std::get<Unknown>(sight).error, unreachable);
  const auto& timing = opened.timing;
  troupe.patience = 3 * timing.term + 30 * timing.call + std::chrono::seconds(20);
  std::cout << "store " << opened.store << ", election " << opened.opening.election << "\ntiming " << to_string(timing)
            << "\n";
  line("fault", "", "measured", "promised");
  bool kept = true;
  for (const auto& harm : harms) {
    if (harm.signal == Troupe::cut && scheme_of(opened.opening.url) == "file") continue;  // it has no connections
    kept = suffer(troupe, harm, timing, asked.rounds) && kept;
  }
  return kept ? ok : no;
}

}  // namespace

void add_drill(CLI::App& tool, Run& run) {
  const auto asked = std::make_shared<Drill>();
  auto& command =
      *tool.add_subcommand("drill", "Measure fail-overs on the store: kill, stop and cut off leaders of our own");
  add_election(command, asked->place);
  command.add_option("--rounds", asked->rounds, "How often each fault comes")
      ->check(CLI::Range(1U, 100U).description(""))
      ->type_name("N")
      ->capture_default_str();
  command.footer(
      R"(Without -e it uses an election of a new name, so that it meets nobody else, and leaves its record behind. Never name
an election that somebody uses: the drill takes part in it. A moment is measured from the fault to the next leader's
elected(). Exit codes: 0 all promises were kept, 1 one was not, 69 nobody was elected.)");
  command.callback([asked, &run] { run = [asked] { return drill(*asked); }; });
}

}  // namespace tenure::tool
