// SPDX-License-Identifier: Apache-2.0
// What code that acts as leader asks before each act.
#pragma once
#include <memory>
#include <optional>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/export.hpp>
#include <tenure/token.hpp>

namespace tenure {

class Validity;

/// Tells code that acts as leader whether it leads. LeaderManager::leadership() returns one, and for your
/// tests FakeLeadership::leadership().
///
/// It is a small value that is cheap to copy. Any thread may call any method. All but incumbent() take no lock and
/// allocate nothing. They compare the clock with the deadline at every call, so that a thread that was paused past the
/// deadline learns of it. Once the manager is gone, and in a forked child, we do not lead.
class TENURE_EXPORT Leadership {
 public:
  explicit Leadership(std::shared_ptr<const Validity>);  ///< Made by a manager, or by a FakeLeadership.

  /// Whether we lead at this very instant by our own clock.
  bool is_leader() const noexcept;

  /// False if others may lead beside us while is_leader() is true, and no token is given out (Exclusive::no). Only
  /// Elections that were made for it have that.
  bool exclusive() const noexcept;

  /// The fencing token of our tenure, if we lead at this very instant by our own clock, and exclusively.
  std::optional<Token> token() const noexcept;

  /// The time until the present deadline; zero if we do not lead. A renewal moves the deadline.
  Clock::Duration remaining() const noexcept;

  /// The token, if at least `cost` remains. Call it before an act that takes that long.
  std::optional<Token> guard(Clock::Duration cost) const noexcept;

  /// Says that the leader's work goes on: see Hooks::stall_after. It takes no lock.
  void progressed() const noexcept;

  /// The other candidate that leads, as the store said last. Empty while we lead ourselves, and once that lease has
  /// ended by our clock.
  std::optional<Incumbent> incumbent() const;

 private:
  std::shared_ptr<const Validity> validity_;
};

}  // namespace tenure
