// SPDX-License-Identifier: Apache-2.0
// A real Candidacy on the thread of a test, with a store that answers as the test says.
#include <tenure/fake_election.hpp>

#include <algorithm>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/kit/logging.hpp>

#include "election/candidacy.hpp"
#include "election/signals.hpp"
#include "election/validity.hpp"
#include "election/work_thread.hpp"
#include "kit/thrown.hpp"

namespace tenure {
namespace {

/// Longer than any wait of a candidate's own: a cool-down and a term are an hour at most.
constexpr auto longest_wait = std::chrono::hours(3);

constexpr auto fake_election = "fake";

}  // namespace

/// Does what a Shell does, on one thread: facts to the Candidacy, its effects to the hooks. It is the store, too.
class FakeElection::Impl {
 public:
  Impl(Hooks hooks, const Timing& timing)
      : timing_(timing),
        hooks_(std::move(hooks)),
        candidacy_(timing_, 1, stall_limits(hooks_)),
        validity_(std::make_shared<OwnValidity>(clock_)) {
    timing_.validate();
    candidacy_.start(clock_.now());
    settle();
  }

  Impl(LeaderTask::Work work, LeaderTask::OnReturn on_return, Hooks hooks, const Timing& timing)
      : Impl(std::move(hooks), timing) {
    work_ = std::make_unique<WorkThread>(
        std::move(work), on_return,
        WorkThread::Owner{.report = [this](const Error& e) { post([this, e] { report(e); }); },
                          .resign = [this] { post([this] { candidacy_.resign(clock_.now(), std::nullopt); }); }});
  }

  Token elect() {
    if (leads()) fail("elect(): it leads already, with token " + std::to_string(validity_->now().token.value));
    answering("elect()");
    grants_ = true;
    tell_of_change();
    run_until([this, before = begun_] { return begun_ != before; },
              "elect(): the candidate does not claim. Does eligible() say no, or was the election stopped?");
    return last_;
  }

  void oust(const std::string& successor) {
    leading("oust()");
    answering("oust()");
    held_ = false;
    rival_ = Incumbent{.name = successor, .incarnation = successor, .token = Token{++last_.value}};
    rival_until_ = clock_.now() + timing_.term;
    run_until_over("oust()");
  }

  void ask_to_step_down(const std::string& by, const std::string& why) {
    leading("ask_to_step_down()");
    answering("ask_to_step_down()");
    asked_ = StepDownRequested{last_, by, why};
    run_until_over("ask_to_step_down()");
  }

  void fail_store(Error error) { trouble_ = std::move(error), hangs_ = false; }
  void hang_store() { hangs_ = true; }
  void mend_store() { trouble_.reset(), hangs_ = false; }

  void advance(Clock::Duration by) {
    const auto to = clock_.now() + by;
    settle();
    for (auto next = next_event(); next <= to; next = next_event()) pass_to(next);
    pass_to(to);
  }

  void pause(Clock::Duration by) { pass_to(clock_.now() + by); }

  void resign(std::optional<Clock::Duration> cool_down) {
    candidacy_.resign(clock_.now(), cool_down);
    settle();
  }

  void stop() {
    candidacy_.stop(clock_.now());
    if (hook_runs_) return;
    settle();
    for (auto next = next_event(); !ended_ && next != Clock::Time::max(); next = next_event()) pass_to(next);
  }

  void await_work() {
    if (!work_) fail("await_work(): this election has hooks, and no work");
    work_->await_return();
    settle();
  }

  bool leads() const { return bool(validity_->now()); }

  ManualClock& clock() { return clock_; }
  Leadership leadership() const { return Leadership(validity_); }
  const Timing& timing() const { return timing_; }
  bool overran() const { return overran_; }
  Clock::Duration lease() const {
    return held_ ? std::max(lease_end_ - clock_.now(), Clock::Duration::zero()) : Clock::Duration::zero();
  }

 private:
  using HookCall = std::variant<Elected, Ousting, Error>;

  [[noreturn]] static void fail(const std::string& what) { throw std::logic_error("FakeElection::" + what); }

  void leading(const std::string& what) const {
    if (!leads()) fail(what + ": it does not lead; call elect() first");
    if (hook_runs_) fail(what + ": it cannot end a tenure while a hook runs");
  }
  void answering(const std::string& what) const {
    if (hangs_ || trouble_) fail(what + ": the store does not answer; call mend_store() first");
  }

  // ---- time ----

  void settle() {
    while (step()) {
    }
  }

  void pass_to(Clock::Time to) {
    clock_.advance_to(to);
    settle();
  }

  Clock::Time next_event() const {
    return std::min(candidacy_.next_alarm(), question_ ? answer_at_ : Clock::Time::max());
  }

  template <class Condition>
  void run_until(Condition met, const std::string& otherwise) {
    settle();
    const auto patience = clock_.now() + longest_wait;
    while (!met()) {
      const auto next = next_event();
      if (next > patience) fail(otherwise);
      pass_to(next);
    }
  }

  void run_until_over(const std::string& what) {
    run_until([this, before = over_] { return over_ != before; }, what + ": the tenure does not end");
  }

  /// Does one thing that is due. False: nothing is.
  bool step() {
    for (auto& fact : take_posted()) fact();
    candidacy_.progressed(validity_->progressed_at());
    candidacy_.tick(clock_.now());
    std::vector<Effect> effects;
    candidacy_.take_effects(effects);
    for (auto& effect : effects) std::visit([this](auto& e) { carry_out(e); }, effect);
    if (!hook_runs_ && !hook_queue_.empty()) {
      call_next_hook();
      return true;
    }
    if (std::exchange(ask_user_, false)) {
      auto asked = *std::exchange(question_, std::nullopt);  // Nothing answers it meanwhile.
      if (!user_agrees()) {
        candidacy_.ineligible(clock_.now(), asked.id);
        return true;
      }
      question_ = std::move(asked);
    }
    if (!question_ || clock_.now() < answer_at_) return false;
    answer(*std::exchange(question_, std::nullopt));
    return true;
  }

  // ---- effects ----

  void carry_out(effect::Ask& e) {
    lost_ = hangs_;
    ask_user_ = e.question.if_eligible && hooks_.eligible;
    const bool waits = e.question.verb == Verb::await_change && !std::exchange(changed_, false);
    answer_at_ = lost_ || waits ? e.question.by : clock_.now();
    question_ = std::move(e.question);
  }
  void carry_out(effect::Interrupt&) { answer_at_ = clock_.now(); }
  void carry_out(effect::Publish& e) { validity_->publish(e.token, e.deadline); }
  void carry_out(effect::Unlead&) { validity_->withdraw(); }
  void carry_out(effect::Begin& e) {
    signals_ = std::make_shared<Signals>();
    ++begun_;
    hook_queue_.push_back(Elected{fake_election, e.token, signals_->stop.get_token()});
  }
  void carry_out(effect::FireStop&) { signals_->stop.request_stop(); }
  void carry_out(effect::DoneBy& e) { signals_->done_by = e.at.time_since_epoch().count(); }
  void carry_out(effect::End& e) {
    Ousting ousting{fake_election, e.token, e.reason, std::move(e.detail), std::move(e.successor), {}, {}};
    connect(ousting, signals_, clock_);
    hook_queue_.push_back(std::move(ousting));
  }
  void carry_out(effect::FireExpired&) { signals_->expired.request_stop(); }
  void carry_out(effect::Overrun&) { overran_ = true; }
  void carry_out(effect::Report& e) { report(std::move(e.error)); }
  void carry_out(effect::Heard& e) { validity_->hear(std::move(e.incumbent), e.until); }
  void carry_out(effect::Ended&) { ended_ = true; }

  // ---- the store ----

  void tell_of_change() {
    if (question_ && question_->verb == Verb::await_change && !lost_)
      answer_at_ = clock_.now();
    else
      changed_ = true;
  }

  void answer(const Question& q) {
    const auto failed = trouble();
    switch (q.verb) {
      case Verb::acquire:
      case Verb::renew:
        return candidacy_.answered(clock_.now(), q.id,
                                   failed                  ? Unknown{*failed}
                                   : q.verb == Verb::renew ? renew(q)
                                                           : acquire(q));
      case Verb::release:
        if (!failed) held_ = false;
        return candidacy_.released(clock_.now(), q.id, failed);
      case Verb::await_change: return candidacy_.change_awaited(clock_.now(), q.id, std::nullopt);
    }
  }

  std::optional<Error> trouble() const {
    if (lost_) return Error{Fault::timed_out, "the store hangs"};
    return trouble_;
  }

  Answer acquire(const Question& q) {
    if (!std::exchange(grants_, false)) return Denied{rival()};
    rival_.reset();
    asked_.reset();
    held_ = true;
    lease_end_ = q.asked + timing_.term;
    return Granted{Token{++last_.value}};
  }

  Answer renew(const Question& q) {
    if (!held_) return Denied{rival()};
    lease_end_ = q.asked + timing_.term;
    if (auto asked = std::exchange(asked_, std::nullopt)) return *asked;
    return Granted{q.token};
  }

  std::optional<Incumbent> rival() const {
    auto out = rival_;
    if (out) out->remaining = std::max(rival_until_ - clock_.now(), Clock::Duration::zero());
    return out;
  }

  // ---- the user's code ----

  bool user_agrees() {
    bool agrees = false;
    const bool in_hook = std::exchange(hook_runs_, true);
    guarded("eligible", [&] { agrees = hooks_.eligible(); });
    hook_runs_ = in_hook;
    return agrees;
  }

  void call_next_hook() {
    auto call = std::move(hook_queue_.front());
    hook_queue_.pop_front();
    hook_runs_ = true;
    if (const auto* elected = std::get_if<Elected>(&call)) {
      if (work_) work_->begin(*elected);
      if (hooks_.elected) guarded("elected", [&] { hooks_.elected(*elected); });
    } else if (const auto* ousting = std::get_if<Ousting>(&call)) {
      if (work_) work_->await_return();
      if (hooks_.ousting) guarded("ousting", [&] { hooks_.ousting(*ousting); });
      ++over_;
      candidacy_.ousting_returned(clock_.now());
    } else if (hooks_.error) {
      call_error(std::get<Error>(call));
    }
    hook_runs_ = false;
  }

  /// What it throws is no error of the hook, which would be told to it again and again.
  void call_error(const Error& error) {
    try {
      hooks_.error(error);
    } catch (...) {
      tell(hooks_.log, Level::error, "error() itself threw: " + what_was_thrown(), {{"election", fake_election}});
    }
  }

  template <class Call>
  void guarded(const std::string& which, Call call) {
    try {
      call();
    } catch (...) {
      report({Fault::hook_threw, which + "() threw: " + what_was_thrown()});
    }
  }

  void report(Error error) {
    if (hooks_.log || !hooks_.error)
      tell(hooks_.log, Level::warning, std::string(to_string(error.fault)) + ": " + error.message,
           {{"election", fake_election}});
    hook_queue_.push_back(std::move(error));
  }

  // ---- from the thread of the work ----

  void post(std::function<void()> fact) {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(fact));
  }
  std::vector<std::function<void()>> take_posted() {
    const std::lock_guard lock(mutex_);
    return std::exchange(posted_, {});
  }

  ManualClock clock_;
  const Timing timing_;
  const Hooks hooks_;
  Candidacy candidacy_;
  const std::shared_ptr<OwnValidity> validity_;
  std::shared_ptr<Signals> signals_;
  std::deque<HookCall> hook_queue_;
  bool hook_runs_{}, overran_{}, ended_{};
  int begun_{}, over_{};  ///< Tenures.

  std::optional<Question> question_;
  Clock::Time answer_at_{};
  bool ask_user_{}, lost_{};  ///< eligible() comes first; no answer will come.
  bool hangs_{}, grants_{}, held_{}, changed_{};
  std::optional<Error> trouble_;
  Token last_{};
  Clock::Time lease_end_{}, rival_until_{};
  std::optional<Incumbent> rival_;
  std::optional<StepDownRequested> asked_;

  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
  std::unique_ptr<WorkThread> work_;  ///< Last: it uses the rest.
};

FakeElection::FakeElection(Hooks hooks, Timing timing) : impl_(std::make_unique<Impl>(std::move(hooks), timing)) {}

FakeElection::FakeElection(LeaderTask::Work work, LeaderTask::OnReturn on_return, Hooks hooks, Timing timing)
    : impl_(std::make_unique<Impl>(std::move(work), on_return, std::move(hooks), timing)) {}

FakeElection::~FakeElection() {
  try {
    impl_->stop();
  } catch (...) {  // Nothing that a hook throws comes here.
    std::terminate();
  }
}

Token FakeElection::elect() { return impl_->elect(); }
void FakeElection::oust(const std::string& successor) { impl_->oust(successor); }
void FakeElection::ask_to_step_down(const std::string& by, const std::string& why) { impl_->ask_to_step_down(by, why); }

void FakeElection::hang_store() { impl_->hang_store(); }
void FakeElection::fail_store(Error error) { impl_->fail_store(std::move(error)); }
void FakeElection::mend_store() { impl_->mend_store(); }

void FakeElection::advance(Clock::Duration by) { impl_->advance(by); }
void FakeElection::pause(Clock::Duration by) { impl_->pause(by); }
ManualClock& FakeElection::clock() noexcept { return impl_->clock(); }

void FakeElection::resign(std::optional<Clock::Duration> cool_down) { impl_->resign(cool_down); }
void FakeElection::stop() { impl_->stop(); }
void FakeElection::await_work() { impl_->await_work(); }

Leadership FakeElection::leadership() const { return impl_->leadership(); }
const Timing& FakeElection::timing() const noexcept { return impl_->timing(); }
Clock::Duration FakeElection::others_may_lead_in() const { return impl_->lease(); }
bool FakeElection::overran() const noexcept { return impl_->overran(); }

}  // namespace tenure
