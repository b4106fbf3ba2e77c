// SPDX-License-Identifier: Apache-2.0
// Goal: whatever the order of events, no role is led by two processes at once, and its tokens rise. Method: whole
// processes (GroupCandidacy over Roles) play with a model of a coordinator that knows generations and never checks who
// owns what, as brokers do. A commit is stamped in the moment of sending. Requests and answers are late, or lost;
// members come, go, crash, and are evicted. All time is a number, and all chance comes from a seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "group/group_candidacy.hpp"
#include "roles.hpp"

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;
using Time = Clock::Time;
using Duration = Clock::Duration;

const Timing timing{.term = 6250ms,
                    .renew = 500ms,
                    .retry = 100ms,
                    .margin = 250ms,
                    .call = 2s,
                    .drain = 3s,
                    .clock_rate_error = 0.0005};
constexpr auto session_time = 6s;
constexpr int sim_units = 4;

std::vector<std::string> sim_roles() {
  std::vector<std::string> out;
  for (int i = 0; i < 8; ++i) out.push_back("r" + std::to_string(i));
  return out;
}

class World;

/// One process: its machine, its store, and what is on the way between the two and the coordinator.
struct Process {
  Process(World& in, int number, std::uint64_t seed);

  World& world;
  std::string name;
  GroupCandidacy candidacy;
  Roles roles;
  bool crashed{};
  std::uint64_t life{};  ///< Of the process: what was on the way to a crashed one is not delivered.

  std::optional<GroupQuestion> asked;
  std::uint64_t call{};
  std::uint64_t handle{};  ///< Its present one.

  // What it believes.
  struct Led {
    Token token;
    SessionId session;
    Time cap{Time::max()};
  };
  std::map<std::string, Led> led;
  SessionId session{};
  Time deadline{};

  void start();
  void give(const RoleFact& fact);
  void take_effects();
  void tick();
  bool leads(const std::string& role) const;

  void carry_out(group_effect::Ask& e);
  void carry_out(group_effect::Interrupt&);
  void carry_out(group_effect::Publish& e) { session = e.session, deadline = e.deadline; }
  void carry_out(group_effect::Withdraw&) { session = {}; }
  void carry_out(group_effect::Lead& e) { led[e.election] = {e.token, e.session}; }
  void carry_out(group_effect::Unlead& e) { led.erase(e.election); }
  void carry_out(group_effect::Cap& e) { led.at(e.election).cap = e.at; }
  void carry_out(group_effect::Begin& e);
  void carry_out(group_effect::End& e);
  template <class Other>
  void carry_out(Other&) {}

  void carry_out(role_effect::Open& e);
  void carry_out(role_effect::Assign&) {}
  void carry_out(role_effect::Unassign& e);
  void carry_out(role_effect::SendCommit& e);
  void carry_out(role_effect::ReadMember& e);
  void carry_out(role_effect::Observe& e);
  void carry_out(role_effect::Drop& e);
  void carry_out(role_effect::Reply& e);
  void carry_out(role_effect::Tell&) {}
  void answered(const RoleAnswer& answer);
};

/// The coordinator, the network, and the clock.
class World {
 public:
  explicit World(std::uint64_t seed) : random(seed) {}

  struct Member {
    std::string client_id;
    Process* process{};
    std::uint64_t handle{}, life{};
    int generation{};  ///< Which the client knows.
    bool waits{true};  ///< It has asked to join.
    bool told{};       ///< That it must join again.
    Time last_heard{};
    bool silent{};  ///< Its process has crashed, or it is cut off.
  };

  Duration delay() { return std::chrono::milliseconds(random() % 20 + 1) + (random() % 50 == 0 ? 700ms : 0ms); }
  bool chance(int one_in) { return random() % static_cast<unsigned>(one_in) == 0; }
  void after(Duration by, std::function<void()> what) { queue.emplace(now + by, std::move(what)); }

  Member* find(const Process* process, std::uint64_t handle) {
    for (auto& member : members)
      if (member.process == process && member.handle == handle) return &member;
    return nullptr;
  }

  void rebalance() {
    if (std::exchange(rebalancing, true)) return;
    rebalance_began = now;
    for (auto& member : members)
      if (!member.waits && !member.told) {
        member.told = true;
        after(delay(), [this, p = member.process, h = member.handle, life = member.life] {
          if (p->life == life && !p->crashed && find(p, h)) p->give(role_fact::Revoked{h, false});
        });
      }
    complete();
  }

  void complete() {
    if (!rebalancing || members.empty()) return void(rebalancing = !members.empty());
    if (!std::all_of(members.begin(), members.end(), [](const Member& m) { return m.waits; })) return;
    rebalancing = false;
    ++generation;
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.client_id < b.client_id; });
    const auto n = members.size();
    const auto all = static_cast<std::size_t>(partitions_of(sim_units));
    std::size_t next = 0;
    for (std::size_t i = 0; i < n; ++i) {
      auto& m = members[i];
      m.waits = m.told = false;
      std::vector<int> part;
      for (std::size_t k = all / n + (i < all % n ? 1 : 0); k > 0; --k) part.push_back(static_cast<int>(next++));
      // The client knows the generation by the answer to its join, and its part somewhat later.
      after(delay(), [this, p = m.process, h = m.handle, life = m.life, g = generation, part] {
        auto* member = find(p, h);
        if (!member || p->life != life || p->crashed) return;
        member->generation = g;
        after(delay(), [this, p, h, life, g, part] {
          if (find(p, h) && p->life == life && !p->crashed && find(p, h)->generation == g)
            p->give(role_fact::Assigned{h, part, g});
        });
      });
    }
  }

  void remove(const Process* process, std::uint64_t handle) {
    const auto before = members.size();
    std::erase_if(members, [&](const Member& m) { return m.process == process && m.handle == handle; });
    if (members.size() == before) return;
    if (members.empty()) return void(rebalancing = false);
    rebalance();
    complete();
  }

  /// Who is not heard of for a session, or does not join a rebalance in time, is put out.
  void evict() {
    for (std::size_t i = 0; i < members.size();) {
      auto& m = members[i];
      const bool late = rebalancing && !m.waits && now > rebalance_began + 2 * session_time;
      if (!(m.silent && now > m.last_heard + session_time) && !late) {
        ++i;
        continue;
      }
      const auto gone = m;
      ++evictions;
      remove(gone.process, gone.handle);
      if (!gone.process->crashed && gone.process->life == gone.life)
        after(delay() * 20, [this, gone] {
          if (gone.process->crashed || gone.process->life != gone.life) return;
          gone.process->give(role_fact::Revoked{gone.handle, true});
        });
      i = 0;
    }
  }

  void commit(Process& by, std::uint64_t handle, std::uint64_t life, const role_effect::SendCommit& send);
  role_fact::Offsets read() const {
    role_fact::Offsets out(static_cast<std::size_t>(partitions_of(sim_units)));
    for (const auto& [partition, commit] : offsets) out[static_cast<std::size_t>(partition)] = commit;
    return out;
  }

  void check() {
    for (const auto& role : sim_roles()) {
      int leaders = 0;
      for (const auto& process : processes) leaders += !process->crashed && process->leads(role);
      if (leaders > 1) wrong += role + " is led by " + std::to_string(leaders) + "; ";
      led_time += leaders;
    }
    ++checks;
  }

  Time now{Time{1h}};
  std::mt19937_64 random;
  std::multimap<Time, std::function<void()>> queue;
  std::vector<Member> members;
  std::map<int, Commit> offsets;
  role_fact::Offsets older{static_cast<std::size_t>(partitions_of(sim_units))};
  std::vector<std::unique_ptr<Process>> processes;
  std::map<std::string, Token> highest;
  std::string wrong;
  int generation{}, evictions{}, moves{};
  std::size_t commits{}, tenures{}, checks{};
  int led_time{};
  bool rebalancing{}, faults{true};
  Time rebalance_began{};
};

Process::Process(World& in, int number, std::uint64_t seed)
    : world(in),
      name("p" + std::to_string(number)),
      candidacy(Candidate{name, ""}, "inc" + std::to_string(number) + "x" + std::to_string(seed), timing,
                [r = std::mt19937_64(seed)]() mutable { return r(); }),
      roles({.units = sim_units,
             .lease = timing.term,
             .margin = timing.margin,
             .observe_every = 125ms,
             .incarnation = "inc" + std::to_string(number) + "x" + std::to_string(seed)}) {}

void Process::start() {
  for (const auto& role : sim_roles()) {
    roles.on(role_fact::Joined{role}, world.now, 1);
    candidacy.join(world.now, role);
  }
  candidacy.start(world.now);
  take_effects();
}

void Process::give(const RoleFact& fact) {
  for (auto& effect : roles.on(fact, world.now, 1)) std::visit([this](auto& e) { carry_out(e); }, effect);
}

void Process::tick() {
  if (crashed) return;
  if (world.now >= roles.alarm()) give(role_fact::Elapsed{});
  if (asked && world.now >= asked->by) {  // The caller leaves.
    give(role_fact::Abandoned{call});
    answered(std::monostate());
  }
  if (world.now >= candidacy.next_alarm()) {
    candidacy.tick(world.now);
    take_effects();
  }
}

bool Process::leads(const std::string& role) const {
  const auto it = led.find(role);
  return it != led.end() && it->second.session == session && world.now < std::min(deadline, it->second.cap);
}

void Process::take_effects() {
  std::vector<GroupEffect> effects;
  for (;;) {
    candidacy.take_effects(effects);
    if (effects.empty()) return;
    for (auto& effect : effects) std::visit([this](auto& e) { carry_out(e); }, effect);
  }
}

void Process::carry_out(group_effect::Ask& e) {
  asked = e.question;
  call = e.question.id;
  struct Caller {
    RoleCall operator()(const ask::Open& a) { return role_call::Open{a.id, a.session}; }
    RoleCall operator()(const ask::Write& a) { return role_call::Write{a.commit}; }
    RoleCall operator()(const ask::See& a) { return role_call::See{a.cursor}; }
    RoleCall operator()(const ask::End& a) { return role_call::End{a.id}; }
    RoleCall operator()(const ask::Sweep&) { return role_call::See{}; }
    RoleCall operator()(const ask::Await& a) { return role_call::Await{a.cursor}; }
  };
  const auto what = std::visit(Caller{}, e.question.what);
  world.after(1ms, [this, id = call, what, by = e.question.by, born = life] {
    if (!crashed && life == born && asked && call == id) give(role_fact::Called{id, what, by});
  });
}

void Process::carry_out(group_effect::Interrupt&) {
  world.after(1ms, [this, id = call, born = life] {
    if (crashed || life != born || !asked || call != id) return;
    give(role_fact::Abandoned{id});
    answered(std::monostate());
  });
}

void Process::carry_out(group_effect::Begin& e) {
  ++world.tenures;
  auto& last = world.highest[e.election];
  if (e.token <= last)
    world.wrong +=
        e.election + " has token " + std::to_string(e.token.value) + " after " + std::to_string(last.value) + "; ";
  last = std::max(last, e.token);
}

void Process::carry_out(group_effect::End& e) {
  if (e.reason == Reason::handed_over) ++world.moves;
  const auto takes = std::chrono::milliseconds(world.random() % 400 + 1) + (world.chance(10) ? 4s : 0s);
  world.after(takes, [this, role = e.election, born = life] {
    if (crashed || life != born) return;
    candidacy.ousting_returned(world.now, role);
    take_effects();
  });
}

void Process::carry_out(role_effect::Open& e) {
  handle = e.handle;
  world.after(world.delay(), [this, e, born = life] {
    if (crashed || life != born) return;
    world.members.push_back({.client_id = e.client_id + std::to_string(world.now.time_since_epoch().count()),
                             .process = this,
                             .handle = e.handle,
                             .life = life,
                             .last_heard = world.now});
    if (world.rebalancing) world.complete();
    world.rebalance();
    world.complete();
  });
}

void Process::carry_out(role_effect::Unassign& e) {
  world.after(world.delay(), [this, e] {
    if (auto* member = world.find(this, e.handle)) {
      member->waits = true;
      world.complete();
    }
  });
}

void Process::carry_out(role_effect::SendCommit& e) {
  // The client library may keep it for a while, and stamps it only then.
  const auto kept = world.faults && world.chance(8) ? std::chrono::milliseconds(world.random() % 900) : 0ms;
  world.after(world.delay() + kept, [this, e, from = handle, born = life] { world.commit(*this, from, born, e); });
}

void World::commit(Process& by, std::uint64_t handle, std::uint64_t life, const role_effect::SendCommit& send) {
  ++commits;
  const auto* member = find(&by, handle);
  // Stamped by the client in the moment of sending; accepted by member and generation, and never by owner.
  const bool accepted = member && member->life == life && member->generation == generation && !member->silent;
  if (accepted)
    for (const auto& [partition, commit] : send.commits) offsets[partition] = commit;
  const bool lost = faults && chance(150);
  after(lost ? 2s : delay(), [this, &by, life, id = send.id, accepted, lost] {
    if (by.crashed || by.life != life) return;
    const auto outcome = lost ? Outcome::failed : accepted ? Outcome::accepted : Outcome::fenced;
    by.give(role_fact::Committed{id, outcome, lost ? Error{Fault::timed_out, "lost"} : Error{Fault::fenced, "fenced"}});
  });
}

void Process::carry_out(role_effect::ReadMember& e) {
  world.after(world.delay(), [this, id = e.id, born = life] {
    // A coordinator that was frozen tells what was.
    const bool old = world.faults && world.chance(15);
    world.after(world.delay(), [this, id, born, seen = old ? world.older : world.read()] {
      if (!crashed && life == born) give(role_fact::MemberRead{id, seen});
    });
  });
}

void Process::carry_out(role_effect::Observe&) {
  world.after(world.delay(), [this, born = life] {
    world.after(world.delay(), [this, born, seen = world.read()] {
      if (!crashed && life == born) give(role_fact::Observed{seen});
    });
  });
}

void Process::carry_out(role_effect::Drop& e) {
  world.after(world.delay(), [this, h = e.handle, born = life] {
    world.remove(this, h);
    if (!crashed && life == born) give(role_fact::Left{h});
  });
}

void Process::carry_out(role_effect::Reply& e) {
  world.after(1ms, [this, id = e.id, answer = e.answer, born = life] {
    if (!crashed && life == born && asked && call == id) answered(answer);
  });
}

void Process::answered(const RoleAnswer& answer) {
  const auto question = *std::exchange(asked, std::nullopt);
  const Error late{Fault::timed_out, "late"};
  const auto result = [&]<class T>(T) {
    if (const auto* r = std::get_if<Result<T>>(&answer)) return *r;
    if (const auto* r = std::get_if<Result<tenure::Committed>>(&answer); r && !*r) return Result<T>(r->error());
    return Result<T>(late);
  };
  if (std::holds_alternative<ask::Open>(question.what) || std::holds_alternative<ask::Write>(question.what))
    candidacy.committed(world.now, question.id, result(tenure::Committed{}));
  else if (std::holds_alternative<ask::See>(question.what))
    candidacy.looked(world.now, question.id, result(Look{}));
  else if (std::holds_alternative<ask::End>(question.what))
    candidacy.ended(world.now, question.id, result(false));
  else if (std::holds_alternative<ask::Sweep>(question.what))
    candidacy.swept(world.now, question.id, Result<int>(0));
  else
    candidacy.awaited(world.now, question.id, std::nullopt);
  take_effects();
}

void run(World& world, Duration length, int shake_one_in) {
  const auto until = world.now + length;
  std::uint64_t seed = world.random();
  while (world.now < until && world.wrong.empty()) {
    world.now += 1ms;
    while (!world.queue.empty() && world.queue.begin()->first <= world.now) {
      const auto what = world.queue.extract(world.queue.begin()).mapped();
      what();
    }
    for (std::size_t i = 0; i < world.processes.size(); ++i) world.processes[i]->tick();
    world.evict();
    world.check();
    if (world.checks % 1500 == 0) world.older = world.read();
    if (shake_one_in == 0 || !world.chance(shake_one_in)) continue;
    auto& victim = *world.processes[world.random() % world.processes.size()];
    switch (world.random() % 4) {
      case 0: {  // A crash, and another process in its place.
        victim.crashed = true;
        for (auto& m : world.members)
          if (m.process == &victim) m.silent = true, m.last_heard = world.now;
        world.processes.push_back(std::make_unique<Process>(world, static_cast<int>(world.processes.size()), ++seed));
        world.processes.back()->start();
        break;
      }
      case 1:  // It is cut off for longer than a session, and does not notice.
        for (auto& m : world.members)
          if (m.process == &victim) m.silent = true, m.last_heard = world.now;
        break;
      case 2:
        if (!victim.crashed) {
          victim.candidacy.stop(world.now);
          victim.take_effects();
          world.processes.push_back(std::make_unique<Process>(world, static_cast<int>(world.processes.size()), ++seed));
          world.processes.back()->start();
        }
        break;
      default: world.rebalance(); world.complete();
    }
  }
}

void play(std::uint64_t seed, Duration length, int shake_one_in) {
  World world(seed);
  for (int i = 0; i < 3; ++i) {
    world.processes.push_back(std::make_unique<Process>(world, i, seed * 100 + static_cast<std::uint64_t>(i)));
    world.processes.back()->start();
  }
  run(world, length, shake_one_in);
  ASSERT_EQ(world.wrong, "") << "seed " << seed << " at " << (world.now - Time{1h}) / 1ms << " ms";
  // In the end all comes to rest, and every role is led.
  world.faults = false;
  run(world, 60s, 0);
  ASSERT_EQ(world.wrong, "") << "seed " << seed;
  for (const auto& role : sim_roles())
    EXPECT_EQ(std::count_if(world.processes.begin(), world.processes.end(),
                            [&](const auto& p) { return !p->crashed && p->leads(role); }),
              1)
        << role << ", seed " << seed;
  static std::size_t tenures = 0, commits = 0;
  static int evictions = 0, generations = 0, moves = 0;
  tenures += world.tenures, commits += world.commits, evictions += world.evictions, generations += world.generation,
      moves += world.moves;
  testing::Test::RecordProperty("tenures", static_cast<int>(tenures));
  std::printf("seed %llu: so far %zu tenures, %d hand-overs, %zu commits, %d evictions, %d generations\n",
              static_cast<unsigned long long>(seed), tenures, moves, commits, evictions, generations);
}

TEST(RolesSim, AtRestEachRoleIsLedOnceAndOneCommitPerRenewalKeepsThemAll) {
  World world(1);
  world.faults = false;
  for (int i = 0; i < 3; ++i) {
    world.processes.push_back(std::make_unique<Process>(world, i, 100 + static_cast<std::uint64_t>(i)));
    world.processes.back()->start();
  }
  run(world, 60s, 0);
  const auto before = world.commits;
  const auto tenures = world.tenures;
  run(world, 60s, 0);
  EXPECT_EQ(world.wrong, "");
  EXPECT_EQ(world.tenures, tenures);
  EXPECT_LE(world.commits - before, 3u * 120 + 3);
  EXPECT_GE(world.commits - before, 3u * 100);
}

TEST(RolesSim, NoRoleIsLedByTwoAndTokensRise) {
  const auto* more = std::getenv("TENURE_SIM_SEEDS");
  const std::uint64_t seeds = more ? std::strtoull(more, nullptr, 10) : 6;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    play(seed, 180s, 6000);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tenure::kafka
