// SPDX-License-Identifier: Apache-2.0
// What a group of elections consists of: its sessions, one per process, and its leads, one per election.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <tenure/conditional_store.hpp>
#include <tenure/error.hpp>
#include <tenure/token.hpp>

namespace tenure {

/// 63 random bits of the kernel. They are sent in one open() only, and never again: a request that comes late then
/// finds nothing that it could revive.
struct SessionId {
  std::uint64_t value{};
  friend auto operator<=>(const SessionId&, const SessionId&) = default;
};

/// One process's time in a group.
struct Session {
  Record record{};         ///< `released`: it has ended, for ever. Nobody needs to keep `token` and `incarnation`.
  std::uint32_t joined{};  ///< How many elections it takes part in.
  /// The exclusive or of their names' hashes. Two sessions that are equal in both have joined the same elections.
  std::uint64_t names{};
  std::uint32_t weight{1};         ///< Its share is in proportion to this. It is never zero.
  std::uint32_t most{UINT32_MAX};  ///< It leads no more than these now: the others may wait for a cool-down.
  friend bool operator==(const Session&, const Session&) = default;
};

/// Who leads one election: the session that it names, as long as that session stands and has not ended. Nothing but
/// GroupStore::retire() deletes a lead. Its token is its version: every claim gives it a greater one.
struct Lead {
  Token token{};
  SessionId session{};
  bool released{};
  std::optional<SessionId> heir{};      ///< The session in whose favour it was released. It is a hint.
  std::optional<StepDown> step_down{};  ///< A request to the tenure with that token.
  friend bool operator==(const Lead&, const Lead&) = default;
};

/// Tokens begin at unix ms, below 2^41. A lead with a token above this one cannot be read: the next token of every
/// election of the group would be greater still.
inline constexpr Token greatest_lead_token{std::uint64_t{1} << 62};

/// A claim of one election, by the session that sends it.
struct Claim {
  std::string election{};
  std::optional<Token> expected{};  ///< The token that stands. nullopt: nobody has ever led this election.
};

/// The end of a lead of the session that sends it, in favour of `heir` if there is one.
struct Release {
  std::string election{};
  Token token{};
  std::optional<SessionId> heir{};
};

/// What a store answers about a group.
struct Look {
  std::int64_t now_ms{};   ///< The store's clock.
  std::uint64_t marker{};  ///< It is drawn when the group is founded. Zero: this store loses nothing and needs none, or
                           ///< nobody has founded the group.
  std::map<SessionId, Session> sessions{};  ///< The ended ones included. A granted commit tells ours alone:
  bool all_sessions{true};                  ///< then this is false.
  /// The leads that changed since the cursor; if `whole` all leads, or all of what was joined. The answer to a commit
  /// whose cursor the store does not know may leave them out. Then it is not whole, and has no cursor.
  std::map<std::string, Lead> leads{};
  /// The leads that cannot be read: what is wrong, and the remedy. None of them is in `leads`. REQUIRES: the
  /// remedy puts back what stood there, or a greater token with a session that nobody has; then the lead counts as
  /// changed.
  std::map<std::string, Error> unreadable{};
  bool whole{};
  std::string cursor{};  ///< The store's own word. Nothing that takes effect later lies before it.
  /// The greatest token of all leads that were retired; told if `whole`. What is absent was retired if it had no greater
  /// one, and was released, or its session has ended. Else it was lost.
  Token retired{};

  /// The elections of this process, if the store itself allots them. It claims no others, ends what it leads
  /// besides, and ends nobody's session: the store shows a lead as released when it may be claimed. nullopt: nobody
  /// allots them.
  std::optional<std::set<std::string>> allotted{};
};

}  // namespace tenure
