// SPDX-License-Identifier: Apache-2.0
// The metrics of a manager, for your monitoring. tenure::prometheus writes them as Prometheus reads them.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <tenure/clock.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>
#include <tenure/hooks.hpp>
#include <tenure/token.hpp>

namespace tenure {

/// How long something took. Each duration is counted once, in the first bucket that it fits into.
struct TENURE_EXPORT Histogram {
  static constexpr std::array<std::chrono::milliseconds, 12> bounds_ms{
      {std::chrono::milliseconds(1), std::chrono::milliseconds(2), std::chrono::milliseconds(5),
       std::chrono::milliseconds(10), std::chrono::milliseconds(20), std::chrono::milliseconds(50),
       std::chrono::milliseconds(100), std::chrono::milliseconds(200), std::chrono::milliseconds(500),
       std::chrono::milliseconds(1000), std::chrono::milliseconds(2000), std::chrono::milliseconds(5000)}};

  std::array<std::uint64_t, bounds_ms.size() + 1> counts{};  ///< The last one counts what is above all bounds.
  Clock::Duration sum{};

  void add(Clock::Duration took);  ///< Counts one more.
  std::uint64_t count() const;     ///< How many there were.
};

/// The calls of one kind, such as "renew".
struct CallMetrics {
  Histogram durations{};
  std::map<Fault, std::uint64_t> errors{};  ///< Each Fault is here, with 0 if there was none.
};

/// A snapshot. Counters begin with the manager and never fall.
struct Metrics {
  std::string election{};
  bool is_leader{};
  std::optional<Token> token{};  ///< The token of the present tenure.
  Clock::Duration remaining{};   ///< What Leadership::remaining() returns.
  Clock::Duration rides_out{};   ///< An outage of the store that begins now, and is no longer, does not end the tenure.
  std::optional<Clock::Duration> since_granted{};  ///< Since we sent the acquire or the renewal that was granted last.
  Clock::Duration overdue{};  ///< For how long the manager should have acted and has not. Above some seconds its
                              ///< threads do not run: they starve, or a log hook blocks. Health checks ask for it.
  Clock::Duration wedged{};   ///< For how long the present call of the store, or eligible(), has been over its limit.
  Clock::Duration overrun{};  ///< For how long ousting() has been over its time: the work may run on without a lease.
  std::optional<Clock::Duration> since_progress{};  ///< Since the work told of progress, or the tenure began: while we
                                                    ///< lead, with Hooks::stall_after.
  bool stalled{};           ///< The work stalled and has not gone on since, and no other tenure of ours has begun.
  std::uint64_t elected{};  ///< How many tenures began.
  std::map<Reason, std::uint64_t> ousted{};    ///< How many ended. Each Reason is here.
  std::map<Fault, std::uint64_t> errors{};     ///< How many errors there were. Each Fault is here.
  std::map<std::string, CallMetrics> calls{};  ///< The keys are the store's verbs: "acquire", "renew", "release".
  std::map<std::string, Histogram> hooks{};    ///< How long your "elected" and "ousting" took.
};

/// A snapshot of many elections. Its size does not depend on their number.
struct GroupMetrics {
  std::string group{};
  std::uint64_t joined{};   ///< In how many elections this process takes part.
  std::uint64_t led{};      ///< How many of them it leads at this instant.
  std::uint64_t stalled{};  ///< In how many the work stalled and has not gone on since. It does not contend for those.

  /// `remaining`, `rides_out` and `since_granted` are those of the session, whose lease they share. Counters are sums
  /// over all of them. `calls` has "open", "commit", "look", "end", "sweep". `is_leader`: the process leads at least
  /// one. `stalled`: the work of at least one stalled. `election` is the group's name. There is no token and no
  /// `since_progress`.
  Metrics session{};
};

}  // namespace tenure
