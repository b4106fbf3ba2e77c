// SPDX-License-Identifier: Apache-2.0
// Metrics of a leader, for tests of what is written of them.
#pragma once
#include <chrono>
#include <string>

#include <tenure/metrics.hpp>

namespace tenure::prometheus {

/// A leader that renewed three times, once late and once in vain.
inline Metrics leading(const std::string& election) {
  using namespace std::chrono_literals;
  Metrics m;
  m.election = election;
  m.is_leader = true;
  m.token = Token{1754560000123};
  m.remaining = 9500ms;
  m.rides_out = 7300ms;
  m.since_granted = 1ms;
  m.overdue = 1500ms;
  m.wedged = 2s;
  m.overrun = 250ms;
  m.since_progress = 4s;
  m.stalled = true;
  m.elected = 2;
  m.ousted = {{Reason::lapsed, 1}, {Reason::resigned, 0}};
  m.errors = {{Fault::timed_out, 1}};
  auto& renew = m.calls["renew"];
  for (const auto took : {1ms, 3ms, 6000ms}) renew.durations.add(took);
  renew.errors = {{Fault::timed_out, 1}};
  m.hooks["ousting"].add(250ms);
  return m;
}

}  // namespace tenure::prometheus
