// SPDX-License-Identifier: Apache-2.0
// What a machine hears of its handle and its caller, and what it asks of them, in whichever protocol; and how it
// collects what it asks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/log.hpp>
#include <tenure/result.hpp>

#include "group.hpp"

namespace tenure::kafka {

namespace fact {
// clang-format off
struct Elapsed {};                                                   ///< Time has passed, and nothing else is new.
struct Abandoned { std::uint64_t id{}; };                            ///< The caller has left without an answer.
/// It could not be opened, or is of no more use. any_handle: memory ran out, and effects may have been lost.
struct Broken { std::uint64_t handle{}; Error error; };
struct Troubled { std::uint64_t handle{}; Error error; };            ///< The client reports trouble and goes on trying.
struct Revoked { std::uint64_t handle{}; bool lost{}; };             ///< `lost`: by an eviction, not by a rebalance.
/// `again`: another copy of it may be handled, now or later.
struct Committed { std::uint64_t id{}; Outcome outcome{}; Error error; bool again{}; };
struct OwnersFound { Result<Owners> result; };
struct Left { std::uint64_t handle{}; };                             ///< A dropped handle is out of the group.
struct Closing {};                                                   ///< The backend is being destroyed.
// clang-format on
}  // namespace fact

namespace effect {
// clang-format off
struct Open { std::uint64_t handle{}; std::string client_id; };      ///< Opens a member handle and subscribes.
struct Assign { std::uint64_t handle{}; };                           ///< Answers an assignment: nothing is consumed.
struct Unassign { std::uint64_t handle{}; };                         ///< Lets the rebalance go on.
struct FindOwners {};                                                ///< Asks who owns the partitions.
struct Drop { std::uint64_t handle{}; };                             ///< Unsubscribes, unassigns, closes; then Left.
struct Tell { Level level{}; std::string message; };                 ///< Tells the user's log.
// clang-format on
}  // namespace effect

/// What Neli and RoleMachine are built on: the moment of the present fact, the alarm, and what is to be done. A value.
template <class Effect>
class Machine {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  static constexpr Duration retry_pause = std::chrono::milliseconds(100);   ///< after a commit that failed
  static constexpr Duration reply_reserve = std::chrono::milliseconds(20);  ///< before a call's limit

  /// When fact::Elapsed is due at the latest.
  Time alarm() const { return alarm_; }

 protected:
  /// True if that time has come. If not, the alarm is set for it.
  bool due(Time at) {
    if (now_ >= at) return true;
    alarm_ = std::min(alarm_, at);
    return false;
  }
  template <class One>
  void emit(One effect) {
    effects_.emplace_back(std::move(effect));
  }
  void tell(std::optional<effect::Tell> what) {
    if (what) emit(std::move(*what));
  }
  std::uint64_t next_id() { return ++last_id_; }

  Time now_{};
  std::int64_t unix_ms_{};
  Time alarm_{Time::max()};
  std::vector<Effect> effects_;

 private:
  std::uint64_t last_id_{0};
};

}  // namespace tenure::kafka
