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

void say(const std::string& what) { write_to_stderr("tenure: " + printable(what, 1000) + "\n"); }

int code_of(int status) { return WIFSIGNALED(status) ? by_signal + WTERMSIG(status) : WEXITSTATUS(status); }

template <std::size_t size>
void copy(char (&to)[size], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), size - 1));
}

Timing with_time_to_stop(Timing timing, Clock::Duration grace) {
  timing.drain = std::clamp(3 * grace, timing.drain, std::max(max_term, timing.drain));  // on_ousted has two of them
  return timing;
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

Campaign::Campaign(const Opened& opened, Guardian& guardian, Conduct conduct)
    : opened_(opened),
      guardian_(guardian),
      conduct_(conduct),
      pace_(Pace::of(opened.timing, conduct.kill_on_loss ? none : conduct.grace)),
      wakeup_({guardian.socket()}, {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2}),
      manager_(opened.backend, with_time_to_stop(opened.timing, conduct.grace), hooks()) {}

Hooks Campaign::hooks() {
  Hooks hooks;
  hooks.elected = [this](const Elected& event) {
    if (claim_tree()) post(event);
  };
  hooks.ousting = [this](const Ousting& event) {
    post(event);
    std::unique_lock lock(mutex_);
    tree_ended_.wait(lock, [this] { return !tree_; });
  };
  hooks.error = [this](const Error& error) { post(error); };
  return hooks;
}

/// On the hooks' thread, so that ousting() finds the claim.
bool Campaign::claim_tree() {
  const std::lock_guard lock(mutex_);
  return tree_ = !leaving_;
}

void Campaign::free_tree() {
  const std::lock_guard lock(mutex_);
  tree_ = false;
  tree_ended_.notify_all();
}

void Campaign::post(Event event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  wakeup_.wake();
}

int Campaign::run() {
  await_anew();
  manager_.start();
  while (!result_) {
    wakeup_.sleep_until(next_look());
    renew_lease();
    take_events();
    take_signals();
    take_end();
    watch_guardian();
    if (!running_ && !result_ && boot_clock().now() >= wait_until_) result_ = after_waiting();
  }
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  free_tree();
  manager_.stop();
  return *result_;
}

Clock::Time Campaign::next_look() const {
  if (!running_) return wait_until_;
  const auto now = boot_clock().now();
  return now < gone_by_ ? std::min(now + pace_.look, gone_by_) : now + kill_pause;
}

void Campaign::await_anew() {
  if (conduct_.wait) wait_until_ = boot_clock().now() + *conduct_.wait;
}

int Campaign::after_waiting() {
  if (trouble_ && !manager_.leadership().incumbent()) {
    say("the store did not answer in time: " + trouble_->message);
    return trouble_->fault == Fault::misconfigured ? misconfigured : unreachable;
  }
  say("waited too long for the lead");
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
      say(std::string(to_string(error->fault)) + ": " + error->message);
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
    return free_tree();
  }
  deadline_ = now + left;
  gone_by_ = lease.kill_at + pace_.spare / 2;
  Start start{};
  start.lease = lease;
  start.token = event.token;
  copy(start.election, event.election);
  copy(start.id, opened_.opening.candidate.name);
  copy(start.store, opened_.store);
  running_ = true;
  guardian_.order(start);
}

/// The lead is about to end or has ended. The hook waits until nothing of the command is left.
void Campaign::ousting(const Ousting& event) {
  lead_ended_ = true;
  if (!running_) return free_tree();
  const bool lost = event.reason == Reason::lapsed || event.reason == Reason::superseded;
  const auto now = boot_clock().now();
  const auto left = event.remaining() - pace_.spare;
  const auto grace = lost && conduct_.kill_on_loss ? none : std::clamp(left, none, std::max(none, conduct_.grace));
  say("the lead ends (" + std::string(to_string(event.reason)) + "); the command is to stop within " + seconds(grace));
  guardian_.order(End{now + grace});
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
      guardian_.order(End{boot_clock().now() + conduct_.grace});
    } else {
      guardian_.order(Forward{*signal});
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
  guardian_.order(lease);
}

void Campaign::take_end() {
  bool gone = false;
  while (const auto end = guardian_.ended(gone)) ended(*end);
  if (!gone || result_) return;
  say("the guardian of the command has been killed; so the command is ended too");
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
    say("the lead was lost, and the command was ended");
    result_ = lost;
  } else {
    if (!lead_ended_) {  // the command had to stop early, and then a renewal came through
      say("the store answered too late for the command; campaigning again");
      manager_.resign();
    }
    await_anew();
  }
  if (!result_) free_tree();
}

/// It kills at its deadline. If it is late, because somebody has stopped it, we do.
void Campaign::watch_guardian() {
  const auto now = boot_clock().now();
  if (!running_ || now < gone_by_) return;
  guardian_.kill_all();
  if (now < gone_by_ + guardian_is_broken) return;
  guardian_.replace();
  running_ = false;
  say("the guardian did not end the command; the tool did");
  result_ = broken;
}

}  // namespace tenure::tool
