// SPDX-License-Identifier: Apache-2.0
// The only source of time. Every deadline of the library is a Clock::Time.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>

#include <tenure/export.hpp>

namespace tenure {

class Waker;

/// A clock that also waits. Thread-safe.
///
/// The real one reads CLOCK_BOOTTIME, because std::chrono::steady_clock stands still while a host is suspended
/// and a lease does not. Tests drive a ManualClock.
class TENURE_EXPORT Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  using rep = Duration::rep;
  using period = Duration::period;
  using Time = std::chrono::time_point<Clock, Duration>;
  static constexpr bool is_steady = true;

  virtual ~Clock() = default;

  /// Never falls, counts time asleep. The epoch is the clock's own: times of two clocks do not compare.
  virtual Time now() const noexcept = 0;

  /// For one waiting thread. Throws std::system_error when the process has no descriptor left.
  virtual std::unique_ptr<Waker> make_waker() = 0;

  /// Wall-clock milliseconds since 1970: a floor for tokens and a label for people, never a ground to decide on.
  virtual std::int64_t unix_ms() const noexcept = 0;
};

/// Wakes one waiting thread, at a moment or at once. Made by a Clock, used with that clock's times.
class TENURE_EXPORT Waker {
 public:
  virtual ~Waker() = default;

  /// Sets when wait() ends by itself, also of a wait that goes on. Any thread, but one at a time.
  virtual void set(Clock::Time until) = 0;

  /// Sleeps until wake() was called or the clock reached what was set (at first: for ever); returns at once if either
  /// is so already. One wake() ends one wait, also a later one: a wake is never lost. REQUIRES: one waiting thread at a
  /// time. Returns true if a wake() ended it.
  virtual bool wait() = 0;

  bool wait_until(Clock::Time until) {
    set(until);
    return wait();
  }

  /// Any thread, also while nobody waits. Allocates nothing and takes no lock that a waiter holds.
  virtual void wake() noexcept = 0;
};

/// CLOCK_BOOTTIME, one for the process, alive until it ends.
TENURE_EXPORT Clock& boot_clock() noexcept;

/// For your work: sleeps that long by the boot clock, or until `stop` is requested, and returns false if it was:
/// `while (tenure::sleep_for(50ms, stop)) { one step }`. Any thread. Works also when no descriptor is left.
TENURE_EXPORT bool sleep_for(Clock::Duration duration, std::stop_token stop = {});

}  // namespace tenure
