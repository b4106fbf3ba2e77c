// SPDX-License-Identifier: Apache-2.0
// The limit of a call that runs on another thread than its caller's.
#pragma once
#include <stop_token>

#include <tenure/clock.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/limit.hpp>

namespace tenure::web {

/// How long something may still be asked on behalf of a caller, who may have left. Unlike a Limit it outlives the call.
struct Until {
  explicit Until(const Limit& limit) : by(by_boot_clock(limit)), stop(limit.stop) {}
  Clock::Time by;
  std::stop_token stop;
  bool over() const { return stop.stop_requested() || boot_clock().now() >= by; }
};

}  // namespace tenure::web
