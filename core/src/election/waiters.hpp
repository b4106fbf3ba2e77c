// SPDX-License-Identifier: Apache-2.0
// The user's threads that wait for a change.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/kit/wait.hpp>

#include "time/later.hpp"

namespace tenure {

class Waiters {
 public:
  explicit Waiters(Clock& clock) : clock_(clock), kept_(clock.make_waker()) {}

  std::uint64_t changes() const noexcept { return changes_.load(); }

  /// Counts a change and wakes everybody.
  void changed() noexcept {
    changes_.fetch_add(1);
    wake();
  }

  /// Wakes everybody to look again.
  void wake() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto* waker : wakers_) waker->wake();
  }

  /// Waits until `done()`, the time-out or the stop, and returns what done() said last. One thread at a time needs no
  /// descriptor for it.
  template <class Done>
  bool await(Clock::Duration within, const std::stop_token& stop, Done done) {
    if (done()) return true;
    const Waiting waiting(*this);
    const Limit limit{clock_, later(clock_.now(), within), stop};
    while (!done()) {
      if (limit.passed()) return done();
      wait(*waiting.waker, limit);
    }
    return true;
  }

  /// Nobody waits any more, and the clock may end.
  void give_up_clock() {
    const std::lock_guard lock(mutex_);
    kept_.reset();
  }

 private:
  struct Waiting {
    explicit Waiting(Waiters& all) : waiters(all), waker(all.lend()) {
      const std::lock_guard lock(waiters.mutex_);
      waiters.wakers_.push_back(waker.get());
    }
    ~Waiting() {
      const std::lock_guard lock(waiters.mutex_);
      std::erase(waiters.wakers_, waker.get());
      if (!waiters.kept_) waiters.kept_ = std::move(waker);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    Waiters& waiters;
    std::unique_ptr<Waker> waker;
  };

  std::unique_ptr<Waker> lend() {
    {
      const std::lock_guard lock(mutex_);
      if (kept_) return std::move(kept_);
    }
    return clock_.make_waker();
  }

  Clock& clock_;
  std::atomic<std::uint64_t> changes_{0};
  std::mutex mutex_;
  std::vector<Waker*> wakers_;
  std::unique_ptr<Waker> kept_;  ///< For the next thread that waits.
};

}  // namespace tenure
