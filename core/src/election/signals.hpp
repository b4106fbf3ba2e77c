// SPDX-License-Identifier: Apache-2.0
// What the hooks of one tenure share with the thread that decides.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <stop_token>
#include <utility>

#include <tenure/hooks.hpp>

namespace tenure {

/// The hooks of a tenure share this with whoever decides.
struct Signals {
  std::shared_ptr<const Hooks> hooks{};
  std::stop_source stop{};
  std::stop_source expired{std::nostopstate};  ///< It has a state once the tenure ends.
  std::atomic<Clock::rep> done_by{0};
};

/// Gives ousting() what tells how long the work may run.
inline void connect(Ousting& ousting, std::shared_ptr<Signals> signals, Clock& clock) {
  signals->expired = *std::make_unique<std::stop_source>();  // g++ 12 warns at -Os of one that is made on the stack
  ousting.expired = signals->expired.get_token();
  ousting.remaining = [signals = std::move(signals), &clock] {
    const auto left = Clock::Duration(signals->done_by.load()) - clock.now().time_since_epoch();
    return std::max(left, Clock::Duration::zero());
  };
}

}  // namespace tenure
