// SPDX-License-Identifier: Apache-2.0
// What goes into the machines of roles and what comes out: Roles and NonExclusiveRoles decide, RoleThreads carries.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/result.hpp>

#include "group.hpp"
#include "handle_facts.hpp"

namespace tenure::kafka {

inline constexpr Clock::Duration role_longest_pause = std::chrono::minutes(10);  ///< of one that cannot claim
inline constexpr Clock::Duration role_topic_pause = std::chrono::seconds(5);     ///< between looks at the topic

/// A member's client id. Members are sorted by their ids, which begin with it. So whoever joined last comes last, and
/// the others keep most of what they have.
std::string role_member_name(std::int64_t unix_ms, const std::string& incarnation);

/// A session for a process that is known by its record alone.
SessionId session_of_stranger(int unit, const std::string& incarnation);

namespace role_call {
// clang-format off
struct See { std::string cursor; };
struct Open { SessionId id; Session session; };
struct Write { tenure::Commit commit; };
struct End { SessionId id; };
struct Await { std::string cursor; };
// clang-format on
}  // namespace role_call
using RoleCall = std::variant<role_call::See, role_call::Open, role_call::Write, role_call::End, role_call::Await>;

/// The last one ends an await.
using RoleAnswer = std::variant<Result<Look>, Result<Committed>, Result<bool>, std::monostate>;

namespace role_fact {
using fact::Elapsed, fact::Abandoned, fact::Broken, fact::Troubled, fact::Revoked, fact::Committed, fact::OwnersFound,
    fact::Left, fact::Closing;
// clang-format off
using Offsets = std::vector<std::optional<Commit>>;                  ///< By partition.
struct Called { std::uint64_t id{}; RoleCall what; Clock::Time by{}; };
struct Joined { std::string election; };
struct Quit { std::string election; };                               ///< This process takes part in it no more.
struct Assigned { std::uint64_t handle{}; std::vector<int> partitions; int generation{}; std::string member{}; };
struct MemberRead { std::uint64_t id{}; Result<Offsets> result; };
/// `topic`: how many partitions it has, if that was looked at. `new_group`: no broker knew the group.
struct Observed { Result<Offsets> result; std::optional<int> topic{}; bool new_group{}; };
// clang-format on
}  // namespace role_fact

using RoleFact = std::variant<role_fact::Elapsed, role_fact::Called, role_fact::Abandoned, role_fact::Joined,
                              role_fact::Quit, role_fact::Broken, role_fact::Troubled, role_fact::Assigned,
                              role_fact::Revoked, role_fact::Committed, role_fact::MemberRead, role_fact::Observed,
                              role_fact::OwnersFound, role_fact::Left, role_fact::Closing>;

namespace role_effect {
using effect::Open, effect::Assign, effect::Unassign, effect::FindOwners, effect::Drop, effect::Tell;
// clang-format off
struct SendCommit { std::uint64_t id{}; std::map<int, Commit> commits; };  ///< In one request. By partition.
struct ReadMember { std::uint64_t id{}; int partitions{}; };         ///< Reads them all by the member handle.
/// Reads them by the observer. `topic`: how many partitions it has is to be told, too. `check`: it must suit us.
/// `create`: who has a session, or opens one, may create a missing topic.
struct Observe { int partitions{}; bool check{}, topic{}, create{}; };
struct Reply { std::uint64_t id{}; RoleAnswer answer; };
// clang-format on
}  // namespace role_effect

using RoleEffect = std::variant<role_effect::Open, role_effect::Assign, role_effect::Unassign, role_effect::SendCommit,
                                role_effect::ReadMember, role_effect::Observe, role_effect::FindOwners,
                                role_effect::Drop, role_effect::Reply, role_effect::Tell>;

}  // namespace tenure::kafka
