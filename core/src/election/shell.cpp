// SPDX-License-Identifier: Apache-2.0
// Carries facts to the Candidacy, and its effects out: the loops of the threads.
#include "election/shell.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/logging.hpp>

#include "kit/random.hpp"
#include "kit/start_together.hpp"
#include "kit/thrown.hpp"

namespace tenure {
namespace {

/// So many errors wait for a hook that leads. More are dropped; the log has them all.
constexpr std::size_t max_queued_hooks = 256;

/// As metrics name it. A wait for a change is no call whose duration tells anything.
const char* counted_as(Verb verb) {
  switch (verb) {
    case Verb::acquire: return "acquire";
    case Verb::renew: return "renew";
    case Verb::release: return "release";
    case Verb::await_change: break;
  }
  return nullptr;
}

std::optional<Fault> fault_of(const Answer& answer) {
  const auto* unknown = std::get_if<Unknown>(&answer);
  return unknown ? std::optional(unknown->error.fault) : std::nullopt;
}

bool grants(const Answer& answer) {
  return std::holds_alternative<Granted>(answer) || std::holds_alternative<StepDownRequested>(answer);
}

}  // namespace

LeaderManager::Shell::Shell(std::shared_ptr<Backend> backend, const Timing& timing, Hooks hooks, Clock& clock)
    : validity(std::make_shared<OwnValidity>(clock)),
      waiters(clock),
      backend_(std::move(backend)),
      hooks_(std::move(hooks)),
      clock_(clock),
      election_(backend_ ? backend_->election() : std::string()),
      tally_(election_, timing, {"acquire", "renew", "release"}),
      candidacy_(validated(timing), random_u64(), stall_limits(hooks_)),
      clock_wakes_(clock.make_waker()) {
  effects_.reserve(32);
  if (!backend_) throw std::invalid_argument("LeaderManager: backend is null");
  if (const auto refused = backend_->accepts(timing)) throw std::invalid_argument("Timing: " + refused->message);
}

void LeaderManager::Shell::start() {
  if (forked())
    throw std::logic_error(
        "LeaderManager::start() in a forked child of the process that made the manager: two would be one candidate. "
        "Make the manager after the fork");
  const std::lock_guard lock(mutex_);
  if (started_ || ended_) return;
  inbox_.reserve(inbox_.size() + 1);  // Nothing may throw once the threads run: start() could not be called again.
  start_threads();
  started_ = true;
  inbox_.push_back([](Candidacy& c, Clock::Time now) { c.start(now); });
  due_ = clock_.now();
  clock_wakes_->wake();
}

void LeaderManager::Shell::start_threads() {
  const auto self = shared_from_this();
  start_together({{"tenure-clock", [self] { self->clock_loop(); }},
                  {"tenure-work", [self] { self->work_loop(self->workers_[0]); }},
                  {"tenure-work", [self] { self->work_loop(self->workers_[1]); }}},
                 [this](std::vector<std::thread> threads) {
                   clock_thread_ = std::move(threads[0]);
                   workers_[0].thread = std::move(threads[1]);
                   workers_[1].thread = std::move(threads[2]);
                 });
}

/// Allocates no descriptor and no thread.
void LeaderManager::Shell::stop() {
  if (forked()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!started_) ended_ = true;
  }
  waiters.wake();
  post([](Candidacy& c, Clock::Time now) { c.stop(now); });
  if (on_own_thread()) return;
  std::unique_lock lock(mutex_);
  end_wakes_.wait(lock, [this] { return ended(); });
}

void LeaderManager::Shell::join() {
  if (clock_thread_.joinable()) clock_thread_.join();
  const auto* const wedged = [this] {
    const std::lock_guard lock(mutex_);
    return store_wedged_ ? asker_ : nullptr;
  }();
  if (wedged) {  // The thread that is left behind may outlive the clock.
    clock_wakes_.reset();
    waiters.give_up_clock();
  }
  for (auto& worker : workers_) {
    if (&worker == wedged)
      leave_behind(std::move(worker.thread));
    else if (worker.thread.joinable())
      worker.thread.join();
  }
}

void LeaderManager::Shell::post(Fact fact) {
  if (forked()) return;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  inbox_.push_back(std::move(fact));
  if (!decided_) due_ = std::min(due_, clock_.now());
  if (deciding_) return;
  if (idle_ > 0)
    work_wakes_.notify_one();
  else
    clock_wakes_->wake();
}

Metrics LeaderManager::Shell::metrics() const {
  if (forked()) return {};
  const auto now = clock_.now();
  const auto leads = validity->now();
  auto out = tally_.snapshot(leads.remaining, now);
  if (leads) out.token = leads.token;
  out.is_leader = out.token.has_value();
  const std::lock_guard lock(mutex_);
  if (!ended()) out.overdue = late(due_, now);
  out.wedged = late(answer_by_, now);
  out.overrun = late(work_by_, now);
  if (progressed_at_ && out.is_leader)
    out.since_progress = late(std::max(*progressed_at_, validity->progressed_at()), now);
  out.stalled = stalled_;
  return out;
}

std::optional<Error> LeaderManager::Shell::last_error() const {
  if (forked()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return last_error_ ? std::optional(*last_error_) : std::nullopt;
}

bool LeaderManager::Shell::on_own_thread() const {
  const auto self = std::this_thread::get_id();
  return self == clock_id_ || self == workers_[0].id || self == workers_[1].id || self == guest_id_;
}

// ---- deciding: whoever brings a fact, unless another thread is at it, which then takes this one along ----

/// Decides on all facts that have come, and on the time. No lock is held while effects are carried out, so that a stop
/// callback may call anything, and no thread of ours waits for another.
void LeaderManager::Shell::decide(std::unique_lock<std::mutex>& lock) {
  if (deciding_ || decided_) return;
  deciding_ = true;
  due_ = std::min(due_, clock_.now());
  do {
    facts_.swap(inbox_);
    lock.unlock();
    for (auto& fact : facts_) consider(fact);
    facts_.clear();
    consider([](Candidacy& c, Clock::Time now) { c.tick(now); });
    candidacy_.take_effects(effects_);
    lock.lock();
    remember();
    lock.unlock();
    for (auto& effect : effects_) carry_out(effect);
    lock.lock();
    decided_ = candidacy_.ended();
  } while (!decided_ && !inbox_.empty());
  deciding_ = false;
  due_ = candidacy_.next_alarm();
  clock_wakes_->set(candidacy_.next_alarm());
  if (decided_) clock_wakes_->wake();
}

/// What the work told comes before it: every fact decides whether the work has stalled.
void LeaderManager::Shell::consider(const Fact& fact) {
  candidacy_.progressed(validity->progressed_at());
  fact(candidacy_, clock_.now());
}

/// For metrics() and last_error(). It comes before the effects: who sees that we lead sees what belongs to that tenure.
void LeaderManager::Shell::remember() {
  answer_by_ = candidacy_.answer_by();
  work_by_ = candidacy_.work_by();
  progressed_at_ = candidacy_.progressed_at();
  stalled_ = candidacy_.stalled();
  last_error_ = candidacy_.last_error();
}

// ---- the clock thread: sees to every timer; never enters the store or a hook ----

void LeaderManager::Shell::clock_loop() {
  clock_id_ = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  for (;;) {
    decide(lock);
    if (decided_) return;
    pass_on();
    if (deciding_) clock_wakes_->set(Clock::Time::max());  // The decider sets the next one.
    lock.unlock();
    clock_wakes_->wait();
    lock.lock();
  }
}

void LeaderManager::Shell::carry_out(Effect& any) {
  struct Carrier {
    Shell& s;
    void operator()(effect::Ask& e) { s.ask(std::move(e.question)); }
    void operator()(effect::Interrupt&) { s.interrupt_.request_stop(); }
    void operator()(effect::Publish& e) {
      if (std::exchange(s.published_, e.token) != e.token) s.tally_.elected();  // Who sees the tenure sees it counted.
      s.validity->publish(e.token, e.deadline);
    }
    void operator()(effect::Withdraw&) { s.validity->withdraw(); }
    void operator()(effect::Begin& e) {
      s.signals_ = std::make_shared<Signals>();
      s.log(Level::info, "elected", e.token);
      s.queue_hook(Elected{s.election_, e.token, s.signals_->stop.get_token()});
      s.waiters.changed();
    }
    void operator()(effect::FireStop&) { s.signals_->stop.request_stop(); }
    void operator()(effect::DoneBy& e) { s.signals_->done_by = e.at.time_since_epoch().count(); }
    void operator()(effect::End& e) { s.end(e); }
    void operator()(effect::FireExpired&) { s.signals_->expired.request_stop(); }
    void operator()(effect::Overrun&) { s.overran(); }
    void operator()(effect::Report& e) { s.report(std::move(e.error)); }
    void operator()(effect::Heard& e) {
      const auto token = e.incumbent ? std::optional(e.incumbent->token) : std::nullopt;
      s.validity->hear(std::move(e.incumbent), e.until);
      if (std::exchange(s.heard_, token) != token) s.waiters.changed();
    }
    void operator()(effect::Ended& e) {
      const std::lock_guard lock(s.mutex_);
      s.store_wedged_ = e.store_wedged;
      s.quit_ = true;
      s.work_wakes_.notify_all();
    }
  };
  std::visit(Carrier{*this}, any);
}

void LeaderManager::Shell::ask(Question question) {
  interrupt_ = std::stop_source();
  const std::lock_guard lock(mutex_);
  asked_.emplace(std::move(question), interrupt_.get_token());
}

void LeaderManager::Shell::end(effect::End& e) {
  tally_.ousted(e.reason);
  log(Level::info, "ousting: " + std::string(to_string(e.reason)) + (e.detail.empty() ? "" : ", ") + e.detail, e.token);
  queue_hook(ousting_of(e, election_, signals_, clock_));
  waiters.changed();
}

void LeaderManager::Shell::overran() const {
  if (!hooks_.abort_on_overrun) return;
  std::fputs("tenure: ousting() had not returned when its time was up; ending the process, as asked\n", stderr);
  std::abort();
}

void LeaderManager::Shell::log(Level level, const std::string& message, std::optional<Token> token) const {
  if (token)
    tell(hooks_.log, level, message, {{"election", election_}, {"token", std::to_string(token->value)}});
  else
    tell(hooks_.log, level, message, {{"election", election_}});
}

// ---- the workers: one may block in the store, the other in a hook ----

void LeaderManager::Shell::work_loop(Worker& self) {
  self.id = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  for (;;) {
    if (undecided()) {
      decide(lock);
    } else if (hook_ready()) {
      call_next_hook(lock);
    } else if (question_ready()) {
      put_question(lock, self);
    } else if (quit_) {
      break;
    } else {
      ++idle_;
      work_wakes_.wait(lock);
      --idle_;
    }
  }
  if (hook_runs_ || asks_user_ || ended_.exchange(true)) return;
  end_wakes_.notify_all();
  lock.unlock();
  waiters.changed();
}

/// One worker takes one thing. The other one is told if something is left.
void LeaderManager::Shell::pass_on() {
  if (idle_ > 0 && (undecided() || hook_ready() || question_ready())) work_wakes_.notify_one();
}

void LeaderManager::Shell::put_question(std::unique_lock<std::mutex>& lock, Worker& self) {
  auto [question, interrupted] = std::move(*asked_);
  asked_.reset();
  asker_ = &self;
  pass_on();
  lock.unlock();
  auto answer = answer_to(question, std::move(interrupted));
  lock.lock();
  asker_ = nullptr;
  answer_by_ = Clock::Time::max();
  inbox_.push_back(std::move(answer));
}

LeaderManager::Shell::Fact LeaderManager::Shell::answer_to(const Question& q, std::stop_token interrupted) {
  const auto id = q.id;
  if (q.if_eligible && hooks_.eligible && !user_agrees())
    return [id](Candidacy& c, Clock::Time now) { c.ineligible(now, id); };
  return answer_of_store(q, {clock_, q.by, std::move(interrupted)});
}

LeaderManager::Shell::Fact LeaderManager::Shell::answer_of_store(const Question& q, const Limit& limit) {
  const auto id = q.id;
  const auto began = clock_.now();
  // The clock may be gone by the end of a call that was left behind. Until somebody sees, under the lock, that all is
  // over, it is there.
  const auto count = [&](std::optional<Fault> fault) {
    const std::lock_guard lock(mutex_);
    if (const auto* verb = counted_as(q.verb); verb && !ended())
      tally_.call_returned(verb, clock_.now() - began, fault);
  };
  const auto unknown = [] { return Error{Fault::unreachable, "the backend threw: " + what_was_thrown()}; };
  if (q.verb == Verb::release) {
    std::optional<Error> error;
    try {
      error = backend_->release(limit);
    } catch (...) {
      error = unknown();
    }
    count(error ? std::optional(error->fault) : std::nullopt);
    return [id, error](Candidacy& c, Clock::Time now) { c.released(now, id, error); };
  }
  if (q.verb == Verb::await_change) {
    std::optional<Error> error;
    try {
      backend_->await_change(q.seen, limit);
    } catch (...) {
      error = unknown();
    }
    return [id, error](Candidacy& c, Clock::Time now) { c.change_awaited(now, id, error); };
  }
  Answer answer;
  try {
    answer = q.verb == Verb::renew ? backend_->renew(q.token, limit) : backend_->acquire(limit);
  } catch (...) {
    answer = Unknown{unknown()};
  }
  count(fault_of(answer));
  if (grants(answer)) tally_.granted(q.asked);
  return [id, answer](Candidacy& c, Clock::Time now) { c.answered(now, id, answer); };
}

/// The end waits for a call into the user's code. A call into the store it may leave behind.
bool LeaderManager::Shell::user_agrees() {
  {
    const std::lock_guard lock(mutex_);
    if (quit_) return false;
    asks_user_ = true;
  }
  bool eligible = false;
  guarded("eligible", [&] { eligible = hooks_.eligible(); });
  const std::lock_guard lock(mutex_);
  asks_user_ = false;
  return eligible && !quit_;
}

// ---- hooks: user code ----

void LeaderManager::Shell::report(Error error) {
  if (ended()) return;  // By a call that was left behind: no hook is called any more.
  tally_.error(error.fault);
  const std::string message = std::string(to_string(error.fault)) + ": " + error.message;
  const bool told_at_once = queue_hook(std::move(error)) && hooks_.error;
  if (hooks_.log || !told_at_once) log(Level::warning, message);
}

/// True: it is the next to be called. Behind another hook an error may wait for hours, because elected() may lead. Then
/// stderr tells it too.
bool LeaderManager::Shell::queue_hook(HookCall call) {
  const std::lock_guard lock(mutex_);
  if (ended_ || (std::holds_alternative<Error>(call) && hook_queue_.size() >= max_queued_hooks)) return false;
  const bool next = hook_queue_.empty() && !hook_runs_;
  hook_queue_.push_back(std::move(call));
  if (!deciding_) pass_on();  // A decider does so when it ends.
  return next;
}

void LeaderManager::Shell::call_next_hook(std::unique_lock<std::mutex>& lock) {
  auto call = std::move(hook_queue_.front());
  hook_queue_.pop_front();
  hook_runs_ = true;
  pass_on();
  lock.unlock();
  call_hook(call);
  lock.lock();
  hook_runs_ = false;
  if (std::holds_alternative<Ousting>(call))
    inbox_.push_back([](Candidacy& c, Clock::Time now) { c.ousting_returned(now); });
}

void LeaderManager::Shell::call_hook(HookCall& call) {
  if (auto* elected = std::get_if<Elected>(&call)) {
    if (hooks_.elected) timed("elected", [&] { hooks_.elected(*elected); });
  } else if (auto* ousting = std::get_if<Ousting>(&call)) {
    if (hooks_.ousting) timed("ousting", [&] { hooks_.ousting(*ousting); });
  } else if (hooks_.error) {
    try {
      hooks_.error(std::get<Error>(call));
    } catch (...) {
      log(Level::error, "error() itself threw: " + printable(what_was_thrown()));
    }
  }
}

template <class Call>
void LeaderManager::Shell::timed(const char* which, Call call) {
  const auto began = clock_.now();
  guarded(which, call);
  tally_.hook_returned(which, clock_.now() - began);
}

template <class Call>
void LeaderManager::Shell::guarded(const char* which, Call call) {
  try {
    call();
  } catch (...) {
    report({Fault::hook_threw, std::string(which) + "() threw: " + what_was_thrown()});
  }
}

}  // namespace tenure
