// SPDX-License-Identifier: Apache-2.0
// What is known of the other sessions of a group.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include <tenure/group_store.hpp>

#include "lock_table/lease_bound.hpp"

namespace tenure {

/// The other sessions of a group, as seen in the store: which of them have ended, and from when one may be ended
/// because its lease is over.
class Rivals {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  explicit Rivals(double clock_rate_error) : rate_(clock_rate_error) {}

  struct Rival {
    Session session{};
    LeaseBound bound{};
    Time lease_end{};    ///< The end by our clock. Nobody else may end it earlier.
    Time heard{};        ///< When a new beat of it was seen last.
    bool doubted{};      ///< The last of what was released in its favour was taken by others,
    Time takes_from{};   ///< and it is expected to take one from then on.
    int let_more_lie{};  ///< So many in a row since then.
    Time end_again{};    ///< It could not be ended; not again before then.
    int ends_in_vain{};
  };
  enum class News { none, numbers, sessions };  ///< Beats alone; what each may lead; who is there.

  /// All sessions, received `at`. `own`: ours, which is none of them.
  News saw(const Look& look, std::optional<SessionId> own, Duration own_term, Time at);

  /// An election was released in its favour, and was taken: by it, or by another.
  void given(SessionId id, bool took, Time at, Duration term);
  /// One is about to be.
  void offered(SessionId id, Time at, Duration term);

  /// A lead names it. If it is in no look, it counts as dead one term after that was first noticed, which takes a look
  /// at all sessions. True: there must be one.
  bool named(SessionId id, Time at);

  /// It has ended, as the store answered.
  void ended(SessionId id);

  /// It was renewed when we wanted to end it. Not again before then, if no look shows that renewal.
  void postpone(SessionId id, Time until);

  /// The store did not say that it has ended, as where its row cannot be written. The others come first: again after
  /// `pause`, twice as long each time, `most` at most.
  void not_ended(SessionId id, Time at, Duration pause, Duration most);

  void forget_absent() { absent_since_.clear(); }

  /// When a lead that has named it `since` may be claimed. Time::min(): now. Time::max(): not before it has been
  /// ended.
  Time free_from(SessionId id, Time since, Duration longest) const;

  /// Whose lease is over first, and is to be ended.
  std::optional<std::pair<SessionId, Time>> next_to_end() const;

  const Rival* find(SessionId id) const;
  const std::map<SessionId, Rival>& all() const { return rivals_; }
  Duration longest() const { return longest_; }
  Time looked() const { return looked_; }  ///< When all sessions were seen last.

 private:
  friend class GroupDigest;

  static void doubt(Rival& rival, Time at, Duration term);

  double rate_;
  Duration longest_{};
  std::map<SessionId, Rival> rivals_;
  std::map<SessionId, Time> absent_since_;  ///< Time::max(): perhaps it only came after the last look.
  Time looked_{Time::min()};
};

}  // namespace tenure
