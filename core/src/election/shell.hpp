// SPDX-License-Identifier: Apache-2.0
// The threads round one Candidacy. They only carry: facts to it, its effects to the store, the hooks and the waiters.
// A change of threads costs more than all the rest. So a thread of ours that brings a fact decides on it at once. Two
// equal workers do the rest: whichever is free talks to the store or calls a hook, so that neither waits for the other.
//
// Who may change what:
// - The thread that set deciding_ is the decider. It alone uses the decider's own members, without a lock. There is one
//   at a time; mutex_ orders one after the other.
// - One worker at a time is with the store (asker_), and one runs a hook (hook_runs_). It holds no lock meanwhile.
// - Everything else is changed under mutex_.
//
// Why no wake-up is lost:
// - A fact comes into inbox_ under mutex_. A decider looks there again, under mutex_, before it clears deciding_.
// - Without a decider, post() notifies a worker that waits. If none waits, it wakes the clock thread, which decides.
// - A worker tests all that it could do, under mutex_, before it waits: decide, hook, question, quit, in this order.
// - Whoever takes a hook or a question notifies another worker for what is left (pass_on).
// - The decider sets the next alarm under mutex_ when it ends. The clock thread sets none while another one decides.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <variant>
#include <vector>

#include <tenure/leader_manager.hpp>

#include "election/candidacy.hpp"
#include "election/signals.hpp"
#include "election/tally.hpp"
#include "election/validity.hpp"
#include "election/waiters.hpp"

namespace tenure {

class TENURE_NO_EXPORT LeaderManager::Shell : public std::enable_shared_from_this<Shell> {
 public:
  using Fact = std::function<void(Candidacy&, Clock::Time)>;

  Shell(std::shared_ptr<Backend> backend, const Timing& timing, Hooks hooks, Clock& clock);

  void start();
  void stop();
  void join();  ///< After stop(). A worker that is wedged in the store is left to end alone; it owns what it needs.

  /// Any thread may call it; a thread of ours decides on the fact. After the end it is ignored.
  void post(Fact fact);

  /// Tells error() and the log. Any thread may call it.
  void report(Error error);

  Metrics metrics() const;
  std::optional<Error> last_error() const;

  bool on_own_thread() const;
  void own_thread(std::thread::id id) { guest_id_ = id; }  ///< A thread of the user's work counts as one of ours.
  bool ended() const noexcept { return ended_.load(); }
  bool forked() const noexcept { return validity->forked(); }  ///< Then no thread of ours runs here: touch no lock.
  bool over() const noexcept { return ended() || forked(); }

  const std::shared_ptr<OwnValidity> validity;
  Waiters waiters;

 private:
  using HookCall = std::variant<Elected, Ousting, Error>;
  struct Worker {
    std::thread thread;
    std::atomic<std::thread::id> id;
  };

  void start_threads();
  void decide(std::unique_lock<std::mutex>& lock);
  void clock_loop();
  void work_loop(Worker& self);
  bool undecided() const { return !inbox_.empty() && !deciding_ && !decided_; }
  bool hook_ready() const { return !hook_queue_.empty() && !hook_runs_; }
  bool question_ready() const { return asked_ && !asker_ && !quit_; }
  void pass_on();
  void consider(const Fact& fact);
  void remember();
  void carry_out(Effect& effect);
  void ask(Question question);
  void put_question(std::unique_lock<std::mutex>& lock, Worker& self);
  Fact answer_to(const Question& question, std::stop_token interrupted);
  Fact answer_of_store(const Question& question, const Limit& limit);
  bool user_agrees();
  void end(effect::End& end);
  void call_next_hook(std::unique_lock<std::mutex>& lock);
  void call_hook(HookCall& call);
  template <class Call>
  void timed(const char* which, Call call);
  template <class Call>
  void guarded(const char* which, Call call);
  bool queue_hook(HookCall call);
  void overran() const;
  void log(Level level, const std::string& message, std::optional<Token> token = std::nullopt) const;

  const std::shared_ptr<Backend> backend_;
  const Hooks hooks_;
  Clock& clock_;
  const std::string election_;
  Tally tally_;

  // The decider's own. It is the thread that set deciding_.
  Candidacy candidacy_;
  std::vector<Fact> facts_;
  std::vector<Effect> effects_;
  std::shared_ptr<Signals> signals_;
  std::stop_source interrupt_;
  std::optional<Token> heard_, published_;

  mutable std::mutex mutex_;  ///< It is never held while a hook or the store runs.
  std::vector<Fact> inbox_;
  bool deciding_{}, decided_{};  ///< decided_: there is nothing left to decide.
  std::optional<std::pair<Question, std::stop_token>> asked_;
  std::deque<HookCall> hook_queue_;
  Worker* asker_{};                      ///< Who is with the store.
  Clock::Time due_{Clock::Time::max()};  ///< When we should act next. For metrics() and last_error(), as the next five.
  Clock::Time answer_by_{Clock::Time::max()}, work_by_{Clock::Time::max()};
  std::optional<Clock::Time> progressed_at_;
  bool stalled_{};
  std::shared_ptr<const Error> last_error_;
  bool hook_runs_{}, asks_user_{};  ///< asks_user_: eligible() runs.
  int idle_{};                      ///< Workers that wait.
  bool started_{}, quit_{}, store_wedged_{};
  std::condition_variable work_wakes_, end_wakes_;
  std::unique_ptr<Waker> clock_wakes_;
  std::atomic<bool> ended_{false};
  std::thread clock_thread_;
  std::atomic<std::thread::id> clock_id_, guest_id_;
  Worker workers_[2];
};

}  // namespace tenure
