// SPDX-License-Identifier: Apache-2.0
// The limit of a call in a test.
#pragma once

#include <stop_token>
#include <utility>

#include <tenure/clock.hpp>
#include <tenure/limit.hpp>

namespace tenure::test {

/// The limit of a call that begins now.
inline Limit within(Clock::Duration time, Clock& clock, std::stop_token stop = {}) {
  return {clock, clock.now() + time, std::move(stop)};
}
inline Limit within(Clock::Duration time, std::stop_token stop = {}) {
  return within(time, boot_clock(), std::move(stop));
}

}  // namespace tenure::test
