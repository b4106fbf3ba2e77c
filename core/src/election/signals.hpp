// SPDX-License-Identifier: Apache-2.0
// What the hooks of one tenure share with the thread that decides.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include <tenure/hooks.hpp>

#include "election/candidacy.hpp"

namespace tenure {

/// The hooks of a tenure share this with whoever decides.
struct Signals {
  std::stop_source stop, expired;
  std::atomic<Clock::rep> done_by{0};
};

/// What ousting() is told.
inline Ousting ousting_of(effect::End& end, const std::string& election, std::shared_ptr<Signals> signals,
                          Clock& clock) {
  auto expired = signals->expired.get_token();
  auto remaining = [signals = std::move(signals), &clock] {
    const auto left = Clock::Duration(signals->done_by.load()) - clock.now().time_since_epoch();
    return std::max(left, Clock::Duration::zero());
  };
  return {
      election,          end.token, end.reason, std::move(end.detail), std::move(end.successor), std::move(remaining),
      std::move(expired)};
}

}  // namespace tenure
