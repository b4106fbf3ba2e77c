// SPDX-License-Identifier: Apache-2.0
// Goal: no election of a group ever has two leaders, nor work of two, tokens rise, hooks come in pairs, and soon after
// the last trouble every election is led again and everybody leads its share. Method: several processes over one model
// of the store, with clocks that run apart, and at random: requests that are lost, late, doubled or never answered,
// pauses, crashes, restarts, slow hooks, work that stalls, lost data, leads that somebody spoils and mends, and users
// who join, leave, resign and stop. A seed repeats a run.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <utility>

#include <tenure/kit/who.hpp>

#include "group_answers.hpp"
#include "seeds.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using Duration = Clock::Duration;
using Time = Clock::Time;
using test::GroupAnswer;
using test::GroupModel;

const Timing timing{
    .term = 10s, .renew = 2s, .retry = 200ms, .margin = 450ms, .call = 3s, .drain = 3s, .clock_rate_error = 0.02};

constexpr Duration longest_cool_down = 20s;

/// From a deadline to the end of its lease.
const Duration own_time = timing.margin - timing.clock_allowance();

class World {
 public:
  World(std::uint64_t seed, std::size_t processes, std::size_t elections, bool can_lose, bool spread)
      : random_(seed),
        elections_(elections),
        spread_{.on = spread},
        stall_(seed % 2 ? StallLimits{} : StallLimits{1s + upto(5s), upto(longest_cool_down)}) {
    store_.can_lose = can_lose;
    for (std::size_t i = 0; i < processes; ++i) {
      processes_.push_back(std::make_unique<Process>());
      processes_.back()->name = "p" + std::to_string(i);
      processes_.back()->weight = 1 + static_cast<std::uint32_t>(random_() % 3);
      begin(*processes_.back());
    }
  }

  void run(Duration by) {
    const auto until = now_ + by;
    while (violation.empty()) {
      const auto next = next_moment();
      if (next > until) break;
      advance(next);
    }
    if (violation.empty()) now_ = until;
  }

  /// No more trouble. Whoever was stopped by its user is started again. Everybody wants the same elections; or each is
  /// wanted by one process and by some others, and what those hold who do not want it any more has to be given back.
  void calm(bool alike) {
    calm_ = true;
    while (!store_.spoilt.empty()) mend_one();
    for (auto& p : processes_) {
      if (p->paused) resume(*p);
      if (!p->alive || p->stopping) begin(*p);
    }
    for (std::size_t e = 0; e < elections_; ++e) {
      const auto one = random_() % processes_.size();
      for (std::size_t i = 0; i < processes_.size(); ++i) {
        auto& p = *processes_[i];
        alike || i == one || random_() % 3 == 0 ? join(p, name(e)) : leave(p, name(e));
        take(p);
      }
    }
  }

  /// Questions of the busiest process, waits apart, since the last call.
  int busiest() {
    int most = 0;
    for (auto& p : processes_) most = std::max(most, std::exchange(p->asked, 0));
    return most;
  }

  /// Elections that nobody leads now.
  std::size_t vacant() const {
    std::size_t count = 0;
    for (std::size_t e = 0; e < elections_; ++e)
      if (std::none_of(processes_.begin(), processes_.end(), [&](const auto& p) { return leads(*p, name(e)); }))
        ++count;
    return count;
  }

  /// Each leads its part by weight, but for one.
  bool even() const {
    std::size_t weights = 0;
    for (const auto& p : processes_) weights += p->weight;
    return std::all_of(processes_.begin(), processes_.end(), [&](const auto& p) {
      std::size_t count = 0;
      for (std::size_t e = 0; e < elections_; ++e) count += leads(*p, name(e));
      return count * weights < elections_ * p->weight + weights && (count + 1) * weights > elections_ * p->weight;
    });
  }

  std::string violation;
  int tenures{}, expired{}, superseded{}, stalled{}, spoils{};
  std::map<std::string, int> questions;

 private:
  struct Led {
    Token token;
    SessionId session;
    Time cap{Time::max()};
  };
  /// The work of a tenure that has begun. It obeys Ousting::remaining(), and stops with the lease at the latest.
  struct Work {
    Token token;
    SessionId session;
    Time lease_end{}, cap{Time::max()}, done_by{Time::max()};
    Time until() const { return std::min({lease_end, cap, done_by}); }
  };
  struct Process {
    std::unique_ptr<GroupCandidacy> candidacy;
    std::string name;
    std::uint32_t weight{1};
    int life{};  ///< Whatever belongs to an earlier one comes to nothing.
    bool alive{}, paused{}, stopping{};
    double rate{1};
    Time clock_zero{}, true_zero{};
    SessionId session{};
    Time deadline{};
    std::map<std::string, Led> led;
    std::map<std::string, Work> begun;  ///< elected() was called, and ousting() has not returned.
    std::set<std::string> ousting;
    std::set<std::string> joined;
    std::map<std::string, Time> cool_downs;  ///< By its clock. They may begin later than is known here.
    std::map<std::string, Time> worked;      ///< When the work told that it goes on, or began.
    std::map<std::string, Time> barred;      ///< As the cool-downs, because the work stalled.
    int asked{};
    std::vector<std::function<void()>> held;  ///< Facts that came while it was paused.
    std::optional<std::uint64_t> waits;       ///< Its question that waits for a push.
    std::optional<GroupQuestion> question;    ///< Its last one of another kind.
  };
  struct Event {
    Time at;
    std::uint64_t order;
    std::function<void()> happen;
    bool operator<(const Event& other) const { return std::tie(other.at, other.order) < std::tie(at, order); }
  };

  static std::string name(std::size_t e) { return "e" + std::to_string(e); }
  bool chance(double p) { return !calm_ && std::generate_canonical<double, 53>(random_) < p; }
  Duration upto(Duration d) { return Duration(static_cast<Duration::rep>(random_() % std::uint64_t(d.count() + 1))); }
  void wrong(const std::string& what) {
    if (violation.empty()) violation = what + " after " + std::to_string((now_ - begun_) / 1ms) + " ms";
  }
  void later(Duration d, std::function<void()> happen) { events_.push({now_ + d, ++order_, std::move(happen)}); }

  // ---- clocks ----

  Time clock(const Process& p) const {
    return p.clock_zero + Duration(static_cast<Duration::rep>(double((now_ - p.true_zero).count()) * p.rate));
  }
  Time true_time(const Process& p, Time at) const {
    if (at == Time::max()) return at;
    return p.true_zero + Duration(static_cast<Duration::rep>(double((at - p.clock_zero).count()) / p.rate) + 1);
  }

  // ---- the loop ----

  Time next_moment() const {
    auto at = events_.empty() ? Time::max() : events_.top().at;
    for (const auto& p : processes_)
      if (p->alive && !p->paused) at = std::min(at, std::max(now_, true_time(*p, p->candidacy->next_alarm())));
    return calm_ ? at : std::min(at, next_trouble_);
  }

  void advance(Time to) {
    now_ = std::max(now_, to);
    store_.now_ms = 1'700'000'000'000 + (now_ - begun_ + store_clock_) / 1ms;
    if (!events_.empty() && events_.top().at <= now_) {
      const auto happen = events_.top().happen;
      events_.pop();
      happen();
    } else if (!calm_ && next_trouble_ <= now_) {
      next_trouble_ = now_ + upto(1500ms);
      trouble();
    } else {
      for (auto& p : processes_) {
        if (!p->alive || p->paused || clock(*p) < p->candidacy->next_alarm()) continue;
        told(*p).tick(clock(*p));
        if (p->candidacy->next_alarm() <= clock(*p)) wrong("an alarm that does not move is a hot loop");
        take(*p);
      }
    }
    judge();
  }

  void trouble() {
    auto& p = *processes_[random_() % processes_.size()];
    const auto kind = random_() % 100;
    const auto election = name(random_() % elections_);
    if (!p.alive) {
      if (kind < 30) begin(p);
    } else if (kind < 8) {
      crash(p);
    } else if (kind < 20) {
      pause(p);
    } else if (kind < 22 && store_.can_lose) {
      store_.lose();
    } else if (kind < 22) {
      store_clock_ = upto(2h) - 1h;  // Its tokens have to rise all the same, and nothing else may rest on it.
    } else if (kind < 23) {
      if (!store_.sessions.empty()) store_.sessions.erase(p.session);
    } else if (kind < 25) {
      store_.forget_cursors();
    } else if (p.paused) {
      return;
    } else if (kind < 40) {
      join(p, election);
    } else if (kind < 50) {
      leave(p, election);
    } else if (kind < 70) {
      resign(p, election, upto(chance(0.3) ? longest_cool_down : 1s));
    } else if (kind < 73) {
      told(p).stop(clock(p));
      p.stopping = true;
    } else if (kind < 76) {
      ask_to_step_down(election);
    } else if (kind < 84) {
      told(p).hand_over(clock(p), election, processes_[random_() % processes_.size()]->name);
    } else if (kind < 88) {
      store_.spoil(election, random_() % 2);
      ++spoils;
    } else if (kind < 90) {
      store_.retire(election);
    } else if (!store_.spoilt.empty()) {
      mend_one();
    }
    if (p.alive && !p.paused) take(p);
  }

  void join(Process& p, const std::string& election) {
    p.joined.insert(election);
    told(p).join(clock(p), election, stall_);
  }
  void leave(Process& p, const std::string& election) {
    p.joined.erase(election);
    p.barred.erase(election);
    p.cool_downs.erase(election);
    told(p).leave(clock(p), election);
  }
  void resign(Process& p, const std::string& election, Duration cool_down) {
    p.barred.erase(election);
    if (p.joined.contains(election)) {
      auto& until = p.cool_downs[election];
      until = std::max(until, clock(p) + cool_down);
    }
    told(p).resign(clock(p), election, cool_down);
  }

  void ask_to_step_down(const std::string& election) {
    const auto it = store_.leads.find(election);
    if (it == store_.leads.end() || store_.spoilt.contains(election)) return;
    it->second.lead.step_down = StepDown{it->second.lead.token, "ops", "drill"};
    it->second.changed = ++store_.version;
    push();
  }

  void mend_one() {
    const std::string election = *store_.spoilt.begin();
    random_() % 2 ? store_.mend(election) : store_.restore(election, random_() % 2);
    push();
  }

  void begin(Process& p) {
    ++p.life;
    p.alive = true;
    p.paused = p.stopping = false;
    p.rate = 1 + timing.clock_rate_error * (std::generate_canonical<double, 53>(random_) * 2 - 1);
    p.clock_zero = Time(upto(1h) + 1h);
    p.true_zero = now_;
    p.led.clear();
    p.begun.clear();
    p.ousting.clear();
    p.joined.clear();
    p.cool_downs.clear();
    p.worked.clear();
    p.barred.clear();
    p.held.clear();
    p.waits.reset();
    p.session = {};
    p.candidacy = std::make_unique<GroupCandidacy>(
        who_text({p.name, ""}, "life" + std::to_string(random_())), timing, [this] { return random_(); },
        Spread{.on = spread_.on, .weight = p.weight});
    for (std::size_t e = 0; e < elections_; ++e)
      if (random_() % 4) join(p, name(e));
    told(p).start(clock(p));
    take(p);
  }

  void crash(Process& p) {
    p.alive = false;
    ++p.life;
    p.led.clear();
  }

  void pause(Process& p) {
    if (std::exchange(p.paused, true)) return;
    later(upto(random_() % 4 ? 3s : 25s), [this, &p, life = p.life] {
      if (p.life == life && p.paused) resume(p);
    });
  }

  void resume(Process& p) {
    p.paused = false;
    for (auto& fact : std::exchange(p.held, {})) fact();
    take(p);
  }

  /// Before each fact it hears of the works that it has to hear of. Some of them do not go on.
  GroupCandidacy& told(Process& p) {
    for (const auto& election : p.candidacy->progress_due(clock(p))) {
      if (calm_ || chance(0.7)) {
        p.worked[election] = clock(p);
        p.barred.erase(election);
      }
      p.candidacy->progressed(election, p.worked[election]);
    }
    return *p.candidacy;
  }

  /// A fact for one life of a process. While it is paused it has to wait.
  void tell(Process& p, int life, std::function<void()> fact) {
    if (p.life != life || !p.alive) return;
    if (p.paused) return p.held.push_back(std::move(fact));
    fact();
    take(p);
  }

  // ---- effects ----

  void take(Process& p) {
    std::vector<GroupEffect> effects;
    p.candidacy->take_effects(effects);
    for (auto& effect : effects) std::visit([&](auto& e) { carry_out(p, e); }, effect);
  }

  void carry_out(Process& p, group_effect::Publish& e) {
    p.session = e.session;
    p.deadline = e.deadline;
    for (auto& [election, work] : p.begun)
      if (work.session == e.session) work.lease_end = e.deadline + own_time;
  }
  void carry_out(Process& p, group_effect::Withdraw&) { p.session = {}; }
  void carry_out(Process& p, group_effect::Lead& e) {
    if (p.led.contains(e.election)) wrong("led while it is led");
    if (!p.joined.contains(e.election)) wrong("led what nobody joined");
    if (const auto it = p.cool_downs.find(e.election); it != p.cool_downs.end() && clock(p) < it->second)
      wrong("led in its cool-down");
    if (const auto it = p.barred.find(e.election); it != p.barred.end() && clock(p) < it->second)
      wrong("led again, and its work stalled");
    p.worked[e.election] = clock(p);
    p.led[e.election] = {e.token, e.session};
    auto& highest = tokens_[e.election];
    if (e.token <= highest) wrong("token " + std::to_string(e.token.value) + " after " + std::to_string(highest.value));
    highest = std::max(highest, e.token);
    ++tenures;
  }
  void carry_out(Process& p, group_effect::Cap& e) {
    if (const auto it = p.led.find(e.election); it != p.led.end()) it->second.cap = e.at;
    if (const auto it = p.begun.find(e.election); it != p.begun.end())
      it->second.cap = e.at == Time::max() ? e.at : e.at + own_time;
  }
  void carry_out(Process& p, group_effect::DoneBy& e) {  // After a pause it may be told behind the return.
    if (const auto it = p.begun.find(e.election); it != p.begun.end()) it->second.done_by = e.at;
  }
  void carry_out(Process& p, group_effect::Unlead& e) { p.led.erase(e.election); }
  void carry_out(Process& p, group_effect::Begin& e) {
    const Work work{.token = e.token, .session = p.session, .lease_end = p.deadline + own_time};
    if (!p.begun.emplace(e.election, work).second) wrong("elected() before ousting() of the last tenure returned");
  }
  void carry_out(Process& p, group_effect::End& e) {
    const auto it = p.begun.find(e.election);
    if (it == p.begun.end() || it->second.token != e.token || !p.ousting.insert(e.election).second)
      wrong("ousting() without elected()");
    if (e.reason == Reason::stalled) {
      ++stalled;
      if (clock(p) < p.worked[e.election] + stall_.after) wrong("stalled, and its work goes on");
      if (p.joined.contains(e.election)) p.barred[e.election] = clock(p) + stall_.pause;
    }
    (e.reason == Reason::lapsed ? expired : superseded) += e.reason == Reason::lapsed || e.reason == Reason::superseded;
    const auto takes = chance(0.1) ? upto(12s) : upto(50ms);
    later(takes, [this, &p, life = p.life, election = e.election] {
      tell(p, life, [this, &p, election] {
        p.begun.erase(election);
        p.ousting.erase(election);
        p.led.erase(election);
        told(p).ousting_returned(clock(p), election);
      });
    });
  }
  void carry_out(Process& p, group_effect::Ended&) {
    if (!p.begun.empty()) wrong("stopped with a tenure");
    p.alive = false;
    ++p.life;
  }
  void carry_out(Process& p, group_effect::Interrupt&) {
    if (p.waits) return awake(p, {});
    later(Duration::zero(),
          [this, &p, life = p.life, q = *p.question] { tell_answer(p, life, q.id, test::no_answer(q)); });
  }
  void carry_out(Process& p, group_effect::Ask& e) { put(p, std::move(e.question)); }
  void carry_out(Process&, group_effect::Report&) {}
  template <class Other>
  void carry_out(Process&, Other&) {}

  // ---- the store ----

  void put(Process& p, GroupQuestion question) {
    if (std::holds_alternative<ask::Await>(question.what)) {
      p.waits = question.id;
      return later(std::max(true_time(p, question.by) - now_, Duration::zero()), [this, &p, id = question.id] {
        if (p.waits == id) awake(p, {});
      });
    }
    p.question = question;
    questions[kind_of(question)]++;
    ++p.asked;
    const auto id = question.id;
    const auto by = true_time(p, question.by);
    const int life = p.life;
    const bool lost = chance(0.03), unheard = chance(0.03);
    const auto there = chance(0.1) ? upto(15s) : upto(20ms);
    if (!lost) {
      const auto effect = [this, &p, question, life, unheard, by] {
        auto answer = carried_out(question);
        const auto back = chance(0.05) ? upto(3s) : upto(20ms);
        const bool overdue = chance(0.01);  // a client library that ignores its limit
        if (unheard || (now_ + back > by && !overdue)) return;
        later(back,
              [this, &p, life, id = question.id, answer = std::move(answer)] { tell_answer(p, life, id, answer); });
      };
      later(there, effect);
      if (chance(0.02)) later(there + upto(4s), [this, question] { carried_out(question); });
    }
    later(std::max(by - now_, Duration::zero()) + 1ms,
          [this, &p, life, id, question] { tell_answer(p, life, id, test::no_answer(question)); });
  }

  static std::string kind_of(const GroupQuestion& question) {
    static const char* const names[] = {"open", "commit", "look", "end", "sweep", "await"};
    return names[question.what.index()];
  }

  GroupAnswer carried_out(const GroupQuestion& q) {
    const auto version = store_.version;
    auto answer = test::carried_out(store_, q, [this] { return random_() | 1; });
    if (store_.version != version || std::holds_alternative<ask::End>(q.what)) push();
    return answer;
  }

  void tell_answer(Process& p, int life, std::uint64_t id, GroupAnswer answer) {
    tell(p, life, [this, &p, id, answer = std::move(answer)] { test::hand(told(p), clock(p), id, answer); });
  }

  /// Whoever waits hears of a change, unless that is lost; and now and then of a release that never was.
  void push() {
    for (auto& p : processes_) {
      if (!p->waits || chance(0.1)) continue;
      std::optional<Release> pushed;
      if (chance(0.1) && !store_.leads.empty()) {
        const auto& [election, kept] = *store_.leads.begin();
        pushed = Release{election, kept.lead.token, std::nullopt};
      }
      later(upto(10ms), [this, &p = *p, id = *p->waits, pushed] {
        if (p.waits == id) awake(p, pushed);
      });
    }
  }

  void awake(Process& p, std::optional<Release> pushed) {
    const auto id = *std::exchange(p.waits, std::nullopt);
    later(Duration::zero(), [this, &p, life = p.life, id, pushed] {
      tell(p, life, [this, &p, id, pushed] { told(p).awaited(clock(p), id, pushed); });
    });
  }

  // ---- the judge ----

  bool leads(const Process& p, const std::string& election) const {
    const auto it = p.led.find(election);
    return p.alive && it != p.led.end() && it->second.session == p.session &&
           clock(p) < std::min(p.deadline, it->second.cap);
  }

  bool works_on(const Process& p, const std::string& election) const {
    const auto it = p.begun.find(election);
    return p.alive && it != p.begun.end() && clock(p) < it->second.until();
  }

  void judge() {
    for (std::size_t e = 0; e < elections_ && violation.empty(); ++e) {
      int leaders = 0;
      for (const auto& p : processes_) leaders += leads(*p, name(e));
      if (leaders > 1) wrong("two leaders of " + name(e));
      int works = 0;
      for (const auto& p : processes_) works += works_on(*p, name(e));
      if (works > 1) wrong("the work of two for " + name(e));
    }
  }

  std::mt19937_64 random_;
  std::size_t elections_;
  Spread spread_;
  StallLimits stall_;
  GroupModel store_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::priority_queue<Event> events_;
  std::uint64_t order_{};
  std::map<std::string, Token> tokens_;
  static constexpr Time begun_{1h};
  Time now_{begun_}, next_trouble_{begun_};
  Duration store_clock_{};
  bool calm_{};
};

/// By the number of runs.
class GroupCandidacySim : public testing::TestWithParam<std::uint64_t> {};

TEST_P(GroupCandidacySim, NeverTwoLeadersTokensRiseHooksComeInPairsAndEveryElectionIsLedAgain) {
  const auto count = GetParam();
  int tenures = 0, expired = 0, superseded = 0, stalled = 0, spoils = 0;
  const bool all = test::for_each_seed(count, [&](std::uint64_t seed) {
    const bool spread = seed % 4, alike = seed % 8 > 3;
    World world(seed, 2 + seed % 3, 1 + seed % 7, seed % 2, spread);
    world.run(3min);
    EXPECT_EQ(world.violation, "");
    world.calm(alike);
    // The longest that anything may take: a lost store's term, another one for a session that died meanwhile, and four
    // before something is given to who let gifts lie.
    world.run(7 * timing.term + longest_cool_down);
    world.busiest();
    const auto moved = world.tenures;
    world.run(timing.term);
    EXPECT_EQ(world.tenures, moved) << "something moves for ever";
    EXPECT_LT(world.busiest(), 20) << "more than renewals";
    EXPECT_EQ(world.violation, "");
    EXPECT_EQ(world.vacant(), 0u);
    EXPECT_TRUE(!(spread && alike) || world.even());
    tenures += world.tenures;
    expired += world.expired;
    superseded += world.superseded;
    stalled += world.stalled;
    spoils += world.spoils;
    if (test::wanted_seed())
      for (const auto& [kind, n] : world.questions) std::printf("%s %d\n", kind.c_str(), n);
  });
  std::printf("%d tenures, %d lapsed, %d superseded, %d stalled, %d spoilt\n", tenures, expired, superseded, stalled,
              spoils);
  if (!all) return;
  EXPECT_GT(tenures, 10 * static_cast<int>(count));
  EXPECT_GT(expired, 0);
  EXPECT_GT(superseded, 0);
  EXPECT_GT(stalled, static_cast<int>(count));
  EXPECT_GT(spoils, static_cast<int>(count));
}

// A sanitizer sees in few runs what it sees in many.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(Quick, GroupCandidacySim, testing::Values(40), testing::PrintToStringParamName());
#else
INSTANTIATE_TEST_SUITE_P(Quick, GroupCandidacySim, testing::Values(150), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Long, GroupCandidacySim, testing::Values(400), testing::PrintToStringParamName());
#endif

}  // namespace
}  // namespace tenure
