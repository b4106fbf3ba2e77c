// SPDX-License-Identifier: Apache-2.0
// Takes part in one election, and calls your hooks. Begin to read here.
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
#include <tenure/metrics.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// Takes part in an election: campaigns, renews the lease, and calls your hooks. It has three threads. One serves the
/// timers; of the other two, one may call the store while the other runs a hook of yours. So none waits for another.
///
/// Any thread may call any method, also a hook. When the manager stops, the waiting methods return as if their time was
/// over. If several threads wait at a time and no file descriptor is left, they throw std::system_error.
///
/// REQUIRES: the store is opened and the manager is made after fork(). In a forked child start() throws
/// std::logic_error, and every other method does nothing and returns at once.
class TENURE_EXPORT LeaderManager {
 public:
  /// Throws std::invalid_argument if `timing` breaks a rule, the backend does not accept it, or a stall time of `hooks`
  /// cannot be.
  /// REQUIRES: the backend is this manager's alone. The clock outlives the manager, and every call into a wedged
  /// backend.
  LeaderManager(std::shared_ptr<Backend> backend, Timing timing, const Hooks& hooks = {}, Clock& clock = boot_clock());

  /// Calls stop() and joins the threads. Aborts with a message if a hook of this manager calls it.
  ~LeaderManager();
  LeaderManager(const LeaderManager&) = delete;
  LeaderManager& operator=(const LeaderManager&) = delete;

  /// Begins to campaign, and returns at once. Later calls do nothing. Throws std::system_error if a thread cannot be
  /// started; you may then call it again.
  void start();

  /// Ends this tenure, if there is one: ousting() runs first, then the store is told, so that a successor can lead
  /// at once. We campaign again after the cool-down, which begins with the release. By default it is a term, so that
  /// the others have looked, also where the store cannot push. Of a tenure that ends already by another resign(), or by
  /// a request, the longer cool-down holds. Returns at once.
  void resign(std::optional<Clock::Duration> cool_down = std::nullopt);

  /// Ends this tenure, if there is one, and campaigns no more. Waits for your hooks, above all for ousting(), and then
  /// for a renewal that is out and for the release, each at most for Timing::call. In a hook, in the work of a
  /// LeaderTask, and in a stop callback on a thread of ours it only requests the stop, and returns at once. Any other
  /// thread waits: a worker that ousting() waits for must not call it, not even in a stop callback that it makes late
  /// (see Elected::stop).
  void stop();

  /// For the code that acts as leader. It may outlive the manager, and then says that we do not lead.
  Leadership leadership() const;

  /// What happened so far, for your monitoring. It takes a lock for a moment. In a forked child it is empty.
  Metrics metrics() const;

  /// Waits until we lead. If it waited in vain, last_error() says whether the store is the reason.
  std::optional<Token> await_leadership(Clock::Duration within, std::stop_token stop = {});

  /// What the store did last in place of an answer: it was away, or refused our password. Empty once it has answered.
  /// It is complete, also where error() and the log leave out what they have said before.
  std::optional<Error> last_error() const;

  /// How many changes there were: elected, ousting, another incumbent, stopped. It never falls.
  std::uint64_t changes() const;

  /// Waits until changes() differs from `seen`, and returns it. Returns `seen` when the time is over.
  std::uint64_t await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop = {});

  /// Waits until stop() has done its work, and returns whether it has.
  bool await_ended(Clock::Duration within, std::stop_token stop = {});

 private:
  class Shell;
  friend class LeaderTask;
  std::shared_ptr<Shell> shell_;
};

}  // namespace tenure
