// SPDX-License-Identifier: Apache-2.0
// The loops of the threads, and the queues of hooks.
#include "election/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <stdexcept>
#include <utility>

#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/start_thread.hpp>

namespace tenure {
namespace {

/// So many errors wait for a hook. More are dropped; the log has them all.
constexpr std::size_t max_queued_errors = 256;

/// Whose thread this is.
thread_local const Engine* engine_here = nullptr;

}  // namespace

Engine::Engine(Form form, const Timing& timing, Hooks hooks, Clock& clock)
    : waiters(clock),
      clock_(clock),
      hooks_(std::make_shared<const Hooks>(std::move(hooks))),
      form_(std::move(form)),
      tally_(form_.name, timing, form_.verbs),
      clock_wakes_(clock.make_waker()) {}

void Engine::start() {
  if (forked())
    throw std::logic_error(std::string(form_.owner) +
                           "::start() in a forked child of the process that "
                           "made it: two would be one candidate. Make "
                           "it after the fork");
  const Lock lock(mutex_);
  if (started_ || ended_) return;
  inbox_.reserve(inbox_.size() + 1);  // Nothing may throw once the threads run: start() could not be called again.
  start_threads();
  started_ = true;
  inbox_.push_back([this](Clock::Time now) { start_machine(now); });
  due_ = clock_.now();
  clock_wakes_->wake();
}

/// All of them or none: each waits at a gate until the last one is there.
void Engine::start_threads() {
  std::promise<bool> gate;
  const auto started = [this, complete = gate.get_future().share()](const char* name, auto loop) {
    return start_thread(name, [self = shared_from_this(), complete, loop] {
      if (!complete.get()) return;
      engine_here = self.get();
      loop(*self);
    });
  };
  const auto workers = static_cast<std::size_t>(most_hooks()) + 1;
  workers_.reserve(workers);  // Nothing may throw once all are there.
  try {
    for (std::size_t i = 0; i < workers; ++i)
      workers_.push_back(started("tenure-work", [i](Engine& engine) { engine.work_loop(engine.workers_[i]); }));
    clock_thread_ = started("tenure-clock", [](Engine& engine) { engine.clock_loop(); });
  } catch (...) {
    gate.set_value(false);
    for (auto& worker : workers_) worker.join();
    workers_.clear();
    throw;
  }
  gate.set_value(true);
}

/// Allocates no descriptor and no thread.
void Engine::stop() {
  if (forked()) return;
  {
    const Lock lock(mutex_);
    if (!started_) ended_ = true;
  }
  waiters.wake();
  post([this](Clock::Time now) { stop_machine(now); });
  if (on_own_thread()) return;
  const Lock lock(mutex_);
  while (!ended_) mutex_.wait(end_wakes_);
}

void Engine::join() {
  if (clock_thread_.joinable()) clock_thread_.join();
  const auto* const wedged = [this] {
    const Lock lock(mutex_);
    return store_wedged_ ? asker_ : nullptr;
  }();
  if (wedged) {  // The thread that is left behind may outlive the clock.
    clock_wakes_.reset();
    waiters.give_up_clock();
  }
  for (auto& worker : workers_) {
    if (&worker == wedged)
      leave_behind(std::move(worker));
    else
      worker.join();
  }
}

void Engine::finish(std::shared_ptr<Engine> engine) {
  if (engine->forked()) {  // Its threads are the parent's.
    new std::shared_ptr<Engine>(std::move(engine));
    return;
  }
  if (engine->on_own_thread()) {
    std::fprintf(stderr,
                 "tenure: %s was destroyed inside a hook of its own, or exit() "
                 "was called there and destroyed it; call "
                 "stop() in the hook, and let main() return\n",
                 engine->form_.owner);
    std::abort();
  }
  engine->stop();
  engine->join();
}

void Engine::post(Fact fact) {
  if (forked()) return;
  const Lock lock(mutex_);
  if (ended_) return;
  inbox_.push_back(std::move(fact));
  if (started_ && !decided_) due_ = std::min(due_, clock_.now());
  if (deciding_) return;
  if (idle_ > 0)
    work_wakes_.notify_one();
  else
    clock_wakes_->wake();
}

bool Engine::on_own_thread() const { return engine_here == this; }

void Engine::adopt_this_thread() const { engine_here = this; }

Clock::Duration Engine::overdue(Clock::Time now) const {
  const Lock lock(mutex_);
  return ended_ ? Clock::Duration::zero() : late(due_, now);
}

std::size_t Engine::kept() const {
  const Lock lock(mutex_);
  return signals_.size() + queues_.size();
}

// ---- deciding: whoever brings a fact, unless another thread is at it, which then takes this one along ----

/// Decides on all facts that have come, and on the time.
void Engine::decide() {
  if (deciding_ || decided_) return;
  deciding_ = true;
  due_ = std::min(due_, clock_.now());
  do {
    watch_hook_threads();
    facts_.swap(inbox_);
    mutex_.unlock();
    for (const auto& fact : facts_) consider(fact);
    facts_.clear();
    consider([this](Clock::Time now) { tick(now); });
    mutex_.lock();
    decided_ = all_decided();
  } while (!decided_ && !inbox_.empty());
  deciding_ = false;
  due_ = next_alarm();
  clock_wakes_->set(due_);
  if (decided_) clock_wakes_->wake();
}

/// Of a time in which nobody decided, as in a process that was stopped, only a part counts.
void Engine::watch_hook_threads() {
  const auto now = clock_.now();
  const auto passed = std::min(now - std::exchange(hooks_seen_, now), form_.hang_after / 4);
  const bool taken = hooks_running_ - errors_running_ >= form_.hook_threads || hooks_running_ >= most_hooks();
  const bool waits = !ready_.empty() && taken;
  hook_waited_ = waits ? hook_waited_ + passed : Clock::Duration::zero();
  const bool hang = waits && form_.hang_after > Clock::Duration::zero() && hook_waited_ >= form_.hang_after;
  if (hang == std::exchange(hooks_hang_, hang)) return;
  inbox_.insert(inbox_.begin(), [this, hang](Clock::Time at) { hooks_hang(at, hang); });  // before what claims
}

// ---- the clock thread: sees to every timer; never enters the store or a hook ----

void Engine::clock_loop() {
  const Lock lock(mutex_);
  for (;;) {
    decide();
    if (decided_) return;
    pass_on();
    if (deciding_) clock_wakes_->set(Clock::Time::max());  // The decider sets the next one.
    mutex_.unlock();
    clock_wakes_->wait();
    mutex_.lock();
  }
}

// ---- effects ----

void Engine::ask(Question question) {
  interrupt_ = std::stop_source();
  const Lock lock(mutex_);
  TENURE_REQUIRE(!asked_ && !asker_);
  asked_.emplace(std::move(question), interrupt_.get_token());
}

void Engine::begin(const std::string& election, Token token, SharedHooks hooks) {
  const auto signals = signals_[election] = std::make_shared<Signals>();
  signals->hooks = hooks;
  log(*hooks, "elected", election, token);
  queue_hook({election}, {std::move(hooks), Elected{election, token, signals->stop.get_token()}});
  waiters.changed();
}

void Engine::end(Ousting ousting) {
  const auto signals = signals_.at(ousting.election);
  connect(ousting, signals, clock_);
  tally_.count([&](Metrics& all) { ++all.ousted[ousting.reason]; });
  log(*signals->hooks,
      "ousting: " + std::string(to_string(ousting.reason)) + (ousting.detail.empty() ? "" : ", ") + ousting.detail,
      ousting.election, ousting.token);
  QueueKey key{ousting.election};
  queue_hook(std::move(key), {signals->hooks, std::move(ousting)});
  waiters.changed();
}

void Engine::overran(const std::string& election) const {
  if (!signals(election).hooks->abort_on_overrun) return;
  std::fputs("tenure: ousting() had not returned when its time was up; ending the process, as asked\n", stderr);
  std::abort();
}

/// Whoever sees a tenure sees it counted.
void Engine::count_elected() {
  tally_.count([](Metrics& all) { ++all.elected; });
}

void Engine::quit(bool store_wedged) {
  const Lock lock(mutex_);
  store_wedged_ = store_wedged;
  quit_ = true;
  work_wakes_.notify_all();
}

void Engine::log(const Hooks& hooks, const std::string& message, const std::string& election, Token token) const {
  tell(hooks.log, Level::info, message, {{"election", election}, {"token", std::to_string(token.value)}});
}

// ---- the workers: one may block in the store, the others in hooks ----

void Engine::work_loop(std::thread& self) {
  const Lock lock(mutex_);
  for (;;) {
    if (undecided()) {
      decide();
    } else if (auto* const ready = callable()) {
      call_next_hook(*ready);
    } else if (question_ready()) {
      put_question(self);
    } else if (quit_) {
      break;
    } else {
      ++idle_;
      mutex_.wait(work_wakes_);
      --idle_;
    }
  }
  if (hooks_running_ > 0 || asks_user_ || ended_.exchange(true)) return;
  end_wakes_.notify_all();
  waiters.changed();
}

/// One worker takes one thing. As many others are told as there are things left.
void Engine::pass_on() {
  const auto room = static_cast<std::size_t>(most_hooks() - hooks_running_);
  auto left = std::min(ready_.size() + ready_errors_.size(), room);
  if (undecided()) ++left;
  if (question_ready()) ++left;
  for (auto waits = static_cast<std::size_t>(idle_); left > 0 && waits > 0; --left, --waits) work_wakes_.notify_one();
}

void Engine::put_question(std::thread& self) {
  const auto [question, interrupted] = *std::exchange(asked_, std::nullopt);
  asker_ = &self;
  pass_on();
  mutex_.unlock();
  auto answer = question(interrupted);
  mutex_.lock();
  asker_ = nullptr;
  if (!ended_) inbox_.push_back(std::move(answer));
}

/// The clock may be gone by the end of a call that was left behind. Until somebody sees, under the lock, that all is
/// over, it is there.
void Engine::count(const char* verb, Clock::Time began, std::optional<Fault> fault) {
  const Lock lock(mutex_);
  if (ended_) return;
  tally_.count([&, took = clock_.now() - began](Metrics& all) {
    auto& calls = all.calls[verb];
    calls.durations.add(took);
    if (fault) ++calls.errors[*fault];
  });
}

/// The end waits for a call into the user's code. A call into the store it may leave behind.
bool Engine::user_agrees() {
  {
    const Lock lock(mutex_);
    if (quit_) return false;
    asks_user_ = true;
  }
  bool eligible = false;
  guarded("eligible", hooks_, form_.name, [&] { eligible = hooks_->eligible(); });
  const Lock lock(mutex_);
  asks_user_ = false;
  return eligible && !quit_;
}

// ---- hooks: user code ----

/// Behind another hook an error may wait for hours, because elected() may lead. Then stderr tells it too.
void Engine::report(Error error, const SharedHooks& hooks, const std::string& election) {
  if (ended_) return;  // By a call that was left behind: no hook is called any more.
  tally_.count([&](Metrics& all) { ++all.errors[error.fault]; });
  const std::string message = std::string(to_string(error.fault)) + ": " + error.message;
  QueueKey key{form_.errors_apart && hooks == hooks_ ? std::string() : election, form_.errors_apart};
  const bool told_at_once = hooks->error && queue_hook(std::move(key), {hooks, std::move(error)});
  if (hooks->log || !told_at_once) tell(hooks->log, Level::warning, message, {{form_.of, form_.name}});
}

/// Whether it is the next to be called. A decider calls it itself, or passes it on, when it ends.
bool Engine::queue_hook(QueueKey key, HookCall call) {
  const Lock lock(mutex_);
  if (ended_) return false;
  const auto queue = queues_.try_emplace(std::move(key)).first;
  auto& [calls, running] = queue->second;
  if (std::holds_alternative<Error>(call.what) && calls.size() >= max_queued_errors) return false;
  calls.push_back(std::move(call));
  if (running || calls.size() > 1) return false;
  auto& ready = queue->first.errors ? ready_errors_ : ready_;
  const bool next = ready.empty() && hooks_running_ < most_hooks();
  ready.push_back(queue);
  if (!deciding_) pass_on();
  return next;
}

/// Of which queues one hook more may run now. The first error() has the thread that is its own.
Engine::Ready* Engine::callable() {
  if (hooks_running_ >= most_hooks()) return nullptr;
  const bool any = !ready_.empty() && hooks_running_ - errors_running_ < form_.hook_threads;
  if (!ready_errors_.empty() && (errors_running_ == 0 || !any)) return &ready_errors_;
  return any ? &ready_ : nullptr;
}

void Engine::call_next_hook(Ready& ready) {
  const auto queue = ready.front();
  ready.pop_front();
  const auto& [election, errors] = queue->first;
  auto& [calls, running] = queue->second;
  std::list<HookCall> call;
  call.splice(call.begin(), calls, calls.begin());
  running = true;
  ++hooks_running_;
  if (errors)
    ++errors_running_;
  else
    hook_waited_ = {};
  pass_on();
  const bool ousting = std::holds_alternative<Ousting>(call.front().what);
  mutex_.unlock();
  call_hook(call.front(), election);
  call.clear();  // Without the lock: with the last call of some hooks goes what the user keeps in them.
  mutex_.lock();
  running = false;
  --hooks_running_;
  if (errors) --errors_running_;
  TENURE_REQUIRE(0 <= errors_running_ && errors_running_ <= hooks_running_);
  if (ousting) inbox_.push_back([this, name = election](Clock::Time now) { ousting_returned(now, name); });
  if (calls.empty())
    queues_.erase(queue);
  else
    ready.push_back(queue);
}

void Engine::call_hook(const HookCall& call, const std::string& election) {
  const auto& hooks = *call.hooks;
  if (const auto* elected = std::get_if<Elected>(&call.what)) {
    if (hooks.elected) timed("elected", call, election, [&] { hooks.elected(*elected); });
  } else if (const auto* ousting = std::get_if<Ousting>(&call.what)) {
    if (hooks.ousting) timed("ousting", call, election, [&] { hooks.ousting(*ousting); });
  } else {
    try {
      hooks.error(std::get<Error>(call.what));
    } catch (...) {
      tell(hooks.log, Level::error, "error() itself threw: " + printable(what_was_thrown()), {{form_.of, form_.name}});
    }
  }
}

void Engine::timed(const char* which, const HookCall& of, const std::string& election,
                   const std::function<void()>& call) {
  const auto began = clock_.now();
  guarded(which, of.hooks, election, call);
  tally_.count([&, took = clock_.now() - began](Metrics& all) { all.hooks[which].add(took); });
}

void Engine::guarded(const char* which, const SharedHooks& hooks, const std::string& election,
                     const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    report({Fault::hook_threw, std::string(which) + "() threw: " + what_was_thrown()}, hooks, election);
  }
}

}  // namespace tenure
