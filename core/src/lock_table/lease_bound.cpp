// SPDX-License-Identifier: Apache-2.0
// Computes the bound of README.md, chapter "When a lease is over".
#include "lock_table/lease_bound.hpp"

#include <algorithm>
#include <cmath>

namespace tenure {

std::optional<Clock::Duration> age(const Record& record, std::int64_t now_ms, Clock::Duration longest) {
  const auto ms = static_cast<double>(now_ms) - static_cast<double>(record.written_ms);
  if (ms < 0 || ms > static_cast<double>(longest / std::chrono::milliseconds(1))) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(ms));
}

bool LeaseBound::saw(const std::string& who, Duration asked, Time at, Duration late, Duration longest, double rate) {
  const auto apart = at.time_since_epoch() - asked;
  // A clock that fell behind makes earlier versions worthless: its machine was paused or copied from outside.
  const auto fell_behind = [&] { return apart > lag_->most + late + longest / 20; };
  if (!lag_ || lag_->who != who || asked < lag_->asked || fell_behind()) {
    lag_ = Lag{who, asked, apart, late};
    return true;
  }
  const auto elapsed = static_cast<double>((asked - lag_->asked).count());
  const Duration drift(static_cast<Clock::rep>(std::ceil(2 * rate / (1 - rate) * elapsed)));
  lag_->asked = asked;
  lag_->most += drift;
  lag_->excess = std::min(lag_->excess + drift, longest);
  if (apart <= lag_->most) lag_->excess = std::min(lag_->excess, late);
  lag_->most = std::min(lag_->most, apart);
  return false;
}

}  // namespace tenure
