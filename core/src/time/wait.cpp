// SPDX-License-Identifier: Apache-2.0
// Waits until a limit; and turns a limit into a time of the boot clock.
#include <tenure/kit/wait.hpp>

#include <algorithm>
#include <chrono>

namespace tenure {

void wait(Waker& waker, const Limit& limit) {
  const std::stop_callback wake(limit.stop, [&waker]() noexcept { waker.wake(); });
  if (!limit.passed()) waker.wait_until(limit.by);
}

void wait_out(const Limit& limit) {
  const auto waker = limit.clock.make_waker();
  while (!limit.passed()) wait(*waker, limit);
}

Clock::Time by_boot_clock(const Limit& limit) {
  const auto now = limit.clock.now();
  const auto left = limit.by > now ? limit.by - now : Clock::Duration::zero();
  return boot_clock().now() + std::min<Clock::Duration>(left, std::chrono::hours(24));
}

}  // namespace tenure
