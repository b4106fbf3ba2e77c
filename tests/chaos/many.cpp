// SPDX-License-Identifier: Apache-2.0
// A candidate of many elections, and what it writes about each.
#include "many.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/stores.hpp>

namespace tenure::test {
namespace {

using Time = Clock::Time;

/// What a user sees of one election at some instant between two readings of the clock.
struct Look {
  Time before, after, until{Time::min()};
  std::optional<Token> token;  ///< Of our tenure, if we lead: Token{} where others may lead beside us.
};

Look look(const Leadership& leadership) {
  Look out;
  out.before = boot_clock().now();
  const auto token = leadership.exclusive() ? leadership.token() : Token{};
  const auto left = leadership.remaining();
  out.after = boot_clock().now();
  if (!token || left <= Clock::Duration::zero()) return out;
  out.token = token;
  out.until = out.before + left;  // not before that: remaining() read the clock a little later
  return out;
}

std::string fields(const std::string& election, const Look& seen) {
  return token_field(*seen.token) + election_field(election) + nanoseconds("after", seen.after) +
         nanoseconds("until", seen.until);
}

/// All elections of the process, and what the last sample saw of them.
class Watched {
 public:
  Watched(const Elections& elections, const std::vector<std::string>& names, const Journal& journal)
      : journal_(journal) {
    for (const auto& name : names) all_.push_back({name, elections.leadership(name), {}});
    for (const auto& one : all_) by_name_.emplace(one.name, one.leadership);
  }

  const Leadership& leadership(const std::string& election) const { return by_name_.at(election); }

  void sample(Clock::Duration every, Clock::Duration note, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      sweep(note);
      wait_out({boot_clock(), boot_clock().now() + every, stop});
    }
  }

 private:
  struct One {
    std::string name;
    Leadership leadership;
    std::optional<Token> token;
  };

  /// Notes each election that is led anew or no longer, and the deadline of all: the earliest, if they differ.
  void sweep(Clock::Duration note) {
    constexpr Clock::Duration moved = std::chrono::milliseconds(1);
    const auto begun = boot_clock().now();
    auto until = Time::max();
    for (auto& one : all_) {
      const auto seen = look(one.leadership);
      if (seen.token) until = std::min(until, seen.until);
      if (seen.token == one.token) continue;
      if (seen.token)
        journal_.write(seen.before, "lead", fields(one.name, seen));
      else
        journal_.write(seen.after, "follow", token_field(*one.token) + election_field(one.name));
      one.token = seen.token;
    }
    const auto ended = boot_clock().now();
    const bool due = note > Clock::Duration::zero() && ended >= noted_ + note;
    if (until == Time::max() || (!due && until <= until_ + moved && until >= until_ - moved)) return;
    journal_.write(begun, "holds", nanoseconds("after", ended).substr(1) + nanoseconds("until", until));
    until_ = until;
    noted_ = ended;
  }

  const Journal& journal_;
  std::vector<One> all_;
  std::unordered_map<std::string, Leadership> by_name_;
  Time until_{}, noted_{};
};

}  // namespace

int run_many(const Options& args, const Journal& journal, const sigset_t& signals) {
  const auto opened = open_many(args.text("--store"), args.text("--election"));
  const auto timing = timing_of(args, opened.presets);
  const auto watched = std::make_shared<std::unique_ptr<Watched>>();
  auto hooks = noting(journal, args, true);
  hooks.elected = [&journal, watched](const Elected& e) {
    const auto seen = look((*watched)->leadership(e.election));
    if (seen.token == e.token) return journal.write(seen.before, "elected", fields(e.election, seen));
    journal.now("elected", token_field(e.token) + election_field(e.election));
  };
  hooks.log = no_log;  // the journal has it
  Elections elections(opened.store->exclusive(), opened.store, {args.text("--name"), {}}, timing, std::move(hooks));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < args.number("--elections"); ++i) names.push_back(std::to_string(i));
  for (const auto& name : names) elections.join(name);
  *watched = std::make_unique<Watched>(elections, names, journal);
  journal.start(args.text("--name"), timing);
  take_part(
      elections, args, journal, signals,
      [&](Pace pace, const std::stop_token& stop) { (*watched)->sample(pace.look, pace.note, stop); },
      [&] {
        if (const auto led = elections.led(); !led.empty()) elections.resign(led.front().first);
      });
  return 0;
}

}  // namespace tenure::test
