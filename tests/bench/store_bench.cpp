// SPDX-License-Identifier: Apache-2.0
// Elections in one record of a server: how soon after its lease a crashed leader is replaced, how fast a hand-over is,
// which outage ends no tenure, and what a stopped leader believes. tests/bench/stores runs it beside other electors.
//
// store_bench --candidate PROGRAM --store URL [--figures overshoot,handover,claims,contenders,outage,stopped]
// [--runs 60]
//   [--contenders 90]
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <list>
#include <memory>
#include <random>
#include <regex>
#include <stdexcept>
#include <string>
#include <tenure/kit/wait.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>
#include <thread>
#include <vector>

#include "fleet.hpp"
#include "history.hpp"
#include "relay.hpp"
#include "table.hpp"
#include "within.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;
using test::Event;
using test::Fleet;
using test::within;

struct Settings {
  std::string candidate, store, figures{"overshoot,handover,claims,contenders,outage,stopped"};
  std::size_t runs{60}, contenders{90};
};

Clock::Time now() { return boot_clock().now(); }
void let_pass(Clock::Duration d) { wait_out({boot_clock(), now() + d, {}}); }
double seconds(Clock::Duration d) { return std::chrono::duration<double>(d).count(); }
double milliseconds(Clock::Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string unique_name() {
  static int count = 0;
  return "bench-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

/// One election and its processes.
class Group {
 public:
  Group(const Settings& s, const std::vector<std::string>& timing, int candidates)
      : name_(unique_name()),
        dir_(std::filesystem::temp_directory_path() / name_),
        fleet((std::filesystem::create_directory(dir_), s.candidate), arguments(s, timing), dir_ / "journal") {
    for (int i = 0; i < candidates; ++i) add();
    leader = next_leader(0).pid;
  }
  ~Group() { std::filesystem::remove_all(dir_); }

  pid_t add() { return fleet.start("p" + std::to_string(++started_)); }

  const Event& next_leader(std::size_t from) {
    const auto at = fleet.await(
        from, [](const Event& e) { return e.what == "elected"; }, 60s);
    if (at == Fleet::npos) fail(name_ + ": nobody leads");
    return fleet.events()[at];
  }

  /// Waits for its next renewal. The lease ends a margin after the deadline.
  Event renewal() {
    const auto at = fleet.await(
        fleet.events().size(), [this](const Event& e) { return e.what == "lead" && e.pid == leader; }, 60s);
    if (at == Fleet::npos) fail(name_ + ": the leader does not renew");
    return fleet.events()[at];
  }

 private:
  std::vector<std::string> arguments(const Settings& s, const std::vector<std::string>& timing) const {
    std::vector<std::string> out{"--store", s.store, "--election", name_, "--sample-us", "500"};
    out.insert(out.end(), timing.begin(), timing.end());
    return out;
  }

  std::string name_;
  std::filesystem::path dir_;
  int started_{};

 public:
  Fleet fleet;
  pid_t leader{};
};

Clock::Duration random_part(Clock::Duration of) {
  static std::mt19937_64 dice(std::random_device{}());
  return Clock::Duration(std::uniform_int_distribution<Clock::rep>(0, of.count())(dice));
}

/// Kills the leader at any moment between two renewals, after its followers have watched it for two terms.
void overshoot(const Settings& s) {
  const auto timing = Timing::of(1s);
  Group group(s, {"--term-ms", "1000"}, 3);
  std::vector<double> late, took;
  for (std::size_t i = 0; i < s.runs; ++i) {
    let_pass(2 * timing.term);
    const auto last = group.renewal();
    let_pass(random_part(timing.renew - 20ms));
    const auto from = group.fleet.events().size();
    const auto killed = now();
    group.fleet.signal(group.leader, SIGKILL);
    const auto next = group.next_leader(from);
    late.push_back(milliseconds(next.at - (last.until + timing.margin)));
    took.push_back(seconds(next.at - killed));
    group.fleet.reap(group.leader, 10s);
    group.leader = next.pid;
    group.add();
  }
  bench::print_header("ms, s");
  bench::print_row("crash, term 1 s: next leader after the lease's end (ms)", late);
  std::sort(late.begin(), late.end());
  std::printf("%-58s p50 %.3f, p90 %.3f, p99 %.3f\n", "", bench::median(late), late[late.size() * 90 / 100],
              late[late.size() * 99 / 100]);
  bench::print_row("crash, term 1 s: next leader after the crash (s)", took);
}

/// Hand-over among processes: from the signal that asks the leader to stop, to its successor's elected().
void handover(const Settings& s) {
  Group group(s, {"--preset", "fast"}, 2);
  let_pass(200ms);
  std::vector<double> took;
  for (std::size_t i = 0; i < 5 * s.runs; ++i) {
    const auto from = group.fleet.events().size();
    const auto asked = now();
    group.fleet.signal(group.leader, SIGUSR1);
    const auto next = group.next_leader(from);
    if (next.pid == group.leader) continue;  // It led again after its cool-down: counted as none below.
    took.push_back(milliseconds(next.at - asked));
    group.leader = next.pid;
    let_pass(80ms);  // Longer than the cool-down: the other stands by again.
  }
  bench::print_header("ms");
  bench::print_row("hand-over among processes, of " + std::to_string(5 * s.runs), took);
}

struct Contender {
  std::unique_ptr<LeaderManager> manager;
  std::atomic<Clock::rep> elected{};

  Clock::Duration led_since(Clock::Time t) const { return Clock::Time(Clock::Duration(elected.load())) - t; }
  bool follows() const {
    const auto incumbent = manager->leadership().incumbent();
    return incumbent && incumbent->remaining > 0s;
  }
};

/// Hand-over between two managers of this process: from resign() to the other one's elected(). Before each, the one
/// that resigned last follows again, and `idle` passes.
void handover_here(const Settings& s, Clock::Duration idle, const std::string& title) {
  Contender contenders[2];
  const auto name = unique_name();
  for (auto& c : contenders) {
    auto opened = open(s.store, name);
    Hooks hooks;
    hooks.elected = [&c](const Elected&) { c.elected = now().time_since_epoch().count(); };
    c.manager = std::make_unique<LeaderManager>(opened.backend, opened.presets.fast, hooks);
    c.manager->start();
    if (&c == contenders && !c.manager->await_leadership(30s)) fail("nobody leads");
  }
  std::vector<double> took;
  auto *leader = &contenders[0], *follower = &contenders[1];
  for (std::size_t i = 0; i < 5 * s.runs; ++i) {
    const auto give_up = now() + 10s;
    for (auto seen = follower->manager->changes(); !follower->follows();
         seen = follower->manager->await_change(seen, 1s))
      if (now() > give_up) fail("nobody follows");
    let_pass(idle);
    const auto asked = now();
    leader->manager->resign(2ms);
    while (follower->led_since(asked) < 0s && leader->led_since(asked) < 0s) {
      if (now() > give_up) fail("nobody leads");
      follower->manager->await_leadership(1ms);
    }
    if (follower->led_since(asked) < 0s) continue;  // The other one led again after its cool-down.
    took.push_back(milliseconds(follower->led_since(asked)));
    std::swap(leader, follower);
  }
  bench::print_row(title + ", of " + std::to_string(5 * s.runs), took);
}

void handovers_here(const Settings& s) {
  bench::print_header("ms");
  handover_here(s, 1ms, "hand-over: resign() to elected(), one after the other");
  handover_here(s, 60ms, "hand-over: resign() to elected(), after 60 ms of rest");
}

/// Backends of one election, connected and no more.
std::vector<std::shared_ptr<Backend>> backends(const Settings& s, std::size_t n) {
  const auto name = unique_name();
  std::vector<std::shared_ptr<Backend>> out;
  for (std::size_t i = 0; i < n; ++i) {
    const auto opened = open(s.store, name);
    if (const auto refused = opened.backend->accepts(opened.presets.balanced)) fail(refused->message);
    if (std::holds_alternative<Unknown>(opened.backend->observe(within(30s)))) fail(name + ": cannot connect");
    out.push_back(opened.backend);
  }
  return out;
}

/// The claim of a record that was given back: the first write of a connection, and the next.
void claims(const Settings& s) {
  std::vector<double> first, next;
  for (const auto& backend : backends(s, s.runs))
    for (auto* took : {&first, &next}) {
      auto asked = now();
      while (!std::holds_alternative<Granted>(backend->acquire(within(10s)))) {  // Redis waits for a term at first
        backend->await_change(Vacant{}, within(10s));
        asked = now();
      }
      took->push_back(milliseconds(now() - asked));
      if (const auto error = backend->release(within(10s))) fail(error->message);
    }
  bench::print_header("ms");
  bench::print_row("claim of what is free: the first write of a connection", first);
  bench::print_row("claim of what is free: the second one", next);
}

/// All backends ask at once for a free record, and one gets it. Prints the time until the last answer by their number.
void contenders(const Settings& s, std::size_t n) {
  const auto all = backends(s, n);
  std::vector<double> each;
  while (each.size() < s.runs) {
    std::atomic<std::size_t> next{0}, granted{0}, denied{0};
    Clock::Time asked;
    std::shared_ptr<Backend> leader;
    const auto ask = [&] {
      for (std::size_t i = 0; (i = next++) < n;) {
        const auto answer = all[i]->acquire(within(30s));
        if (std::holds_alternative<Granted>(answer) && ++granted == 1) leader = all[i];
        denied += std::holds_alternative<Denied>(answer);
      }
    };
    asked = now();
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < std::min<std::size_t>(n, 16); ++i) threads.emplace_back(ask);
    }
    const auto took = now() - asked;
    if (granted + denied != n || granted > 1) fail(std::to_string(granted) + " granted, " + std::to_string(denied));
    if (!leader) {  // Redis: the very first waits for a term
      all[0]->await_change(Vacant{}, within(10s));
      continue;
    }
    each.push_back(milliseconds(took) / static_cast<double>(n));
    if (const auto error = leader->release(within(10s))) fail(error->message);
  }
  bench::print_header("ms");
  bench::print_row("contenders, " + std::to_string(n) + " at once: time for each", each);
}

std::string through(const Settings& s, int port) {
  return std::regex_replace(s.store, std::regex("127\\.0\\.0\\.1:[0-9]+"), "127.0.0.1:" + std::to_string(port));
}
int port_of(const Settings& s) {
  std::smatch m;
  if (!std::regex_search(s.store, m, std::regex("127\\.0\\.0\\.1:([0-9]+)"))) fail("--store needs 127.0.0.1:PORT");
  return std::stoi(m[1]);
}

/// Leaders at the default timing, each of an election of its own and somewhere between two renewals.
class Leaders {
 public:
  Leaders(const std::string& url, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      auto opened = open(url, unique_name());
      timing = opened.presets.balanced;
      Hooks hooks;
      hooks.ousting = [this](const Ousting&) { ++oustings; };
      managers_.emplace_back(opened.backend, timing, hooks).start();
      let_pass(timing.renew / static_cast<int>(n));
    }
    for (auto& manager : managers_)
      if (!manager.await_leadership(2 * timing.term)) fail("a leader is not elected");
  }

  Timing timing{};
  std::atomic<int> oustings{};

 private:
  std::list<LeaderManager> managers_;
};

/// Lets nothing through to the store for rides_out(), or for a whole term.
void outage(const Settings& s) {
  constexpr std::size_t leaders_of_each = 20;
  const std::size_t rounds = std::max<std::size_t>(1, s.runs / 20);
  test::Relay relay(port_of(s));
  bench::print_header("s");
  std::vector<double> oustings;
  Timing timing{};
  {
    Leaders leaders(through(s, relay.port()), leaders_of_each);
    timing = leaders.timing;
    for (std::size_t i = 0; i < rounds; ++i) {
      let_pass(timing.renew + random_part(timing.renew));
      const auto before = leaders.oustings.load();
      relay.mute(true);
      let_pass(timing.rides_out());
      relay.mute(false);
      let_pass(timing.renew);
      oustings.push_back(leaders.oustings - before);
    }
  }
  bench::print_row("outage ridden out, as stated, at the default timing", {seconds(timing.rides_out())});
  bench::print_row("such an outage: oustings among 20 leaders", oustings);
  Leaders control(through(s, relay.port()), leaders_of_each);
  let_pass(timing.renew);
  relay.mute(true);
  let_pass(timing.term);
  relay.mute(false);
  bench::print_row("outage of a whole term: oustings among 20 leaders", {static_cast<double>(control.oustings)});
}

/// Several elections side by side, at the default timing.
void default_crash(const Settings& s) {
  std::list<Group> groups;
  for (std::size_t i = 0; i < std::max<std::size_t>(4, s.runs / 6); ++i)
    groups.emplace_back(s, std::vector<std::string>{"--preset", "balanced"}, 2);
  const auto timing = Timing::of(10s);
  let_pass(2 * timing.term + random_part(timing.renew));
  std::vector<double> took;
  std::vector<std::pair<std::size_t, Clock::Time>> struck;
  for (auto& group : groups) {
    let_pass(random_part(timing.renew / 3));
    struck.emplace_back(group.fleet.events().size(), now());
    group.fleet.signal(group.leader, SIGKILL);
  }
  auto strike = struck.begin();
  for (auto& group : groups) {
    took.push_back(seconds(group.next_leader(strike->first).at - strike->second));
    ++strike;
  }
  double mean = 0;
  for (const auto t : took) mean += t / static_cast<double>(took.size());
  bench::print_row("crash at the default timing (term 10 s): next leader", took);
  std::printf("%-58s %.3f\n", "outage ridden out / mean fail-over measured", seconds(timing.rides_out()) / mean);
  std::printf("%-58s %.3f\n", "outage ridden out / mean fail-over, term - renew / 2",
              seconds(timing.rides_out()) / seconds(timing.term - timing.renew / 2));
}

/// The leader is stopped for 30 s while a follower takes over.
void stopped(const Settings& s) {
  std::list<Group> groups;
  for (int i = 0; i < 3; ++i) groups.emplace_back(s, std::vector<std::string>{"--preset", "fast"}, 2);
  let_pass(5s);
  for (auto& group : groups) group.fleet.stop(group.leader);
  let_pass(30s);
  std::vector<double> breaches, true_after;
  for (auto& group : groups) {
    const auto from = group.fleet.events().size();
    group.fleet.resume(group.leader);
    let_pass(2s);
    const auto& events = group.fleet.events();
    true_after.push_back(
        static_cast<double>(std::count_if(events.begin() + static_cast<std::ptrdiff_t>(from), events.end(),
                                          [&](const Event& e) { return e.what == "lead" && e.pid == group.leader; })));
    breaches.push_back(static_cast<double>(judge(events).findings.size()));
  }
  bench::print_header("");
  bench::print_row("leader stopped 30 s: samples of is_leader() true after", true_after);
  bench::print_row("leader stopped 30 s: breaches of the promise", breaches);
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--candidate")
      s.candidate = value;
    else if (name == "--store")
      s.store = value;
    else if (name == "--figures")
      s.figures = value;
    else if (name == "--runs")
      s.runs = std::stoul(value);
    else if (name == "--contenders")
      s.contenders = std::stoul(value);
    else
      fail("unknown option " + name);
  }
  if (s.candidate.empty() || s.store.empty()) fail("--candidate PROGRAM and --store URL are needed");
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto s = parse(argc, argv);
  const auto wanted = [&](const char* figure) {
    return ("," + s.figures + ",").find("," + std::string(figure) + ",") != std::string::npos;
  };
  if (wanted("handover")) handovers_here(s), handover(s);
  if (wanted("claims")) claims(s);
  if (wanted("contenders")) contenders(s, s.contenders);
  if (wanted("overshoot")) overshoot(s);
  if (wanted("outage")) outage(s), default_crash(s);
  if (wanted("stopped")) stopped(s);
} catch (const std::exception& e) {
  std::fprintf(stderr, "store_bench: %s\n", e.what());
  return 1;
}
