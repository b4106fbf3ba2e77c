// SPDX-License-Identifier: Apache-2.0
// Goal: the rules of time and order hold under whatever comes, in whatever order. Method: one Candidacy, a store that
// keeps its lease as it was asked for, rivals that lead from the moment it ends, and facts at random: lost and late
// answers, pauses of the process, wedged calls, resignations, work that stalls. A seed repeats a run. The numbers in
// what it finds wrong are those of the rules in core/README.md.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "election/candidacy.hpp"
#include "seeds.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using Duration = Clock::Duration;
using Time = Clock::Time;

constexpr std::array timings{
    Timing{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s},
    Timing{.term = 30s, .renew = 6s, .retry = 200ms, .margin = 1s, .call = 2s, .drain = 9s},
    Timing{.term = 4s, .renew = 800ms, .retry = 100ms, .margin = 400ms, .call = 300ms, .drain = 8s},
    Timing{.term = 10s, .renew = 1s, .retry = 100ms, .margin = 3s, .call = 500ms, .drain = 0s}};

class World {
 public:
  explicit World(std::uint64_t seed)
      : random_(seed),
        stall_(chance(0.5) ? StallLimits{} : StallLimits{1s + upto(9s), upto(20s)}),
        timing_(any_timing()),
        candidacy_(timing_, seed, stall_) {
    candidacy_.start(now_);
    take();
  }

  void run(int steps) {
    for (int i = 0; i < steps && violation.empty() && !ended_; ++i) step();
  }

  std::string violation;
  int tenures{}, usurpations{}, stalls{};

 private:
  struct Lease {
    bool ours{};
    Token token{};
    Time end{};
  };
  struct Hook {
    bool runs{};  ///< ousting()
    Time done_by{Time::max()}, drain_by{Time::max()};
  };

  bool chance(double p) { return std::generate_canonical<double, 53>(random_) < p; }
  Duration upto(Duration d) { return Duration(static_cast<Duration::rep>(random_() % std::uint64_t(d.count() + 1))); }
  const Timing& any_timing() { return timings[random_() % timings.size()]; }
  void wrong(const std::string& what) {
    if (violation.empty()) violation = what + " after " + std::to_string((now_ - begun) / 1ms) + " ms";
  }

  // ---- time ----

  void step() {
    if (chance(0.03)) return pause();
    auto until = now_ + upto(chance(0.1) ? 3s : 300ms);
    while (candidacy_.next_alarm() <= until && violation.empty()) {
      advance(candidacy_.next_alarm());
      candidacy_.tick(now_);
      take();
    }
    advance(until);
    something();
  }

  /// The process is stopped, the store is not. What comes first thereafter is anything.
  void pause() {
    advance(now_ + upto(chance(0.2) ? 40s : 4s));
    if (excused_ <= worked_ && now_ >= worked_ + stall_.after + LateCall::grace) excused_ = now_;
    if (chance(0.5)) return something();
    candidacy_.tick(now_);
    take();
  }

  void advance(Time to) {
    now_ = std::max(now_, to);
    if (lease_.ours && now_ >= lease_.end && chance(0.5)) usurp();
    if (!lease_.ours && now_ >= lease_.end && chance(0.05)) lease_.end = now_ + upto(8s), ++lease_.token.value;
  }

  void usurp() {
    ++usurpations;
    lease_ = {false, {lease_.token.value + 1}, now_ + upto(8s)};
    if (published_ && now_ < *published_) wrong("it leads beside another (1)");
    if (hook_.runs && now_ < hook_.done_by) wrong("its work may run beside another's (1)");
  }

  void something() {
    if (ended_) return;
    if (chance(0.2)) progress();
    const auto dice = random_() % 100;
    if (dice < 3) {
      resign();
    } else if (dice < 30 && hook_.runs) {
      hook_ = {};
      tenure_.reset();
      candidacy_.ousting_returned(now_);
    } else if (dice == 99 && chance(0.1)) {
      stopped_ = true;
      candidacy_.stop(now_);
    } else if (asked_ && (dice < 85 || chance(0.2))) {
      answer();
    } else {
      candidacy_.tick(now_);
    }
    take();
  }

  void resign() {
    const Duration cool_down = chance(0.3) ? 30min : upto(5s);
    if (tenure_ || may_hold_)
      cool_down_ =
          hook_.runs && barred_to_ == Time{} ? std::max(cool_down_, cool_down) : cool_down;  // from the release on
    else
      pause_to_ = now_ + cool_down;
    if (asked_ && asked_->verb == Verb::await_change) pause_to_ = std::max(pause_to_, now_ + cool_down);
    barred_to_ = {};  // whoever resigns says himself when he campaigns again
    candidacy_.resign(now_, cool_down);
  }

  void progress() {
    candidacy_.progressed(worked_ = now_);
    barred_to_ = {};
  }

  // ---- the store ----

  void answer() {
    const auto q = *std::exchange(asked_, std::nullopt);
    wedged_ = candidacy_.wedged();
    quiet_since_ = now_;
    switch (q.verb) {
      case Verb::acquire: return chance(0.1) ? unfit(q) : acquire(q);
      case Verb::renew: return q.if_eligible && chance(0.03) ? candidacy_.ineligible(now_, q.id) : renew(q);
      case Verb::release: return release(q);
      case Verb::await_change: return candidacy_.change_awaited(now_, q.id, chance(0.2) ? trouble() : std::nullopt);
    }
  }

  static std::optional<Error> trouble() { return Error{Fault::unreachable, "away"}; }

  void unfit(const Question& q) {
    may_hold_ = held_before_;
    candidacy_.ineligible(now_, q.id);
  }

  bool taken() const { return !lease_.ours && now_ < lease_.end; }
  Incumbent holder() const {
    return {.name = "r", .incarnation = "r", .address = {}, .token = lease_.token, .remaining = lease_.end - now_};
  }

  void acquire(const Question& q) {
    if (taken() || chance(0.1)) {
      if (!wedged_) heard_ = std::max(heard_, lease_.token);
      return candidacy_.answered(now_, q.id, Denied{holder()});
    }
    if (chance(0.1)) return candidacy_.answered(now_, q.id, Unknown{*trouble()});
    const Token token{chance(0.03) ? lease_.token.value / 2 : lease_.token.value + 1};
    lease_ = {true, {std::max(lease_.token, token)}, q.asked + timing_.term};
    granted_ = q.asked;
    if (chance(0.1)) return candidacy_.answered(now_, q.id, Unknown{*trouble()});
    if (chance(0.05)) return candidacy_.answered(now_, q.id, StepDownRequested{token, "o", "w"});
    candidacy_.answered(now_, q.id, Granted{token});
  }

  void renew(const Question& q) {
    if (chance(0.01)) lease_.ours = false;  // Somebody tampered with the record.
    refused_ = !lease_.ours;
    if (refused_) return candidacy_.answered(now_, q.id, Denied{holder()});
    if (chance(0.2)) return candidacy_.answered(now_, q.id, Unknown{*trouble()});
    if (tenure_) lease_.end = std::max(lease_.end, q.asked + timing_.term);
    granted_ = q.asked;
    if (chance(0.1)) return candidacy_.answered(now_, q.id, Unknown{*trouble()});
    if (chance(0.03)) return candidacy_.answered(now_, q.id, StepDownRequested{q.token, "o", "w"});
    candidacy_.answered(now_, q.id, Granted{q.token});
  }

  void release(const Question& q) {
    if (hook_.runs) wrong("the store is told before ousting() has returned (4)");
    const bool fails = chance(0.2);
    if (!fails && lease_.ours) lease_ = {false, lease_.token, now_};
    if (!fails && !wedged_) may_hold_ = false;  // What a wedged call brought counts for nothing.
    pause_to_ = std::max(pause_to_, now_ + cool_down_);
    if (!wedged_) cool_down_ = {};
    candidacy_.released(now_, q.id, fails ? trouble() : std::nullopt);
  }

  // ---- the effects, and what must hold of them ----

  void take() {
    candidacy_.take_effects(effects_);
    for (auto& e : effects_) {
      if (ended_) wrong("something happens after the end");
      std::visit([this](auto& one) { on(one); }, e);
    }
    if (ended_ || !violation.empty()) return;
    if (candidacy_.next_alarm() <= now_) wrong("the alarm lies in the past");
    if (!tenure_ && published_) wrong("it leads after ousting() has returned (4)");
    if (watched() && published_ && !hook_.runs && now_ >= stalls_at()) wrong("it leads on, and has stalled");
    if (asked_) return;
    if (renewing() && now_ > quiet_since_ + timing_.renew) wrong("nobody renews (4, 6)");
    if (!tenure_ && candidacy_.next_alarm() > std::max(pause_to_, now_) + 30s) wrong("nobody campaigns");
    if (!tenure_ && stopped_) wrong("stopped, it neither releases nor ends");
  }

  bool watched() const { return stall_.after > 0s; }
  Time stalls_at() const { return std::max(worked_, excused_) + stall_.after; }
  bool renewing() const { return published_ && now_ < *published_ && (!hook_.runs || now_ < hook_.drain_by); }

  void on(effect::Ask& e) {
    if (asked_) wrong("two questions at a time (6)");
    const auto verb = e.question.verb;
    if (tenure_ && verb != Verb::renew) wrong("a campaign beside a tenure");
    if (verb == Verb::acquire && now_ < barred_to_) wrong("it contends, and has stalled");
    if (verb == Verb::acquire) held_before_ = std::exchange(may_hold_, true);
    asked_ = e.question;
  }
  void on(effect::Publish& e) {
    if (e.deadline > granted_ + timing_.term - timing_.margin) wrong("a deadline beyond what was granted (1)");
    if (tenure_ && now_ >= deadline_) wrong("a lapsed tenure comes back (3)");
    published_ = deadline_ = e.deadline;
  }
  void on(effect::Unlead&) { published_.reset(); }
  void on(effect::Begin& e) {
    ++tenures;
    if (tenure_) wrong("elected twice (5)");
    if (e.token <= heard_) wrong("a token that does not rise (3)");
    heard_ = e.token;
    tenure_ = e.token;
    worked_ = now_;
    barred_to_ = {};
    stop_fired_ = refused_ = false;
  }
  void on(effect::FireStop&) {
    if (std::exchange(stop_fired_, true)) wrong("stop fires twice");
  }
  void on(effect::DoneBy& e) {
    hook_.done_by = e.at;
    if (e.at > granted_ + timing_.term - timing_.clock_allowance()) wrong("more time than the lease has (1)");
    if (e.at > hook_.drain_by) wrong("more time than a drain has");
  }
  void on(effect::End& e) {
    if (hook_.runs) wrong("ousted twice (5)");
    if (e.token != tenure_) wrong("ousted without having been elected (5)");
    if (!stop_fired_) wrong("ousting() runs before stop has fired (4)");
    if (e.reason == Reason::lapsed && now_ < deadline_) wrong("it gives up a lease that stands (6)");
    if (e.reason == Reason::superseded && !refused_) wrong("superseded, and nobody said so (6)");
    if (e.reason == Reason::stalled) {
      ++stalls;
      if (!watched() || now_ < stalls_at()) wrong("stalled, and the work goes on, or did not run");
      cool_down_ = stall_.pause;
      barred_to_ = now_ + stall_.pause;
    }
    hook_.runs = true;
    if (voluntary(e.reason)) hook_.drain_by = now_ + timing_.drain;
    if (hook_.done_by > std::max(now_, hook_.drain_by)) wrong("a drain without an end");
  }
  void on(effect::Ended&) { ended_ = true; }
  template <class E>
  void on(E&) {}

  static constexpr Time begun{1h};
  std::mt19937_64 random_;
  const StallLimits stall_;
  const Timing timing_;
  Candidacy candidacy_;
  Time now_{begun}, granted_{}, deadline_{}, quiet_since_{begun}, pause_to_{};
  Time worked_{}, excused_{}, barred_to_{};
  Lease lease_{.token = {100}};
  Hook hook_;
  std::optional<Question> asked_;
  std::optional<Time> published_;
  std::optional<Token> tenure_;
  Token heard_{};
  Duration cool_down_{};
  bool may_hold_{}, held_before_{}, wedged_{}, stopped_{}, ended_{};
  bool stop_fired_{}, refused_{};  ///< Of this tenure.
  std::vector<Effect> effects_;
};

/// By the number of runs.
class CandidacySim : public testing::TestWithParam<int> {};

TEST_P(CandidacySim, NeverTwoLeadersNeverTooLongNeverInAHurryNeverForgotten) {
  const int runs = GetParam();
  int tenures = 0, usurpations = 0, stalls = 0;
  const bool all = test::for_each_seed(static_cast<std::uint64_t>(runs), [&](std::uint64_t seed) {
    World world(seed);
    world.run(1000);
    EXPECT_EQ(world.violation, "");
    tenures += world.tenures;
    usurpations += world.usurpations;
    stalls += world.stalls;
  });
  std::cout << tenures << " tenures, " << usurpations << " usurpations, " << stalls << " stalls\n";
  if (!all) return;
  EXPECT_GT(tenures, 5 * runs) << "nothing was tried";
  EXPECT_GT(usurpations, runs);
  EXPECT_GT(stalls, runs);
}

// A sanitizer sees in few runs what it sees in many.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(Quick, CandidacySim, testing::Values(200), testing::PrintToStringParamName());
#else
INSTANTIATE_TEST_SUITE_P(Quick, CandidacySim, testing::Values(1000), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Long, CandidacySim, testing::Values(2000), testing::PrintToStringParamName());
#endif

}  // namespace
}  // namespace tenure
