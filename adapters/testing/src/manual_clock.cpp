// SPDX-License-Identifier: Apache-2.0
// The wakers of the manual clock, and what wakes them.
#include <tenure/manual_clock.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tenure {
namespace {

/// In real time: it only decides when a test gives up.
constexpr auto patience = std::chrono::seconds(10);

}  // namespace

/// Waits on a condition variable of its own: waking one thread must not disturb the others.
class ManualClock::ManualWaker final : public Waker {
 public:
  explicit ManualWaker(ManualClock& clock) : clock_(clock) {
    const std::lock_guard lock(clock_.mutex_);
    clock_.wakers_.push_back(this);
  }
  ~ManualWaker() override {
    const std::lock_guard lock(clock_.mutex_);
    std::erase(clock_.wakers_, this);
    clock_.changed_.notify_all();
  }

  void set(Time until) override {
    const std::lock_guard lock(clock_.mutex_);
    until_ = until;
    wakes_.notify_one();
    clock_.changed_.notify_all();
  }

  bool wait() override {
    std::unique_lock lock(clock_.mutex_);
    waiting_ = true;
    clock_.changed_.notify_all();
    wakes_.wait(lock, [&] { return woken_ || clock_.now() >= until_; });
    waiting_ = false;
    return std::exchange(woken_, false);
  }

  void wake() noexcept override {
    const std::lock_guard lock(clock_.mutex_);
    woken_ = true;
    wakes_.notify_one();
  }

  bool parked() const { return waiting_ && !woken_ && clock_.now() < until_; }

 private:
  friend class ManualClock;
  ManualClock& clock_;
  std::condition_variable wakes_;
  Time until_{Time::max()};
  bool waiting_{false}, woken_{false};
};

ManualClock::ManualClock(Time start, std::int64_t unix_ms)
    : made_by_(::getpid()), start_(start), now_(start.time_since_epoch().count()), unix_ms_(unix_ms) {}

ManualClock::~ManualClock() {
  if (::getpid() != made_by_) return;
  std::unique_lock lock(mutex_);
  now_ = Time::max().time_since_epoch().count();
  for (auto* waker : wakers_) waker->wakes_.notify_one();
  if (changed_.wait_for(lock, patience, [&] { return wakers_.empty(); })) return;
  std::fputs("tenure: a ManualClock was destroyed while somebody keeps a waker of it\n", stderr);
  std::abort();
}

Clock::Time ManualClock::now() const noexcept { return Time(Duration(now_.load())); }

std::int64_t ManualClock::unix_ms() const noexcept {
  return unix_ms_ + (now() - start_) / std::chrono::milliseconds(1);
}

std::unique_ptr<Waker> ManualClock::make_waker() { return std::make_unique<ManualWaker>(*this); }

void ManualClock::advance(Duration by) { advance_to(now() + by); }

void ManualClock::advance_to(Time to) {
  const std::lock_guard lock(mutex_);
  if (to <= now()) return;
  now_ = to.time_since_epoch().count();
  for (auto* waker : wakers_) waker->wakes_.notify_one();
}

void ManualClock::step_unix(Duration by) {
  unix_ms_ += std::chrono::duration_cast<std::chrono::milliseconds>(by).count();
}

bool ManualClock::await_parked(std::size_t n) {
  std::unique_lock lock(mutex_);
  const auto parked = [&] {
    return static_cast<std::size_t>(
               std::count_if(wakers_.begin(), wakers_.end(), [](const auto* w) { return w->parked(); })) >= n;
  };
  return changed_.wait_for(lock, patience, parked);
}

Clock::Time ManualClock::next_alarm() const {
  const std::lock_guard lock(mutex_);
  auto next = Time::max();
  for (const auto* waker : wakers_)
    if (waker->waiting_) next = std::min(next, waker->until_);
  return next;
}

}  // namespace tenure
