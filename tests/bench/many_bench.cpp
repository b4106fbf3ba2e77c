// SPDX-License-Identifier: Apache-2.0
// Many elections of one group, beside the same number one by one: what they cost the store at rest, how soon those of a
// dead process are led again, how fast one is handed over, and what they cost their process. tests/bench/many runs it.
//
// many_bench --store URL [--figures rest,one-by-one,death,overshoot,handover,process] [--sizes 10,100,...]
//   [--processes 3,10,30] [--death 10000] [--renew-ms 2000] [--seconds 20] [--runs 40] [--candidate PROGRAM]
//   [--server COMMAND] [--relay PORT]
//
// COMMAND prints two numbers: the server's requests so far, and the microseconds that it worked on them. Kafka tells
// neither; there a relay before the broker at PORT counts offset commits as the requests, and takes its place in the
// URL.
// --probe N is for its own use.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>

#include "history.hpp"
#include "relay.hpp"
#include "scratch.hpp"
#include "table.hpp"

namespace {

using namespace std::chrono_literals;
using namespace tenure;
using Sizes = std::vector<std::size_t>;

struct Settings {
  std::string store, candidate, server;
  std::shared_ptr<test::Relay> relay{};
  std::string figures{"rest,one-by-one,death,overshoot,handover,process"};
  Sizes sizes{10, 100, 1000, 10'000, 100'000}, processes{3, 10, 30};
  std::size_t death{10'000}, runs{40}, probe{0};
  std::chrono::milliseconds renew{2000};
  std::chrono::seconds window{20};
  std::string self;

  Timing timing() const {
    auto out = Timing::of(5 * renew);
    if (relay) out.term = 7 * renew;  // Kafka demands that lost answers fit in.
    return out;
  }
};

Clock::Time now() { return boot_clock().now(); }
void let_pass(Clock::Duration d) { wait_out({boot_clock(), now() + d, {}}); }
double seconds(Clock::Duration d) { return std::chrono::duration<double>(d).count(); }
double milliseconds(Clock::Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

template <class Holds>
void await(const char* what, Holds holds, Clock::Duration pause = 50ms) {
  for (const auto give_up = now() + 300s; !holds(); let_pass(pause))
    if (now() > give_up) fail(std::string("in vain: ") + what);
}

std::string unique_name() {
  static int count = 0;
  return "bench-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

/// What the store's clock showed then. It is of this machine.
double unix_ms(Clock::Time at) {
  const auto since = std::chrono::system_clock::now().time_since_epoch() - (now() - at);
  return milliseconds(std::chrono::duration_cast<Clock::Duration>(since));
}

double load() {
  double out[1] = {};
  ::getloadavg(out, 1);
  return out[0];
}

struct Work {
  double requests{}, microseconds{};
  Work operator-(const Work& before) const { return {requests - before.requests, microseconds - before.microseconds}; }
};

/// What the server says of itself, or the relay before it; nothing if there is neither.
Work at_server(const Settings& s) {
  Work out;
  if (s.relay)
    for (const auto& [of, requests] : s.relay->requests())
      if (of.second == test::offset_commit) out.requests += static_cast<double>(requests);
  if (s.server.empty()) return out;
  auto* pipe = ::popen(s.server.c_str(), "r");
  if (pipe == nullptr || std::fscanf(pipe, "%lf %lf", &out.requests, &out.microseconds) != 2)
    fail("no two numbers came from the command of --server");  // which may have a password
  ::pclose(pipe);
  return out;
}

/// Counts the calls of a store, but for the waits, and the time in them.
class Counted final : public GroupStore {
  template <class Call>
  auto timed(Call call) {
    const auto began = now();
    auto out = call();
    time_ += (now() - began).count();
    ++calls_;
    return out;
  }

 public:
  Counted(std::shared_ptr<GroupStore> inner, std::atomic<std::int64_t>& calls, std::atomic<std::int64_t>& time)
      : inner_(std::move(inner)), calls_(calls), time_(time) {}

  std::string group() const override { return inner_->group(); }
  Exclusive exclusive() const override { return inner_->exclusive(); }
  void joined(const std::string& election) override { inner_->joined(election); }
  void left(const std::string& election) override { inner_->left(election); }
  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    return timed([&] { return inner_->look(cursor, limit); });
  }
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    return timed([&] { return inner_->open(id, session, limit); });
  }
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    return timed([&] { return inner_->commit(commit, limit); });
  }
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    return timed([&] { return inner_->end(id, beats, new_beat, limit); });
  }
  Result<int> sweep(const Limit& limit) override {
    return timed([&] { return inner_->sweep(limit); });
  }
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    return timed([&] { return inner_->request_step_down(election, request, limit); });
  }
  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    return inner_->await_change(cursor, limit);
  }
  std::optional<Error> accepts(const Timing& timing) override { return inner_->accepts(timing); }

 private:
  std::shared_ptr<GroupStore> inner_;
  std::atomic<std::int64_t>&calls_, &time_;
};

/// Processes that share the elections "0", "1" and so on of a new group. They are objects of this process: a store
/// sees no difference.
class Shared {
 public:
  Shared(const Settings& s, std::size_t elections, std::size_t processes) : elections_(elections) {
    const auto group = unique_name();
    std::vector<std::string> all;
    for (std::size_t i = 0; i < elections; ++i) all.push_back(std::to_string(i));
    for (std::size_t p = 0; p < processes; ++p) {
      auto& one = members_.emplace_back();
      Hooks hooks;
      hooks.elected = [&one](const Elected& e) {
        const std::lock_guard lock(one.mutex);
        one.last = {e.election, now()};
      };
      hooks.log = no_log;
      one.elections =
          std::make_unique<Elections>(std::make_shared<Counted>(open_many(s.store, group, no_log).store, calls, time),
                                      Candidate{"p" + std::to_string(p), {}}, s.timing(), hooks);
      one.elections->join(all);
    }
    for (auto& one : members_) one.elections->start();
    // Over Kafka units are shared, and not elections: none leads all.
    const auto difference = s.relay ? elections - 1 : 1;
    await(
        "all led, in equal shares", [this, difference] { return balanced(difference); }, 200ms);
  }

  struct Member {
    /// When it was elected to this one, if that was the last one.
    std::optional<Clock::Time> elected_to(const std::string& election) {
      const std::lock_guard lock(mutex);
      return last.first == election ? std::optional(last.second) : std::nullopt;
    }

    std::mutex mutex{};
    std::pair<std::string, Clock::Time> last{};
    std::unique_ptr<Elections> elections{};
  };

  bool balanced(std::size_t difference = 1) const {
    std::size_t sum = 0, least = elections_, most = 0;
    for (const auto& one : members_) {
      const auto led = one.elections->led().size();
      sum += led, least = std::min(least, led), most = std::max(most, led);
    }
    return sum == elections_ && most - least <= difference;
  }

  std::atomic<std::int64_t> calls{0}, time{0};
  std::list<Member>& members() { return members_; }

 private:
  std::size_t elections_;
  std::list<Member> members_;
};

void print_rest(const Settings& s, const char* form, std::size_t elections, std::size_t processes, double calls,
                double client_us, const Work& server) {
  const auto window = seconds(s.window);
  const auto intervals = window / seconds(s.renew) * static_cast<double>(processes);
  std::printf("%-12s %9zu %9zu %10.2f %10.2f %14.0f %14.0f %6.1f\n", form, elections, processes, calls / window,
              server.requests / window, server.microseconds / intervals, client_us / intervals, load());
  std::fflush(stdout);
}

void rest_header(const Settings& s) {
  std::printf("at rest, renew %.1f s, %lld s each; per interval: of one process\n", seconds(s.renew),
              static_cast<long long>(s.window.count()));
  std::printf("%-12s %9s %9s %10s %10s %14s %14s %6s\n", "form", "elections", "processes", "calls/s", "requests/s",
              "server us/int.", "client us/int.", "load");
}

void rest(const Settings& s) {
  rest_header(s);
  const auto measure = [&](std::size_t elections, std::size_t processes) {
    Shared shared(s, elections, processes);
    let_pass(2 * s.renew);
    const auto before = at_server(s);
    const auto calls = shared.calls.load(), time = shared.time.load();
    let_pass(s.window);
    print_rest(s, "Elections", elections, processes, static_cast<double>(shared.calls - calls),
               static_cast<double>(shared.time - time) / 1000, at_server(s) - before);
  };
  for (const auto elections : s.sizes) measure(elections, s.processes.front());
  for (std::size_t i = 1; i < s.processes.size(); ++i) measure(s.sizes[s.sizes.size() / 2], s.processes[i]);
}

/// A manager per election and process, as without groups.
void one_by_one(const Settings& s) {
  for (const auto elections : s.sizes) {
    if (elections > 100) break;  // 900 threads with three processes
    std::list<LeaderManager> managers;
    const auto name = unique_name();
    std::atomic<std::size_t> led{0};
    for (std::size_t p = 0; p < s.processes.front(); ++p)
      for (std::size_t i = 0; i < elections; ++i) {
        Hooks hooks;
        hooks.elected = [&led](const Elected&) { ++led; };
        hooks.log = no_log;
        managers.emplace_back(open(s.store, name + "-" + std::to_string(i), {}, no_log).backend, s.timing(), hooks)
            .start();
      }
    await("all led, one by one", [&] { return led >= elections; });
    let_pass(2 * s.renew);
    const auto before = at_server(s);
    let_pass(s.window);
    print_rest(s, "one-by-one", elections, s.processes.front(), 0, 0, at_server(s) - before);
  }
}

/// Real processes of one group.
class Processes {
 public:
  Processes(const Settings& s, std::size_t elections, Clock::Duration term)
      : settings_(s),
        elections_(elections),
        timing_(Timing::of(term)),
        fleet_(s.candidate,
               {"--store", s.store, "--election", unique_name(), "--elections", std::to_string(elections), "--term-ms",
                std::to_string(term / 1ms), "--sample-us", elections > 1000 ? "100000" : "1000"},
               scratch_ / "journal") {
    fleet_.hand_to([this](const test::Event& e) { take(e); });
    for (int i = 0; i < 3; ++i) add();
  }

  struct Death {
    double first{}, last{};              ///< ms after the lease's end, as elected() tells
    double stored{};                     ///< ms after it, when the store took the last claim
    double processor{};                  ///< ms of the survivors' processor time, from the lease's end on
    double server_requests{}, server{};  ///< its ms
    std::size_t difference{};
  };

  /// Kills one after a term of rest, and waits until the others lead all.
  Death kill_one() {
    const auto [victim, expected] = victim_after_rest();
    elected_.clear();
    fleet_.note(test::done_to::killed, victim);
    fleet_.signal(victim, SIGKILL);
    fleet_.reap(victim, 10s);
    fleet_.events();
    const auto lease_end = until_.at(victim) + timing_.margin;
    const auto server = at_server(settings_);
    let_pass(lease_end - now());
    const auto processor = survivors_ms();
    // Looked at seldom, because the survivors need the processors. The journal has the times.
    await(
        "all elections of the dead are led",
        [&] {
          fleet_.events();
          return elected_.size() >= expected;
        },
        20ms);
    Death out;
    out.processor = survivors_ms() - processor;
    std::sort(elected_.begin(), elected_.end());
    elected_.resize(expected);  // without what was handed over since
    out.first = milliseconds(elected_.front().at - lease_end);
    out.last = milliseconds(elected_.back().at - lease_end);
    const auto last_token = std::max_element(elected_.begin(), elected_.end(), [](const auto& a, const auto& b) {
                              return a.token < b.token;
                            })->token;
    out.stored = static_cast<double>(last_token.value) - unix_ms(lease_end);
    await("equal shares again", [&] { return balanced(2); });
    const auto work = at_server(settings_) - server;
    out.server_requests = work.requests;
    out.server = work.microseconds / 1000;
    out.difference = difference_;
    add();
    return out;
  }

  std::size_t breaches() { return history_.verdict().findings.size(); }
  std::size_t errors() const { return errors_; }

 private:
  /// One that leads some elections, and how many, some time after its renewal. On a busy machine it may have lost all
  /// meanwhile; then another one.
  std::pair<pid_t, std::size_t> victim_after_rest() {
    for (;;) {
      await(
          "all led, in equal shares", [this] { return balanced(3); }, 2ms);
      let_pass(timing_.term);
      const auto victim = *std::next(fleet_.running().begin(), static_cast<std::ptrdiff_t>(++kills_ % 3));
      fleet_.events();
      const auto before = until_.at(victim);
      await(
          "its next renewal", [&] { return fleet_.events(), until_.at(victim) > before; }, 1ms);
      let_pass(timing_.renew * static_cast<int>(kills_ % 8) / 10);
      fleet_.events();
      if (const auto led = history_.led(now()).at(victim); led > 0) return {victim, led};
    }
  }

  void add() { fleet_.start("p" + std::to_string(++started_)); }

  /// Processor time so far.
  double survivors_ms() const {
    double out = 0;
    for (const auto pid : fleet_.running()) {
      clockid_t clock{};
      timespec at{};
      if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &at) != 0) fail("a survivor has gone");
      out += static_cast<double>(at.tv_sec) * 1e3 + static_cast<double>(at.tv_nsec) / 1e6;
    }
    return out;
  }

  void take(const test::Event& e) {
    history_.take(e);
    if (e.what == "elected") elected_.push_back({e.at, e.token});
    if (e.what == "holds") until_[e.pid] = e.until;
    errors_ += e.what == "error";
  }

  bool balanced(std::size_t processes) {
    fleet_.events();
    const auto led = history_.led(now());
    if (led.size() != processes) return false;
    std::size_t sum = 0, least = elections_, most = 0;
    for (const auto& [pid, n] : led) sum += n, least = std::min(least, n), most = std::max(most, n);
    difference_ = most - least;
    return sum == elections_ && difference_ <= 1;
  }

  struct Election {
    Clock::Time at;
    Token token;
    friend auto operator<=>(const Election&, const Election&) = default;
  };

  const Settings& settings_;
  std::size_t elections_, kills_{}, difference_{}, errors_{};
  int started_{};
  Timing timing_;
  test::Scratch scratch_;
  test::History history_;
  std::vector<Election> elected_;
  std::map<pid_t, Clock::Time> until_;
  test::Fleet fleet_;
};

void deaths(const Settings& s, const std::string& title, std::size_t elections, Clock::Duration term,
            std::size_t runs) {
  Processes processes(s, elections, term);
  std::vector<double> first, last, stored, processor, requests, server, difference;
  for (std::size_t i = 0; i < runs; ++i) {
    const auto death = processes.kill_one();
    first.push_back(death.first);
    last.push_back(death.last);
    stored.push_back(death.stored);
    processor.push_back(death.processor);
    requests.push_back(death.server_requests);
    server.push_back(death.server);
    difference.push_back(static_cast<double>(death.difference));
  }
  bench::print_header("ms");
  bench::print_row(title + ": first claim after the lease's end", first);
  bench::print_row(title + ": last claim after the lease's end", last);
  bench::print_row(title + ": the same, as the store took it", stored);
  bench::print_row(title + ": survivors' processor time for it", processor);
  if (!s.server.empty()) {
    bench::print_row(title + ": requests at the server, from the kill on (count)", requests);
    bench::print_row(title + ": its work on them", server);
  }
  std::sort(first.begin(), first.end());
  std::printf("%-58s p50 %.1f, p90 %.1f, p99 %.1f\n", "  first claim", bench::median(first),
              first[first.size() * 90 / 100], first[first.size() * 99 / 100]);
  bench::print_row(title + ": greatest share less the least (count)", difference);
  bench::print_row(title + ": breaches of the promise (count)", {static_cast<double>(processes.breaches())});
  std::printf("error() was called %zu times; load %.1f\n", processes.errors(), load());
}

/// From resign() of one election to elected() of the other process, with so many others beside it. Their number is odd,
/// and who leads one more resigns: so nothing else moves. It resigns the oldest tenure, of which the other one has
/// heard if there are many.
void hand_over_one(const Settings& s, std::size_t elections) {
  Shared shared(s, elections, 2);
  std::vector<double> took;
  auto *leader = &shared.members().front(), *other = &shared.members().back();
  while (took.size() < 5 * s.runs) {
    await(
        "equal shares again", [&] { return shared.balanced(); }, 5ms);
    if (leader->elections->led().size() < other->elections->led().size()) std::swap(leader, other);
    let_pass(60ms);
    const auto led = leader->elections->led();
    if (led.empty()) continue;  // It has lost its leases: the machine is busy.
    const auto election = std::min_element(led.begin(), led.end(), [](const auto& a, const auto& b) {
                            return a.second < b.second;
                          })->first;
    const auto before = other->elected_to(election), again = leader->elected_to(election);
    const auto asked = now();
    leader->elections->resign(election, 30ms);  // over before it is handed back
    std::optional<Clock::Time> elected;
    await(
        "it is led again",
        [&] {
          elected = other->elected_to(election);
          return elected != before || leader->elected_to(election) != again;
        },
        100us);
    if (elected == before) continue;  // The machine is so busy that the other one was late.
    took.push_back(milliseconds(*elected - asked));
  }
  bench::print_row("hand-over of one of " + std::to_string(elections), took);
}

void hand_over_alone(const Settings& s) {
  struct Contender {
    std::atomic<Clock::rep> elected{};
    std::unique_ptr<LeaderManager> manager{};
  } contenders[2];
  const auto name = unique_name();
  for (auto& c : contenders) {
    Hooks hooks;
    hooks.elected = [&c](const Elected&) { c.elected = now().time_since_epoch().count(); };
    hooks.log = no_log;
    c.manager = std::make_unique<LeaderManager>(open(s.store, name, {}, no_log).backend, s.timing(), hooks);
    c.manager->start();
    if (&c == contenders && !c.manager->await_leadership(60s)) fail("nobody leads");
  }
  std::vector<double> took;
  auto *leader = &contenders[0], *other = &contenders[1];
  while (took.size() < 5 * s.runs) {
    await(
        "the other one follows", [&] { return other->manager->leadership().incumbent().has_value(); }, 5ms);
    let_pass(60ms);
    const auto asked = now();
    const auto since = [&](const Contender* c) { return c->elected > asked.time_since_epoch().count(); };
    leader->manager->resign(30ms);
    await(
        "one leads", [&] { return since(other) || since(leader); }, 100us);
    if (!since(other)) continue;  // The machine is so busy that it was late.
    took.push_back(milliseconds(Clock::Time(Clock::Duration(other->elected)) - asked));
    std::swap(leader, other);
  }
  bench::print_row("hand-over of a single election, by LeaderManager", took);
}

void handover(const Settings& s) {
  bench::print_header("ms");
  for (int i = 0; i < 2; ++i) {
    hand_over_alone(s);
    hand_over_one(s, 1);
  }
  hand_over_one(s, s.sizes.front() | 1);
  hand_over_one(s, s.death | 1);
  hand_over_alone(s);
  std::printf("load %.1f\n", load());
}

struct Footprint {
  double kib{}, threads{}, descriptors{};
};

Footprint footprint() {
  Footprint out;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) out.kib = std::stod(line.substr(6));
    if (line.starts_with("Threads:")) out.threads = std::stod(line.substr(8));
  }
  for ([[maybe_unused]] const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) ++out.descriptors;
  return out;
}

/// In a process of its own: leads so many, and tells what that takes.
void probe(const Settings& s) {
  Shared alone(s, s.probe, 1);
  let_pass(s.renew);
  const auto f = footprint();
  std::printf("%.0f %.0f %.0f\n", f.kib, f.threads, f.descriptors);
}

void process(const Settings& s) {
  std::printf("%-12s %12s %10s %12s %20s\n", "elections", "memory, KiB", "threads", "descriptors",
              "bytes per election");
  std::optional<Footprint> least;
  for (const auto elections : s.sizes) {
    const auto command = "'" + s.self + "' --store '" + s.store + "' --renew-ms " + std::to_string(s.renew.count()) +
                         " --probe " + std::to_string(elections);
    auto* pipe = ::popen(command.c_str(), "r");
    Footprint f;
    if (pipe == nullptr || std::fscanf(pipe, "%lf %lf %lf", &f.kib, &f.threads, &f.descriptors) != 3)
      fail("no figures came from a --probe of " + std::to_string(elections));
    ::pclose(pipe);
    if (!least) least = f;
    const auto more = static_cast<double>(elections - s.sizes.front());
    std::printf("%-12zu %12.0f %10.0f %12.0f %20.0f\n", elections, f.kib, f.threads, f.descriptors,
                more > 0 ? (f.kib - least->kib) * 1024 / more : 0);
    std::fflush(stdout);
  }
}

Sizes sizes_of(const std::string& text) {
  Sizes out;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');) out.push_back(std::stoul(one));
  if (out.empty()) fail("an empty list");
  return out;
}

Settings parse(int argc, char** argv) {
  Settings s;
  std::string broker;
  s.self = std::filesystem::read_symlink("/proc/self/exe");
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--store")
      s.store = value;
    else if (name == "--candidate")
      s.candidate = value;
    else if (name == "--server")
      s.server = value;
    else if (name == "--relay")
      s.relay = std::make_shared<test::Relay>(std::stoi(value), test::Speaks::kafka), broker = "127.0.0.1:" + value;
    else if (name == "--figures")
      s.figures = value;
    else if (name == "--sizes")
      s.sizes = sizes_of(value);
    else if (name == "--processes")
      s.processes = sizes_of(value);
    else if (name == "--death")
      s.death = std::stoul(value);
    else if (name == "--runs")
      s.runs = std::stoul(value);
    else if (name == "--probe")
      s.probe = std::stoul(value);
    else if (name == "--renew-ms")
      s.renew = std::chrono::milliseconds(std::stol(value));
    else if (name == "--seconds")
      s.window = std::chrono::seconds(std::stol(value));
    else
      fail("unknown option " + name);
  }
  if (s.store.empty()) fail("--store URL is needed");
  if (s.relay) s.store.replace(s.store.find(broker), broker.size(), s.relay->address());
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto s = parse(argc, argv);
  if (s.probe > 0) return probe(s), 0;
  const auto wanted = [&](const char* figure) {
    return ("," + s.figures + ",").find("," + std::string(figure) + ",") != std::string::npos;
  };
  if (s.candidate.empty() && (wanted("death") || wanted("overshoot"))) fail("--candidate PROGRAM is needed");
  if (wanted("rest")) rest(s);
  if (wanted("one-by-one")) one_by_one(s);
  if (wanted("process")) process(s);
  if (wanted("handover")) handover(s);
  if (wanted("overshoot")) deaths(s, "30 elections, term 1 s", 30, 1s, s.runs);
  if (wanted("death"))
    deaths(s, std::to_string(s.death) + " elections, term 10 s", s.death, 10s, std::max<std::size_t>(1, s.runs / 8));
} catch (const std::exception& e) {
  std::fprintf(stderr, "many_bench: %s\n", e.what());
  return 1;
}
