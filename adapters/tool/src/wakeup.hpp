// SPDX-License-Identifier: Apache-2.0
// What a thread of `tenure run` waits for.
#pragma once
#include <csignal>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/kit/descriptor.hpp>

namespace tenure::tool {

/// Whoever started us left it ignored. Linux keeps such a signal all the same while it is blocked.
bool is_ignored(int signal);

/// Lets a thread sleep until a moment, until one of its descriptors can be read, a signal comes, or wake().
class Wakeup {
 public:
  /// A signal that is_ignored() never comes. REQUIRES: every thread of the process blocks the signals. Throws
  /// std::system_error.
  Wakeup(const std::vector<int>& descriptors, std::initializer_list<int> signals);

  void sleep_until(Clock::Time until);
  void wake() noexcept { waker_->wake(); }  ///< Any thread.
  std::optional<int> signal() const;        ///< The next one that came. Does not wait.
  void forget(int descriptor) const;

 private:
  std::unique_ptr<Waker> waker_;
  Descriptor all_, signals_;
};

}  // namespace tenure::tool
