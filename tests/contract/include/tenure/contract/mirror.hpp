// SPDX-License-Identifier: Apache-2.0
// What a process was told of a group, and numbers drawn for it. Tools of group_suite.hpp.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tenure/group_store.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/text.hpp>
#include <vector>

namespace tenure::contract {

/// Its highest bit is set: a store that takes it for a signed number, or for a double, is found.
inline std::uint64_t draw_beat() {
  return *number<std::uint64_t>(draw_incarnation().substr(0, 16), 16) | std::uint64_t{1} << 63;
}

inline SessionId draw_id() { return {draw_beat() >> 1}; }

using Names = std::vector<std::string>;
using Leads = std::map<std::string, Lead>;

inline Names sorted(Names names) {
  std::sort(names.begin(), names.end());
  return names;
}

/// Keeps up with a group by what it is told.
class Mirror {
 public:
  void take(const Look& look) {
    if (look.whole) leads_.clear();
    for (const auto& [election, lead] : look.leads) leads_[election] = lead;
    for (const auto& [election, error] : look.unreadable) leads_.erase(election);
    if (look.all_sessions) sessions_ = look.sessions;
    for (const auto& [id, session] : look.sessions) sessions_[id] = session;
    cursor_ = look.cursor;
    marker_ = look.marker;
  }
  const Leads& leads() const { return leads_; }
  const std::map<SessionId, Session>& sessions() const { return sessions_; }
  const std::string& cursor() const { return cursor_; }
  std::uint64_t marker() const { return marker_; }

  std::optional<Token> token(const std::string& election) const {
    const auto it = leads_.find(election);
    return it == leads_.end() ? std::nullopt : std::optional(it->second.token);
  }
  Token highest() const {
    Token highest{};
    for (const auto& entry : leads_) highest = std::max(highest, entry.second.token);
    return highest;
  }

 private:
  Leads leads_;
  std::map<SessionId, Session> sessions_;
  std::string cursor_;
  std::uint64_t marker_{};
};

}  // namespace tenure::contract
