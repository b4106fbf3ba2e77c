// SPDX-License-Identifier: Apache-2.0
// Names of candidates and of leaders.
#pragma once
#include <cstddef>
#include <string>

#include <tenure/clock.hpp>
#include <tenure/token.hpp>

namespace tenure {

inline constexpr std::size_t max_election_bytes = 200;   ///< An election's name has 1 to 200 bytes, and no NUL.
inline constexpr std::size_t max_candidate_bytes = 100;  ///< A candidate's name and address have up to 100 bytes each.
inline constexpr std::size_t max_why_bytes = 200;        ///< The reason of a request to step down has up to 200 bytes.

/// Who we are, for people to read. Backends add an incarnation, which is random per start, so that nobody takes a
/// restarted process for the one before it.
struct Candidate {
  std::string name{};     ///< If empty, "{host}_{pid}_{unix seconds}".
  std::string address{};  ///< Where followers reach the leader, in a form of your choice. May be empty.
};

/// Who leads, as the store says. Others wrote these texts, which may hold any bytes.
struct Incumbent {
  std::string name{}, incarnation{}, address{};
  Token token{};
  Clock::Duration remaining{};  ///< How long its lease may still run, from when the store said this. It is an estimate:
                                ///< nobody may act as leader by it.
  std::string version{};        ///< Of the leader's library, see version(). Empty: it does not tell.
  friend bool operator==(const Incumbent&, const Incumbent&) = default;
};

}  // namespace tenure
