// SPDX-License-Identifier: Apache-2.0
// The thread of an observer: it looks, waits for a change, and tells.
#include <tenure/observer.hpp>

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include <tenure/kit/leave_behind.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/start_thread.hpp>
#include <tenure/log.hpp>

#include "election/late_call.hpp"
#include "election/waiters.hpp"
#include "kit/repeats.hpp"
#include "kit/thrown.hpp"

namespace tenure {
namespace {

/// Whether both tell the same. The rest of a lease is no news.
bool same(const Sight& a, const Sight& b) {
  if (a.index() != b.index()) return false;
  const auto* x = std::get_if<Incumbent>(&a);
  const auto* y = std::get_if<Incumbent>(&b);
  return !x || (x->token == y->token && x->incarnation == y->incarnation);
}

}  // namespace

class TENURE_NO_EXPORT Observer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::shared_ptr<Backend> backend, const Timing& timing, Changed changed, Clock& clock)
      : waiters(clock), backend_(std::move(backend)), timing_(timing), changed_(std::move(changed)), clock_(clock) {
    if (!backend_) throw std::invalid_argument("Observer: backend is null");
    timing_.validate();
    if (const auto refused = backend_->accepts(timing_)) throw std::invalid_argument("Timing: " + refused->message);
  }

  void start() {
    thread_ = start_thread("tenure-observe", [self = shared_from_this()] { self->loop(); });
  }

  /// Allocates no descriptor. It waits for changed(), but not for a store call that ignores its limit: that one owns
  /// all that it needs.
  void stop() {
    stop_.request_stop();
    waiters.wake();
    {
      std::unique_lock lock(mutex_);
      told_.wait(lock, [this] { return !telling_; });
    }
    const auto patience = timing_.call + LateCall::grace;
    if (ends_.await(patience, {}, [this] { return ended_.load(); })) {
      thread_.join();
    } else {  // The thread that is left behind may outlive the clock.
      for (auto* const each : {&waiters, &pauses_, &ends_}) each->give_up_clock();
      leave_behind(std::move(thread_));
    }
  }

  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  bool forked() const { return ::getpid() != made_by_; }

  std::optional<Incumbent> incumbent() const {
    if (forked()) return std::nullopt;  // before the lock: it may have been held when we were forked
    const std::lock_guard lock(mutex_);
    const auto* who = std::get_if<Incumbent>(&answered_);
    const auto left = until_ - clock_.now();
    if (!who || left <= Clock::Duration::zero()) return std::nullopt;
    auto copy = *who;
    copy.remaining = left;
    return copy;
  }

  bool stopping() const { return stop_.stop_requested(); }

  Waiters waiters;

 private:
  void loop() {
    pause_from_ = clock_.now();
    while (!stopping()) {
      try {
        look_once();
      } catch (...) {
        if (stopping()) break;
        warn({Fault::unreachable, "Observer: " + what_was_thrown()});
        pause(timing_.retry);
      }
    }
    ended_ = true;
    ends_.wake();
  }

  void look_once() {
    const auto sight = look();
    if (stopping()) return;  // Perhaps long after: nothing of the caller's is touched any more.
    note(sight);
    note_lapse();
    if (std::holds_alternative<Unknown>(sight))
      pause(timing_.retry);
    else
      await_change(sight);
    if (stopping()) return;
    if (clock_.now() >= pause_from_ + timing_.retry) {
      pause_from_ = clock_.now();
      looks_ = 0;
    } else if (++looks_ > prompt_looks) {  // Something wakes us for nothing.
      pause(pause_from_ + timing_.retry - clock_.now());
    }
  }

  /// None once it is to end: the clock may be gone.
  void pause(Clock::Duration time) {
    if (!stopping()) pauses_.await(time, stop_.get_token(), [] { return false; });
  }

  /// An incumbent whose lease is over leads no more.
  Sight look() {
    try {
      auto sight = backend_->observe({clock_, clock_.now() + timing_.call, stop_.get_token()});
      const auto* who = std::get_if<Incumbent>(&sight);
      if (who && who->remaining <= Clock::Duration::zero()) return Vacant{};
      return sight;
    } catch (...) {
      return Unknown{{Fault::unreachable, "the backend threw: " + what_was_thrown()}};
    }
  }

  /// At most until the lease ends: the next look then tells whether it was renewed. A store that cannot be waited for
  /// is asked as often as a leader would ask it.
  void await_change(const Sight& sight) {
    const auto now = clock_.now();
    const auto end = std::holds_alternative<Incumbent>(sight) ? until_ : Clock::Time::max();
    try {
      backend_->await_change(sight, {clock_, std::min(now + timing_.term, end), stop_.get_token()});
    } catch (...) {
      pause(std::min<Clock::Duration>(timing_.renew, end - now));
    }
  }

  void note(const Sight& sight) {
    bool news = false, change = false;
    {
      const std::lock_guard lock(mutex_);
      news = !sight_ || !same(*sight_, sight);
      sight_ = sight;
      change = remember(sight);
      telling_ = news && changed_ && !stopping();
    }
    if (change) waiters.changed();
    if (!news) return;
    if (telling_) call_changed(sight);
    if (const auto* unknown = std::get_if<Unknown>(&sight); unknown && !changed_) warn(unknown->error);
  }

  void warn(Error error) {
    if (const auto told = repeats_.told(clock_.now(), std::move(error)))
      tell({}, Level::warning, std::string(to_string(told->fault)) + ": " + told->message,
           {{"election", backend_->election()}});
  }

  /// The lease that was seen has ended, and the store does not answer.
  void note_lapse() {
    {
      const std::lock_guard lock(mutex_);
      if (!std::holds_alternative<Incumbent>(answered_) || clock_.now() < until_) return;
      answered_ = Vacant{};
      telling_ = changed_ && !stopping();
    }
    waiters.changed();
    if (telling_) call_changed(Vacant{});
  }

  /// Whether another one leads, or nobody. A store that does not answer says nothing of that. REQUIRES: mutex_ is held.
  bool remember(const Sight& sight) {
    if (std::holds_alternative<Unknown>(sight)) return false;
    if (const auto* who = std::get_if<Incumbent>(&sight)) until_ = clock_.now() + std::min(who->remaining, max_term);
    return !same(std::exchange(answered_, sight), sight);
  }

  void call_changed(const Sight& sight) {
    struct Telling {  // The destructor waits for its end, also where no memory is left to say what was thrown.
      Impl& observer;
      ~Telling() {
        const std::lock_guard lock(observer.mutex_);
        observer.telling_ = false;
        observer.told_.notify_all();
      }
    } const telling{*this};
    try {
      changed_(sight);
    } catch (...) {
      warn({Fault::hook_threw, "changed() threw: " + what_was_thrown()});
    }
  }

  static constexpr int prompt_looks = 8;

  const std::shared_ptr<Backend> backend_;
  const Timing timing_;
  const Changed changed_;
  Clock& clock_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  std::optional<Sight> sight_;  ///< The last one.
  Sight answered_;              ///< The last one that the store answered. Unknown: it never did.
  Clock::Time until_{};         ///< When the lease of that incumbent ends.
  bool telling_{};              ///< changed() runs. Set under the lock, by the observer's thread alone.
  std::condition_variable told_;
  const pid_t made_by_{::getpid()};
  Waiters pauses_{clock_};  ///< Of the observer's thread.
  Waiters ends_{clock_};    ///< Of the destructor.
  Clock::Time pause_from_{};
  Repeats repeats_;
  int looks_{};
  std::atomic<bool> ended_{};
  std::thread thread_;
};

Observer::Observer(std::shared_ptr<Backend> backend, const Timing& timing, Changed changed, Clock& clock)
    : impl_(std::make_shared<Impl>(std::move(backend), timing, std::move(changed), clock)) {
  impl_->start();
}

Observer::~Observer() {
  if (impl_->forked()) {  // its thread is the parent's
    new std::shared_ptr<Impl>(std::move(impl_));
    return;
  }
  if (impl_->on_own_thread()) {
    std::fputs("tenure: an Observer was destroyed inside its own changed()\n", stderr);
    std::abort();
  }
  impl_->stop();
}

std::optional<Incumbent> Observer::incumbent() const { return impl_->incumbent(); }

std::uint64_t Observer::changes() const { return impl_->waiters.changes(); }

std::uint64_t Observer::await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop) {
  impl_->waiters.await(within, stop, [&] { return changes() != seen || impl_->stopping() || impl_->forked(); });
  return changes();
}

}  // namespace tenure
