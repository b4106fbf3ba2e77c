// SPDX-License-Identifier: Apache-2.0
// Whole processes (GroupCandidacy over Roles or NonExclusiveRoles), and a model of a coordinator that knows generations
// and never checks who owns what, as brokers do. A commit is stamped in the moment of sending. Requests and answers are
// late, or lost; members come, go, crash, and are evicted. All time is a number, and all chance comes from a seed.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/kit/who.hpp>

#include "group/group_candidacy.hpp"
#include "non_exclusive_roles.hpp"
#include "roles.hpp"
#include "seeds.hpp"

namespace tenure::kafka::test {

using namespace std::chrono_literals;
using tenure::test::for_each_seed;
using Time = Clock::Time;
using Duration = Clock::Duration;

constexpr auto session_time = 6s;
constexpr int sim_units = 4;

/// A test that runs so many seeds. `tests/run` runs a sixth of them, `tests/run all` also the whole.
class Simulation : public testing::TestWithParam<std::uint64_t> {
 protected:
  /// How many. A sanitizer sees in one run what it sees in many.
  static std::uint64_t seeds([[maybe_unused]] std::uint64_t usual) {
#ifdef __SANITIZE_ADDRESS__
    return 1;
#else
    return (usual + GetParam() - 1) / GetParam();
#endif
  }
};
inline std::string whole_or_part(const testing::TestParamInfo<std::uint64_t>& share) {
  return share.param == 1 ? "whole" : "a_sixth";
}
#ifdef __SANITIZE_ADDRESS__
#define TENURE_SIMULATION(suite) INSTANTIATE_TEST_SUITE_P(Quick, suite, testing::Values(6), whole_or_part)
#else
#define TENURE_SIMULATION(suite)                                             \
  INSTANTIATE_TEST_SUITE_P(Quick, suite, testing::Values(6), whole_or_part); \
  INSTANTIATE_TEST_SUITE_P(Long, suite, testing::Values(1), whole_or_part)
#endif

inline std::vector<std::string> sim_roles() {
  std::vector<std::string> out;
  for (int i = 0; i < 8; ++i) out.push_back("r" + std::to_string(i));
  return out;
}

class World;
using EitherRoles = std::variant<Roles, NonExclusiveRoles>;
/// The machine of a process with this incarnation.
using MakeMachine = std::function<EitherRoles(const std::string& incarnation)>;

/// One process: its machine, its store, and what is on the way between the two and the coordinator.
struct Process {
  Process(World& in, int number, std::uint64_t seed, const Timing& timing, const MakeMachine& make);

  World& world;
  std::string name;
  GroupCandidacy candidacy;
  EitherRoles roles;
  bool crashed{};
  bool mute{}, deaf{};  ///< What it sends is lost; what is sent to it is lost.
  bool has_handle{};
  std::uint64_t life{};  ///< Of the process: what was on the way to a crashed one is not delivered.

  std::optional<GroupQuestion> asked;
  std::uint64_t call{};
  std::uint64_t handle{};  ///< Its present one, or the last one.
  bool cut() const { return mute || deaf; }
  int units() const {
    return std::visit([](const auto& r) { return r.units(); }, roles);
  }
  std::vector<RoleEffect> decide(const RoleFact& fact);

  // What it believes.
  struct Led {
    Token token;
    SessionId session;
    Time cap{Time::max()};
  };
  std::map<std::string, Led> led;
  /// From elected() until ousting() has returned: its lease ends there, whether or not is_leader() is true until then.
  struct Work {
    SessionId session;
    Time lease_end, cap{Time::max()};
  };
  std::multimap<std::string, Work> works;
  SessionId session{};
  Time deadline{};

  void start();
  void give(const RoleFact& fact);
  void take_effects();
  void tick();
  bool leads(const std::string& role) const;
  bool works_on(const std::string& role) const;

  void carry_out(group_effect::Ask& e);
  void carry_out(group_effect::Interrupt&);
  void carry_out(group_effect::Publish& e);
  void carry_out(group_effect::Withdraw&) { session = {}; }
  void carry_out(group_effect::Lead& e) { led[e.election] = {e.token, e.session}; }
  void carry_out(group_effect::Unlead& e) { led.erase(e.election); }
  void carry_out(group_effect::Cap& e);
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
  World(std::uint64_t seed, const Timing& timed, MakeMachine makes)
      : random(seed), timing(timed), make(std::move(makes)) {}

  Process& start(std::uint64_t seed) {
    processes.push_back(std::make_unique<Process>(*this, static_cast<int>(processes.size()), seed, timing, make));
    processes.back()->start();
    return *processes.back();
  }

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

  // Here and below each draw has a statement of its own, because compilers evaluate the parts of one in any order.
  Duration delay() {
    const auto rare = random() % 50 == 0 ? 700ms : 0ms;
    return rare + std::chrono::milliseconds(random() % 20 + 1);
  }
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
        tell(member.process, member.handle, member.life);
      }
    complete();
  }

  /// By the answer to a heartbeat, as soon as one comes through.
  void tell(Process* p, std::uint64_t h, std::uint64_t life) {
    after(delay(), [this, p, h, life] {
      if (p->life != life || p->crashed || !find(p, h)) return;
      if (p->cut()) return after(500ms, [this, p, h, life] { tell(p, h, life); });
      p->give(role_fact::Revoked{h, false});
    });
  }

  void assign(Process* p, std::uint64_t h, std::uint64_t life, int g, const std::vector<int>& part) {
    if (!find(p, h) || p->life != life || p->crashed || find(p, h)->generation != g) return;
    if (p->cut()) return after(500ms, [this, p, h, life, g, part] { assign(p, h, life, g, part); });
    p->give(role_fact::Assigned{h, part, g});
  }

  void complete() {
    if (!rebalancing || members.empty()) return void(rebalancing = !members.empty());
    if (!std::all_of(members.begin(), members.end(), [](const Member& m) { return m.waits; })) return;
    rebalancing = false;
    ++generation;
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.client_id < b.client_id; });
    const auto n = members.size();
    const auto all = static_cast<std::size_t>(partitions_of(topic_units));
    std::size_t next = 0;
    for (std::size_t i = 0; i < n; ++i) {
      auto& m = members[i];
      m.waits = m.told = false;
      m.last_heard = now;
      std::vector<int> part;
      for (std::size_t k = all / n + (i < all % n ? 1 : 0); k > 0; --k) part.push_back(static_cast<int>(next++));
      for (const int partition : part)
        if (partition % 3 == 0) owners[partition / 3] = m.process;
      // The client knows the generation by the answer to its join, and its part somewhat later.
      after(delay(), [this, p = m.process, h = m.handle, life = m.life, g = generation, part] {
        auto* member = find(p, h);
        if (!member || p->life != life || p->crashed || g < member->generation) return;
        member->generation = g;
        after(delay(), [this, p, h, life, g, part] { assign(p, h, life, g, part); });
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
      const bool open = m.process->has_handle && m.process->handle == m.handle && m.process->life == m.life;
      if (open && !m.silent && !m.process->mute && !m.process->crashed) m.last_heard = now;
      const bool late = rebalancing && !m.waits && now > rebalance_began + 2 * session_time;
      if (!(now > m.last_heard + session_time && !m.waits) && !late) {
        ++i;
        continue;
      }
      const auto gone = m;
      ++evictions;
      remove(gone.process, gone.handle);
      if (!gone.process->crashed && gone.process->life == gone.life)
        after(delay() * 20, [gone] {
          if (gone.process->crashed || gone.process->life != gone.life) return;
          gone.process->give(role_fact::Revoked{gone.handle, true});
        });
      i = 0;
    }
  }

  void join(Process& by, const role_effect::Open& open, std::uint64_t life);
  void rejoin(Process& by, std::uint64_t handle);
  void commit(Process& by, std::uint64_t handle, std::uint64_t life, const role_effect::SendCommit& send);
  role_fact::Offsets read(int partitions, bool old = false) const {
    role_fact::Offsets out(static_cast<std::size_t>(partitions));
    for (const auto& [partition, commit] : old ? older : offsets)
      if (partition < partitions) out[static_cast<std::size_t>(partition)] = commit;
    return out;
  }

  int leaders(const std::string& role) const {
    int out = 0;
    for (const auto& process : processes) out += !process->crashed && process->leads(role);
    return out;
  }
  /// No two lead a role, and none is elected while another one's work may go on: S4 of what is promised.
  void check_exclusive() {
    for (const auto& role : sim_roles()) {
      if (const int n = leaders(role); n > 1) wrong += role + " is led by " + std::to_string(n) + "; ";
      std::string working;
      int n = 0;
      for (const auto& process : processes)
        if (process->works_on(role)) ++n, working += process->name + " ";
      if (n > 1) wrong += "the work of " + role + " is done by " + working + "at once; ";
    }
  }
  /// Lets `length` pass. After each millisecond `look` may look, and make faults.
  void run(Duration length, const std::function<void()>& look) {
    for (const auto until = now + length; now < until && wrong.empty();) {
      now += 1ms;
      while (!queue.empty() && queue.begin()->first <= now) {
        const auto what = queue.extract(queue.begin()).mapped();
        what();
      }
      for (std::size_t i = 0; i < processes.size(); ++i) processes[i]->tick();
      evict();
      if (++ticks % 1500 == 0) older = offsets;
      look();
    }
  }

  Time now{Time{1h}};
  std::mt19937_64 random;
  Timing timing;
  MakeMachine make;
  std::map<int, const Process*> owners;  ///< Of units, as the last generation has it.
  std::multimap<Time, std::function<void()>> queue;
  std::vector<Member> members;
  std::map<int, Commit> offsets;
  std::map<int, Commit> older;
  int topic_units{sim_units};  ///< For how many the topic has room.
  std::vector<std::unique_ptr<Process>> processes;
  std::map<std::string, Token> highest;
  std::string wrong;
  int generation{}, evictions{}, moves{};
  std::size_t commits{}, tenures{}, ticks{}, late_copies{};
  bool rebalancing{}, faults{true};
  Time rebalance_began{};
};

inline Process::Process(World& in, int number, std::uint64_t seed, const Timing& timing, const MakeMachine& make)
    : world(in),
      name("p" + std::to_string(number)),
      candidacy(who_text({name, ""}, "inc" + std::to_string(number) + "x" + std::to_string(seed)), timing,
                [r = std::mt19937_64(seed)]() mutable { return r(); }),
      roles(make("inc" + std::to_string(number) + "x" + std::to_string(seed))) {}

inline std::vector<RoleEffect> Process::decide(const RoleFact& fact) {
  return std::visit([&](auto& r) { return r.on(fact, world.now, 1); }, roles);
}

inline void Process::start() {
  for (const auto& role : sim_roles()) {
    decide(role_fact::Joined{role});
    candidacy.join(world.now, role);
  }
  candidacy.start(world.now);
  take_effects();
}

/// The time comes behind each fact, as on the serving thread.
inline void Process::give(const RoleFact& fact) {
  for (const auto& next : {fact, RoleFact(role_fact::Elapsed{})})
    for (auto& effect : decide(next)) std::visit([this](auto& e) { carry_out(e); }, effect);
}

inline void Process::tick() {
  if (crashed) return;
  if (world.now >= std::visit([](const auto& r) { return r.alarm(); }, roles)) give(role_fact::Elapsed{});
  if (asked && world.now >= asked->by) {  // The caller leaves.
    give(role_fact::Abandoned{call});
    answered(std::monostate());
  }
  if (world.now >= candidacy.next_alarm()) {
    candidacy.tick(world.now);
    take_effects();
  }
}

inline bool Process::leads(const std::string& role) const {
  const auto it = led.find(role);
  return it != led.end() && it->second.session == session && world.now < std::min(deadline, it->second.cap);
}

inline bool Process::works_on(const std::string& role) const {
  const auto [first, last] = works.equal_range(role);
  return !crashed && std::any_of(first, last, [this](const auto& one) {
    return world.now < std::min(one.second.lease_end, one.second.cap);
  });
}

inline void Process::carry_out(group_effect::Publish& e) {
  session = e.session, deadline = e.deadline;
  for (auto& [role, work] : works)
    if (work.session == session) work.lease_end = deadline + world.timing.margin;
}

/// Of the last tenure of that election.
inline void Process::carry_out(group_effect::Cap& e) {
  led.at(e.election).cap = e.at;
  if (const auto work = works.upper_bound(e.election); work != works.begin() && std::prev(work)->first == e.election)
    std::prev(work)->second.cap = std::min(e.at, Clock::Time::max() - world.timing.margin) + world.timing.margin;
}

inline void Process::take_effects() {
  std::vector<GroupEffect> effects;
  for (;;) {
    candidacy.take_effects(effects);
    if (effects.empty()) return;
    for (auto& effect : effects) std::visit([this](auto& e) { carry_out(e); }, effect);
  }
}

inline void Process::carry_out(group_effect::Ask& e) {
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

inline void Process::carry_out(group_effect::Interrupt&) {
  world.after(1ms, [this, id = call, born = life] {
    if (crashed || life != born || !asked || call != id) return;
    give(role_fact::Abandoned{id});
    answered(std::monostate());
  });
}

inline void Process::carry_out(group_effect::Begin& e) {
  ++world.tenures;
  works.emplace(e.election, Work{session, deadline + world.timing.margin});
  if (std::holds_alternative<NonExclusiveRoles>(roles)) return;
  auto& last = world.highest[e.election];
  if (e.token <= last)
    world.wrong +=
        e.election + " has token " + std::to_string(e.token.value) + " after " + std::to_string(last.value) + "; ";
  last = std::max(last, e.token);
}

inline void Process::carry_out(group_effect::End& e) {
  if (e.reason == Reason::handed_over) ++world.moves;
  const auto rare = world.chance(10) ? 4s : 0s;
  const auto takes = rare + std::chrono::milliseconds(world.random() % 400 + 1);
  world.after(takes, [this, role = e.election, born = life] {
    if (crashed || life != born) return;
    works.erase(works.find(role));  // The hooks of one election run one after the other.
    candidacy.ousting_returned(world.now, role);
    take_effects();
  });
}

inline void Process::carry_out(role_effect::Open& e) {
  handle = e.handle;
  has_handle = true;
  world.after(world.delay(), [this, e, born = life] { world.join(*this, e, born); });
}

/// The client tries until it comes through.
inline void World::join(Process& by, const role_effect::Open& open, std::uint64_t life) {
  if (by.crashed || by.life != life || !by.has_handle || by.handle != open.handle) return;
  if (by.cut()) return after(500ms, [this, &by, open, life] { join(by, open, life); });
  members.push_back({.client_id = open.client_id + std::to_string(now.time_since_epoch().count()),
                     .process = &by,
                     .handle = open.handle,
                     .life = life,
                     .last_heard = now});
  if (rebalancing) complete();
  rebalance();
  complete();
}

inline void World::rejoin(Process& by, std::uint64_t handle) {
  auto* member = find(&by, handle);
  if (!member || !by.has_handle || by.handle != handle) return;
  if (by.cut() && !by.crashed) return after(500ms, [this, &by, handle] { rejoin(by, handle); });
  member->waits = true;
  complete();
}

inline void Process::carry_out(role_effect::Unassign& e) {
  world.after(world.delay(), [this, e] { world.rejoin(*this, e.handle); });
}

inline void Process::carry_out(role_effect::SendCommit& e) {
  // The client library may keep it for a while, and stamps it only then.
  const auto kept = world.faults && world.chance(8) ? std::chrono::milliseconds(world.random() % 900) : 0ms;
  world.after(world.delay() + kept, [this, e, from = handle, born = life] { world.commit(*this, from, born, e); });
}

inline void World::commit(Process& by, std::uint64_t handle, std::uint64_t life, const role_effect::SendCommit& send) {
  ++commits;
  const auto* member = find(&by, handle);
  // Stamped by the client in the moment of sending; accepted by member and generation, and never by owner.
  const bool accepted =
      member && member->life == life && member->generation == generation && !member->silent && !by.mute;
  if (accepted)
    for (const auto& [partition, commit] : send.commits) offsets[partition] = commit;
  const bool lost = (faults && chance(150)) || by.cut();
  // Its connection breaks, and the client library sends it again. The first copy is handled after the second one.
  const bool again = accepted && faults && chance(100);
  if (again)
    after(std::chrono::milliseconds(random() % 6000),
          [this, &by, handle, life, stamp = generation, copy = send.commits] {
            const auto* sender = find(&by, handle);
            if (!sender || sender->life != life || generation != stamp || sender->generation != stamp) return;
            for (const auto& [partition, commit] : copy) offsets[partition] = commit;
            ++late_copies;
          });
  after(lost ? 2s : delay(), [&by, life, id = send.id, accepted, lost, again] {
    if (by.crashed || by.life != life) return;
    const auto outcome = lost ? Outcome::failed : accepted ? Outcome::accepted : Outcome::fenced;
    by.give(role_fact::Committed{id, outcome, lost ? Error{Fault::timed_out, "lost"} : Error{Fault::fenced, "fenced"},
                                 again});
  });
}

inline void Process::carry_out(role_effect::ReadMember& e) {
  world.after(world.delay(), [this, e, born = life] {
    // A coordinator that was frozen tells what was.
    const bool old = world.faults && world.chance(15);
    world.after(world.delay(), [this, id = e.id, born, seen = world.read(e.partitions, old)] {
      if (!crashed && life == born) give(role_fact::MemberRead{id, seen});
    });
  });
}

inline void Process::carry_out(role_effect::Observe& e) {
  world.after(world.delay(), [this, e, born = life] {
    const auto topic = e.topic ? std::optional(partitions_of(world.topic_units)) : std::nullopt;
    const bool new_group = world.generation == 0 && world.members.empty();
    world.after(cut() ? 1500ms : world.delay(),
                [this, born, topic, new_group, lost = cut(), seen = world.read(e.partitions)] {
                  if (crashed || life != born) return;
                  give(role_fact::Observed{lost ? Result<role_fact::Offsets>(Error{Fault::timed_out, "lost"}) : seen,
                                           topic, new_group});
                });
  });
}

inline void Process::carry_out(role_effect::Drop& e) {
  has_handle = false;
  world.after(world.delay(), [this, h = e.handle, born = life] {
    if (!mute) world.remove(this, h);
    if (!crashed && life == born && !cut()) give(role_fact::Left{h});
  });
}

inline void Process::carry_out(role_effect::Reply& e) {
  world.after(1ms, [this, id = e.id, answer = e.answer, born = life] {
    if (!crashed && life == born && asked && call == id) answered(answer);
  });
}

inline void Process::answered(const RoleAnswer& answer) {
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

}  // namespace tenure::kafka::test
