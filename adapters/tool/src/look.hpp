// SPDX-License-Identifier: Apache-2.0
// Commands that look once: status, is-leader.
#pragma once
#include <algorithm>
#include <optional>
#include <utility>

#include <tenure/result.hpp>

#include "place.hpp"

namespace tenure::tool {

inline const Error* error_in(const Sight& sight) {
  const auto* unknown = std::get_if<Unknown>(&sight);
  return unknown ? &unknown->error : nullptr;
}
template <class Value>
const Error* error_in(const Result<Value>& result) {
  return result ? nullptr : &result.error();
}

/// Asks again until there is an answer, for so long. A store that has just been opened connects first, which may take
/// longer than one question. Of the errors it returns the last one that says more than that the time was short.
template <class Ask>
auto asked_until(Clock::Time end, Ask ask) {
  auto& clock = boot_clock();
  std::optional<decltype(ask(std::declval<Limit>()))> told;
  for (;;) {
    auto answer = ask(Limit{clock, std::min<Clock::Time>(end, clock.now() + std::chrono::seconds(2)), {}});
    const auto* error = error_in(answer);
    if (!error || error->fault == Fault::misconfigured || error->fault == Fault::forbidden) return answer;
    if (!told || error->fault != Fault::timed_out) told = std::move(answer);
    if (!sleep_for(std::min<Clock::Duration>(std::chrono::milliseconds(50), end - clock.now())) || clock.now() >= end)
      return *std::move(told);
  }
}

/// Asks the store again until it answers, for so long.
Sight look(Backend& backend, Clock::Duration patience);

/// The same, and then looks on until a renewal proves that the leader lives: a server says who leads and not since
/// when, so that a first sight takes the lease of a dead leader for a new one. Without a renewal within `patience`, or
/// one `renew` if that is longer, the sight is unknown; once its lease is over, nobody leads.
Sight proven(const Opened& opened, Clock::Duration patience);

}  // namespace tenure::tool
