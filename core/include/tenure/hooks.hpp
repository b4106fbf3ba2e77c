// SPDX-License-Identifier: Apache-2.0
// What the manager tells you.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <tenure/candidate.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>
#include <tenure/log.hpp>

namespace tenure {

/// Why a tenure ended.
enum class Reason {
  lapsed,      ///< Not renewed in time: the store was away, or we were paused.
  superseded,  ///< The store said that it is ours no more.
  recalled,    ///< Somebody asked for it back through the store.
  resigned,    ///< LeaderManager::resign().
  stopped,     ///< LeaderManager::stop() or its destructor.
  ineligible,  ///< Your `eligible` said no.
};

TENURE_EXPORT std::string_view to_string(Reason) noexcept;

/// A tenure begins.
struct Elected {
  std::string election{};
  Token token{};
  std::stop_token stop{};  ///< Requested the moment the tenure starts to end, also while elected() runs.
                           ///< Its callbacks run on a thread of ours: do not block there.
};

/// A tenure ends.
struct Ousting {
  std::string election{};
  Token token{};
  Reason reason{};
  std::string detail{};                          ///< For the log: what led to it.
  std::optional<Incumbent> successor{};          ///< Who leads now, if known.
  std::function<Clock::Duration()> remaining{};  ///< How long your work may still run; zero when it must be over.
  std::stop_token expired{};                     ///< Requested when remaining() reaches zero.
};

/// All optional; REQUIRES: none is changed after start().
///
/// elected, ousting and error are called one at a time, in order, on threads of ours, with no lock of ours held. Every
/// elected() is followed by exactly one ousting() with the same token; nobody is elected while it runs, and nothing
/// is called after stop() returned. What they throw comes back as an error(). elected() may run the leader's work
/// itself until `stop` is requested: renewals go on meanwhile.
struct Hooks {
  std::function<void(const Elected&)> elected{};
  std::function<void(const Ousting&)> ousting{};  ///< Stop leading work before remaining() is zero, then return.
                                                  ///< A successor that we let in ourselves waits for that.
  std::function<void(const Error&)> error{};      ///< For the log: the manager has already coped.
  std::function<bool()> eligible{};  ///< Asked before each acquire and renew, on the thread that talks to the
                                     ///< store; false resigns. While it does not return, nothing is renewed,
                                     ///< and stop() waits.
  Log log{};  ///< The manager's; a store has its own. Empty: stderr, but for what error() hears of at once.
  bool abort_on_overrun{false};  ///< End the process when ousting() has not returned by its time:
                                 ///< for work that cannot be stopped any other way.
};

}  // namespace tenure
