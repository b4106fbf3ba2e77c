// SPDX-License-Identifier: Apache-2.0
// One candidate as a process of its own, for the multi-process tests and the benchmarks. It writes what it observes as
// lines of JSON, each by one write(2), so that no line is lost when it is killed. Times are nanoseconds of
// CLOCK_BOOTTIME. SIGTERM stops it, SIGUSR1 makes it resign.
//
// candidate --store URL  --election E --log FILE --name N
//           [--preset fast|balanced|steady | --term-ms N] [--sample-us N] [--note-ms N]
//           [--work-ms N]
//
// event     fields               meaning
// start     pid name term margin the process is about to campaign
// elected   token                the hook was called
// ousting   token reason
// ended     token                ousting() returns now (after --work-ms, the time that stopping takes)
// lead      token after until    a sample: is_leader() turned true, or the deadline moved, or --note-ms passed. It was
//                                true at some instant from t to `after`, and the deadline is not before `until`
// follow                         a sample: is_leader() turned false
// sees      token                a sample: the incumbent is another candidate, and not the one before
// error     fault message
// quit                           stop() has returned
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>

namespace {

using namespace tenure;

class Journal {
 public:
  explicit Journal(const std::string& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path);
  }
  void write(Clock::Time at, const std::string& event, const std::string& fields = {}) const {
    const auto line = "{\"t\":" + std::to_string(at.time_since_epoch().count()) +
                      ",\"pid\":" + std::to_string(::getpid()) + ",\"event\":\"" + event + "\"" +
                      (fields.empty() ? "" : ",") + fields + "}\n";
    if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  }
  void now(const std::string& event, const std::string& fields = {}) const { write(boot_clock().now(), event, fields); }

 private:
  int fd_;
};

std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : printable(text, 400)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return '"' + out + '"';
}

std::string token_field(Token token) { return "\"token\":" + std::to_string(token.value); }

std::string nanoseconds(const char* name, Clock::Time at) {
  return ",\"" + std::string(name) + "\":" + std::to_string(at.time_since_epoch().count());
}

struct Pace {
  Clock::Duration look, note;  ///< note: zero for changes alone.
};

/// Looks at is_leader() as a user would, and notes when what it says changes.
void sample(const Leadership& leadership, Pace pace, const Journal& journal, std::stop_token stop) {
  constexpr Clock::Duration moved = std::chrono::milliseconds(1);
  auto& clock = boot_clock();
  Token seen, incumbent;  // 0: none
  Clock::Time until{}, noted{};
  while (!stop.stop_requested()) {
    const auto before = clock.now();
    const auto token = leadership.token();
    const auto left = leadership.remaining();
    const auto after = clock.now();
    if (token && left > Clock::Duration::zero()) {
      const auto deadline = before + left;  // not before that: remaining() read the clock a little later
      const bool due = pace.note > Clock::Duration::zero() && after >= noted + pace.note;
      if (*token != seen || deadline > until + moved || deadline < until - moved || due) {
        journal.write(before, "lead",
                      token_field(*token) + nanoseconds("after", after) + nanoseconds("until", deadline));
        until = deadline;
        noted = after;
      }
      seen = *token;
    } else if (!token && seen.value != 0) {
      journal.write(after, "follow");
      seen = {};
    }
    const auto other = leadership.incumbent();
    if (!token && other && other->token != incumbent) journal.write(after, "sees", token_field(other->token));
    if (other) incumbent = other->token;
    wait_out({clock, clock.now() + pace.look, stop});
  }
}

Hooks noting(const Journal& journal, Clock::Duration work) {
  Hooks hooks;
  hooks.elected = [&journal](const Elected& e) { journal.now("elected", token_field(e.token)); };
  hooks.ousting = [&journal, work](const Ousting& o) {
    journal.now("ousting", token_field(o.token) + ",\"reason\":" + quoted(to_string(o.reason)) +
                               ",\"detail\":" + quoted(o.detail));
    if (work > Clock::Duration::zero()) wait_out({boot_clock(), boot_clock().now() + work, o.expired});
    journal.now("ended", token_field(o.token));
  };
  hooks.error = [&journal](const Error& e) {
    journal.now("error", "\"fault\":" + quoted(to_string(e.fault)) + ",\"message\":" + quoted(e.message));
  };
  return hooks;
}

std::map<std::string, std::string> arguments(int argc, char** argv) {
  std::map<std::string, std::string> out;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name.substr(0, 2) != "--" || i + 1 >= argc) throw std::invalid_argument("expected --option value, got " + name);
    out[name.substr(2)] = argv[i + 1];
  }
  for (const auto* needed : {"store", "election", "log", "name"})
    if (!out.contains(needed)) throw std::invalid_argument(std::string("--") + needed + " is missing");
  return out;
}

Timing timing_of(const std::map<std::string, std::string>& args, const Presets& presets) {
  if (!args.contains("preset")) return Timing::of(std::chrono::milliseconds(std::stol(args.at("term-ms"))));
  const auto& name = args.at("preset");
  if (name == "fast") return presets.fast;
  if (name == "balanced") return presets.balanced;
  if (name == "steady") return presets.steady;
  throw std::invalid_argument("--preset " + name + ": fast, balanced or steady");
}

int run(int argc, char** argv) {
  auto args = arguments(argc, argv);
  const auto number = [&](const char* name, long otherwise) {
    return args.contains(name) ? std::stol(args.at(name)) : otherwise;
  };
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const Journal journal(args.at("log"));
  const auto opened = open(args.at("store"), args.at("election"), {args.at("name"), {}});
  const auto timing = timing_of(args, opened.presets);
  LeaderManager manager(opened.backend, timing, noting(journal, std::chrono::milliseconds(number("work-ms", 0))));
  journal.now("start", "\"name\":" + quoted(args.at("name")) + ",\"term\":" + std::to_string(timing.term.count()) +
                           ",\"margin\":" + std::to_string(timing.margin.count()));
  std::jthread sampler;
  if (const auto every = number("sample-us", 1000); every > 0)
    sampler = std::jthread([&, every, note = number("note-ms", 0)](std::stop_token stop) {
      sample(manager.leadership(), {std::chrono::microseconds(every), std::chrono::milliseconds(note)}, journal, stop);
    });
  manager.start();
  for (int got = 0; got != SIGTERM && got != SIGINT;) {
    sigwait(&signals, &got);
    if (got == SIGUSR1) manager.resign();
  }
  journal.now("term");
  manager.stop();
  sampler = {};
  journal.now("quit");
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& e) {
  std::fprintf(stderr, "candidate: %s\n", e.what());
  return 2;
}
