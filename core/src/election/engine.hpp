// SPDX-License-Identifier: Apache-2.0
// The threads round a machine that decides: a Candidacy or a GroupCandidacy. They only carry: facts to it, its effects
// to the store, the hooks and the waiters. A change of threads costs more than all the rest. So a thread of ours that
// brings a fact decides on it at once. Equal workers do the rest: whichever is free talks to the store or calls a hook.
//
// Who may change what:
// - The thread that set deciding_ is the decider. It alone uses the decider's own members, without a lock. There is one
//   at a time; mutex_ orders one after the other. It changes the machine under machine_mutex_, since users ask it.
// - One worker at a time is with the store (asker_), and one runs a hook of one queue. It holds no lock meanwhile.
// - Hooks never hold the last worker, which is left for the store. Hooks other than error() leave one more for error(),
//   where that has queues of its own: hooks which hang cannot hide that they do.
// - Everything else is changed under mutex_.
//
// Why no wake-up is lost:
// - A fact comes into inbox_ under mutex_. A decider looks there again, under mutex_, before it clears deciding_.
// - Without a decider, post() notifies a worker that waits. If none waits, it wakes the clock thread, which decides.
// - A worker tests all that it could do, under mutex_, before it waits: decide, hook, question, quit, in this order.
// - Whoever takes a hook or a question notifies other workers for what is left (pass_on).
// - The decider sets the next alarm under mutex_ when it ends. The clock thread sets none while another one decides.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <tenure/result.hpp>

#include "election/signals.hpp"
#include "election/tally.hpp"
#include "election/waiters.hpp"
#include "kit/mutex.hpp"
#include "kit/require.hpp"
#include "kit/thrown.hpp"

namespace tenure {

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  using Fact = std::function<void(Clock::Time)>;
  using SharedHooks = std::shared_ptr<const Hooks>;

  /// Of the two forms.
  struct Form {
    const char* owner{};  ///< The class that users see.
    const char* of{};     ///< What it is of: "election", "group".
    std::string name{};   ///< Of that.
    std::vector<std::string> verbs{};
    int hook_threads{1};           ///< So many hooks run at once.
    bool errors_apart{};           ///< error() waits for no other hook, and has a thread more.
    Clock::Duration hang_after{};  ///< If a hook waits, and none has begun for so long, all hang. Zero: never.
  };

  Engine(Form form, const Timing& timing, Hooks hooks, Clock& clock);
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void start();
  void stop();
  /// After stop(). A worker that is wedged in the store is left to end alone; it owns what it needs.
  void join();
  static void finish(std::shared_ptr<Engine> engine);  ///< For its owner's destructor.

  /// Any thread may call it; a thread of ours decides on the fact. After the end it is ignored.
  void post(Fact fact);

  /// Tells error() and the log. Any thread may call it.
  void report(Error error) { report(std::move(error), hooks_, form_.name); }

  bool on_own_thread() const;
  void adopt_this_thread() const;            ///< A thread of the user's work counts as one of ours.
  virtual bool forked() const noexcept = 0;  ///< Then no thread of ours runs here: touch no lock.
  bool over() const noexcept { return ended_.load() || forked(); }

  Waiters waiters;

 protected:
  using Question = std::function<Fact(const std::stop_token& interrupted)>;

  // The machine. The decider calls these.
  virtual void start_machine(Clock::Time now) = 0;
  virtual void stop_machine(Clock::Time now) = 0;
  virtual void tick(Clock::Time now) = 0;
  virtual void ousting_returned(Clock::Time now, const std::string& election) = 0;
  virtual void hooks_hang(Clock::Time, bool) {}
  virtual void consider(const Fact& fact) = 0;  ///< Tells the fact, and carries out what follows.
  virtual Clock::Time next_alarm() const = 0;
  virtual bool all_decided() const = 0;

  // Effects that both have. The decider calls these.
  void ask(Question question);
  void interrupt() { interrupt_.request_stop(); }
  void begin(const std::string& election, Token token, SharedHooks hooks);
  void end(Ousting ousting);
  Signals& signals(const std::string& election) const { return *signals_.at(election); }
  void overran(const std::string& election) const;
  void count_elected();
  void quit(bool store_wedged);
  void report(Error error, const SharedHooks& hooks, const std::string& election);

  /// A call of the store, which is counted unless `verb` is null. What it throws is an error.
  template <class T, class Call>
  Result<T> counted(const char* verb, const char* who, Call call) {
    const auto began = clock_.now();
    auto result = [&]() -> Result<T> {
      try {
        return call();
      } catch (...) {
        return Error{Fault::unreachable, std::string(who) + " threw: " + what_was_thrown()};
      }
    }();
    if (verb) count(verb, began, result ? std::nullopt : std::optional(result.error().fault));
    return result;
  }
  bool user_agrees();
  Clock::Duration overdue(Clock::Time now) const;
  std::size_t kept() const;

  Clock& clock_;
  const SharedHooks hooks_;  ///< The common ones.
  const Form form_;
  Tally tally_;
  std::map<std::string, std::shared_ptr<Signals>, std::less<>> signals_;  ///< The decider's own, of each election.

 private:
  struct HookCall {
    SharedHooks hooks;
    std::variant<Elected, Ousting, Error> what;
  };
  /// Calls of one queue are made one at a time.
  struct QueueKey {
    std::string election{};  ///< Empty: the errors of all that have no hooks of their own.
    bool errors{};
    friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
  };
  struct Queue {
    std::list<HookCall> calls;  ///< An empty one allocates nothing.
    bool running{};
  };
  using Queues = std::map<QueueKey, Queue>;
  using Ready = std::deque<Queues::iterator>;

  void start_threads();
  void decide() TENURE_HOLDS(mutex_);
  void watch_hook_threads() TENURE_HOLDS(mutex_);
  void clock_loop();
  void work_loop(std::thread& self);
  int most_hooks() const { return form_.hook_threads + (form_.errors_apart ? 1 : 0); }
  bool undecided() const TENURE_HOLDS(mutex_) { return !inbox_.empty() && !deciding_ && !decided_; }
  bool question_ready() const TENURE_HOLDS(mutex_) { return asked_ && !asker_ && !quit_; }
  Ready* callable() TENURE_HOLDS(mutex_);
  void pass_on() TENURE_HOLDS(mutex_);
  void put_question(std::thread& self) TENURE_HOLDS(mutex_);
  void count(const char* verb, Clock::Time began, std::optional<Fault> fault);
  bool queue_hook(QueueKey key, HookCall call);
  void call_next_hook(Ready& ready) TENURE_HOLDS(mutex_);
  void call_hook(const HookCall& call, const std::string& election);
  void timed(const char* which, const HookCall& of, const std::string& election, const std::function<void()>& call);
  void guarded(const char* which, const SharedHooks& hooks, const std::string& election,
               const std::function<void()>& call);
  void log(const Hooks& hooks, const std::string& message, const std::string& election, Token token) const;

  // The decider's own.
  std::vector<Fact> facts_;
  std::stop_source interrupt_;

  mutable Mutex mutex_;  ///< It is never held while a hook or the store runs.
  std::vector<Fact> inbox_ TENURE_GUARDED_BY(mutex_);
  bool deciding_ TENURE_GUARDED_BY(mutex_){};
  bool decided_ TENURE_GUARDED_BY(mutex_){};                       ///< There is nothing left to decide.
  Clock::Time due_ TENURE_GUARDED_BY(mutex_){Clock::Time::max()};  ///< When we must act next, or should have acted.
  std::optional<std::pair<Question, std::stop_token>> asked_ TENURE_GUARDED_BY(mutex_);
  std::thread* asker_ TENURE_GUARDED_BY(mutex_){};  ///< Who is with the store.
  Queues queues_ TENURE_GUARDED_BY(mutex_);
  Ready ready_ TENURE_GUARDED_BY(mutex_);  ///< Those whose next hook may be called.
  Ready ready_errors_ TENURE_GUARDED_BY(mutex_);
  int hooks_running_ TENURE_GUARDED_BY(mutex_){};
  int errors_running_ TENURE_GUARDED_BY(mutex_){};
  Clock::Duration hook_waited_ TENURE_GUARDED_BY(mutex_){};  ///< So long no hook has begun, and one waits for a thread.
  Clock::Time hooks_seen_ TENURE_GUARDED_BY(mutex_){};       ///< When that was looked at.
  bool hooks_hang_ TENURE_GUARDED_BY(mutex_){};              ///< The machine was told so.
  bool asks_user_ TENURE_GUARDED_BY(mutex_){};               ///< eligible() runs.
  int idle_ TENURE_GUARDED_BY(mutex_){};                     ///< Workers that wait.
  bool started_ TENURE_GUARDED_BY(mutex_){};
  bool quit_ TENURE_GUARDED_BY(mutex_){};
  bool store_wedged_ TENURE_GUARDED_BY(mutex_){};
  std::condition_variable work_wakes_, end_wakes_;
  std::unique_ptr<Waker> clock_wakes_;
  std::atomic<bool> ended_{false};
  std::thread clock_thread_;
  std::vector<std::thread> workers_;
};

/// With its machine.
template <class Machine>
class EngineOf : public Engine {
 public:
  /// What the store did last in place of an answer.
  std::optional<Error> last_error() const {
    if (forked()) return std::nullopt;
    const Lock lock(machine_mutex_);
    const auto& error = machine_.last_error();
    return error ? std::optional(*error) : std::nullopt;
  }

 protected:
  using Effect = typename Machine::Effect;

  EngineOf(Form form, const Timing& timing, Hooks hooks, Clock& clock, Machine machine)
      : Engine(std::move(form), timing, std::move(hooks), clock), machine_(std::move(machine)) {
    effects_.reserve(32);  // A deadline is served without an allocation.
  }

  virtual void hear_progress(Clock::Time now) = 0;  ///< What the work told comes before each fact.
  virtual void carry_out(Effect& effect) = 0;
  virtual Clock::Time published() const noexcept = 0;  ///< Until when is_leader() may hold; zero if it does not.

  Metrics snapshot(Clock::Duration remaining, Clock::Time now) const {
    auto out = tally_.snapshot(remaining, now);
    out.overdue = overdue(now);
    const Lock lock(machine_mutex_);
    out.wedged = late(machine_.answer_by(), now);
    out.overrun = late(machine_.work_by(), now);
    return out;
  }

  mutable Mutex machine_mutex_;
  Machine machine_;

 private:
  void start_machine(Clock::Time now) final { machine_.start(now); }
  void stop_machine(Clock::Time now) final { machine_.stop(now); }
  void tick(Clock::Time now) final { machine_.tick(now); }
  Clock::Time next_alarm() const final { return machine_.next_alarm(); }
  bool all_decided() const final { return machine_.over(); }

  /// What follows from one fact is done before the next one is told, and without a lock: a stop callback may call
  /// anything.
  void consider(const Fact& fact) final {
    {
      const Lock lock(machine_mutex_);
      const auto now = clock_.now();
      TENURE_REQUIRE(now >= told_at_);
      told_at_ = now;
      hear_progress(now);
      fact(now);
      machine_.take_effects(effects_);
    }
    for (auto& effect : effects_) carry_out(effect);
    effects_.clear();
    TENURE_REQUIRE(published() == Clock::Time{} || published() == machine_.deadline());
  }

  // The decider's own.
  std::vector<Effect> effects_;
  Clock::Time told_at_{Clock::Time::min()};  ///< Of the last fact.
};

}  // namespace tenure
