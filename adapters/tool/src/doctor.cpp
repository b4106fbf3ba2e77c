// SPDX-License-Identifier: Apache-2.0
// What would keep an election from working well here, each with its remedy.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <system_error>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/stores.hpp>

#include "commands.hpp"
#include "durations.hpp"
#include "exit_code.hpp"
#include "look.hpp"
#include "sight.hpp"

namespace tenure::tool {
namespace {

constexpr int questions = 20;

class Report {
 public:
  void add(const Check& check) {
    const bool wrong = check.is == Check::Is::wrong;
    std::cout << (wrong ? "WRONG  " : check.is == Check::Is::fine ? "ok     " : "note   ") << check.what << "\n";
    if (!check.remedy.empty()) std::cout << "       " << check.remedy << "\n";
    healthy_ = healthy_ && !wrong;
  }
  void fine(const std::string& what) { add(Check::fine(what)); }
  void wrong(const std::string& what, const std::string& remedy) { add(Check::wrong(what, remedy)); }
  bool healthy() const { return healthy_; }

 private:
  bool healthy_{true};
};

/// Trouble of another kind says itself what is to be done.
std::string remedy_for(const Error& error, const std::string& for_silence) {
  const bool silent = error.fault == Fault::timed_out || error.fault == Fault::unreachable;
  return silent ? for_silence : "mend that, and ask doctor again";
}

/// The slowest of some questions; an error if one had no answer.
Result<Clock::Duration> slowest_answer(Backend& backend, Clock::Duration call) {
  auto& clock = boot_clock();
  Clock::Duration slowest{};
  for (int i = 0; i < questions; ++i) {
    const auto asked = clock.now();
    const auto sight = backend.observe({clock, asked + 10 * call, {}});
    if (const auto* unknown = std::get_if<Unknown>(&sight)) return unknown->error;
    slowest = std::max(slowest, clock.now() - asked);
  }
  return std::chrono::ceil<std::chrono::milliseconds>(slowest);
}

void judge_answers(Report& report, Backend& backend, const Timing& timing) {
  const auto slowest = slowest_answer(backend, timing.call);
  if (!slowest)
    report.wrong("the store did not answer one of " + std::to_string(questions) + " questions within " +
                     seconds(10 * timing.call) + ": " + printable(slowest.error().message, 1000),
                 remedy_for(slowest.error(), "look at its load and the network, or take a longer term"));
  else if (*slowest * 2 > timing.call)
    report.wrong("the slowest answer took " + seconds(*slowest) + ", and a call may take " + seconds(timing.call),
                 "take a longer term: --timing steady, or --term");
  else
    report.fine("the slowest of " + std::to_string(questions) + " answers took " + seconds(*slowest) +
                "; a call may take " + seconds(timing.call));
}

void judge_server(Report& report, const Opening& opening) {
  const auto found = asked_until(boot_clock().now() + std::chrono::seconds(10),
                                 [&](const Limit& limit) { return check_up(opening, limit); });
  if (!found)
    return report.wrong(
        "the server does not tell its settings: " + printable(found.error().message, 1000),
        found.error().fault == Fault::forbidden
            ? "run doctor as a user who may read the server's settings; a candidate works without that right"
            : remedy_for(found.error(), "look at its load and the network"));
  for (const auto& check : *found) report.add(check);
}

void judge_clock(Report& report) {
  const std::string path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  std::string source;
  std::ifstream(path) >> source;
  if (source.empty())
    report.wrong("cannot read " + path, "mount /sys, so that the clock's source can be told");
  else if (source == "jiffies" || source == "refined-jiffies")
    report.wrong("the clock's source is " + source + ", which is coarse and may drift",
                 "boot with another clocksource");
  else
    report.fine("the clock's source is " + source);
}

/// Whether elections work in this directory, and how fast. What it makes for that it takes away.
void judge_directory(Report& report, Opening opening, const Timing& timing) {
  const auto directory = parse_url(opening).path;
  const auto in = "in the directory " + printable(directory);
  if (!std::filesystem::exists(directory))
    return report.add(Check::doubtful("nothing stands " + in + ", for it is missing",
                                      "the first candidate makes it, for its own user alone; or use tenure setup"));
  opening.election = "tenure-doctor-" + std::to_string(::getpid());
  try {
    const auto opened = open(opening);
    const Limit soon{boot_clock(), boot_clock().now() + std::chrono::seconds(10), {}};
    (void)opened.backend->accepts(timing);
    const auto answer = opened.backend->acquire(soon);
    if (const auto* unknown = std::get_if<Unknown>(&answer)) throw std::runtime_error(unknown->error.message);
    report.fine("elections work " + in);
    judge_answers(report, *opened.backend, timing);
    opened.backend->release(soon);
  } catch (const std::exception& e) {
    report.wrong("elections do not work " + in, printable(e.what(), 1000));
  }
  std::error_code ignored;
  std::filesystem::remove_all(std::filesystem::path(directory) / opening.election, ignored);
}

int examine(Place place) {
  const bool unnamed = place.election.empty() && place.file.empty();
  if (unnamed) place.election = "tenure-doctor";
  place.asks = true;
  const auto opened = open_place(place, no_log);
  if (unnamed && scheme_of(opened.opening.url) == "kafka")
    throw Failed(
        usage,
        "name the election by -e: over Kafka the group and the topic bear its name, and the rights are given to these");
  Report report;
  const auto refused = opened.backend->accepts(opened.timing);  // before the first question, as a candidate does
  const auto first = look(*opened.backend, std::chrono::seconds(10));
  const auto* unknown = std::get_if<Unknown>(&first);
  if (unknown && unknown->error.fault != Fault::corrupt) fail(unknown->error, unreachable);
  const auto sight = unknown ? first : proven(opened, std::chrono::seconds(1));
  if (unknown)
    report.wrong("who leads cannot be read: " + printable(unknown->error.message, 1000),
                 "see \"What an error means\" in the page for operators");
  else if (std::holds_alternative<Unknown>(sight))
    report.add(Check::doubtful(opened.store + " answers: " + as_text(sight),
                               "if it has died, another one leads once its lease ends"));
  else
    report.fine(opened.store + " answers: " + as_text(sight));
  judge_server(report, opened.opening);
  if (scheme_of(opened.opening.url) == "file")
    judge_directory(report, opened.opening, opened.timing);
  else
    judge_answers(report, *opened.backend, opened.timing);
  if (refused)
    report.wrong("the store refuses the timing", refused->message);
  else
    report.fine("the store takes the timing: " + to_string(opened.timing));
  report.fine("after a crash the next one leads within " +
              seconds(opened.timing.term + opened.timing.retry + opened.timing.call) + "; an outage of " +
              seconds(opened.timing.rides_out()) + " ends no tenure");
  judge_clock(report);
  std::cout.flush();
  return report.healthy() ? ok : no;
}

}  // namespace

void add_doctor(CLI::App& tool, Run& run) {
  const auto place = std::make_shared<Place>();
  auto& command = *tool.add_subcommand("doctor", "Say what would keep an election from working well, and the remedy");
  add_election(command, *place);
  command.footer(
      "Exit codes: 0 nothing is wrong (a note may be right for you), 1 something is, 69 the store cannot be reached.\n"
      "It asks questions only; in a directory and in a bucket it writes something of its own, and takes it away.");
  command.callback([place, &run] { run = [place] { return examine(*place); }; });
}

}  // namespace tenure::tool
