// SPDX-License-Identifier: Apache-2.0
// What a machine hears of its handle and its caller, and what it asks of them, in whichever protocol.
#pragma once
#include <cstdint>
#include <string>

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

}  // namespace tenure::kafka
