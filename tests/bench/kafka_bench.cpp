// SPDX-License-Identifier: Apache-2.0
// Elections over a real Kafka broker, by processes: crash fail-over, hand-over, churn of followers, first election, a
// stopped leader, and what idling costs. `tests/bench/kafka` starts the broker and this. Times in seconds.
//
// kafka_bench --candidate PROGRAM --brokers HOST:PORT [--preset fast] [--idle-preset balanced] [--runs 10]
//             [--settings "&min_session_ms=100"] [--figures first,crash,handover,churn,stopped,idle]
// The broker is on 127.0.0.1: a relay before it counts the requests.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>

#include <tenure/kit/wait.hpp>

#include "fleet.hpp"
#include "relay.hpp"
#include "table.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;
using test::Event;
using test::Fleet;

double seconds(Clock::Duration d) { return std::chrono::duration<double>(d).count(); }

void let_pass(Clock::Duration d) { wait_out({boot_clock(), boot_clock().now() + d, {}}); }

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

struct Settings {
  std::string candidate, brokers, preset{"fast"}, idle_preset{"balanced"},
      figures{"first,crash,handover,churn,stopped,idle"};
  std::string settings;
  std::size_t runs{10};
};

/// One election with its processes, in a group of its own.
class Group {
 public:
  Group(const Settings& s, const std::string& preset, const std::string& brokers, long sample_us = 1000)
      : name_("bench-" + std::to_string(::getpid()) + "-" + std::to_string(++count_)),
        dir_(std::filesystem::temp_directory_path() / name_),
        fleet((std::filesystem::create_directory(dir_), s.candidate),
              {"--store", "kafka://" + brokers + "/tenure-bench?create_topic=true&group=" + name_ + s.settings,
               "--election", name_, "--preset", preset, "--sample-us", std::to_string(sample_us)},
              dir_ / "journal") {}
  ~Group() { std::filesystem::remove_all(dir_); }

  pid_t add() { return fleet.start("p" + std::to_string(++started_)); }

  /// The next candidate that begins to lead, from event `from` on.
  const Event& next_leader(std::size_t from, Clock::Duration within, pid_t other_than = 0) {
    const auto at = fleet.await(
        from, [&](const Event& e) { return e.what == "elected" && e.pid != other_than; }, within);
    if (at == Fleet::npos) fail(name_ + ": nobody leads within " + std::to_string(seconds(within)) + " s");
    return fleet.events()[at];
  }

  /// Three candidates, one of them leading for some while, so that all the others have watched it.
  pid_t settle(std::mt19937& dice, Clock::Duration watched) {
    while (fleet.running().size() < 3) {
      const auto from = fleet.events().size();
      const bool first = fleet.running().empty();
      const auto pid = add();
      if (first) next_leader(from, 60s);
      fleet.await(
          from, [&](const Event& e) { return e.pid == pid && e.what == "start"; }, 10s);
      let_pass(1s);
    }
    let_pass(watched + std::chrono::milliseconds(std::uniform_int_distribution<>(0, 2000)(dice)));
    const auto leader = fleet.leader();
    if (!leader) fail(name_ + ": there is no one leader");
    return leader;
  }

  std::size_t count(const std::string& what, std::size_t from = 0) {
    const auto& all = fleet.events();
    return static_cast<std::size_t>(std::count_if(all.begin() + static_cast<long>(from), all.end(),
                                                  [&](const Event& e) { return e.what == what; }));
  }

 private:
  inline static int count_ = 0;
  std::string name_;
  std::filesystem::path dir_;
  int started_{};

 public:
  Fleet fleet;
};

void first_election(const Settings& s) {
  std::vector<double> took;
  for (std::size_t i = 0; i < std::min<std::size_t>(s.runs, 5); ++i) {
    Group group(s, s.preset, s.brokers);
    const auto start = boot_clock().now();
    group.add();
    took.push_back(seconds(group.next_leader(0, 60s).at - start));
  }
  bench::print_row("first election of a new group, from exec (" + s.preset + ")", took);
}

void crash(const Settings& s, std::mt19937& dice) {
  Group group(s, s.preset, s.brokers);
  std::vector<double> took;
  while (took.size() < s.runs) {
    const auto leader = group.settle(dice, 1s);
    const auto from = group.fleet.events().size();
    const auto killed = boot_clock().now();
    group.fleet.signal(leader, SIGKILL);
    took.push_back(seconds(group.next_leader(from, 60s, leader).at - killed));
    group.fleet.reap(leader, 5s);
  }
  bench::print_row("crash fail-over, SIGKILL (" + s.preset + ")", took);
}

void handover(const Settings& s, std::mt19937& dice) {
  Group group(s, s.preset, s.brokers);
  std::vector<double> took;
  while (took.size() < s.runs) {
    const auto leader = group.settle(dice, 1s);
    const auto from = group.fleet.events().size();
    const auto asked = boot_clock().now();
    group.fleet.signal(leader, SIGTERM);
    took.push_back(seconds(group.next_leader(from, 60s, leader).at - asked));
    group.fleet.reap(leader, 10s);
  }
  bench::print_row("graceful hand-over, SIGTERM (" + s.preset + ")", took);
}

void churn(const Settings& s) {
  Group group(s, s.preset, s.brokers);
  const auto leader = group.add();
  group.next_leader(0, 60s);
  let_pass(2s);
  const auto from = group.fleet.events().size();
  std::vector<pid_t> followers;
  for (int i = 0; i < 25; ++i) {
    followers.push_back(group.add());
    let_pass(1s);
  }
  for (const auto pid : followers) {
    group.fleet.signal(pid, SIGTERM);
    if (!group.fleet.reap(pid, 20s)) fail("a follower did not stop");
    let_pass(500ms);
  }
  bench::print_row("oustings over 25 joins and 25 leaves (" + s.preset + ")",
                   {static_cast<double>(group.count("ousting", from))});
  bench::print_row("moments at which is_leader() turned false", {static_cast<double>(group.count("follow", from))});
  if (group.fleet.leader() != leader) fail("the leader changed");
}

/// What the stopped leader says first, and whether its successor keeps the lead.
void stopped(const Settings& s, std::mt19937& dice) {
  Group group(s, s.preset, s.brokers);
  std::vector<double> took, believed, disturbed, overlap;
  for (std::size_t i = 0; i < std::min<std::size_t>(s.runs, 8); ++i) {
    const auto leader = group.settle(dice, 1s);
    const auto from = group.fleet.events().size();
    const auto at = boot_clock().now();
    group.fleet.signal(leader, SIGSTOP);
    const auto successor = group.next_leader(from, 60s, leader);
    took.push_back(seconds(successor.at - at));
    let_pass(at + 30s - boot_clock().now());
    const auto resumed = group.fleet.events().size();
    group.fleet.signal(leader, SIGCONT);
    if (group.fleet.await(
            resumed, [&](const Event& e) { return e.pid == leader; }, 10s) == Fleet::npos)
      fail("the resumed process says nothing");
    let_pass(10s);
    double leads = 0, lost = 0;
    const auto& all = group.fleet.events();
    for (auto n = resumed; n < all.size(); ++n) {
      if (all[n].pid == leader && all[n].what == "lead") ++leads;
      if (all[n].pid == successor.pid && all[n].what == "follow") ++lost;
    }
    double until = 0;  // the stopped leader's last deadline
    for (const auto& e : all)
      if (e.pid == leader && e.what == "lead" && e.at < at) until = seconds(e.until - successor.at);
    believed.push_back(leads);
    disturbed.push_back(lost);
    overlap.push_back(std::max(until, 0.0));
  }
  bench::print_row("leader stopped 30 s: until the successor leads", took);
  bench::print_row("  samples after SIGCONT in which the old one leads", believed);
  bench::print_row("  overlap of their deadlines", overlap);
  bench::print_row("  times the successor lost the lead within 10 s", disturbed);
}

struct Usage {
  double cpu_ms{}, rss_mb{}, threads{};
};

Usage usage_of(pid_t pid) {
  Usage u;
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string all((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(all.substr(all.rfind(')') + 2));
  std::string field;
  for (int n = 3; fields >> field; ++n)
    if (n == 14 || n == 15) u.cpu_ms += 1000.0 * std::stod(field) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) u.rss_mb = std::stod(line.substr(6)) / 1024;
    if (line.rfind("Threads:", 0) == 0) u.threads = std::stod(line.substr(8));
  }
  return u;
}

void idle(const Settings& s, std::mt19937&) {
  constexpr auto during = 60s;
  const test::Relay relay(std::stoi(s.brokers.substr(s.brokers.rfind(':') + 1)), test::Speaks::kafka);
  Group group(s, s.idle_preset, relay.address(), 0);
  const auto leader = group.add();
  group.next_leader(0, 60s);
  const auto follower = group.add();
  group.add();
  let_pass(15s);
  std::map<pid_t, Usage> before{{leader, usage_of(leader)}, {follower, usage_of(follower)}};
  const auto requests = relay.requests();
  let_pass(during);
  const auto after = relay.requests();
  for (const auto& [pid, who] : {std::pair{leader, "leader"}, std::pair{follower, "follower"}}) {
    const auto u = usage_of(pid);
    const auto name = std::string("idle ") + who + " (" + s.idle_preset + "): ";
    bench::print_row(name + "CPU, ms per s", {(u.cpu_ms - before[pid].cpu_ms) / seconds(during)});
    bench::print_row(name + "resident memory, MB", {u.rss_mb});
    bench::print_row(name + "threads", {u.threads});
    double total = 0;
    std::string kinds;
    for (const auto& [key, n] : after) {
      if (key.first != pid) continue;
      const auto earlier = requests.count(key) ? requests.at(key) : 0;
      if (n == earlier) continue;
      total += static_cast<double>(n - earlier);
      std::ostringstream kind;
      kind.precision(2);
      kind << std::fixed << " " << test::api_name(key.second) << " "
           << static_cast<double>(n - earlier) / seconds(during);
      kinds += kind.str();
    }
    bench::print_row(name + "requests per s", {total / seconds(during)});
    if (!kinds.empty()) std::printf("    of these:%s\n", kinds.c_str());
  }
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--candidate")
      s.candidate = value;
    else if (name == "--brokers")
      s.brokers = value;
    else if (name == "--preset")
      s.preset = value;
    else if (name == "--idle-preset")
      s.idle_preset = value;
    else if (name == "--runs")
      s.runs = std::stoul(value);
    else if (name == "--figures")
      s.figures = value;
    else if (name == "--settings")
      s.settings = value;
    else
      fail("unknown option " + name);
  }
  if (s.candidate.empty() || s.brokers.empty())
    fail("--candidate and --brokers are needed; tests/bench/kafka has both");
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto s = parse(argc, argv);
  std::mt19937 dice(std::random_device{}());
  const auto wanted = [&](const char* figure) {
    return ("," + s.figures + ",").find("," + std::string(figure) + ",") != std::string::npos;
  };
  bench::print_header("s, where no unit is given");
  if (wanted("first")) first_election(s);
  if (wanted("crash")) crash(s, dice);
  if (wanted("handover")) handover(s, dice);
  if (wanted("churn")) churn(s);
  if (wanted("stopped")) stopped(s, dice);
  if (wanted("idle")) idle(s, dice);
} catch (const std::exception& e) {
  std::fprintf(stderr, "kafka_bench: %s\n", e.what());
  return 1;
}
