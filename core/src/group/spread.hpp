// SPDX-License-Identifier: Apache-2.0
// Which process leads which elections of a group: shares that differ by one at most, and the least possible movement.
// Every process computes the same from the same look, and carries out only its own part. It is never a matter of
// safety.
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

/// Of an election's name.
std::uint64_t hash_of(std::string_view election);

/// What one process sees: the live sessions that take part in the same elections, ours included, and how these are led.
struct Holdings {
  SessionId own{};
  std::map<SessionId, std::size_t> held{};               ///< By session: how many of the elections it leads.
  std::vector<std::string> free{};                       ///< Sorted.
  std::size_t waiting{};                                 ///< So many more will be free soon.
  std::vector<std::pair<std::string, SessionId>> led{};  ///< Sorted. Only those of the sessions in `held`.
};

struct Allotment {
  std::vector<std::string> claims{};                       ///< Free ones that are ours to claim.
  std::vector<std::pair<std::string, SessionId>> gifts{};  ///< Those that we hand over, and to whom.
};

/// Shares are K/N, and one more for the first K mod N sessions: those that hold most now, so that nothing moves for it.
/// A free election goes to the session with the highest score among those below their share; what a session holds above
/// its share goes the same way.
Allotment allot(const Holdings& seen);

/// Who is to lead it next: the session with the highest score among those that hold least. Nobody if we are alone.
std::optional<SessionId> heir_of(const std::string& election, const Holdings& seen);

}  // namespace tenure
