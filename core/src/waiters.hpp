// SPDX-License-Identifier: Apache-2.0
// Threads of the user's that wait for something to change.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/wait.hpp>

namespace tenure {

class Waiters {
 public:
  explicit Waiters(Clock& clock) : clock_(clock) {}

  std::uint64_t changes() const noexcept { return changes_.load(); }

  /// One more change: wakes everybody.
  void changed() noexcept {
    changes_.fetch_add(1);
    wake();
  }

  /// Wakes everybody to look again.
  void wake() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto* waker : wakers_) waker->wake();
  }

  /// Until `done()`, the time-out or the stop; what done() said last.
  template <class Done>
  bool await(Clock::Duration within, const std::stop_token& stop, Done done) {
    if (done()) return true;
    const auto waker = clock_.make_waker();
    const Registered registered(*this, waker.get());
    const auto now = clock_.now();
    const Limit limit{clock_, within < Clock::Time::max() - now ? now + within : Clock::Time::max(), stop};
    while (!done()) {
      if (limit.passed()) return done();
      wait(*waker, limit);
    }
    return true;
  }

 private:
  struct Registered {
    Registered(Waiters& all, Waker* one) : waiters(all), waker(one) {
      const std::lock_guard lock(waiters.mutex_);
      waiters.wakers_.push_back(waker);
    }
    ~Registered() {
      const std::lock_guard lock(waiters.mutex_);
      std::erase(waiters.wakers_, waker);
    }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;
    Waiters& waiters;
    Waker* waker;
  };

  Clock& clock_;
  std::atomic<std::uint64_t> changes_{0};
  std::mutex mutex_;
  std::vector<Waker*> wakers_;
};

}  // namespace tenure
