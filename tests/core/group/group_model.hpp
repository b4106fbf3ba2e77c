// SPDX-License-Identifier: Apache-2.0
// The model of a group's store that the tests of GroupCandidacy play: what group_store.hpp promises, in as few lines as
// possible, with every call one step. It may be copied.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>

namespace tenure::test {

struct GroupModel {
  struct Kept {
    Lead lead;
    std::uint64_t changed;
  };
  bool can_lose{};
  std::int64_t now_ms{};
  std::uint64_t marker{}, version{1};
  std::uint64_t oldest{};  ///< The cursors before this one are not known any more.
  std::map<SessionId, Session> sessions{};
  std::map<std::string, Kept> leads{};
  std::set<std::string> spoilt{};                   ///< Leads that cannot be read, until somebody mends them.
  std::set<std::string> locked{};                   ///< Leads that cannot be written.
  std::set<SessionId> stuck{};                      ///< Sessions that cannot be ended.
  std::optional<std::set<std::string>> allotted{};  ///< Of a store that allots, to its one process.
  std::vector<std::string> not_renewed{};
  Token retired{};

  bool founded() const { return marker != 0 || !can_lose; }

  bool known(const std::string& cursor) const {
    const std::uint64_t since = cursor.empty() ? 0 : std::stoull(cursor);
    return since != 0 && since >= oldest && since <= version;
  }
  void forget_cursors() { oldest = ++version; }

  Look look(const std::string& cursor) const {
    const std::uint64_t since = cursor.empty() ? 0 : std::stoull(cursor);
    Look out{.now_ms = now_ms, .marker = marker, .sessions = sessions, .whole = !known(cursor)};
    for (const auto& [election, kept] : leads) {
      if (!out.whole && kept.changed <= since) continue;
      if (spoilt.contains(election))
        out.unreadable.emplace(election, Error{Fault::corrupt, "garbage at " + election});
      else
        out.leads.emplace(election, kept.lead);
    }
    out.cursor = std::to_string(version);
    out.retired = retired;
    out.allotted = allotted;
    return out;
  }

  /// As a commit tells it: no leads, if the cursor is not known.
  Look look_or_less(const std::string& cursor) const {
    auto out = look(cursor);
    if (!out.whole) return out;
    out.leads.clear();
    out.unreadable.clear();
    out.cursor.clear();
    out.whole = false;
    return out;
  }

  Committed open(SessionId id, Session session, std::uint64_t new_marker) {
    if (!founded()) {
      lose();
      marker = new_marker;
    }
    const bool granted = sessions.try_emplace(id, written(std::move(session))).second;
    return {.granted = granted, .look = look("")};
  }

  Committed commit(const Commit& c) {
    if (!may_be_granted(c)) return {.look = look("")};
    sessions.at(c.session) = written(c.next);
    Committed out{.granted = true,
                  .token = Token{std::max({c.at_least.value, static_cast<std::uint64_t>(now_ms), retired.value + 1})},
                  .not_renewed = not_renewed};
    const auto refuse = [&](const std::string& election) {
      if (locked.contains(election)) out.refused.emplace(election, Error{Fault::timed_out, "a lock"});
    };
    for (const auto& release : c.releases) refuse(release.election);
    for (const auto& claim : c.claims) {
      refuse(claim.election);
      if (!may_claim(c, claim) || locked.contains(claim.election)) continue;
      leads[claim.election] = {Lead{.token = out.token, .session = c.session}, ++version};
      out.claimed.push_back(claim.election);
    }
    out.released = give_back(c);
    out.look = look_or_less(c.cursor);
    std::erase_if(out.look.sessions, [&](const auto& session) { return session.first != c.session; });
    out.look.all_sessions = false;
    return out;
  }

  bool may_be_granted(const Commit& c) const {
    const auto it = sessions.find(c.session);
    return founded() && marker == c.marker && it != sessions.end() && !it->second.record.released &&
           std::find(c.beats.begin(), c.beats.end(), it->second.record.beat) != c.beats.end();
  }

  /// A store may do that before the rest.
  std::vector<std::string> give_back(const Commit& c) {
    std::vector<std::string> out;
    for (const auto& release : c.releases) {
      const auto lead = leads.find(release.election);
      if (lead == leads.end() || lead->second.lead.token != release.token || lead->second.lead.released ||
          lead->second.lead.session != c.session || spoilt.contains(release.election) ||
          locked.contains(release.election))
        continue;
      lead->second.lead.released = true;
      lead->second.lead.heir = release.heir;
      lead->second.changed = ++version;
      out.push_back(release.election);
    }
    return out;
  }

  bool end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat) {
    const auto it = sessions.find(id);
    if (it == sessions.end()) return false;
    if (it->second.record.released) return true;
    if (std::find(beats.begin(), beats.end(), it->second.record.beat) == beats.end()) return false;
    it->second.record.released = true;
    it->second.record.beat = new_beat;
    return true;
  }

  int sweep() {
    return static_cast<int>(std::erase_if(sessions, [&](const auto& entry) {
      return entry.second.record.released && std::none_of(leads.begin(), leads.end(), [&](const auto& lead) {
               const bool names = lead.second.lead.session == entry.first && !lead.second.lead.released;
               return names && !spoilt.contains(lead.first);
             });
    }));
  }

  /// If it may be.
  bool retire(const std::string& election) {
    const auto it = leads.find(election);
    if (it == leads.end() || spoilt.contains(election)) return false;
    const auto& lead = it->second.lead;
    const auto session = sessions.find(lead.session);
    if (!lead.released && (session == sessions.end() || !session->second.record.released)) return false;
    retired = std::max(retired, lead.token);
    leads.erase(it);
    forget_cursors();
    return true;
  }

  /// Somebody else wrote to it. The store tells that as a change only if he did.
  void spoil(const std::string& election, bool told) {
    auto& kept = leads[election];
    spoilt.insert(election);
    if (told) kept.changed = ++version;
  }

  /// As the remedy says.
  void mend(const std::string& election) {
    spoilt.erase(election);
    auto& [lead, changed] = leads.at(election);
    lead.token = {std::max(lead.token.value + 1, static_cast<std::uint64_t>(now_ms))};
    lead.session = {};
    lead.released = false;
    lead.heir.reset();
    lead.step_down.reset();
    changed = ++version;
  }

  /// From a copy, as it was.
  void restore(const std::string& election, bool told) {
    spoilt.erase(election);
    if (told) leads.at(election).changed = ++version;
  }

  void lose() {
    spoilt.clear();
    sessions.clear();
    leads.clear();
    retired = {};
    marker = 0;
    version = 1;
    oldest = 0;
  }

 private:
  Session written(Session session) const {
    session.record.written_ms = now_ms;
    return session;
  }

  bool may_claim(const Commit& c, const Claim& claim) const {
    const auto it = leads.find(claim.election);
    if (it == leads.end()) return !claim.expected || *claim.expected <= retired;
    if (spoilt.contains(claim.election)) return false;
    const auto& lead = it->second.lead;
    if (claim.expected != lead.token) return false;
    if (lead.released || lead.session == c.session) return true;
    const auto session = sessions.find(lead.session);
    return std::find(c.ended.begin(), c.ended.end(), lead.session) != c.ended.end() &&
           (session == sessions.end() || session->second.record.released);
  }
};

}  // namespace tenure::test
