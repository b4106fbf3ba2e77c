// SPDX-License-Identifier: Apache-2.0
// What both machines hold of a tenure, and tell of it.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include <tenure/hooks.hpp>
#include <tenure/kit/logging.hpp>

#include "election/ending.hpp"
#include "election/late_call.hpp"

namespace tenure {

namespace effect {
// clang-format off
// Of an election. Where there is one only, it has no name.
struct Unlead { std::string election; };                ///< is_leader() is false from here.
struct Begin { std::string election; Token token; };    ///< elected()
struct FireStop { std::string election; };              ///< The tenure's stop token.
struct DoneBy { std::string election; Clock::Time at; };  ///< Ousting::remaining() counts to here.
struct End {                                            ///< ousting()
  std::string election; Token token; Reason reason; std::string detail; std::optional<Incumbent> successor;
};
struct FireExpired { std::string election; };           ///< Ousting::expired.
struct Overrun { std::string election; };               ///< ousting() had not returned in time.
struct Report { Error error; std::string election; };   ///< error() of this election, or of all if it has no name.
// clang-format on
}  // namespace effect

/// Hooks::stall_after and Hooks::stall_pause.
struct StallLimits {
  Clock::Duration after{};  ///< Zero: the work need not tell of its progress.
  Clock::Duration pause{};
};
StallLimits stall_limits(const Hooks& hooks);  ///< Throws std::invalid_argument.

/// Of an error, and of what led to an end. Others may have written it: it is printable from here on.
inline constexpr std::size_t longest_text = 2000;

inline std::string asked_by(const std::string& by, const std::string& why) {
  return printable("asked by " + by + ": " + why, longest_text);
}

/// From elected() until ousting() has returned. `emit` takes the effects, in order.
struct Tenure {
  using Time = Clock::Time;

  Token token{};
  Time progressed{};  ///< Its work, as far as we were told, or it began.
  Time excused{};     ///< Its work had told nothing in time by then, because we were stopped or starved ourselves.
  Ending ending{};

  /// When its work must have gone on.
  Time stalls_at(const StallLimits& stall) const {
    const bool watched = ending.leading() && stall.after > Clock::Duration::zero();
    return watched ? std::max(progressed, excused) + stall.after : Time::max();
  }

  /// Whether its work has stalled. If we come late ourselves, this process was stopped or starved, and so was the work.
  /// Then it gets its time once more, and not again before it went on.
  bool stalls(Time now, const StallLimits& stall) {
    const auto at = stalls_at(stall);
    if (now < at) return false;
    if (excused > progressed || now < at + LateCall::grace) return true;
    excused = now;
    return false;
  }

  /// The work stops first, and renewals go on. The store is told after ousting() has returned. REQUIRES: it leads.
  template <class Emit>
  void end_voluntarily(const Emit& emit, const std::string& election, Reason reason, std::string detail, Time drain_by,
                       Time lease_end) {
    ending.drain(reason, drain_by, lease_end);
    emit(effect::FireStop{election});
    emit(effect::DoneBy{election, ending.done_by()});
    emit(effect::End{election, token, reason, std::move(detail), std::nullopt});
  }

  /// The lease is lost. Work that has `own_time` at least has not overrun before.
  template <class Emit>
  void end_at_once(const Emit& emit, const std::string& election, Reason reason, std::string detail,
                   std::optional<Incumbent> successor, Time done_by, Time own_time) {
    const bool led = ending.leading();
    ending.lose(reason, done_by, std::max(done_by, own_time));
    emit(effect::Unlead{election});
    if (led) emit(effect::FireStop{election});
    emit(effect::DoneBy{election, ending.done_by()});
    if (led) emit(effect::End{election, token, reason, std::move(detail), std::move(successor)});
  }

  /// The lease ended while the work drained: its times stand.
  template <class Emit>
  void lapse(const Emit& emit, const std::string& election) {
    ending.lapse();
    emit(effect::Unlead{election});
  }

  /// Work that drains may take as long as the lease.
  template <class Emit>
  void renewed(const Emit& emit, const std::string& election, Time lease_end) {
    if (!ending.draining()) return;
    ending.renewed(lease_end);
    emit(effect::DoneBy{election, ending.done_by()});
  }

  /// Whether ousting() has outstayed its time; true once.
  template <class Emit>
  bool watch_hook(const Emit& emit, const std::string& election, Time now) {
    if (ending.expires(now)) emit(effect::FireExpired{election});
    if (!ending.overruns(now)) return false;
    emit(effect::Overrun{election});
    emit(effect::Report{
        {Fault::hook_overran, "ousting() of " + (election.empty() ? std::string() : "election " + election + ", ") +
                                  "token " + std::to_string(token.value) +
                                  " had not returned when its time was up: the work may run on without "
                                  "a lease. Make it stop sooner, or raise margin and drain"},
        election});
    return true;
  }
};

}  // namespace tenure
