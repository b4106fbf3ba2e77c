// SPDX-License-Identifier: Apache-2.0
// Elections in a directory: what one call costs, how long a change of leader takes among processes, what
// idling costs.
//
// file_bench --candidate PROGRAM [--runs 60] [--calls 2000] [--directory DIR]
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <tenure/file.hpp>
#include <tenure/kit/wait.hpp>
#include <vector>

#include "fleet.hpp"
#include "scratch.hpp"
#include "table.hpp"
#include "within.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;
using test::Event;
using test::Fleet;
using test::Scratch;
using test::within;
namespace fs = std::filesystem;

struct Settings {
  std::string candidate, directory{fs::temp_directory_path()};
  std::size_t runs{60}, calls{2000};
};

Clock::Time now() { return boot_clock().now(); }
void let_pass(Clock::Duration d) { wait_out(within(d)); }
double microseconds(Clock::Duration d) { return std::chrono::duration<double, std::micro>(d).count(); }
double milliseconds(Clock::Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

double timed(const std::function<void()>& call) {
  const auto before = now();
  call();
  return microseconds(now() - before);
}

/// One store's calls, in microseconds.
void calls(const Settings& s) {
  const Scratch scratch(s.directory);
  const auto a = file::store(scratch, "bench"), b = file::store(scratch, "bench");
  Record next;
  next.term = 1h;
  std::vector<double> claims, renewals, reads;
  std::optional<Expected> expected;
  const auto write = [&](ConditionalStore& store) {
    next.asked = now().time_since_epoch();
    ++next.beat;
    const auto result = store.compare_and_set(expected, next, within(1s));
    if (!result || !result->applied) fail("a write was refused");
    expected = Expected{next.token, {next.beat}};
  };
  for (std::size_t i = 0; i < s.calls; ++i) {
    ++next.token.value;
    claims.push_back(timed([&] { write(i % 2 ? *a : *b); }));
  }
  auto& holder = s.calls % 2 ? *b : *a;
  for (std::size_t i = 0; i < 10 * s.calls; ++i) renewals.push_back(timed([&] { write(holder); }));
  for (std::size_t i = 0; i < 10 * s.calls; ++i)
    reads.push_back(timed([&] { static_cast<void>(a->read(within(1s))); }));
  bench::print_header("us");
  bench::print_row("claim, made durable", claims);
  bench::print_row("renewal", renewals);
  bench::print_row("read", reads);
}

/// Processes that contend, one of which leads.
class Group {
 public:
  Group(const Settings& s, Clock::Duration term, int candidates, long sample_us)
      : scratch_(s.directory),
        fleet(s.candidate,
              {"--store", "file://" + (scratch_ / "store").string(), "--election", "bench", "--term-ms",
               std::to_string(term / 1ms), "--sample-us", std::to_string(sample_us)},
              scratch_ / "journal") {
    for (int i = 0; i < candidates; ++i) add();
    leader = next_leader(0).pid;
    await_followers();
  }

  pid_t add() { return fleet.start("p" + std::to_string(++started_)); }

  const Event& next_leader(std::size_t from) {
    const auto at = fleet.await(
        from, [](const Event& e) { return e.what == "elected"; }, 30s);
    if (at == Fleet::npos) fail("nobody leads");
    return fleet.events()[at];
  }

  /// Waits until all have begun and know who leads.
  void await_followers() { let_pass(100ms); }

  /// How long it takes from `strikes` to the next election.
  Clock::Duration change(const std::function<void(pid_t)>& strikes) {
    const auto from = fleet.events().size();
    const auto struck = now();
    strikes(leader);
    const auto& next = next_leader(from);
    leader = next.pid;
    return next.at - struck;
  }

 private:
  Scratch scratch_;
  int started_{};

 public:
  Fleet fleet;
  pid_t leader{};
};

std::vector<double> changes(const Settings& s, Clock::Duration term, std::size_t runs, int signal) {
  std::vector<double> took;
  Group group(s, term, 3, 0);
  for (std::size_t i = 0; i < runs; ++i) {
    const auto old = group.leader;
    took.push_back(milliseconds(group.change([&](pid_t pid) { group.fleet.signal(pid, signal); })));
    if (signal == SIGSTOP) {
      group.fleet.signal(old, SIGCONT);
    } else {
      if (!group.fleet.reap(old, 10s)) fail("a candidate does not end");
      group.add();
    }
    group.await_followers();
  }
  return took;
}

void leaders(const Settings& s) {
  bench::print_header("ms");
  bench::print_row("leader killed (term 3 s): until the next one leads", changes(s, 3s, s.runs, SIGKILL));
  bench::print_row("leader ends (SIGTERM): until the next one leads", changes(s, 3s, s.runs, SIGTERM));
  bench::print_row("leader stopped (term 500 ms): until the next one leads", changes(s, 500ms, s.runs / 3, SIGSTOP));
}

/// Summed over all threads of a process.
double of_threads(pid_t pid, const char* file, const std::function<double(std::istream&)>& value) {
  double sum = 0;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream in(task.path() / file);
    sum += value(in);
  }
  return sum;
}

double wake_ups(pid_t pid) {
  return of_threads(pid, "status", [](std::istream& in) {
    for (std::string line; std::getline(in, line);)
      if (line.rfind("voluntary_ctxt_switches:", 0) == 0) return std::stod(line.substr(24));
    return 0.0;
  });
}

double cpu_microseconds(pid_t pid) {
  return of_threads(pid, "schedstat", [](std::istream& in) {
    double nanoseconds = 0;
    in >> nanoseconds;
    return nanoseconds / 1000;
  });
}

double threads(pid_t pid) {
  return of_threads(pid, "comm", [](std::istream&) { return 1.0; });
}

void idle(const Settings& s) {
  constexpr auto seconds = 30;
  bench::print_header("");
  Group group(s, 3s, 2, 0);
  let_pass(3s);
  for (const auto pid : group.fleet.running()) {
    const std::string who = pid == group.leader ? "leader" : "follower";
    const auto wakes = wake_ups(pid), cpu = cpu_microseconds(pid);
    let_pass(std::chrono::seconds(seconds));
    bench::print_row(who + ", term 3 s, over 30 s: wake-ups/s", {(wake_ups(pid) - wakes) / seconds});
    bench::print_row(who + ": CPU us/s", {(cpu_microseconds(pid) - cpu) / seconds});
    bench::print_row(who + ": threads", {threads(pid)});
  }
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--candidate")
      s.candidate = value;
    else if (name == "--runs")
      s.runs = std::stoul(value);
    else if (name == "--calls")
      s.calls = std::stoul(value);
    else if (name == "--directory")
      s.directory = value;
    else
      fail("unknown option " + name);
  }
  if (s.candidate.empty()) fail("--candidate PROGRAM is needed: build/tests/chaos/candidate");
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto s = parse(argc, argv);
  std::cout << "in " << s.directory << std::endl;
  calls(s);
  leaders(s);
  idle(s);
  return 0;
} catch (const std::exception& e) {
  std::cerr << "file_bench: " << e.what() << '\n';
  return 1;
}
