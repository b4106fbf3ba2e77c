// SPDX-License-Identifier: Apache-2.0
// A clock that a test drives.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <tenure/clock.hpp>

namespace tenure {

/// A clock for tests. It stands still until advance(). Any thread may call any method; now() takes no lock.
///
/// await_parked() says when the threads under test have nothing left to do. Then the test advances the clock:
///   clock.await_parked(1); clock.advance(timing.renew); clock.await_parked(1);
class ManualClock final : public Clock {
 public:
  /// `start` is its time at first, and `unix_ms` that of its wall clock.
  explicit ManualClock(Time start = Time{std::chrono::hours(1)}, std::int64_t unix_ms = 1'700'000'000'000);
  /// Sets the time to Time::max(), so that every wait on this clock ends: a manager may have left a store call behind
  /// that waits on it. Then waits, for 10 s of real time at most, until other threads have destroyed their wakers. If
  /// one is left, stderr says so and the process is aborted. A forked child has no such threads, and waits for none.
  ~ManualClock() override;

  Time now() const noexcept override;
  std::unique_ptr<Waker> make_waker() override;  ///< REQUIRES: the thread that destroys the clock destroys it before.
  std::int64_t unix_ms() const noexcept override;

  void advance(Duration by);    ///< Both clocks go on, and whoever waits for a time that is reached wakes up.
  void advance_to(Time);        ///< The same. Does nothing if that time is past.
  void step_unix(Duration by);  ///< Steps the wall clock alone, forward or back.

  /// Waits until at least `n` threads wait on this clock for a time to come, with no wake-up pending for any of them.
  /// It waits for 10 s of real time at most, and then returns false. A manager's thread may be parked while another one
  /// decides until when: where the exact time matters, wait until next_alarm() is what you expect.
  bool await_parked(std::size_t n);

  /// The earliest time that a waiting thread waits for; Time::max() if there is none.
  Time next_alarm() const;

 private:
  class ManualWaker;
  const pid_t made_by_;
  const Time start_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<Duration::rep> now_;
  std::atomic<std::int64_t> unix_ms_;  ///< At the start, and with what it was stepped by.
  std::vector<ManualWaker*> wakers_;
};

}  // namespace tenure
