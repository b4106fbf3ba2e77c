// SPDX-License-Identifier: Apache-2.0
// Waits for a condition. A tool of the suites.
#pragma once
#include <functional>

#include <tenure/contract/player.hpp>

namespace tenure::contract {

/// Waits until it holds, a minute at most.
inline bool eventually(const std::function<bool()>& holds) {
  for (const auto patient = Player::within(minutes(1)); !holds(); wait_out(Player::within(milliseconds(5))))
    if (patient.passed()) return false;
  return true;
}

}  // namespace tenure::contract
