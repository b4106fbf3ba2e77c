// SPDX-License-Identifier: Apache-2.0
// What several processes asked of a group and were told, and a judge of it.
#pragma once
#include <cstdint>
#include <string>
#include <tenure/group_store.hpp>
#include <vector>

namespace tenure::contract {

/// One call that was answered. The moments are numbers of one counter: what was answered before something else was
/// asked has smaller ones.
struct Event {
  enum class Verb { open, commit, end, sweep };
  Verb verb{};
  std::uint64_t asked{}, answered{};
  SessionId session{};  ///< Opened, committing, or to be ended.
  bool granted{};       ///< Of an end: it has ended.
  Commit commit{};      ///< An open has the session in `next`, and an end has the beats.
  Token token{};
  std::vector<std::string> claimed{}, released{};
};

/// What is wrong with a history that begins with an empty group: an election's tokens that do not rise in the order of
/// its grants, a claim or a release that was not possible, a session that went on after its end, or ended by a beat
/// that it did not have. One process at a time uses a session. A right history may be found right although the store
/// had it by luck, but nothing is found wrong that some order of the calls explains.
std::vector<std::string> judge(const std::vector<Event>& history);

}  // namespace tenure::contract
