// SPDX-License-Identifier: Apache-2.0
#include "campaign.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include <tenure/kit/logging.hpp>

#include "durations.hpp"
#include "exit_code.hpp"

namespace tenure::tool {
namespace {

constexpr Clock::Duration none{};
constexpr Clock::Duration kill_pause = std::chrono::milliseconds(2);
constexpr Clock::Duration guardian_is_broken = std::chrono::seconds(10);

int code_of(int status) { return WIFSIGNALED(status) ? by_signal + WTERMSIG(status) : WEXITSTATUS(status); }

template <std::size_t size>
void copy(char (&to)[size], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), size - 1));
}

std::vector<int> awaited(const Means& means) {
  if (!means.progress) return {means.guardian.socket()};
  return {means.guardian.socket(), means.progress->reads(), means.progress->hears()};
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

}  // namespace

Pace Pace::of(const Timing& timing, Clock::Duration grace) {
  const auto beyond = timing.margin - timing.clock_allowance();
  const auto most = std::max(timing.rides_out() / 2, beyond / 4);
  return {std::min(grace, most), beyond / 2, beyond, timing.renew / 8};
}

Lease Pace::lease(Clock::Time deadline) const {
  const auto kill_at = deadline + beyond - spare;
  return {grace > none ? std::min(deadline, kill_at - grace) : kill_at, kill_at};
}

Campaign::Campaign(const Opened& opened, const Means& means, const Conduct& conduct)
    : opened_(opened),
      guardian_(means.guardian),
      service_(means.service),
      progress_(means.progress),
      conduct_(conduct),
      teller_(service_, conduct.log, opened.opening.election),
      pace_(Pace::of(opened.timing, conduct.kill_on_loss ? none : conduct.grace)),
      wakeup_(awaited(means), {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2}),
      manager_(opened.backend, with_time_to_stop(opened.timing, conduct.grace), hooks()) {
  if (conduct_.http.empty()) return;
  health_.emplace(manager_, opened.opening.candidate, conduct_.http, conduct_.http_hosts, conduct_.step_down_token);
  teller_.say("tells of itself at http://" + health_->address() + "/");
}

Campaign::~Campaign() { leave(); }

Hooks Campaign::hooks() {
  Hooks hooks;
  hooks.elected = [this](const Elected& event) {
    if (tree_.claim(event.token)) post(event);  // here, so that ousting() finds the claim
  };
  hooks.ousting = [this](const Ousting& event) {
    post(event);
    tree_.await_end();
  };
  hooks.error = [this](const Error& error) { post(error); };
  hooks.log = conduct_.log;
  hooks.stall_after = conduct_.stall_after;
  hooks.stall_pause = conduct_.stall_pause;
  return hooks;
}

void Campaign::post(Event event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  wakeup_.wake();
}

int Campaign::run() {
  begin();
  while (!result_) turn();
  leave();
  return *result_;
}

void Campaign::begin() {
  await_anew();
  manager_.start();
  service_.tell("READY=1");
}

void Campaign::turn() {
  tell_state();
  tell_alive();
  wakeup_.sleep_until(next_look());
  renew_lease();
  take_progress();
  take_events();
  take_signals();
  take_end();
  watch_guardian();
  if (!running_ && !result_ && boot_clock().now() >= wait_until_) result_ = after_waiting();
}

/// Also when something was thrown, for ousting() waits for the command. What still runs then is killed.
void Campaign::leave() {
  if (std::exchange(leaving_, true)) return;
  service_.tell("STOPPING=1");
  if (std::exchange(running_, false)) guardian_.replace();
  tree_.close();
  manager_.stop();
}

Clock::Time Campaign::next_look() const {
  const auto now = boot_clock().now();
  const auto beat = service_.beat() ? next_beat_ : Clock::Time::max();
  if (!running_) return std::min({wait_until_, beat, now + opened_.timing.renew});
  return now < gone_by_ ? std::min({now + pace_.look, gone_by_, beat}) : now + kill_pause;
}

void Campaign::await_anew() {
  if (conduct_.wait) wait_until_ = boot_clock().now() + *conduct_.wait;
}

/// Once the store has answered since.
void Campaign::forget_old_trouble() {
  if (trouble_ && answers(manager_.metrics()) != answers_before_trouble_) trouble_.reset();
}

int Campaign::after_waiting() {
  forget_old_trouble();
  if (trouble_ && !manager_.leadership().incumbent()) {
    teller_.say("the store did not answer in time: " + trouble_->message, Level::error);
    return trouble_->fault == Fault::misconfigured ? misconfigured : unreachable;
  }
  teller_.say("waited too long for the lead", Level::error);
  return waited;
}

void Campaign::take_events() {
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

void Campaign::elected(const Elected& event) {
  trouble_.reset();
  const auto now = boot_clock().now();
  const auto left = manager_.leadership().remaining();
  const auto lease = pace_.lease(now + left);
  lead_ended_ = false;
  if (result_ || left <= none || lease.term_at <= now) {  // it was over, or nearly, before we came to it
    manager_.resign();
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
void Campaign::ousting(const Ousting& event) {
  lead_ended_ = true;
  if (!running_) return tree_.free(event.token);
  const auto now = boot_clock().now();
  const auto left = event.remaining() - pace_.spare;
  const auto grace =
      conduct_.kill_on_loss && !voluntary(event.reason) ? none : std::clamp(left, none, std::max(none, conduct_.grace));
  teller_.say("the command is to stop within " + seconds(grace));
  order(End{now + grace});
  // A later renewal moves it again.
  gone_by_ = std::max(gone_by_, now + std::min(grace, left) + pace_.spare / 2);
}

void Campaign::take_signals() {
  while (const auto signal = wakeup_.signal()) {
    const bool ends = *signal != SIGUSR1 && *signal != SIGUSR2;
    if (!running_ && ends && !result_) result_ = by_signal + *signal;
    if (!running_) continue;
    if (*signal == SIGTERM) {
      stopped_by_user_ = true;
      order(End{boot_clock().now() + conduct_.grace});
    } else {
      order(Forward{*signal});
    }
  }
}

/// Hands on how long the lease lasts by now. The clock is read first, so that we promise too little rather than too
/// much.
void Campaign::renew_lease() {
  if (!running_) return;
  const auto now = boot_clock().now();
  const auto left = manager_.leadership().remaining();
  if (left <= none || now + left <= deadline_ + std::chrono::milliseconds(1)) return;
  deadline_ = now + left;
  const auto lease = pace_.lease(deadline_);
  gone_by_ = std::max(gone_by_, lease.kill_at + pace_.spare / 2);
  order(lease);
}

void Campaign::order(const Order& order) {
  if (!guardian_.order(order)) unheard_ = true;
}

void Campaign::take_end() {
  bool gone = false;
  while (const auto end = guardian_.ended(gone)) ended(*end);
  if (gone)
    lose_guardian("the guardian of the command has been killed; so the command is ended too");
  else if (unheard_)
    lose_guardian("the guardian of the command takes no orders; so both are ended");
}

void Campaign::lose_guardian(const char* why) {
  if (result_) return;
  teller_.say(why, Level::error);
  guardian_.replace();
  running_ = false;
  result_ = broken;
}

void Campaign::ended(const Ended& end) {
  if (!end.over) {  // on_ousted runs, and the lease does not limit it
    gone_by_ = boot_clock().now() + 2 * conduct_.grace;
    return;
  }
  running_ = false;
  if (stopped_by_user_ || !end.told) {
    result_ = code_of(end.status);
  } else if (conduct_.once) {
    teller_.say("the lead was lost, and the command was ended", Level::error);
    result_ = lost;
  } else {
    if (!lead_ended_) {  // the command had to stop early, and then a renewal came through
      teller_.say("the store answered too late for the command" + (trouble_ ? " (" + trouble_->message + ")" : "") +
                      "; campaigning again",
                  Level::warning);
      manager_.resign();
    }
    await_anew();
  }
  if (!result_) tree_.free(token_);
}

/// It kills at its deadline. If it is late, because somebody has stopped it, we do.
void Campaign::watch_guardian() {
  const auto now = boot_clock().now();
  if (!running_ || now < gone_by_) return;
  guardian_.kill_all();
  if (now < gone_by_ + guardian_is_broken) return;
  lose_guardian("the guardian did not end the command in time; so both are ended");
}

/// What a command tells after its end has begun is no progress.
void Campaign::take_progress() const {
  if (progress_ && progress_->told() && running_ && !lead_ended_) manager_.leadership().progressed();
}

// ---- whoever wants to know ----

void Campaign::tell_state() {
  if (running_) return teller_.is("leads with token " + std::to_string(token_.value));
  forget_old_trouble();
  const auto incumbent = manager_.leadership().incumbent();
  if (incumbent)
    teller_.waits("waits: " + printable(incumbent->name) + " leads");
  else if (manager_.metrics().stalled)
    teller_.waits("waits: the command stalled");
  else if (trouble_)
    teller_.is("waits: " + trouble_->message);
  else
    teller_.is("waits for the lead");
}

/// Only as long as the election goes on too. A follower is well.
void Campaign::tell_alive() {
  const auto beat = service_.beat();
  const auto now = boot_clock().now();
  if (!beat || now < next_beat_) return;
  next_beat_ = now + *beat;
  const auto metrics = manager_.metrics();
  if (metrics.overdue < *beat && metrics.overrun < *beat) service_.tell("WATCHDOG=1");
}

}  // namespace tenure::tool
