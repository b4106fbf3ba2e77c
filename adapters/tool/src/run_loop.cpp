// SPDX-License-Identifier: Apache-2.0
// One thread: takes part in the election, and tells the supervisor until when the command may run.
#include "run_loop.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <variant>

#include <tenure/kit/logging.hpp>
#include <tenure/leader_manager.hpp>

#include "durations.hpp"
#include "exit_code.hpp"
#include "health.hpp"
#include "tree.hpp"
#include "wakeup.hpp"

namespace tenure::tool {
namespace {

constexpr Clock::Duration none{};
constexpr Clock::Duration kill_pause = std::chrono::milliseconds(2);
constexpr Clock::Duration supervisor_is_broken = std::chrono::seconds(10);

int code_of(int status) { return WIFSIGNALED(status) ? by_signal + WTERMSIG(status) : WEXITSTATUS(status); }

template <std::size_t size>
void copy(char (&to)[size], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), size - 1));
}

std::vector<int> awaited(const RunParts& parts) {
  if (!parts.progress) return {parts.supervisor.socket()};
  return {parts.supervisor.socket(), parts.progress->reads(), parts.progress->hears()};
}

Timing with_time_to_stop(Timing timing, Clock::Duration grace) {
  timing.drain = std::clamp(3 * grace, timing.drain, std::max(max_term, timing.drain));  // on_ousted has two of them
  return timing;
}

/// How often the store has answered the question that a candidate without the lead asks.
std::uint64_t answers(const Metrics& metrics) {
  const auto& acquires = metrics.calls.at("acquire");
  auto out = acquires.durations.count();
  for (const auto& [fault, times] : acquires.errors) out -= times;
  return out;
}

/// One thread uses it.
class RunLoop {
 public:
  RunLoop(const Opened& opened, const RunParts& parts, const RunOptions& options)
      : opened_(opened),
        supervisor_(parts.supervisor),
        service_(parts.service),
        progress_(parts.progress),
        options_(options),
        pace_(Pace::of(opened.timing, options.kill_on_loss ? none : options.grace)),
        wakeup_(awaited(parts), {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2}),
        manager_(opened.backend, with_time_to_stop(opened.timing, options.grace), hooks()) {
    if (options_.http.empty()) return;
    health_ = serve(manager_, opened.opening.candidate, options_.http, options_.http_hosts, options_.step_down_token);
    say("tells of itself at http://" + health_.address + "/");
  }

  ~RunLoop() { leave(); }
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;

  int run() {
    begin();
    while (!result_) turn();
    leave();
    return *result_;
  }

 private:
  using Event = std::variant<Elected, Ousting, Error>;

  Hooks hooks() {
    Hooks hooks;
    hooks.elected = [this](const Elected& event) {
      if (tree_.claim(event.token)) post(event);  // here, so that ousting() finds the claim
    };
    hooks.ousting = [this](const Ousting& event) {
      post(event);
      tree_.await_end();
    };
    hooks.error = [this](const Error& error) { post(error); };
    hooks.log = options_.log;
    hooks.stall_after = options_.stall_after;
    hooks.stall_pause = options_.stall_pause;
    return hooks;
  }

  void post(Event event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    wakeup_.wake();
  }

  void begin() {
    await_anew();
    manager_.start();
    service_.tell("READY=1");
  }

  void turn() {
    tell_state();
    tell_alive();
    wakeup_.sleep_until(next_look());
    renew_lease();
    take_progress();
    take_events();
    take_signals();
    take_end();
    watch_supervisor();
    if (!running_ && !result_ && boot_clock().now() >= wait_until_) result_ = after_waiting();
  }

  /// Also when something was thrown, for ousting() waits for the command. What still runs then is killed.
  void leave() {
    if (std::exchange(leaving_, true)) return;
    service_.tell("STOPPING=1");
    if (std::exchange(running_, false)) supervisor_.replace();
    tree_.close();
    manager_.stop();
  }

  Clock::Time next_look() const {
    const auto now = boot_clock().now();
    const auto beat = service_.beat() ? next_beat_ : Clock::Time::max();
    if (!running_) return std::min({wait_until_, beat, now + opened_.timing.renew});
    return now < gone_by_ ? std::min({now + pace_.look, gone_by_, beat}) : now + kill_pause;
  }

  void await_anew() {
    if (options_.wait) wait_until_ = boot_clock().now() + *options_.wait;
  }

  /// Once the store has answered since.
  void forget_old_trouble() {
    if (trouble_ && answers(manager_.metrics()) != answers_before_trouble_) trouble_.reset();
  }

  int after_waiting() {
    forget_old_trouble();
    if (trouble_ && !manager_.leadership().incumbent()) {
      say("waited too long for the lead: " + trouble_->message, Level::error);
      return trouble_->fault == Fault::misconfigured ? misconfigured : unreachable;
    }
    say("waited too long for the lead", Level::error);
    return waited;
  }

  void take_events() {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (events_.empty()) return;
      const auto event = std::move(events_.front());
      events_.pop_front();
      lock.unlock();
      if (const auto* start = std::get_if<Elected>(&event)) elected(*start);
      if (const auto* end = std::get_if<Ousting>(&event)) ousting(*end);
      if (const auto* error = std::get_if<Error>(&event)) {
        trouble_ = *error;
        answers_before_trouble_ = answers(manager_.metrics());
      }
    }
  }

  void elected(const Elected& event) {
    trouble_.reset();
    const auto now = boot_clock().now();
    const auto left = manager_.leadership().remaining();
    const auto lease = pace_.lease(now + left);
    lead_ended_ = false;
    if (result_ || left <= none || lease.term_at <= now) {  // it was over, or nearly, before we came to it
      manager_.resign(opened_.timing.retry);
      return tree_.free(event.token);
    }
    if (progress_) progress_->told();  // what a former command told
    deadline_ = now + left;
    gone_by_ = lease.kill_at + pace_.spare / 2;
    token_ = event.token;
    Start start{};
    start.lease = lease;
    start.token = event.token;
    copy(start.election, event.election);
    copy(start.id, opened_.opening.candidate.name);
    copy(start.store, opened_.store);
    running_ = true;
    tell_state();
    order(start);
  }

  /// The lead is about to end or has ended. The hook waits until nothing of the command is left.
  void ousting(const Ousting& event) {
    lead_ended_ = true;
    if (!running_) return tree_.free(event.token);
    const auto now = boot_clock().now();
    const auto left = event.remaining() - pace_.spare;
    const auto grace = options_.kill_on_loss && !voluntary(event.reason)
                           ? none
                           : std::clamp(left, none, std::max(none, options_.grace));
    say("the command is to stop within " + seconds(grace));
    order(End{now + grace});
    // A later renewal moves it again.
    gone_by_ = std::max(gone_by_, now + std::min(grace, left) + pace_.spare / 2);
  }

  void take_signals() {
    while (const auto signal = wakeup_.signal()) {
      const bool ends = *signal != SIGUSR1 && *signal != SIGUSR2;
      if (!running_ && ends && !result_) result_ = by_signal + *signal;
      if (!running_) continue;
      if (ends && lead_ended_) stopped_by_user_ = true;  // The command ends already, and is not to run again.
      if (*signal == SIGTERM) {
        stopped_by_user_ = true;
        order(End{boot_clock().now() + options_.grace});
      } else {
        order(Forward{*signal});
      }
    }
  }

  /// Hands on how long the lease lasts by now. The clock is read first, so that we promise too little rather than too
  /// much.
  void renew_lease() {
    if (!running_) return;
    const auto now = boot_clock().now();
    const auto left = manager_.leadership().remaining();
    if (left <= none || now + left <= deadline_ + std::chrono::milliseconds(1)) return;
    deadline_ = now + left;
    const auto lease = pace_.lease(deadline_);
    gone_by_ = std::max(gone_by_, lease.kill_at + pace_.spare / 2);
    order(lease);
  }

  void order(const Order& order) {
    if (!supervisor_.order(order)) unheard_ = true;
  }

  void take_end() {
    bool gone = false;
    while (const auto end = supervisor_.ended(gone)) ended(*end);
    if (gone)
      lose_supervisor("the supervisor of the command has been killed; so the command is ended too");
    else if (unheard_)
      lose_supervisor("the supervisor of the command takes no orders; so both are ended");
  }

  void lose_supervisor(const char* why) {
    if (result_) return;
    say(why, Level::error);
    supervisor_.replace();
    running_ = false;
    result_ = broken;
  }

  void ended(const Ended& end) {
    if (!end.over) {  // on_ousted runs, and the lease does not limit it
      gone_by_ = boot_clock().now() + 2 * options_.grace;
      return;
    }
    running_ = false;
    if (stopped_by_user_ || !end.told) {
      result_ = code_of(end.status);
    } else if (options_.once) {
      say("the lead was lost, and the command was ended", Level::error);
      result_ = lost;
    } else {
      if (!lead_ended_) {  // the command had to stop early, and then a renewal came through
        say("the store answered too late for the command" + (trouble_ ? " (" + trouble_->message + ")" : "") +
                "; campaigning again",
            Level::warning);
        manager_.resign(opened_.timing.retry);
      }
      await_anew();
    }
    if (!result_) tree_.free(token_);
  }

  /// It kills at its deadline. If it is late, because somebody has stopped it, we do.
  void watch_supervisor() {
    const auto now = boot_clock().now();
    if (!running_ || now < gone_by_) return;
    supervisor_.kill_all();
    if (now < gone_by_ + supervisor_is_broken) return;
    lose_supervisor("the supervisor did not end the command in time; so both are ended");
  }

  /// What a command tells after its end has begun is no progress.
  void take_progress() const {
    if (progress_ && progress_->told() && running_ && !lead_ended_) manager_.leadership().progressed();
  }

  // ---- whoever wants to know ----

  void tell_state() {
    if (running_) return is("leads with token " + std::to_string(token_.value));
    forget_old_trouble();
    const auto incumbent = manager_.leadership().incumbent();
    if (incumbent)
      waits("waits: " + printable(incumbent->name) + " leads");
    else if (manager_.metrics().stalled)
      waits("waits: the command stalled");
    else if (trouble_)
      is("waits: " + trouble_->message);
    else
      is("waits for the lead");
  }

  /// Only as long as the election goes on too. A follower is well.
  void tell_alive() {
    const auto beat = service_.beat();
    const auto now = boot_clock().now();
    if (!beat || now < next_beat_) return;
    next_beat_ = now + *beat;
    const auto metrics = manager_.metrics();
    if (metrics.overdue < *beat && metrics.overrun < *beat) service_.tell("WATCHDOG=1");
  }

  void say(const std::string& what, Level level = Level::info) const {
    tenure::tell(options_.log, level, what, {{"election", opened_.opening.election}});
  }

  /// For instance "waits: bob leads". It is said once for each change.
  void waits(const std::string& what) {
    service_.status(what);
    if (std::exchange(waits_for_, what) != what) say(what);
  }

  /// The service manager alone hears it: the manager's own log has said it.
  void is(const std::string& what) {
    service_.status(what);
    waits_for_.clear();
  }

  const Opened& opened_;
  Supervisor& supervisor_;
  ServiceManager& service_;
  Progress* const progress_;
  const RunOptions options_;
  const Pace pace_;
  Wakeup wakeup_;

  Tree tree_;
  std::mutex mutex_;
  std::deque<Event> events_;

  bool leaving_{};
  bool unheard_{};     ///< The supervisor could not be told something.
  bool running_{};     ///< It was ordered, and has not ended.
  bool lead_ended_{};  ///< ousting() has been called for the tenure of the command that runs, or ran last.
  bool stopped_by_user_{};
  Clock::Time deadline_{};  ///< As the supervisor knows it.
  Clock::Time gone_by_{};   ///< If the command runs later than that, we kill it too.
  Clock::Time wait_until_{Clock::Time::max()};
  std::optional<Error> trouble_;  ///< The store's last word, if it was none.
  std::uint64_t answers_before_trouble_{};
  std::optional<int> result_;
  Token token_{};
  std::string waits_for_;    ///< As it was said.
  Clock::Time next_beat_{};  ///< For the service manager.
  LeaderManager manager_;    ///< Its hooks use the others.
  Health health_{};
};

}  // namespace

int run_while_leading(const Opened& opened, const RunParts& parts, const RunOptions& options) {
  return RunLoop(opened, parts, options).run();
}

}  // namespace tenure::tool
