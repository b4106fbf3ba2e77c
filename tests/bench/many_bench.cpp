// SPDX-License-Identifier: Apache-2.0
// Many elections of one group, shared by some processes: what they cost the store at rest, and what they cost a process
// that leads all. tests/bench/many runs it.
//
// many_bench --store URL [--elections 10000] [--processes 3] [--renew-ms 2000] [--seconds 20] [--server COMMAND]
//
// COMMAND prints two numbers: the server's requests so far, and the microseconds that it worked on them.
// --probe 1 is for its own use.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/stores.hpp>

#include "program_options.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;

struct Settings {
  std::string store, server, self;
  std::size_t elections{}, processes{};
  std::chrono::milliseconds renew{};
  std::chrono::seconds window{};
  bool probe{};
};

Clock::Time now() { return boot_clock().now(); }
void let_pass(Clock::Duration d) { wait_out({boot_clock(), now() + d, {}}); }
double seconds(Clock::Duration d) { return std::chrono::duration<double>(d).count(); }
[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

struct Work {
  double requests{}, microseconds{};
};

/// What the server says of itself; nothing without --server.
Work at_server(const Settings& s) {
  Work out;
  if (s.server.empty()) return out;
  auto* pipe = ::popen(s.server.c_str(), "r");
  if (pipe == nullptr || std::fscanf(pipe, "%lf %lf", &out.requests, &out.microseconds) != 2)
    fail("no two numbers came from the command of --server");  // which may have a password
  ::pclose(pipe);
  return out;
}

/// Processes that share the elections "0", "1" and so on of a new group. They are objects of this process: a store
/// sees no difference.
class Shared {
 public:
  Shared(const Settings& s, std::size_t processes) : elections_(s.elections) {
    const auto group = "bench-" + std::to_string(::getpid());
    std::vector<std::string> all;
    for (std::size_t i = 0; i < elections_; ++i) all.push_back(std::to_string(i));
    for (std::size_t p = 0; p < processes; ++p) {
      members_.emplace_back(open_many(s.store, group, no_log).store, Candidate{"p" + std::to_string(p), {}},
                            Timing::of(5 * s.renew), Hooks{.log = no_log});
      members_.back().join(all);
    }
    for (auto& one : members_) one.start();
    for (const auto give_up = now() + 300s; !balanced(); let_pass(200ms))
      if (now() > give_up) fail("not all are led in equal shares");
  }

 private:
  bool balanced() const {
    std::size_t sum = 0, least = elections_, most = 0;
    for (const auto& one : members_) {
      const auto led = one.led().size();
      sum += led, least = std::min(least, led), most = std::max(most, led);
    }
    return sum == elections_ && most - least <= 1;
  }

  std::size_t elections_;
  std::list<Elections> members_;
};

void rest(const Settings& s) {
  const Shared shared(s, s.processes);
  let_pass(2 * s.renew);
  const auto before = at_server(s);
  let_pass(s.window);
  const auto after = at_server(s);
  const auto window = seconds(s.window);
  const auto renewals = window / seconds(s.renew) * static_cast<double>(s.processes);
  std::printf(
      "at rest: %zu elections, %zu processes, renew %.1f s: %.2f requests/s, %.0f us of the server's work per "
      "renewal\n",
      s.elections, s.processes, seconds(s.renew), (after.requests - before.requests) / window,
      (after.microseconds - before.microseconds) / renewals);
}

/// In a process of its own: leads all, and tells what that takes.
void probe(const Settings& s) {
  const Shared alone(s, 1);
  let_pass(s.renew);
  std::ifstream status("/proc/self/status");
  std::string memory, threads;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) memory = line.substr(line.find_first_not_of(" \t", 6));
    if (line.starts_with("Threads:")) threads = line.substr(line.find_first_not_of(" \t", 8));
  }
  std::printf("a process that leads all %zu: %s of memory, %s threads\n", s.elections, memory.c_str(), threads.c_str());
}

void process(const Settings& s) {
  std::fflush(stdout);
  const auto command = "exec '" + s.self + "' --probe 1 --store '" + s.store + "' --elections " +
                       std::to_string(s.elections) + " --renew-ms " + std::to_string(s.renew.count());
  if (std::system(command.c_str()) != 0) fail("a process that leads all failed");
}

Settings parse(int argc, char** argv) {
  const test::Options given(argc, argv,
                            {{"--store", std::nullopt},
                             {"--server", ""},
                             {"--elections", "10000"},
                             {"--processes", "3"},
                             {"--renew-ms", "2000"},
                             {"--seconds", "20"},
                             {"--probe", "0"}});
  return {.store = given.text("--store"),
          .server = given.text("--server"),
          .self = std::filesystem::read_symlink("/proc/self/exe"),
          .elections = given.number("--elections"),
          .processes = given.number("--processes"),
          .renew = std::chrono::milliseconds(given.number("--renew-ms")),
          .window = std::chrono::seconds(given.number("--seconds")),
          .probe = given.number("--probe") != 0};
}

}  // namespace

int main(int argc, char** argv) try {
  const auto s = parse(argc, argv);
  if (s.probe) return probe(s), 0;
  rest(s);
  process(s);
} catch (const std::exception& e) {
  std::fprintf(stderr, "many_bench: %s\n", e.what());
  return 1;
}
