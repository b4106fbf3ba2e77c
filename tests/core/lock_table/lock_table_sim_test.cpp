// SPDX-License-Identifier: Apache-2.0
// Goal: no overlap of leases and rising tokens, whatever a network, a store's clock, pauses, crashes and
// copies do. Method: simulation of several LockTableDecisions over one store in true time, each with a clock
// of its own rate. The driver believes every answer of the decisions: what they get wrong, the checker sees.
// A seed repeats a run.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <set>

#include <tenure/kit/who.hpp>

#include "lock_table/lock_table_decisions.hpp"
#include "seeds.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using Duration = Clock::Duration;
using Time = Clock::Time;  // of a candidate's clock
using True = Duration;     // since the simulation began
constexpr double rho = 0.01;

struct Faults {
  double lose{}, slow{}, twice{};                    ///< per message
  double pause{}, crash{}, copy{}, step{}, flush{};  ///< per second
  double resign{}, give_up{};                        ///< per renewal; per unanswered claim
  double push{1}, forge{};                           ///< per release and follower; per second
  bool same_clock{}, absence_certain{true}, mixed_terms{}, extreme_rates{};
};

class World {
 public:
  World(std::uint64_t seed, const Faults& faults) : random_(seed), faults_(faults) {
    const int candidates = 2 + static_cast<int>(random_() % 2);
    for (int i = 0; i < candidates; ++i) start(add_process());
    if (faults_.step > 0)
      disturb(faults_.step, [this] { store_step_ms_ += std::int64_t(random_() % 7'200'001) - 3'600'000; });
    if (faults_.flush > 0) disturb(faults_.flush, [this] { flush(); });
    if (faults_.pause > 0) disturb(faults_.pause, [this] { any().paused_until = now_ + between(50ms, 2500ms); });
    if (faults_.crash > 0) disturb(faults_.crash, [this] { crash(any()); });
    if (faults_.copy > 0) disturb(faults_.copy, [this] { copy(any()); });
    if (faults_.forge > 0) disturb(faults_.forge, [this] { forge(any()); });
  }

  void run(True until) {
    while (!events_.empty() && events_.top().at <= until) {
      auto event = events_.top();
      events_.pop();
      now_ = event.at;
      event.act();
    }
    now_ = until;
  }

  void heal() { healed_ = true; }
  bool somebody_leads() const {
    for (const auto& p : processes_)
      if (p->lease_end > now_) return true;
    return false;
  }

  std::vector<std::string> violations;
  int tenures{}, successions{}, events_handled{};

 private:
  struct Process {
    explicit Process(LockTableDecisions d) : decisions(std::move(d)) {}
    LockTableDecisions decisions;
    Timing timing{}, led_by{};
    double rate{1};
    Time base{};
    int life{};            ///< Counts crashes: events of an earlier life mean nothing.
    std::uint64_t call{};  ///< Answers to earlier calls are not waited for.
    bool between_calls{true};
    bool quiet{};  ///< Released: until the next claim nothing of it may take effect.
    Token token{};
    std::optional<Version> pushed{};
    bool waits{};
    int wait{};  ///< Counts waits: a push ends one before its time.
    True paused_until{}, lease_end{};
    std::string name;
  };
  struct Event {
    True at;
    std::uint64_t order;
    std::function<void()> act;
    bool operator<(const Event& o) const { return std::tie(at, order) > std::tie(o.at, o.order); }
  };
  using Then = std::function<void()>;

  double unit() { return std::generate_canonical<double, 53>(random_); }
  bool chance(double p) { return !healed_ && unit() < p; }
  Duration between(Duration a, Duration b) {
    return a + Duration(static_cast<Duration::rep>(unit() * double((b - a).count())));
  }
  Process& any() { return *processes_[random_() % processes_.size()]; }

  Time local(const Process& p) const { return p.base + Duration(std::llround(double(now_.count()) * p.rate)); }
  True in_truth(const Process& p, Time t) const { return True(std::llround(double((t - p.base).count()) / p.rate)); }

  void at(True when, Then act) { events_.push({std::max(when, now_), ++order_, std::move(act)}); }

  /// As the process itself: not while it is paused, not after it crashed.
  void as(Process& p, True when, Then act) {
    at(when, [this, &p, life = p.life, act = std::move(act)] {
      if (p.life != life) return;
      if (p.paused_until > now_) return as(p, p.paused_until, act);
      ++events_handled;
      act();
    });
  }
  void after(Process& p, Duration pause, Then act) { as(p, in_truth(p, local(p) + pause) + 1ns, std::move(act)); }

  void disturb(double per_second, Then act) {
    at(now_ + Duration(static_cast<Duration::rep>(-std::log(1 - unit()) / per_second * 1e9)), [this, per_second, act] {
      if (healed_) return;
      act();
      disturb(per_second, act);
    });
  }

  Timing timing() {
    auto t = Timing::of(1s);
    if (faults_.mixed_terms) t = Timing::of(std::array{700ms, 1000ms, 1600ms}[random_() % 3]);
    t.clock_rate_error = rho;
    t.validate();
    return t;
  }

  Process& add_process() {
    const auto t = timing();
    auto& p = *processes_.emplace_back(std::make_unique<Process>(LockTableDecisions(new_who("p"), t)));
    p.timing = t;
    p.name = "p" + std::to_string(processes_.size());
    if (faults_.same_clock) {
      p.base = Time{1h};
    } else {
      p.base = Time{between(0s, 1000h)};
      p.rate = 1 + rho * (faults_.extreme_rates ? (random_() % 2 ? 1 : -1) : 2 * unit() - 1);
    }
    return p;
  }

  std::string new_who(const std::string& name) { return who_text({name, ""}, std::to_string(random_())); }

  void start(Process& p) {
    after(p, between(0s, 300ms), [this, &p] { acquire(p); });
  }

  void crash(Process& p) {
    ++p.life;
    p.quiet = false;
    p.between_calls = true;
    p.waits = false;
    p.pushed.reset();
    p.lease_end = {};
    p.paused_until = now_ + between(1ms, 2s);
    p.timing = timing();
    p.decisions = LockTableDecisions(new_who(p.name), p.timing);
    as(p, p.paused_until, [this, &p] { acquire(p); });
  }

  /// A follower's machine is copied. (Of a leader's copies both lead until one is refused: not promised.)
  void copy(Process& p) {
    if (p.lease_end > now_ || !p.between_calls || processes_.size() >= 4) return;
    auto& q = *processes_.emplace_back(std::make_unique<Process>(p));
    q.name += "'";
    q.waits = false;  // it begins by itself, below
    q.quiet = false;  // what the original sends counts for the original
    p.quiet = false;
    start(q);
  }

  // ---- the network and the store ----

  void flush() { record_.reset(); }

  Duration delay() { return chance(faults_.slow) ? between(20ms, 1500ms) : between(200us, 4ms); }

  /// Sends `apply` to the store, once or twice, and hands its answer, or an error when the time is over, to `then`.
  template <class T>
  void call(Process& p, std::function<Result<T>(Process&)> apply, std::function<void(const Result<T>&)> then) {
    const auto id = ++p.call;
    p.between_calls = false;
    const auto answered = [&p, id, then = std::move(then)](const Result<T>& result) {
      if (p.call != id) return;
      ++p.call;
      p.between_calls = true;
      then(result);
    };
    if (!chance(faults_.lose))
      at(now_ + delay(), [this, &p, life = p.life, apply, answered] {
        const auto result = apply(p);
        if (p.life == life && !chance(faults_.lose)) as(p, now_ + delay(), [answered, result] { answered(result); });
      });
    if (chance(faults_.twice)) at(now_ + between(1ms, 3s), [&p, apply] { (void)apply(p); });
    after(p, p.timing.call, [answered] { answered(Error{Fault::timed_out, "no answer"}); });
  }

  Read found() const {
    return {.record = record_,
            .now_ms = now_ms(),
            .same_clock = faults_.same_clock,
            .absence_certain = faults_.absence_certain};
  }
  std::int64_t now_ms() const { return 1'700'000'000'000 + now_ / 1ms + store_step_ms_; }

  /// `life`: in which it was sent. What a crashed one sent counts for nobody's release.
  Result<Swap> swap(Process& p, const LockTableDecisions::Attempt& attempt, int life) {
    const auto& e = attempt.expected;
    const bool applies = e ? record_ && record_->token == e->token &&
                                 std::count(e->beats.begin(), e->beats.end(), record_->beat) > 0 &&
                                 (record_->released || !e->released)
                           : !record_;
    if (applies) {
      if (p.quiet && p.life == life && !attempt.next.released && faults_.flush == 0)
        violation(p, "its late claim took effect after its release");
      record_ = attempt.next;
      record_->written_ms = now_ms();
      if (record_->released) publish();
    }
    return Swap{applies, found()};
  }

  /// That it was released, to all, each soon or late, and perhaps twice.
  void publish() {
    for (auto& p : processes_)
      for (int times = 1 + chance(faults_.twice); times > 0; --times)
        if (unit() < faults_.push) push(*p, {record_->token, record_->beat}, delay());
  }

  /// Says that a record was released, which may stand, and may have a holder.
  void forge(Process& p) {
    if (!record_) return;
    push(p, {{record_->token.value - (random_() % 4 == 0)}, record_->beat + (random_() % 4 == 0)}, {});
  }

  void push(Process& p, Version version, Duration later) {
    as(p, now_ + later, [this, &p, version] {
      p.pushed = version;
      if (std::exchange(p.waits, false)) acquire(p);
    });
  }

  void write(Process& p, const LockTableDecisions::Attempt& attempt, std::function<void(const Result<Swap>&)> then) {
    call<Swap>(
        p, [this, attempt, life = p.life](Process& q) { return swap(q, attempt, life); }, std::move(then));
  }

  // ---- a candidate ----

  void acquire(Process& p) {
    const auto asked = local(p);
    p.waits = false;
    if (const auto pushed = std::exchange(p.pushed, std::nullopt))
      if (const auto attempt = p.decisions.succession(*pushed, asked, random_())) {
        ++successions;
        p.quiet = false;
        return write(p, *attempt, [this, &p, asked](const Result<Swap>& swapped) { claimed(p, asked, swapped); });
      }
    call<Read>(
        p, [this](Process&) { return Result<Read>(found()); },
        [this, &p, asked](const Result<Read>& result) {
          if (!result) return pause(p);
          auto& d = p.decisions;
          d.saw(*result, local(p));
          if (d.copied()) d.become(new_who(p.name));
          (void)d.take_alarm();
          const auto attempt = d.claim(asked, local(p), random_());
          if (!attempt) {
            auto wait = std::min(d.next_look() - local(p), p.timing.term);
            if (chance(0.3)) wait = between(0s, wait);  // pushed
            return await(p, std::max(wait, Duration(1ms)));
          }
          p.quiet = false;
          write(p, *attempt, [this, &p, asked](const Result<Swap>& swapped) { claimed(p, asked, swapped); });
        });
  }

  void await(Process& p, Duration wait) {
    p.waits = true;
    after(p, wait, [this, &p, wait = ++p.wait] {
      if (p.waits && p.wait == wait) acquire(p);
    });
  }

  void pause(Process& p) {
    after(p, between(p.timing.retry / 2, p.timing.retry), [this, &p] { acquire(p); });
  }

  void claimed(Process& p, Time asked, const Result<Swap>& result) {
    const auto answer = p.decisions.claimed(result, local(p));
    if (p.decisions.copied()) p.decisions.become(new_who(p.name));
    if (const auto* granted = std::get_if<Granted>(&answer)) {
      ++tenures;
      if (granted->token <= highest_) violation(p, "its token does not rise");
      highest_ = std::max(highest_, granted->token);
      p.token = granted->token;
      p.led_by = p.timing;
      hold(p, asked);
      return renew_at(p, asked + p.timing.renew);
    }
    if (std::holds_alternative<Unknown>(answer) && chance(faults_.give_up)) return release(p, 3);
    pause(p);
  }

  void hold(Process& p, Time asked) {
    for (const auto& q : processes_)
      if (q.get() != &p && q->lease_end > now_)
        violation(p, "leads while " + q->name + " may lead for " +
                         std::to_string(std::chrono::duration<double>(q->lease_end - now_).count()) + " s");
    p.lease_end = in_truth(p, asked + p.led_by.term - p.led_by.clock_allowance());
  }

  void renew_at(Process& p, Time when) {
    after(p, std::max(when - local(p), Duration::zero()), [this, &p] { renew(p); });
  }

  void renew(Process& p) {
    const auto asked = local(p);
    const auto attempt = p.decisions.renewal(p.token, asked, random_());
    if (!attempt || chance(faults_.resign)) {
      const bool resigns = attempt.has_value();
      if (!resigns) return pause(p);  // lapsed: what runs until the lease's end is still counted
      p.lease_end = now_;
      return release(p, 3);
    }
    write(p, *attempt, [this, &p, asked](const Result<Swap>& result) {
      const auto answer = p.decisions.renewed(result, local(p));
      if (std::holds_alternative<Granted>(answer)) {
        hold(p, asked);
        return renew_at(p, asked + p.timing.renew);
      }
      if (std::holds_alternative<Unknown>(answer)) return renew_at(p, local(p) + p.timing.retry);
      p.lease_end = now_;
      pause(p);
    });
  }

  void release(Process& p, int attempts) {
    const auto attempt = p.decisions.surrender(local(p), random_());
    if (!attempt || attempts == 0) {
      p.quiet = !attempt;
      return after(p, between(0s, 2s), [this, &p] { acquire(p); });
    }
    write(p, *attempt, [this, &p, attempts](const Result<Swap>& result) {
      release(p, p.decisions.surrendered(result, local(p)) ? attempts - 1 : attempts);
    });
  }

  void violation(const Process& p, const std::string& what) {
    violations.push_back(std::to_string(std::chrono::duration<double>(now_).count()) + " s: " + p.name + " " + what);
  }

  std::mt19937_64 random_;
  Faults faults_;
  bool healed_{};
  True now_{};
  std::uint64_t order_{};
  std::priority_queue<Event> events_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::optional<Record> record_;
  std::int64_t store_step_ms_{};
  Token highest_{};
};

struct Scenario {
  const char* name;
  Faults faults;
  int runs;
  friend std::ostream& operator<<(std::ostream& out, const Scenario& s) { return out << s.name; }
};

class LockTableSim : public testing::TestWithParam<Scenario> {};

TEST_P(LockTableSim, LeasesNeverOverlapAndTokensRise) {
  const auto& [name, faults, runs] = GetParam();
  int tenures = 0, successions = 0;
  const bool all = test::for_each_seed(static_cast<std::uint64_t>(runs), [&, &disturbed = faults](std::uint64_t seed) {
    World world(seed, disturbed);
    world.run(40s);
    world.heal();
    world.run(50s);
    tenures += world.tenures;
    successions += world.successions;
    ASSERT_TRUE(world.violations.empty()) << "at " << world.violations.front();
    ASSERT_TRUE(world.somebody_leads()) << "nobody leads ten terms after the last fault";
  });
  std::cout << name << ": " << tenures << " tenures, " << successions << " claims on a push\n";
  if (!all) return;
  EXPECT_GE(tenures, runs) << "nothing was tried";
}

/// All of them, with one in `share` of their runs.
std::vector<Scenario> scenarios(int share) {
  std::vector<Scenario> all{
      Scenario{"calm", {.pause = 0.02, .extreme_rates = true}, 250},
      Scenario{"network", {.lose = 0.1, .slow = 0.1, .twice = 0.1, .pause = 0.1, .give_up = 0.3}, 300},
      Scenario{"bad_network", {.lose = 0.3, .slow = 0.3, .twice = 0.3, .resign = 0.1, .give_up = 0.3}, 300},
      Scenario{"processes", {.slow = 0.05, .pause = 0.5, .crash = 0.3, .resign = 0.05}, 300},
      Scenario{"clocks", {.slow = 0.1, .pause = 0.3, .step = 1, .extreme_rates = true}, 300},
      Scenario{"copies", {.lose = 0.05, .slow = 0.05, .pause = 0.3, .crash = 0.1, .copy = 0.5, .resign = 0.05}, 300},
      Scenario{
          "one_host", {.slow = 0.2, .twice = 0.1, .pause = 0.5, .crash = 0.2, .resign = 0.05, .same_clock = true}, 300},
      Scenario{"cache",
               {.lose = 0.05, .slow = 0.1, .pause = 0.2, .crash = 0.05, .flush = 0.2, .absence_certain = false},
               300},
      Scenario{"settings", {.lose = 0.05, .slow = 0.1, .pause = 0.5, .crash = 0.2, .mixed_terms = true}, 300},
      Scenario{"pushes", {.slow = 0.3, .twice = 0.3, .pause = 0.1, .resign = 0.3, .give_up = 0.3, .forge = 3}, 300},
      Scenario{"everything",
               {.lose = 0.1,
                .slow = 0.1,
                .twice = 0.1,
                .pause = 0.3,
                .crash = 0.2,
                .copy = 0.1,
                .step = 0.3,
                .resign = 0.05,
                .give_up = 0.3,
                .push = 0.7,
                .forge = 0.3,
                .mixed_terms = true,
                .extreme_rates = true},
               500}};
  for (auto& scenario : all) scenario.runs /= share;
  return all;
}

const auto name_of = [](const auto& scenario) { return scenario.param.name; };

// A sanitizer sees in few runs what it sees in many.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(Quick, LockTableSim, testing::ValuesIn(scenarios(10)), name_of);
#else
INSTANTIATE_TEST_SUITE_P(Quick, LockTableSim, testing::ValuesIn(scenarios(4)), name_of);
INSTANTIATE_TEST_SUITE_P(Long, LockTableSim, testing::ValuesIn(scenarios(1)), name_of);
#endif

}  // namespace
}  // namespace tenure
