// SPDX-License-Identifier: Apache-2.0
// What one fact costs GroupCandidacy, by the number of its elections: processor time of the pure machine alone. Three
// processes share them, over the model of a store that the tests play. usage: group_bench [elections] [rounds]
#include <cstdlib>
#include <ctime>
#include <deque>
#include <list>
#include <map>
#include <stdexcept>
#include <string>

#include "group/group_candidacy.hpp"
#include "group_model.hpp"
#include "table.hpp"

namespace {

using namespace tenure;
using namespace std::chrono_literals;

double cpu_ms() {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return static_cast<double>(ts.tv_sec) * 1e3 + static_cast<double>(ts.tv_nsec) / 1e6;
}

const Timing timing = Timing::of(10s);

/// Each call to the store takes 1 ms, and hooks take no time.
class World {
 public:
  World(std::size_t elections, int processes) {
    for (std::size_t i = 0; i < elections; ++i) names_.push_back("job-" + std::to_string(i));
    for (int i = 0; i < processes; ++i) add();
  }

  void add() {
    auto& m = members_.emplace_back();
    for (const auto& name : names_) m.machine.join(now_, name);
    tell(m, "start", [&] { m.machine.start(now_); });
  }
  void kill() { members_.pop_front(); }

  /// From the oldest process to any other.
  void resign() {
    auto& m = members_.front();
    const auto election = *m.led.begin();
    tell(m, "resign()", [&] { m.machine.resign(now_, election, 1ms); });
  }

  void run_for(Clock::Duration time) {
    for (const auto until = now_ + time; now_ < until;) step();
  }
  template <class Done>
  void run_until(Done done) {
    for (int i = 0; !done(); ++i) {
      if (i > 100'000) throw std::runtime_error("it never comes to rest");
      step();
    }
  }
  bool balanced() const {
    std::size_t sum = 0, least = names_.size(), most = 0;
    for (const auto& m : members_) {
      sum += m.led.size(), least = std::min(least, m.led.size()), most = std::max(most, m.led.size());
      if (!m.done) return false;
    }
    return sum == names_.size() && most - least <= 1;
  }

  void forget_costs() { costs_.clear(); }
  const std::map<std::string, std::vector<double>>& costs() const { return costs_; }
  std::chrono::milliseconds at() const { return std::chrono::duration_cast<std::chrono::milliseconds>(now_ - began); }

 private:
  static constexpr auto began = Clock::Time{1h};
  struct Member {
    GroupCandidacy machine{Candidate{"me", ""}, "life", timing, [] { return (seed += 0x9e3779b97f4a7c15) >> 1; }};
    std::optional<GroupQuestion> asked{};
    std::set<std::string> led{};
    std::deque<std::string> ousting{};
    bool done{};  ///< It has nothing to ask.
  };
  static inline std::uint64_t seed = 1;

  template <class Fact>
  void tell(Member& m, const char* what, Fact fact) {
    const auto before = cpu_ms();
    fact();
    m.machine.take_effects(effects_);
    costs_[what].push_back(cpu_ms() - before);
    bool interrupted = false;
    for (auto& effect : effects_) {
      if (auto* ask = std::get_if<group_effect::Ask>(&effect)) m.asked = std::move(ask->question);
      if (auto* lead = std::get_if<group_effect::Lead>(&effect)) m.led.insert(lead->election);
      if (auto* unlead = std::get_if<group_effect::Unlead>(&effect)) m.led.erase(unlead->election);
      if (auto* end = std::get_if<group_effect::End>(&effect)) m.ousting.push_back(end->election);
      interrupted |= std::holds_alternative<group_effect::Interrupt>(effect);
    }
    if (interrupted) awaited(m, "interrupted wait", std::nullopt);
  }

  void awaited(Member& m, const char* what, const std::optional<Release>& pushed) {
    const auto id = std::exchange(m.asked, std::nullopt)->id;
    tell(m, what, [&] { m.machine.awaited(now_, id, pushed); });
  }

  void answer(Member& m) {
    const auto question = *std::exchange(m.asked, std::nullopt);
    const auto id = question.id;
    if (const auto* a = std::get_if<ask::Open>(&question.what)) {
      Result<Committed> answer = store_.open(a->id, a->session, 7);
      tell(m, "answer of open", [&] { m.machine.committed(now_, id, std::move(answer)); });
    } else if (const auto* w = std::get_if<ask::Write>(&question.what)) {
      const auto& commit = w->commit;
      Result<Committed> answer = store_.commit(commit);
      const char* what = !commit.claims.empty()     ? "answer of a commit with claims"
                         : !commit.releases.empty() ? "answer of a commit with releases"
                                                    : "answer of a renewal";
      tell(m, what, [&] { m.machine.committed(now_, id, std::move(answer)); });
      if (!commit.releases.empty()) push(commit.releases);
    } else if (const auto* s = std::get_if<ask::See>(&question.what)) {
      Result<Look> answer = store_.look(s->cursor);
      tell(m, "answer of a look", [&] { m.machine.looked(now_, id, std::move(answer)); });
    } else if (const auto* e = std::get_if<ask::End>(&question.what)) {
      const Result<bool> answer = store_.end(e->id, e->beats, e->new_beat);
      tell(m, "answer of the end of another", [&] { m.machine.ended(now_, id, answer); });
    } else {
      const Result<int> answer = store_.sweep();
      tell(m, "answer of a sweep", [&] { m.machine.swept(now_, id, answer); });
    }
  }

  void push(const std::vector<Release>& releases) {
    for (auto& m : members_)
      if (m.asked && std::holds_alternative<ask::Await>(m.asked->what))
        awaited(m, "push of a release", releases.size() == 1 ? std::optional(releases.front()) : std::nullopt);
  }

  void step() {
    auto next = Clock::Time::max();
    for (auto& m : members_) {
      m.done = !m.asked || std::holds_alternative<ask::Await>(m.asked->what);
      next = std::min(next, m.done && m.ousting.empty() ? m.machine.next_alarm() : now_);
    }
    now_ = std::max(now_ + 1ms, next);
    store_.now_ms = 1'700'000'000'000 + now_.time_since_epoch() / 1ms;
    for (auto& m : members_) {
      while (!m.ousting.empty()) {
        const auto election = m.ousting.front();
        m.ousting.pop_front();
        m.led.erase(election);
        tell(m, "ousting() returned", [&] { m.machine.ousting_returned(now_, election); });
      }
      if (m.asked && !std::holds_alternative<ask::Await>(m.asked->what))
        answer(m);
      else if (m.asked && now_ >= m.asked->by)
        awaited(m, "end of a wait", std::nullopt);
      if (m.machine.next_alarm() <= now_) tell(m, "alarm", [&] { m.machine.tick(now_); });
    }
  }

  Clock::Time now_{began};
  test::GroupModel store_{};
  std::vector<std::string> names_;
  std::list<Member> members_;
  std::vector<GroupEffect> effects_;
  std::map<std::string, std::vector<double>> costs_;
};

void print(World& world, const std::string& title) {
  std::printf("%s, after %.3f s\n", title.c_str(), static_cast<double>(world.at().count()) / 1000);
  bench::print_header("ms of processor time");
  double all = 0;
  for (auto [what, costs] : world.costs()) {
    for (const auto cost : costs) all += cost;
    bench::print_row("  " + what, costs);
  }
  std::printf("  all of it: %.1f ms\n", all);
  world.forget_costs();
}

}  // namespace

int main(int argc, char** argv) try {
  const auto elections = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 10'000);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  World world(elections, 3);
  world.run_until([&] { return world.balanced(); });
  print(world, "start of three with " + std::to_string(elections));
  world.run_for(20s);
  print(world, "at rest");
  for (int i = 0; i < rounds; ++i) {
    world.resign();
    world.run_for(300ms);
  }
  print(world, "hand-overs of one");
  world.run_until([&] { return world.balanced(); });
  world.run_for(5s);
  world.forget_costs();
  world.kill();
  world.run_until([&] { return world.balanced(); });
  print(world, "death of one of three");
  world.add();
  world.run_until([&] { return world.balanced(); });
  print(world, "a third one comes");
} catch (const std::exception& e) {
  std::fprintf(stderr, "group_bench: %s\n", e.what());
  return 1;
}
