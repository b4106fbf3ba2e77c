// SPDX-License-Identifier: Apache-2.0
// CLOCK_BOOTTIME and how to wait on it. The single file that reads the machine's clocks.
#include <tenure/clock.hpp>
#include <tenure/kit/descriptor.hpp>
#include <tenure/kit/poll_all.hpp>
#include <tenure/kit/wait.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <new>
#include <system_error>

namespace tenure {
namespace {

Clock::Duration read_clock(clockid_t id) noexcept {
  timespec ts{};
  if (clock_gettime(id, &ts) != 0) {  // A made-up time would let a lapsed leader lead on.
    std::fputs("tenure: the clock cannot be read; the process ends, because nobody can lead by it\n", stderr);
    std::abort();
  }
  return std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec);
}

/// Condition variables cannot wait on CLOCK_BOOTTIME, and ppoll's own time-out stands still during suspend.
class BootWaker final : public Waker {
 public:
  void set(Clock::Time until) override {
    using std::chrono::seconds;
    if (until == set_) return;
    auto at = until.time_since_epoch();
    if (at < Clock::Duration(1)) at = Clock::Duration(1);  // zero would disarm
    itimerspec spec{};
    spec.it_value.tv_sec = std::chrono::duration_cast<seconds>(at).count();
    spec.it_value.tv_nsec = (at % seconds(1)).count();
    if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) != 0)
      throw std::system_error(errno, std::generic_category(), "timerfd_settime");
    set_ = until;
  }

  bool wait() override { return wait_ready(-1, 0); }

  bool wait_ready(int descriptor, short events) {
    poll_all({{event_.get(), POLLIN, 0}, {timer_.get(), POLLIN, 0}, {descriptor, events, 0}});
    std::uint64_t count = 0;
    return ::read(event_.get(), &count, sizeof count) == sizeof count;
  }

  void wake() noexcept override {
    const std::uint64_t one = 1;
    // Fails only when 2^64 - 2 wakes are pending, and then it is readable anyway.
    [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  }

 private:
  Descriptor event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"};
  Descriptor timer_{::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create(CLOCK_BOOTTIME)"};
  Clock::Time set_{Clock::Time::max()};  ///< A timer that was never set never ends.
};

class BootClock final : public Clock {
 public:
  Time now() const noexcept override { return Time(read_clock(CLOCK_BOOTTIME)); }
  std::unique_ptr<Waker> make_waker() override { return std::make_unique<BootWaker>(); }
  std::int64_t unix_ms() const noexcept override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(read_clock(CLOCK_REALTIME)).count();
  }
};

}  // namespace

Clock& boot_clock() noexcept {
  // Never destroyed: threads of the program may still read it while statics are torn down.
  alignas(BootClock) static unsigned char storage[sizeof(BootClock)];
  static Clock& clock = *new (storage) BootClock;
  return clock;
}

void wait_ready(Waker& waker, const Limit& limit, int descriptor, short events) {
  const std::stop_callback wake(limit.stop, [&waker]() noexcept { waker.wake(); });
  if (limit.passed()) return;
  waker.set(limit.by);
  dynamic_cast<BootWaker&>(waker).wait_ready(descriptor, events);
}

bool sleep_for(Clock::Duration duration, std::stop_token stop) {
  // Takes no descriptor, so it waits by a clock that stands still in a suspend: ours is looked at once a second.
  static constexpr Clock::Duration look = std::chrono::seconds(1), none{};
  const auto began = boot_clock().now();
  const auto left = [&] { return std::max(duration, none) - (boot_clock().now() - began); };
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && left() > none)
    woken.wait_for(lock, stop, std::min(left(), look), [] { return false; });
  return !stop.stop_requested();
}

}  // namespace tenure
