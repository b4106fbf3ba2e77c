// SPDX-License-Identifier: Apache-2.0
// What leaders do while their group's coordinator fails: three brokers, an election per preset with three candidates
// each, all elections under one coordinator. `tests/bench/kafka --nodes 3` starts the brokers and this.
//
// coordinator_bench --candidate PROGRAM --brokers HOST:PORT,... --docker docker/kafka --dir DIR [--rounds 3]
//                   [--presets balanced,steady] [--faults kill,freeze,rolling,controller-kill,controller-freeze]
// A coordinator that is killed or frozen is not the active controller, except with controller-kill, controller-freeze.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>

#include <tenure/kit/wait.hpp>

#include "history.hpp"
#include "kafka_wire.hpp"
#include "table.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;
using test::Event;
using test::KafkaWire;
using Time = Clock::Time;

constexpr auto offsets_topic = "__consumer_offsets";
constexpr std::uint32_t offsets_partitions = 50;  // a broker's default
constexpr std::size_t nodes = 3;
constexpr auto outage = 30s;

double seconds(Clock::Duration d) { return std::chrono::duration<double>(d).count(); }

Time now() { return boot_clock().now(); }

void let_pass(Clock::Duration d) { wait_out({boot_clock(), now() + d, {}}); }

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text)
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

struct Settings {
  std::string candidate, brokers, docker, dir;
  std::string presets{"balanced,steady"}, faults{"kill,freeze,rolling,controller-kill,controller-freeze"};
  int rounds{3};
};

class Cluster {
 public:
  explicit Cluster(const Settings& s) : settings_(s), brokers_(split(s.brokers)) {
    if (brokers_.size() != nodes) fail("--brokers: three are needed");
  }

  void node(int n, const std::string& action) const {
    const auto command = settings_.docker + " node " + std::to_string(n) + " " + action + " --dir " + settings_.dir;
    if (std::system(command.c_str()) != 0) fail(command + " failed");
  }
  void restart(int n) const {
    node(n, "stop");
    node(n, "start");
    await_in_sync();
  }

  int coordinator_of(const std::string& group) const {
    return ask([&](KafkaWire& wire) { return wire.coordinator_of(group); });
  }
  int controller() const {
    return ask([](KafkaWire& wire) { return wire.controller(); });
  }

  /// Waits until every replica of every partition that the elections need is in sync.
  void await_in_sync() const {
    const auto lagging = [](KafkaWire& wire) { return wire.lagging(offsets_topic, nodes); };
    for (const auto give_up = now() + 120s; ask(lagging) > 0; let_pass(200ms))
      if (now() > give_up) fail("the replicas do not catch up");
  }

  /// Makes the group's coordinator the active controller, or makes another node that. A short freeze moves only the
  /// controller: its peers miss it after 2 s, and a coordinator only after 9 s.
  int arrange(const std::string& group, bool controls) const {
    for (int i = 0; i < 20; ++i) {
      const auto found = controller();
      const auto coordinator = coordinator_of(group);
      if ((coordinator == found) == controls) return coordinator;
      node(found, "freeze");
      let_pass(5s);
      node(found, "thaw");
      await_in_sync();
    }
    fail("coordinator and controller cannot be brought " + std::string(controls ? "together" : "apart"));
  }

 private:
  /// Asks any node that answers; the nodes may be in the middle of an election.
  int ask(const std::function<int(KafkaWire&)>& question) const {
    std::string why;
    for (const auto give_up = now() + 60s; now() < give_up; let_pass(200ms))
      for (const auto& broker : brokers_) try {
          KafkaWire wire(broker);
          return question(wire);
        } catch (const std::runtime_error& e) {
          why = e.what();
        }
    fail(why);
  }

  const Settings& settings_;
  const std::vector<std::string> brokers_;
};

/// The partition of __consumer_offsets whose leader coordinates the group.
std::uint32_t partition_of(const std::string& group) {
  std::uint32_t hash = 0;
  for (const char c : group) hash = 31 * hash + static_cast<unsigned char>(c);
  return static_cast<std::uint32_t>(std::abs(static_cast<std::int32_t>(hash))) % offsets_partitions;
}

/// What happened to one election in a span of time.
struct Account {
  bool kept{};
  double least_remaining{}, without_leader{}, changes{};
};

class Election {
 public:
  Election(const Settings& s, std::string preset, std::string group)
      : preset_(std::move(preset)),
        group_(std::move(group)),
        dir_(std::filesystem::temp_directory_path() / group_),
        fleet_((std::filesystem::create_directory(dir_), s.candidate),
               {"--store", "kafka://" + s.brokers + "/tenure-bench?create_topic=true&group=" + group_, "--election",
                group_, "--preset", preset_, "--note-ms", "1000"},
               dir_ / "journal") {
    for (int i = 1; i <= 3; ++i) fleet_.start(preset_ + std::to_string(i));
  }
  ~Election() { std::filesystem::remove_all(dir_); }

  const std::string& preset() const { return preset_; }
  const std::string& group() const { return group_; }

  void await_leader() {
    for (const auto give_up = now() + 120s; !fleet_.leader(); let_pass(50ms))
      if (now() > give_up) fail(group_ + ": nobody leads");
  }

  test::Verdict verdict() { return test::judge(fleet_.events()); }

  Account account(Time from, Time to) {
    Account out;
    std::optional<Event> lead;  // the last sample of the last leader
    auto covered_to = from;
    double without = 0;
    Clock::Duration least = Clock::Duration::max();
    const auto end_at = [&](Time end) { covered_to = std::max(covered_to, std::min(end, to)); };
    for (const auto& e : fleet_.events()) {
      if (e.at >= to) break;
      if (e.what == "elected" && e.at >= from) ++out.changes;
      if (e.what == "follow" && lead && lead->pid == e.pid) {
        end_at(std::min(lead->until, e.at));
        if (e.at >= from) least = {};
        lead.reset();
      }
      if (e.what != "lead") continue;
      if (lead) end_at(std::min(lead->until, e.at));
      if (lead && e.at >= from && e.until > lead->until) least = std::min(least, lead->until - e.at);
      if (e.at > covered_to) without += seconds(e.at - covered_to);
      end_at(e.at);
      lead = e;
    }
    if (lead) end_at(lead->until);
    out.without_leader = without + seconds(to - covered_to);
    out.least_remaining = seconds(std::max(least, Clock::Duration::zero()));
    out.kept = out.changes == 0 && out.without_leader == 0;
    return out;
  }

 private:
  std::string preset_, group_;
  std::filesystem::path dir_;
  test::Fleet fleet_;
};

class Bench {
 public:
  explicit Bench(const Settings& s) : settings_(s), cluster_(s) {
    const auto stem = "coordinator-" + std::to_string(::getpid());
    for (const auto& preset : split(s.presets)) {
      auto group = stem + "-" + preset;
      for (int i = 0; !elections_.empty() && partition_of(group) != partition_of(elections_[0]->group()); ++i)
        group = stem + "-" + preset + "-" + std::to_string(i);
      elections_.push_back(std::make_unique<Election>(s, preset, group));
    }
  }

  void run() {
    settle();
    for (const auto& fault : split(settings_.faults))
      for (int round = 1; round <= settings_.rounds; ++round) suffer(fault);
  }

  void print() const {
    std::printf("\n%-20s %-9s %6s   %-23s %-23s %s\n", "fault", "preset", "kept", "least remaining(), s",
                "without a leader, s", "changes of leader");
    for (const auto& [key, accounts] : accounts_) print(key.first, key.second, accounts);
  }

  bool judge() {
    bool well = true;
    for (const auto& election : elections_) {
      const auto verdict = election->verdict();
      std::printf("%s: %zu tenures, %zu breaches of the promise\n", election->preset().c_str(), verdict.tenures,
                  verdict.findings.size());
      for (const auto& finding : verdict.findings)
        std::printf("  %s: %s\n", to_string(finding.breach).c_str(), finding.what.c_str());
      well = well && verdict.findings.empty();
    }
    return well;
  }

 private:
  void settle() {
    cluster_.await_in_sync();
    for (const auto& election : elections_) election->await_leader();
    const auto coordinator = cluster_.coordinator_of(elections_[0]->group());
    for (const auto& election : elections_)
      if (cluster_.coordinator_of(election->group()) != coordinator) fail("the elections have different coordinators");
    let_pass(5s);
  }

  void suffer(const std::string& fault) {
    const auto& group = elections_[0]->group();
    const auto coordinator = cluster_.arrange(group, fault.starts_with("controller-"));
    settle();
    const auto from = now();
    if (fault == "rolling") {
      for (int n = 1; n <= static_cast<int>(nodes); ++n) cluster_.restart(n);
    } else {
      const bool kill = fault.ends_with("kill");
      cluster_.node(coordinator, kill ? "kill" : "freeze");
      let_pass(outage);
      cluster_.node(coordinator, kill ? "start" : "thaw");
    }
    settle();
    const auto to = now();
    double load[1] = {};
    ::getloadavg(load, 1);
    std::printf("%s, node %d, %.0f s, load %.1f:", fault.c_str(), coordinator, seconds(to - from), load[0]);
    for (const auto& election : elections_) {
      const auto account = election->account(from, to);
      accounts_[{fault, election->preset()}].push_back(account);
      std::printf("  %s %s, least remaining() %.2f s, without a leader %.2f s", election->preset().c_str(),
                  account.kept ? "kept" : "LOST", account.least_remaining, account.without_leader);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  static void print(const std::string& fault, const std::string& preset, const std::vector<Account>& accounts) {
    const auto spread = [&](double Account::*what) {
      std::vector<double> values;
      for (const auto& account : accounts) values.push_back(account.*what);
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      char text[64];
      std::snprintf(text, sizeof text, "%.2f / %.2f / %.2f", *low, bench::median(values), *high);
      return std::string(text);
    };
    const auto kept = std::count_if(accounts.begin(), accounts.end(), [](const Account& a) { return a.kept; });
    double changes = 0;
    for (const auto& account : accounts) changes += account.changes;
    std::printf("%-20s %-9s %3ld/%zu   %-23s %-23s %.0f\n", fault.c_str(), preset.c_str(), static_cast<long>(kept),
                accounts.size(), spread(&Account::least_remaining).c_str(), spread(&Account::without_leader).c_str(),
                changes);
  }

  const Settings& settings_;
  Cluster cluster_;
  std::vector<std::unique_ptr<Election>> elections_;
  std::map<std::pair<std::string, std::string>, std::vector<Account>> accounts_;
};

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--candidate")
      s.candidate = value;
    else if (name == "--brokers")
      s.brokers = value;
    else if (name == "--docker")
      s.docker = value;
    else if (name == "--dir")
      s.dir = value;
    else if (name == "--presets")
      s.presets = value;
    else if (name == "--faults")
      s.faults = value;
    else if (name == "--rounds")
      s.rounds = std::stoi(value);
    else
      fail("unknown option " + name);
  }
  if (s.candidate.empty() || s.brokers.empty() || s.docker.empty() || s.dir.empty())
    fail("--candidate, --brokers, --docker and --dir are needed; tests/bench/kafka --nodes 3 has them");
  const std::vector<std::string> known{"kill", "freeze", "rolling", "controller-kill", "controller-freeze"};
  for (const auto& fault : split(s.faults))
    if (std::find(known.begin(), known.end(), fault) == known.end())
      fail("--faults " + fault + ": kill, freeze, rolling, controller-kill or controller-freeze");
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto s = parse(argc, argv);
  Bench bench(s);
  std::string trouble;
  try {
    bench.run();
  } catch (const std::exception& e) {
    trouble = e.what();
  }
  bench.print();  // also what came before the trouble
  const bool well = bench.judge();
  if (!trouble.empty()) fail(trouble);
  return well ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "coordinator_bench: %s\n", e.what());
  return 1;
}
