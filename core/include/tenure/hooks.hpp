// SPDX-License-Identifier: Apache-2.0
// The hooks that a manager calls when something happens.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>
#include <tenure/log.hpp>

namespace tenure {

/// Why a tenure ended.
enum class Reason {
  lapsed,       ///< The lease was not renewed in time: the store was away, or we were paused.
  superseded,   ///< The store said that we lead no more.
  step_down,    ///< Somebody asked us to, through the store: Backend::request_step_down().
  resigned,     ///< LeaderManager::resign(), or you left the election.
  stopped,      ///< LeaderManager::stop() or its destructor.
  ineligible,   ///< Your `eligible` said no.
  stalled,      ///< The work did not progress: Hooks::stall_after.
  handed_over,  ///< Only with Elections: another process is to lead it, because that is its share.
};

TENURE_EXPORT std::string_view to_string(Reason) noexcept;  ///< Its name: "lapsed".

/// The lease stands while the work stops, and the store is told afterwards. Otherwise the lease is lost already.
constexpr bool voluntary(Reason reason) noexcept { return reason != Reason::lapsed && reason != Reason::superseded; }

/// A tenure begins.
struct Elected {
  std::string election{};
  Token token{};           ///< Token{}, which fences nothing, where several may lead: Exclusive::no.
  std::stop_token stop{};  ///< It is requested as soon as the tenure begins to end, also while elected() runs.
                           ///< Its callbacks run on a thread of ours. A stop_callback that is made after
                           ///< the request runs at once, on the thread that makes it. REQUIRES: they do not block.
};

/// A tenure ends.
struct Ousting {
  std::string election{};
  Token token{};
  Reason reason{};
  std::string detail{};                          ///< What led to the end, for the log. Printable, but others' words.
  std::optional<Incumbent> successor{};          ///< Who leads now, if known.
  std::function<Clock::Duration()> remaining{};  ///< How long your work may still run; zero once it must be over.
  std::stop_token expired{};                     ///< It is requested when remaining() reaches zero.
};

/// Every hook may be left out. A manager copies them when it is made.
///
/// elected, ousting and error are called one at a time, in order, on threads of ours, with no lock of ours held. Every
/// elected() is followed by exactly one ousting() with the same token. We are not elected again while ousting() runs,
/// and no hook is called after stop() returned. What a hook throws comes back as an error(). elected() may run the
/// leader's work itself, until `stop` is requested: renewals go on meanwhile.
struct Hooks {
  std::function<void(const Elected&)> elected{};

  /// Stops the work before remaining() is zero, then returns. In a hand-over the successor waits for that.
  std::function<void(const Ousting&)> ousting{};

  /// Trouble, for your log. The manager has already reacted to it. The same trouble of the store is reported once a
  /// minute.
  std::function<void(const Error&)> error{};

  /// Called before each acquire and renew, on the thread that calls the store. False resigns. Until it returns, nothing
  /// is renewed, and stop() waits.
  std::function<bool()> eligible{};

  /// The log of the manager; a store has its own. If it is empty, warnings and errors go to stderr, except what error()
  /// hears of at once.
  Log log{};

  /// The work must call Leadership::progressed() at least this often while we lead. Otherwise the tenure ends, as by
  /// resign(): a leader whose work hangs is worse than none. 0 switches the watch off.
  Clock::Duration stall_after{};

  /// After such an end we campaign again once the work has progressed, or after this time. At most an hour.
  Clock::Duration stall_pause{std::chrono::minutes(1)};

  /// Ends the process if ousting() has not returned in time. It is for work that cannot be stopped in another way.
  bool abort_on_overrun{false};
};

}  // namespace tenure
