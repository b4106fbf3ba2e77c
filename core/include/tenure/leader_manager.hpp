// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include <tenure/backend.hpp>
#include <tenure/clock.hpp>
#include <tenure/export.hpp>
#include <tenure/hooks.hpp>
#include <tenure/leadership.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// Campaigns, renews, and tells you. Three threads: one for timers, and two of which one may be with the store and the
/// other in a hook of yours; none of them ever keeps another from its work.
///
/// All methods are safe to call from any thread, hooks included. The waiting ones end early, as if timed out, when
/// the manager stops. Two threads that wait at a time may get a std::system_error when no descriptor is left.
///
/// Open the store and make the manager after fork(): in a child start() throws std::logic_error, and all else does
/// nothing and returns at once.
class TENURE_EXPORT LeaderManager {
 public:
  /// Throws std::invalid_argument if `timing` breaks a rule or the backend does not accept it.
  /// REQUIRES: the clock outlives the manager, and every call into a wedged backend.
  LeaderManager(std::shared_ptr<Backend> backend, Timing timing, Hooks hooks = {}, Clock& clock = boot_clock());

  /// stop(), then joins. Aborts with a message if called from a hook of its own.
  ~LeaderManager();
  LeaderManager(const LeaderManager&) = delete;
  LeaderManager& operator=(const LeaderManager&) = delete;

  /// Begins to campaign and returns at once. Later calls do nothing. Throws std::system_error if a thread cannot be
  /// had; it may then be called again.
  void start();

  /// Ends this tenure, if any: ousting() first, then the store is told, so that a successor can lead at once.
  /// Campaigns on after the cool-down (counted from the release; default: Timing::retry). Returns at once.
  void resign(std::optional<Clock::Duration> cool_down = std::nullopt);

  /// Runs by another timing, without an end to this tenure. The backend is asked first: what it refuses comes as an
  /// error(), and nothing changes. Then renew, retry, call and drain count from the next question on; the term, the
  /// margin and the clock-rate error from the next tenure. (A tenure that runs is renewed no less often than its own
  /// term needs: where the new term is longer, a longer renew, retry or call waits with it.)
  /// Returns at once. Throws std::invalid_argument if `timing` breaks a rule.
  void retime(const Timing& timing);

  /// Ends this tenure, if any, waits for what runs of your hooks, ousting() above all, and for the release (at most
  /// Timing::call). Final. From a hook, a stop callback or a LeaderTask's work it only requests and returns.
  void stop();

  Leadership leadership() const;

  /// Waits until we lead.
  std::optional<Token> await_leadership(Clock::Duration within, std::stop_token stop = {});

  /// Counts what happened so far: elected, ousting, another incumbent, stopped. Never falls.
  std::uint64_t changes() const;

  /// Waits until changes() differs from `seen`, and returns it; `seen` itself when timed out.
  std::uint64_t await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop = {});

  /// Waits until stop() has done its work. True if it has.
  bool await_ended(Clock::Duration within, std::stop_token stop = {});

 private:
  class Shell;
  friend class LeaderTask;
  std::shared_ptr<Shell> shell_;
};

}  // namespace tenure
