// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/export.hpp>

namespace tenure {

/// Stands still until told: for tests, yours and ours. Any thread may call any method; now() takes no lock.
///
/// A test advances it once await_parked() says that the threads under test have nothing left to do:
///   clock.await_parked(1); clock.advance(timing.renew); clock.await_parked(1);
class TENURE_EXPORT ManualClock final : public Clock {
 public:
  explicit ManualClock(Time start = Time{std::chrono::hours(1)}, std::int64_t unix_ms = 1'700'000'000'000);
  ~ManualClock() override;

  Time now() const noexcept override;
  std::unique_ptr<Waker> make_waker() override;  ///< REQUIRES: the clock outlives it.
  std::int64_t unix_ms() const noexcept override;

  void advance(Duration by);
  void advance_to(Time);        ///< Does nothing if that is past.
  void step_unix(Duration by);  ///< The wall clock alone, in either direction.

  /// Waits, at most 10 s of real time, until at least `n` threads wait on this clock for a moment that has not come
  /// and no wake-up is pending for any of them. False if that did not come about.
  bool await_parked(std::size_t n);

  /// The earliest moment that a parked thread waits for; Time::max() if none.
  Time next_alarm() const;

 private:
  class ManualWaker;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<Duration::rep> now_;
  std::atomic<std::int64_t> unix_ms_;
  std::vector<ManualWaker*> wakers_;
};

}  // namespace tenure
