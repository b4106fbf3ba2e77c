// SPDX-License-Identifier: Apache-2.0
// Carries facts to the GroupCandidacy, and its effects out: the threads of Elections.
#include "group/group_shell.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/who.hpp>

#include "kit/random.hpp"
#include "kit/start_together.hpp"
#include "kit/thrown.hpp"

namespace tenure {
namespace {

/// So many errors wait for a hook. More are dropped; the log has them all.
constexpr std::size_t max_queued_errors = 256;

template <class T, class Call>
Result<T> tried(Call call) {
  try {
    return call();
  } catch (...) {
    return Error{Fault::unreachable, "the store threw: " + what_was_thrown()};
  }
}

void abort_if_asked(const Hooks& hooks) {
  if (!hooks.abort_on_overrun) return;
  std::fputs("tenure: ousting() had not returned when its time was up; ending the process, as asked\n", stderr);
  std::abort();
}

/// Of which group this thread is one.
thread_local const void* own_thread = nullptr;

void check_mode(const GroupStore& store, Exclusive wanted) {
  if (store.exclusive() == wanted) return;
  if (wanted == Exclusive::no)
    throw std::invalid_argument("Elections: Exclusive::no was asked for, but the store \"" +
                                printable(store.group(), 80) +
                                "\" is exclusive. Open it with Exclusive::no (kafka::open_group offers that), or leave "
                                "the argument out");
  throw std::invalid_argument(
      "Elections: in the store \"" + printable(store.group(), 80) +
      "\" several processes may lead an election at once, and there is no fencing token. If the "
      "work allows that, say so: Elections(Exclusive::no, store, ...). If not, open the store "
      "with Exclusive::yes");
}

void check_spread(const Spread& spread, const GroupStore& store) {
  if (spread.weight < 1 || spread.weight > max_weight)
    throw std::invalid_argument("Elections: spread.weight must be from 1 to 1000, not " +
                                std::to_string(spread.weight));
  constexpr Spread plain{};
  if (store.allots() && (spread.on != plain.on || spread.most != plain.most || spread.weight != plain.weight))
    throw std::invalid_argument("Elections: the store \"" + printable(store.group(), 80) +
                                "\" allots the elections itself, to each process alike. What one may not lead would be "
                                "led by nobody. Leave out spread.on, spread.most and spread.weight");
}

std::shared_ptr<GroupStore> accepted(std::shared_ptr<GroupStore> store, Exclusive exclusive, const Timing& timing,
                                     const Hooks& hooks, const Spread& spread, int hook_threads) {
  if (!store) throw std::invalid_argument("Elections: store is null");
  check_mode(*store, exclusive);
  check_hooks(hooks);
  if (hook_threads < 1) throw std::invalid_argument("Elections: hook_threads must be at least 1");
  check_spread(spread, *store);
  timing.validate();
  if (const auto refused = store->accepts(timing)) throw std::invalid_argument("Timing: " + refused->message);
  return store;
}

}  // namespace

void check_hooks(const Hooks& hooks) {
  if (hooks.eligible) throw std::invalid_argument("Elections: Hooks::eligible is not offered for a group of elections");
  stall_limits(hooks);
}

Elections::Shell::Shell(Exclusive exclusive, std::shared_ptr<GroupStore> store, Candidate candidate,
                        const Timing& timing, Hooks hooks, const Spread& spread, int hook_threads, Clock& clock)
    : waiters(clock),
      mode(exclusive),
      store_(accepted(std::move(store), exclusive, timing, hooks, spread, hook_threads)),
      hooks_(std::make_shared<const Hooks>(std::move(hooks))),
      hook_threads_(hook_threads),
      clock_(clock),
      page_(std::make_shared<LeasePage>()),
      tally_(store_->group(), timing, {"open", "commit", "look", "end", "sweep"}),
      candidacy_(
          who_text(checked(std::move(candidate)), draw_incarnation()), timing, [] { return random_u64(); }, spread,
          static_cast<std::size_t>(hook_threads)),
      slots_(page_, [this](const std::string& election) { return make_validity(election); }),
      clock_wakes_(clock.make_waker()) {}

void Elections::Shell::start() {
  if (forked())
    throw std::logic_error(
        "Elections::start() in a forked child of the process that made it: two would be one candidate. Make it after "
        "the fork");
  const std::lock_guard lock(mutex_);
  if (started_ || ended_) return;
  inbox_.reserve(inbox_.size() + 1);  // Nothing may throw once the threads run: start() could not be called again.
  start_threads();
  started_ = true;
  inbox_.push_back([](GroupCandidacy& c, Clock::Time now) { c.start(now); });
  due_ = clock_.now();
  clock_wakes_->wake();
}

void Elections::Shell::start_threads() {
  const auto running = [self = shared_from_this()](void (Shell::*loop)()) {
    return [self, loop] {
      own_thread = self.get();
      (self.get()->*loop)();
    };
  };
  std::vector<std::pair<const char*, std::function<void()>>> bodies{{"tenure-g-clock", running(&Shell::clock_loop)},
                                                                    {"tenure-g-store", running(&Shell::store_loop)},
                                                                    {"tenure-g-error", running(&Shell::error_loop)}};
  for (int i = 0; i < hook_threads_; ++i) bodies.emplace_back("tenure-g-hook", running(&Shell::hook_loop));
  start_together(bodies, [this](std::vector<std::thread> threads) {
    clock_thread_ = std::move(threads[0]);
    store_thread_ = std::move(threads[1]);
    hook_pool_.assign(std::make_move_iterator(threads.begin() + 2), std::make_move_iterator(threads.end()));
  });
}

/// Allocates no descriptor and no thread.
void Elections::Shell::stop() {
  if (forked()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!started_) ended_ = true;
  }
  waiters.wake();
  post([](GroupCandidacy& c, Clock::Time now) { c.stop(now); });
  if (on_own_thread()) return;
  std::unique_lock lock(mutex_);
  end_wakes_.wait(lock, [this] { return ended_.load(); });
}

void Elections::Shell::join_threads() {
  if (clock_thread_.joinable()) clock_thread_.join();
  for (auto& thread : hook_pool_) thread.join();
  const bool wedged = [this] {
    const std::lock_guard lock(mutex_);
    return store_wedged_ && in_store_;
  }();
  if (wedged) {  // The thread that is left behind may outlive the clock.
    clock_wakes_.reset();
    waiters.give_up_clock();
    leave_behind(std::move(store_thread_));
  } else if (store_thread_.joinable()) {
    store_thread_.join();
  }
}

/// The store hears of it first.
void Elections::Shell::join(std::vector<std::string> elections, std::shared_ptr<const Hooks> hooks) {
  if (over()) return;
  for (const auto& election : elections) store_->joined(election);
  const auto stall = stall_limits(hooks ? *hooks : *hooks_);
  post([this, stall, elections = std::move(elections), hooks = std::move(hooks)](GroupCandidacy& c, Clock::Time now) {
    for (const auto& election : elections) {
      if (!c.join(now, election, stall)) continue;
      own_hooks_.erase(election);  // Those of before, if the work that they began has not ended yet.
      if (hooks) own_hooks_[election] = hooks;
    }
  });
}

void Elections::Shell::post(Fact fact) {
  if (forked()) return;
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  inbox_.push_back(std::move(fact));
  if (started_ && !decided_) due_ = std::min(due_, clock_.now());
  if (!deciding_) clock_wakes_->wake();
}

void Elections::Shell::leave(const std::string& election) {
  if (over()) return;
  store_->left(election);
  post([election](GroupCandidacy& c, Clock::Time now) { c.leave(now, election); });
}

bool Elections::Shell::hand_over(const std::string& election, const std::string& to) {
  if (over()) return false;
  {
    const std::lock_guard lock(candidacy_mutex_);
    if (!candidacy_.heir_named(clock_.now(), election, to)) return false;
  }
  post([election, to](GroupCandidacy& c, Clock::Time now) { c.hand_over(now, election, to); });
  return true;
}

bool Elections::Shell::on_own_thread() const { return own_thread == this; }

std::shared_ptr<GroupValidity> Elections::Shell::make_validity(const std::string& election) {
  return std::make_shared<GroupValidity>(page_, clock_, weak_from_this(), election, mode);
}

std::shared_ptr<GroupValidity> Elections::Shell::validity(const std::string& election) {
  if (forked()) return make_validity(election);  // before the lock: it may have been held when we were forked
  return slots_.get(election);
}

std::optional<Incumbent> Elections::Shell::incumbent(const std::string& election) {
  if (over()) return std::nullopt;  // before the lock: it may have been held when we were forked
  const std::lock_guard lock(candidacy_mutex_);
  return candidacy_.incumbent(election, clock_.now());
}

std::vector<std::pair<std::string, Token>> Elections::Shell::led() {
  if (forked()) return {};
  return slots_.led();
}

GroupMetrics Elections::Shell::metrics() {
  if (forked()) return {};
  GroupMetrics out{.group = store_->group(), .led = slots_.leads()};
  const auto now = clock_.now();
  const auto left = Clock::Duration(page_->view().deadline) - now.time_since_epoch();
  out.session = tally_.snapshot(std::max(left, Clock::Duration::zero()), now);
  out.session.is_leader = out.led > 0;
  {
    const std::lock_guard lock(candidacy_mutex_);
    out.joined = candidacy_.joined();
    out.stalled = candidacy_.stalled();
    out.session.stalled = out.stalled > 0;
    out.session.wedged = late(candidacy_.answer_by(), now);
    out.session.overrun = late(candidacy_.work_by(), now);
  }
  const std::lock_guard lock(mutex_);
  if (!ended_) out.session.overdue = late(due_, now);
  return out;
}

std::size_t Elections::Shell::kept() {
  const std::lock_guard lock(mutex_);
  return slots_.size() + signals_.size() + own_hooks_.size() + queues_.size();
}

// ---- deciding ----

/// Decides on all facts that have come, and on the time. No lock of the threads is held while effects are carried out.
void Elections::Shell::decide(std::unique_lock<std::mutex>& lock) {
  if (deciding_ || decided_) return;
  deciding_ = true;
  due_ = std::min(due_, clock_.now());
  do {
    facts_.swap(inbox_);
    lock.unlock();
    for (const auto& fact : facts_) consider(fact);
    consider([](GroupCandidacy& c, Clock::Time now) { c.tick(now); });
    facts_.clear();
    lock.lock();
    decided_ = candidacy_.over();
  } while (!decided_ && !inbox_.empty());
  deciding_ = false;
  due_ = candidacy_.next_alarm();
  clock_wakes_->set(due_);
  if (decided_) clock_wakes_->wake();
}

/// What follows from one fact is done before the next one is told. What the works told of themselves comes before it.
void Elections::Shell::consider(const Fact& fact) {
  {
    const std::lock_guard lock(candidacy_mutex_);
    const auto now = clock_.now();
    for (const auto& election : candidacy_.progress_due(now))
      candidacy_.progressed(election, slots_.get(election)->progressed_at());
    fact(candidacy_, now);
    candidacy_.take_effects(effects_);
  }
  for (auto& effect : effects_) carry_out(effect);
  effects_.clear();
  queue_hooks();
}

void Elections::Shell::clock_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    decide(lock);
    if (decided_) return;
    if (deciding_) clock_wakes_->set(Clock::Time::max());  // The decider sets the next one.
    lock.unlock();
    clock_wakes_->wait();
    lock.lock();
  }
}

void Elections::Shell::carry_out(GroupEffect& any) {
  struct Carrier {
    Shell& s;
    void operator()(group_effect::Ask& e) {
      s.interrupt_ = std::stop_source();
      const std::lock_guard lock(s.mutex_);
      s.asked_.emplace(std::move(e.question), s.interrupt_.get_token());
      s.store_wakes_.notify_one();
    }
    void operator()(group_effect::Interrupt&) { s.interrupt_.request_stop(); }
    void operator()(group_effect::Publish& e) {
      s.page_->write(e.session.value, e.deadline.time_since_epoch().count());
    }
    void operator()(group_effect::Withdraw&) { s.page_->write(0, 0); }
    void operator()(group_effect::Lead& e) {
      s.tally_.elected();  // Who sees the tenure sees it counted.
      s.slots_.hold(e.election)->lead(e.token, e.session);
    }
    void operator()(group_effect::Cap& e) { s.slots_.get(e.election)->cap(e.at); }
    void operator()(group_effect::Unlead& e) { s.slots_.get(e.election)->withdraw(); }
    void operator()(group_effect::Begin& e) { s.begin(e); }
    void operator()(group_effect::FireStop& e) { s.signals_.at(e.election)->stop.request_stop(); }
    void operator()(group_effect::DoneBy& e) { s.signals_.at(e.election)->done_by = e.at.time_since_epoch().count(); }
    void operator()(group_effect::End& e) { s.end(e); }
    void operator()(group_effect::FireExpired& e) { s.signals_.at(e.election)->expired.request_stop(); }
    void operator()(group_effect::Overrun& e) { abort_if_asked(*s.signals_.at(e.election)->hooks); }
    void operator()(group_effect::Left& e) {
      s.own_hooks_.erase(e.election);
      s.signals_.erase(e.election);
      s.slots_.let_go(e.election);
    }
    void operator()(group_effect::Report& e) { s.report(std::move(e.error), s.hooks_of(e.election), e.election); }
    void operator()(group_effect::Changed&) { s.waiters.changed(); }
    void operator()(group_effect::Ended& e) {
      s.queue_hooks();
      const std::lock_guard lock(s.mutex_);
      s.store_wedged_ = e.store_wedged;
      s.quit_ = true;
      s.store_wakes_.notify_all();
      s.hook_wakes_.notify_all();
      s.error_wakes_.notify_all();
    }
  };
  std::visit(Carrier{*this}, any);
}

void Elections::Shell::begin(const group_effect::Begin& e) {
  const auto signals = signals_[e.election] = std::make_shared<Signals>();
  signals->hooks = hooks_of(e.election);
  log(signals->hooks, Level::info, "elected", e.election, told(e.token));
  calls_.push_back({{e.election}, {signals->hooks, Elected{e.election, told(e.token), signals->stop.get_token()}}});
  waiters.changed();
}

void Elections::Shell::end(group_effect::End& e) {
  const auto signals = signals_.at(e.election);
  signals->expired = std::stop_source();
  tally_.ousted(e.reason);
  log(signals->hooks, Level::info,
      "ousting: " + std::string(to_string(e.reason)) + (e.detail.empty() ? "" : ", ") + printable(e.detail), e.election,
      told(e.token));
  auto remaining = [signals, &clock = clock_] {
    const auto left = Clock::Duration(signals->done_by.load()) - clock.now().time_since_epoch();
    return std::max(left, Clock::Duration::zero());
  };
  calls_.push_back({{e.election},
                    {signals->hooks, Ousting{e.election, told(e.token), e.reason, std::move(e.detail), std::nullopt,
                                             std::move(remaining), signals->expired.get_token()}}});
  waiters.changed();
}

/// Those of a tenure that runs are kept with it: it may have been joined anew with others.
Elections::Shell::SharedHooks Elections::Shell::hooks_of(const std::string& election) const {
  const auto own = own_hooks_.find(election);
  return own == own_hooks_.end() ? hooks_ : own->second;
}

void Elections::Shell::log(const SharedHooks& hooks, Level level, const std::string& message,
                           const std::string& election, Token token) const {
  tell(hooks->log, level, message, {{"election", election}, {"token", std::to_string(token.value)}});
}

// ---- the store thread ----

void Elections::Shell::store_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (undecided()) {
      decide(lock);
    } else if (asked_) {
      const auto [question, interrupted] = *std::exchange(asked_, std::nullopt);
      in_store_ = true;
      lock.unlock();
      auto answer = answer_to(question, interrupted);
      lock.lock();
      in_store_ = false;
      if (ended_) return;
      inbox_.push_back(std::move(answer));
    } else if (quit_) {
      return end_if_done(lock);
    } else {
      store_wakes_.wait(lock);
    }
  }
}

/// An exception is an error. The clock may be gone by the end of a call that was left behind. Until somebody sees,
/// under the lock, that all is over, it is there.
template <class T, class Call>
Result<T> Elections::Shell::counted(const char* verb, Call call) {
  const auto began = clock_.now();
  auto result = tried<T>(call);
  const std::lock_guard lock(mutex_);
  if (!ended_)
    tally_.call_returned(verb, clock_.now() - began, result ? std::nullopt : std::optional(result.error().fault));
  return result;
}

Elections::Shell::Fact Elections::Shell::answer_to(const GroupQuestion& q, const std::stop_token& interrupted) {
  struct Caller {
    Shell& s;
    const Limit& limit;
    std::uint64_t id;
    Clock::Time asked;
    Fact operator()(const ask::Open& a) {
      return committed(s.counted<Committed>("open", [&] { return s.store_->open(a.id, a.session, limit); }));
    }
    Fact operator()(const ask::Write& a) {
      return committed(s.counted<Committed>("commit", [&] { return s.store_->commit(a.commit, limit); }));
    }
    Fact committed(Result<Committed> result) {
      if (result && result->granted) s.tally_.granted(asked);
      return [id = id, result = std::move(result)](GroupCandidacy& c, Clock::Time now) mutable {
        c.committed(now, id, std::move(result));
      };
    }
    Fact operator()(const ask::See& a) {
      auto result = s.counted<Look>("look", [&] { return s.store_->look(a.cursor, limit); });
      return [id = id, result = std::move(result)](GroupCandidacy& c, Clock::Time now) mutable {
        c.looked(now, id, std::move(result));
      };
    }
    Fact operator()(const ask::End& a) {
      auto result = s.counted<bool>("end", [&] { return s.store_->end(a.id, a.beats, a.new_beat, limit); });
      return [id = id, result = std::move(result)](GroupCandidacy& c, Clock::Time now) { c.ended(now, id, result); };
    }
    Fact operator()(const ask::Sweep&) {
      auto result = s.counted<int>("sweep", [&] { return s.store_->sweep(limit); });
      return [id = id, result = std::move(result)](GroupCandidacy& c, Clock::Time now) { c.swept(now, id, result); };
    }
    Fact operator()(const ask::Await& a) {
      const auto result = tried<std::optional<Release>>(
          [&]() { return Result<std::optional<Release>>(s.store_->await_change(a.cursor, limit)); });
      if (!result)
        return [id = id, error = result.error()](GroupCandidacy& c, Clock::Time now) { c.wait_failed(now, id, error); };
      return [id = id, pushed = *result](GroupCandidacy& c, Clock::Time now) { c.awaited(now, id, pushed); };
    }
  };
  const Limit limit{clock_, q.by, interrupted};
  return std::visit(Caller{*this, limit, q.id, q.asked}, q.what);
}

// ---- hooks: user code ----

void Elections::Shell::report(Error error, const SharedHooks& hooks, const std::string& election) {
  if (ended_) return;
  tally_.error(error.fault);
  const std::string message = std::string(to_string(error.fault)) + ": " + error.message;
  const bool heard_at_once =
      hooks->error && queue_error({hooks == hooks_ ? std::string() : election, true}, {hooks, std::move(error)});
  if (hooks->log || !heard_at_once) tell(hooks->log, Level::warning, message, {{"group", store_->group()}});
}

/// Whether it is the next one to be called.
bool Elections::Shell::queue_error(QueueKey key, HookCall call) {
  const std::lock_guard lock(mutex_);
  const bool next = ready_errors_.empty() && !error_runs_;
  return add_to_queue(std::move(key), std::move(call)) && next;
}

/// Those of hundreds of elections come at once. So the lock is taken once.
void Elections::Shell::queue_hooks() {
  if (calls_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [key, call] : calls_) add_to_queue(std::move(key), std::move(call));
  }
  calls_.clear();
}

/// Whether there is one more to call now. REQUIRES: the lock is held.
bool Elections::Shell::add_to_queue(QueueKey key, HookCall call) {
  const auto queue = queues_.try_emplace(std::move(key)).first;
  auto& [calls, running] = queue->second;
  if (queue->first.errors && calls.size() >= max_queued_errors) return false;
  calls.push_back(std::move(call));
  if (running || calls.size() > 1) return false;
  make_ready(queue);
  return true;
}

/// A thread that calls errors alone comes first for them, and the hook threads help it. REQUIRES: the lock is held.
void Elections::Shell::make_ready(Queues::iterator queue) {
  const bool errors = queue->first.errors;
  (errors ? ready_errors_ : ready_).push_back(queue);
  if (errors) error_wakes_.notify_one();
  hook_wakes_.notify_one();
}

void Elections::Shell::hook_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (undecided())
      decide(lock);
    else if (!ready_.empty())
      call_next_hook(lock, ready_);
    else if (error_runs_ && !ready_errors_.empty())
      call_next_hook(lock, ready_errors_);
    else if (quit_)
      return end_if_done(lock);
    else
      hook_wakes_.wait(lock);
  }
}

void Elections::Shell::error_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!ready_errors_.empty()) {
      error_runs_ = true;
      if (ready_errors_.size() > 1) hook_wakes_.notify_one();
      call_next_hook(lock, ready_errors_);
      error_runs_ = false;
    } else if (quit_) {
      return end_if_done(lock);
    } else {
      error_wakes_.wait(lock);
    }
  }
}

void Elections::Shell::call_next_hook(std::unique_lock<std::mutex>& lock, std::deque<Queues::iterator>& ready) {
  const auto queue = ready.front();
  ready.pop_front();
  auto& [calls, running] = queue->second;
  const auto& election = queue->first.election;
  std::list<HookCall> call;
  call.splice(call.begin(), calls, calls.begin());
  running = true;
  ++hooks_running_;
  const bool ousting = std::holds_alternative<Ousting>(call.front().what);
  lock.unlock();
  call_hook(call.front(), election);
  call.clear();  // Without the lock: with the last call of some hooks goes what the user keeps in them.
  lock.lock();
  --hooks_running_;
  running = false;
  if (ousting) inbox_.push_back([election](GroupCandidacy& c, Clock::Time now) { c.ousting_returned(now, election); });
  if (calls.empty())
    queues_.erase(queue);
  else
    make_ready(queue);
}

void Elections::Shell::call_hook(const HookCall& call, const std::string& election) {
  const auto& hooks = *call.hooks;
  if (const auto* elected = std::get_if<Elected>(&call.what)) {
    if (hooks.elected) timed("elected", call, election, [&] { hooks.elected(*elected); });
  } else if (const auto* ousting = std::get_if<Ousting>(&call.what)) {
    if (hooks.ousting) timed("ousting", call, election, [&] { hooks.ousting(*ousting); });
  } else {
    try {
      hooks.error(std::get<Error>(call.what));
    } catch (...) {
      tell(hooks.log, Level::error, "error() itself threw: " + printable(what_was_thrown()),
           {{"group", store_->group()}});
    }
  }
}

template <class Call>
void Elections::Shell::timed(const char* which, const HookCall& of, const std::string& election, Call call) {
  const auto began = clock_.now();
  guarded(which, of, election, call);
  tally_.hook_returned(which, clock_.now() - began);
}

template <class Call>
void Elections::Shell::guarded(const char* which, const HookCall& of, const std::string& election, Call call) {
  try {
    call();
  } catch (...) {
    report({Fault::hook_threw, std::string(which) + "() threw: " + what_was_thrown()}, of.hooks, election);
  }
}

/// The last one that has nothing to do ends the whole.
void Elections::Shell::end_if_done(std::unique_lock<std::mutex>& lock) {
  if (hooks_running_ > 0 || !ready_.empty() || !ready_errors_.empty() || ended_.exchange(true)) return;
  end_wakes_.notify_all();
  lock.unlock();
  waiters.changed();
}

}  // namespace tenure
