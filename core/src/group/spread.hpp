// SPDX-License-Identifier: Apache-2.0
// Which process leads which elections of a group: shares by weight that are exact but for one, and the least possible
// movement. Every process computes the same from the same look, and carries out only its own part. It is never a matter
// of safety.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/group.hpp>

namespace tenure {

/// The hash of an election's name.
std::uint64_t hash_of(std::string_view election);

/// A session that takes part.
struct Member {
  std::size_t held{};  ///< How many of the elections it leads.
  std::uint32_t weight{1};
  std::size_t most{SIZE_MAX};
};

struct Led {
  std::string election{};
  SessionId session{};
  Token token{};
};

/// What one process sees: the live sessions that take part in the same elections, ours included, and how these are led.
struct Holdings {
  SessionId own{};
  std::map<SessionId, Member> members{};
  std::vector<std::string> free{};
  std::size_t waiting{};   ///< How many more will be free soon.
  std::vector<Led> led{};  ///< Only by members. Left out: gifts are not asked for.
};

struct Allotment {
  std::vector<std::string> claims{};                       ///< Free ones that are ours to claim.
  std::vector<std::pair<std::string, SessionId>> gifts{};  ///< Those that we hand over, and to whom.
  std::size_t excess{};                                    ///< How many these are, though `led` be left out.
  std::map<SessionId, std::size_t> room{};                 ///< How many more each is to lead, without its claims.
};

/// A share is a session's part by weight, rounded up for some: first for those that hold more than it rounded down, so
/// that nothing moves for it. Who may lead fewer leads those, and the others share the rest.
///
/// Each session keeps its newest tenures. What it holds above its share, and what is free, goes to the session with the
/// highest score among those below their share.
Allotment allot(const Holdings& seen);

/// Who is to lead it next: the session with the highest score among those that hold least for their weight. Nobody if
/// we are alone.
std::optional<SessionId> heir_of(const std::string& election, const Holdings& seen);

}  // namespace tenure
