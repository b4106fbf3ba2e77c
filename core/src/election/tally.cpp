// SPDX-License-Identifier: Apache-2.0
// Counts what happened, for Metrics.
#include "election/tally.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tenure {
namespace {

/// Every enumerator that has a name.
template <class Enum>
std::map<Enum, std::uint64_t> zero_of_each() {
  std::map<Enum, std::uint64_t> out;
  for (int i = 0; to_string(static_cast<Enum>(i)) != "?"; ++i) out[static_cast<Enum>(i)] = 0;
  return out;
}

}  // namespace

void Histogram::add(Clock::Duration took) {
  const auto bucket = std::ranges::lower_bound(bounds_ms, took);
  ++counts[static_cast<std::size_t>(bucket - bounds_ms.begin())];
  sum += took;
}

std::uint64_t Histogram::count() const { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

Tally::Tally(std::string election, const Timing& timing, const std::vector<std::string>& verbs) : timing_(timing) {
  counted_.election = std::move(election);
  counted_.ousted = zero_of_each<Reason>();
  counted_.errors = zero_of_each<Fault>();
  for (const auto& verb : verbs) counted_.calls[verb].errors = zero_of_each<Fault>();
  for (const auto* hook : {"elected", "ousting"}) counted_.hooks[hook];
}

void Tally::granted(Clock::Time asked) {
  const std::lock_guard lock(mutex_);
  granted_ = asked;
}

Metrics Tally::snapshot(Clock::Duration remaining, Clock::Time now) const {
  const std::lock_guard lock(mutex_);
  auto out = counted_;
  out.remaining = remaining;
  out.rides_out = std::max(Clock::Duration::zero(), out.remaining - 2 * timing_.call - timing_.retry);
  if (granted_) out.since_granted = now - *granted_;
  return out;
}

}  // namespace tenure
