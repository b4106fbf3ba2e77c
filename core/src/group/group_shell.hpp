// SPDX-License-Identifier: Apache-2.0
// The threads round one GroupCandidacy. They only carry, as those of LeaderManager::Shell do: facts to it, its effects
// to the store, the hooks and the waiters. A thread of ours that brings a fact decides on it at once.
//
// Who may change what:
// - The thread that set deciding_ is the decider. It alone uses the decider's own members; mutex_ orders one after the
//   other. It holds candidacy_mutex_ while it uses candidacy_, because users ask that who leads.
// - The store thread is in the store, a hook thread in one hook of one election. It holds no lock meanwhile. One thread
//   calls error() alone, so that hooks which hang cannot hide that they do.
// - Everything else is changed under mutex_.
//
// Why no wake-up is lost:
// - A fact comes into inbox_ under mutex_. A decider looks there again, under mutex_, before it clears deciding_.
// - Without a decider, post() wakes the clock thread, which decides.
// - A thread tests all that it could do, under mutex_, before it waits. Whoever adds work notifies under mutex_.
// - The decider sets the next alarm under mutex_ when it ends. The clock thread sets none while another one decides.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <tenure/elections.hpp>

#include "election/tally.hpp"
#include "election/waiters.hpp"
#include "group/group_candidacy.hpp"
#include "group/slots.hpp"

namespace tenure {

/// Throws std::invalid_argument for hooks that a group of elections does not offer, and for stall times that cannot be.
void check_hooks(const Hooks& hooks);

class TENURE_NO_EXPORT Elections::Shell final : public Incumbents, public std::enable_shared_from_this<Shell> {
 public:
  using Fact = std::function<void(GroupCandidacy&, Clock::Time)>;

  Shell(Exclusive exclusive, std::shared_ptr<GroupStore> store, Candidate candidate, const Timing& timing, Hooks hooks,
        const Spread& spread, int hook_threads, Clock& clock);

  void start();
  void stop();
  void join_threads();
  void join(std::vector<std::string> elections, std::shared_ptr<const Hooks> hooks);
  void post(Fact fact);
  void leave(const std::string& election);
  bool hand_over(const std::string& election, const std::string& to);
  bool leads(std::string_view election) const noexcept { return static_cast<bool>(slots_.now(election)); }
  std::shared_ptr<GroupValidity> validity(const std::string& election);
  std::vector<std::pair<std::string, Token>> led();
  std::optional<Incumbent> incumbent(const std::string& election) override;
  std::vector<std::string> unled();
  GroupMetrics metrics();
  bool on_own_thread() const;
  std::size_t kept();  ///< Entries of our maps, for the tests. REQUIRES: no thread runs.
  bool forked() const noexcept { return page_->forked(); }
  bool over() const noexcept { return ended_.load() || forked(); }

  Waiters waiters;
  const Exclusive mode;

 private:
  using SharedHooks = std::shared_ptr<const Hooks>;
  /// The hooks of a tenure share this with the decider.
  struct Signals {
    SharedHooks hooks;
    std::stop_source stop;
    std::stop_source expired{std::nostopstate};  ///< It has a state once the tenure ends.
    std::atomic<Clock::rep> done_by{0};
  };
  struct HookCall {
    SharedHooks hooks;
    std::variant<Elected, Ousting, Error> what;
  };
  /// Calls of one queue are made one at a time. Errors wait for no other hook of their election.
  struct QueueKey {
    std::string election;  ///< Empty: the errors of all that have no hooks of their own.
    bool errors{};
    friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
  };
  struct Queue {
    std::list<HookCall> calls;  ///< An empty one allocates nothing.
    bool running{};
  };
  using Queues = std::map<QueueKey, Queue>;

  void start_threads();
  void decide(std::unique_lock<std::mutex>& lock);
  void consider(const Fact& fact);
  void clock_loop();
  template <class T, class Call>
  Result<T> counted(const char* verb, Call call);
  void store_loop();
  void hook_loop();
  void error_loop();
  bool undecided() const { return !inbox_.empty() && !deciding_ && !decided_; }
  void carry_out(GroupEffect& effect);
  Fact answer_to(const GroupQuestion& question, const std::stop_token& interrupted);
  Token told(Token token) const { return mode == Exclusive::yes ? token : Token{}; }
  void begin(const group_effect::Begin& begin);
  void end(group_effect::End& end);
  bool queue_error(QueueKey key, HookCall call);
  void queue_hooks();
  bool add_to_queue(QueueKey key, HookCall call);
  void make_ready(Queues::iterator queue);
  void call_next_hook(std::unique_lock<std::mutex>& lock, std::deque<Queues::iterator>& ready);
  void call_hook(const HookCall& call, const std::string& election);
  template <class Call>
  void timed(const char* which, const HookCall& of, const std::string& election, Call call);
  template <class Call>
  void guarded(const char* which, const HookCall& of, const std::string& election, Call call);
  void report(Error error, const SharedHooks& hooks, const std::string& election);
  SharedHooks hooks_of(const std::string& election) const;
  void log(const SharedHooks& hooks, Level level, const std::string& message, const std::string& election,
           Token token) const;
  std::shared_ptr<GroupValidity> make_validity(const std::string& election);
  void end_if_done(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<GroupStore> store_;
  const SharedHooks hooks_;  ///< The common ones.
  const int hook_threads_;
  Clock& clock_;
  const std::shared_ptr<LeasePage> page_;
  Tally tally_;

  // The decider's own.
  std::vector<Fact> facts_;
  std::vector<GroupEffect> effects_;
  std::vector<std::pair<QueueKey, HookCall>> calls_;  ///< Of the hooks that follow from this fact, in order.
  std::map<std::string, std::shared_ptr<Signals>, std::less<>> signals_;
  std::map<std::string, SharedHooks, std::less<>> own_hooks_;  ///< Of elections that have some.
  std::stop_source interrupt_;

  std::mutex candidacy_mutex_;
  GroupCandidacy candidacy_;

  Slots slots_;

  std::mutex mutex_;  ///< It is never held while a hook or the store runs.
  std::vector<Fact> inbox_;
  bool deciding_{}, decided_{};          ///< decided_: there is nothing left to decide.
  Clock::Time due_{Clock::Time::max()};  ///< When we must act next, or should have acted.
  std::optional<std::pair<GroupQuestion, std::stop_token>> asked_;
  Queues queues_;
  std::deque<Queues::iterator> ready_, ready_errors_;  ///< Those whose next hook may be called.
  int hooks_running_{};
  bool error_runs_{};  ///< The thread for errors alone is in one.
  bool in_store_{}, started_{}, quit_{}, store_wedged_{};
  std::condition_variable store_wakes_, hook_wakes_, error_wakes_, end_wakes_;
  std::unique_ptr<Waker> clock_wakes_;
  std::atomic<bool> ended_{false};
  std::thread clock_thread_, store_thread_;
  std::vector<std::thread> hook_pool_;
};

}  // namespace tenure
