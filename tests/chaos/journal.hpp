// SPDX-License-Identifier: Apache-2.0
// What a candidate as a process is told, and what it writes.
#pragma once
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <tenure/clock.hpp>
#include <tenure/hooks.hpp>
#include <tenure/timing.hpp>
#include <tenure/token.hpp>

#include "program_options.hpp"

namespace tenure::test {

/// Any thread may write.
class Journal {
 public:
  explicit Journal(const std::string& path);
  void write(Clock::Time at, const std::string& event, const std::string& fields = {}) const;
  void now(const std::string& event, const std::string& fields = {}) const { write(boot_clock().now(), event, fields); }
  void start(const std::string& name, const Timing& timing) const;

 private:
  int fd_;
};

std::string json_text(std::string_view text);
std::string token_field(Token token);
std::string nanoseconds(const char* name, Clock::Time at);
std::string election_field(const std::string& election);

/// What a candidate is told. Times are in the unit that the option names; 0: as the store's presets have it, or never.
/// `more`: options beside those of candidate.cpp.
Options told(int argc, char** argv, const std::map<std::string, std::optional<std::string>>& more = {});
Timing timing_of(const Options& told, const Presets& presets);

/// Hooks that write what they hear. The work takes --work-ms to stop. Of many elections each event names its own.
Hooks noting(const Journal& journal, const Options& args, bool many);

struct Pace {
  Clock::Duration look, note;  ///< note: zero for changes alone.
};

/// Starts it, samples it meanwhile, and stops it at a signal. SIGUSR1: resigns.
template <class Candidate, class Sample, class Resign>
void take_part(Candidate& candidate, const Options& args, const Journal& journal, const sigset_t& signals,
               Sample sample, Resign resign) {
  std::jthread sampler;
  const Pace pace{std::chrono::microseconds(args.number("--sample-us")),
                  std::chrono::milliseconds(args.number("--note-ms"))};
  if (pace.look > Clock::Duration::zero())
    sampler = std::jthread([&](const std::stop_token& stop) { sample(pace, stop); });
  candidate.start();
  for (int got = 0; got != SIGTERM && got != SIGINT;) {
    sigwait(&signals, &got);
    if (got == SIGUSR1) resign();
  }
  journal.now("term");
  candidate.stop();
  sampler = {};
  journal.now("quit");
}

}  // namespace tenure::test
