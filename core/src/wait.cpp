// SPDX-License-Identifier: Apache-2.0
#include <tenure/wait.hpp>

namespace tenure {

void wait(Waker& waker, const Limit& limit) {
  const std::stop_callback wake(limit.stop, [&waker]() noexcept { waker.wake(); });
  if (!limit.passed()) waker.wait_until(limit.by);
}

void wait_out(const Limit& limit) {
  const auto waker = limit.clock.make_waker();
  while (!limit.passed()) wait(*waker, limit);
}

}  // namespace tenure
