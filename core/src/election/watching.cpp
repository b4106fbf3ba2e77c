// SPDX-License-Identifier: Apache-2.0
// Looks at a store, tells what changed, and waits for the next look.
#include "election/watching.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/start_thread.hpp>

#include "election/late_call.hpp"
#include "kit/thrown.hpp"

namespace tenure {

Watching::Watching(const Timing& timing, Clock& clock, Log log, const char* field, std::function<std::string()> name)
    : timing_(timing),
      clock_(clock),
      log_(std::move(log)),
      field_(field),
      name_(std::move(name)),
      made_by_(::getpid()) {}

Clock::Duration Watching::telling() const noexcept {
  const auto from = told_from_.load();
  return from == 0 ? Clock::Duration::zero() : clock_.now().time_since_epoch() - Clock::Duration(from);
}

void Watching::start(const char* thread) {
  thread_ = start_thread(thread, [self = shared_from_this()] { self->loop(); });
}

bool Watching::forked() const { return ::getpid() != made_by_; }

void Watching::report(const Error& error) {
  const auto told = repeats_.told(clock_.now(), error);
  if (!told) return;
  call([&] {
    tell(log_, Level::warning, std::string(to_string(told->fault)) + ": " + told->message, {{field_, name_()}});
  });
}

void Watching::end(std::shared_ptr<Watching> self, const char* who) {
  if (self->forked()) {  // its thread is the parent's
    new std::shared_ptr<Watching>(std::move(self));
    return;
  }
  if (std::this_thread::get_id() == self->thread_.get_id()) {
    std::fprintf(stderr, "tenure: %s was destroyed inside its own changed()\n", who);
    std::abort();
  }
  self->stop();
}

/// Allocates no descriptor. It waits for what is told, but not for a store's call that ignores its limit: that one owns
/// all that it needs.
void Watching::stop() {
  stop_.request_stop();
  waiters_.wake();
  {
    std::unique_lock lock(telling_mutex_);
    told_.wait(lock, [this] { return !telling_; });
  }
  if (ends_.await(timing_.call + LateCall::grace, {}, [this] { return ended_.load(); })) {
    thread_.join();
  } else {  // The thread that is left behind may outlive the clock.
    for (auto* const each : {&waiters_, &pauses_, &ends_}) each->give_up_clock();
    leave_behind(std::move(thread_));
  }
}

std::uint64_t Watching::await_change(std::uint64_t seen, Clock::Duration within, const std::stop_token& stop) {
  waiters_.await(within, stop, [&] { return changes() != seen || stopping() || forked(); });
  return changes();
}

// ---- the thread ----

void Watching::loop() {
  pause_from_ = clock_.now();
  while (!stopping()) {
    try {
      look_once();
    } catch (...) {
      if (stopping()) break;
      report({Fault::unreachable, "the observer: " + what_was_thrown()});
      pause(timing_.retry);
    }
  }
  ended_ = true;
  ends_.wake();
}

void Watching::look_once() {
  const bool answered = look();
  if (stopping()) return;
  if (answered) {
    await_news();
  } else {
    judge_ends();
    pause(timing_.retry);
  }
  if (stopping()) return;
  if (clock_.now() >= pause_from_ + timing_.retry) {
    pause_from_ = clock_.now();
    looks_ = 0;
  } else if (++looks_ > prompt_looks) {  // Something wakes us for nothing.
    pause(pause_from_ + timing_.retry - clock_.now());
  }
}

/// None once it is to end: the clock may be gone.
void Watching::pause(Clock::Duration time) {
  if (!stopping()) pauses_.await(time, stop_.get_token(), [] { return false; });
}

void Watching::call(const std::function<void()>& users) {
  {
    const std::lock_guard lock(telling_mutex_);
    if (stopping()) return;
    telling_ = true;
    told_from_ = clock_.now().time_since_epoch().count();
  }
  struct Telling {  // end() waits for its end, also where no memory is left to say what was thrown.
    Watching& all;
    ~Telling() {
      const std::lock_guard lock(all.telling_mutex_);
      all.telling_ = false;
      all.told_from_ = 0;
      all.told_.notify_all();
    }
  } const telling{*this};
  try {
    users();
  } catch (...) {
    report({Fault::hook_threw, "changed() threw: " + what_was_thrown()});
  }
}

}  // namespace tenure
