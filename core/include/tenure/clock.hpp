// SPDX-License-Identifier: Apache-2.0
// The only source of time. Every deadline of the library is a Clock::Time.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>

#include <tenure/export.hpp>
#include <tenure/kit/same_build.hpp>

namespace tenure {

class Waker;

/// A clock that can also wait. Any thread may call any method.
///
/// boot_clock() reads CLOCK_BOOTTIME. std::chrono::steady_clock will not do: it stands still while a host is
/// suspended, and a lease does not. Tests drive a ManualClock.
class TENURE_EXPORT Clock {
 public:
  using Duration = std::chrono::nanoseconds;
  using rep = Duration::rep;
  using period = Duration::period;
  using Time = std::chrono::time_point<Clock, Duration>;
  static constexpr bool is_steady = true;

  virtual ~Clock() = default;

  /// Never goes back, and counts the time that the host was suspended. Each clock has an epoch of its own, so times of
  /// two clocks cannot be compared.
  virtual Time now() const noexcept = 0;

  /// Makes a waker for one waiting thread. Throws std::system_error if the process has no file descriptor left.
  virtual std::unique_ptr<Waker> make_waker() = 0;

  /// Wall-clock milliseconds since 1970. They are a lower bound for tokens and a label for people. Nothing may be
  /// decided by them.
  virtual std::int64_t unix_ms() const noexcept = 0;
};

/// Lets one thread wait: until a moment, or until another thread wakes it. A Clock makes it, and it understands the
/// times of that clock only.
class TENURE_EXPORT Waker {
 public:
  virtual ~Waker() = default;

  /// Sets when wait() ends by itself. This also moves the end of a wait that is under way. Any thread may call it, one
  /// at a time.
  virtual void set(Clock::Time until) = 0;

  /// Sleeps until wake() is called or the clock reaches the time of set(), which is at first infinitely far. Returns at
  /// once if either has happened already. Returns true if a wake() ended the wait.
  /// One wake() ends one wait: if nobody waits, the next one. So no wake-up is lost.
  /// REQUIRES: one thread waits at a time.
  virtual bool wait() = 0;

  /// set() and wait().
  bool wait_until(Clock::Time until) {
    set(until);
    return wait();
  }

  /// Any thread may call it, also while nobody waits. It allocates nothing, and takes no lock that a waiter holds.
  virtual void wake() noexcept = 0;
};

/// The clock of the process: CLOCK_BOOTTIME. It lives as long as the process.
TENURE_EXPORT Clock& boot_clock() noexcept;

/// Sleeps for `duration` by the boot clock, or until `stop` is requested; then it returns false. For your work:
///   while (tenure::sleep_for(50ms, stop)) { one step }
/// Any thread may call it. It works also when no file descriptor is left.
TENURE_EXPORT bool sleep_for(Clock::Duration duration, std::stop_token stop = {});

}  // namespace tenure
