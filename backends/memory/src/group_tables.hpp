// SPDX-License-Identifier: Apache-2.0
// One group's sessions and leads, as a database would keep them. The hub's mutex guards them.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::memory {

inline std::uint64_t draw_marker() {
  std::random_device kernel("/dev/urandom");
  return ((std::uint64_t{kernel()} << 32) | kernel()) | 1;  // never zero
}

template <class Range, class Value>
bool has(const Range& range, const Value& value) {
  return std::find(range.begin(), range.end(), value) != range.end();
}

/// Every function is one step, because the hub's mutex is held around it.
class GroupTables {
 public:
  /// Whether the data can be lost; the group then has a marker.
  explicit GroupTables(bool can_lose) : can_lose_(can_lose) {}

  Look look(const std::string& cursor, std::int64_t now_ms) const {
    const auto since = place(cursor);
    Look seen{.now_ms = now_ms,
              .marker = marker_,
              .sessions = sessions_,
              .all_sessions = true,
              .leads = {},
              .unreadable = {},
              .whole = !since,
              .cursor = std::to_string(losses_) + ":" + std::to_string(changes_),
              .retired = retired_};
    for (const auto& [election, row] : leads_) {
      if (since && row.changed <= *since) continue;
      if (row.spoilt)
        seen.unreadable.emplace(election, Error{Fault::corrupt, "memory: spoil_lead() spoilt it; call mend_lead()"});
      else
        seen.leads.emplace(election, row.lead);
    }
    return seen;
  }

  Committed open(SessionId id, const Session& session, std::int64_t now_ms) {
    if (!std::exchange(founded_, true) && can_lose_) marker_ = draw_marker();
    const bool granted = !sessions_.contains(id);
    if (granted) write(id, session, now_ms);
    return {.granted = granted, .token = {}, .claimed = {}, .released = {}, .look = look({}, now_ms)};
  }

  Committed commit(const Commit& commit, std::int64_t now_ms) {
    if (!may_commit(commit))
      return {
          .granted = false, .token = {}, .claimed = {}, .released = {}, .look = look_or_less(commit.cursor, now_ms)};
    write(commit.session, commit.next, now_ms);
    const Token token{std::max(
        {commit.at_least.value, static_cast<std::uint64_t>(std::max<std::int64_t>(now_ms, 0)), retired_.value + 1})};
    Committed done{.granted = true, .token = token, .claimed = {}, .released = {}, .look = {}};
    if (!commit.claims.empty() || !commit.releases.empty()) ++changes_;
    for (const auto& claim : commit.claims) {
      if (!claimable(claim, commit)) continue;
      leads_[claim.election] = {{.token = token, .session = commit.session}, changes_, false};
      done.claimed.push_back(claim.election);
    }
    std::optional<Release> one;
    for (const auto& asked : commit.releases) {
      if (!release(asked, commit.session)) continue;
      one = asked;
      done.released.push_back(asked.election);
    }
    if (!done.released.empty()) tell(done.released.size() == 1 ? one : std::nullopt);
    done.look = look_or_less(commit.cursor, now_ms);
    done.look.sessions = {{commit.session, sessions_.at(commit.session)}};
    done.look.all_sessions = false;
    return done;
  }

  bool end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat, std::int64_t now_ms) {
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return false;
    auto& record = it->second.record;
    if (record.released) return true;
    if (!has(beats, record.beat)) return false;
    record.beat = new_beat;
    record.released = true;
    record.written_ms = now_ms;
    ++changes_;
    tell();
    return true;
  }

  int sweep() {
    std::set<SessionId> named;
    for (const auto& [election, row] : leads_)
      if (!row.lead.released) named.insert(row.lead.session);
    return static_cast<int>(std::erase_if(
        sessions_, [&](const auto& entry) { return entry.second.record.released && !named.contains(entry.first); }));
  }

  std::set<std::string> retire(const std::map<std::string, Token>& leads) {
    std::set<std::string> done;
    for (const auto& [election, token] : leads) {
      if (!may_be_retired(election, token)) continue;
      leads_.erase(election);
      retired_ = std::max(retired_, token);
      done.insert(election);
    }
    if (!done.empty()) ++losses_;  // A cursor could not tell what is gone.
    return done;
  }

  /// False: there is no such lead.
  bool request_step_down(const std::string& election, const StepDown& request) {
    const auto it = leads_.find(election);
    if (it == leads_.end()) return false;
    if (it->second.spoilt || it->second.lead.token != request.token) return true;
    it->second.lead.step_down = request;
    it->second.changed = ++changes_;
    tell();
    return true;
  }

  void lose_session(SessionId id) { sessions_.erase(id); }

  void spoil_lead(const std::string& election) {
    auto& row = leads_[election];
    row.spoilt = true;
    row.changed = ++changes_;
  }

  /// A session that nobody has counts as dead a term after it was seen. By then its leader has seen it too.
  void mend_lead(const std::string& election) {
    auto& row = leads_[election];
    row.lead.token.value += 1;
    row.lead.session = {};
    row.lead.released = row.spoilt = false;
    row.lead.heir.reset();
    row.lead.step_down.reset();
    row.changed = ++changes_;
  }

  void lose_everything() {
    sessions_.clear();
    leads_.clear();
    retired_ = {};
    founded_ = false;
    marker_ = 0;
    ++losses_;
    ++events_;
  }

  /// How often something was released, ended or asked to step down.
  std::uint64_t events() const { return events_; }
  bool happened_since(const std::string& cursor) const {
    const auto since = place(cursor);
    return since ? last_.at > *since : !cursor.empty() || last_.at > 0;
  }

  /// What happened since, if it was one release and no more.
  std::optional<Release> release_since(const std::string& cursor) const {
    const auto since = place(cursor);
    return since && last_.at > *since && last_but_one_.at <= *since ? last_.release : std::nullopt;
  }

 private:
  /// Without leads if the cursor means nothing.
  Look look_or_less(const std::string& cursor, std::int64_t now_ms) const {
    if (place(cursor)) return look(cursor, now_ms);
    return {.now_ms = now_ms,
            .marker = marker_,
            .sessions = sessions_,
            .all_sessions = true,
            .leads = {},
            .unreadable = {},
            .whole = false,
            .cursor = {},
            .retired = {},
            .allotted = {}};
  }

  struct Row {
    Lead lead;
    std::uint64_t changed{};
    bool spoilt{};
  };
  struct Event {
    std::uint64_t at{};
    std::optional<Release> release;
  };

  /// How many changes the cursor has seen. Nothing if the cursor is empty or none of these tables.
  std::optional<std::uint64_t> place(const std::string& cursor) const {
    const auto colon = cursor.find(':');
    if (colon == cursor.npos || number<std::uint64_t>(cursor.substr(0, colon)) != losses_) return std::nullopt;
    const auto seen = number<std::uint64_t>(cursor.substr(colon + 1));
    return seen && *seen <= changes_ ? seen : std::nullopt;
  }

  bool alive(SessionId id) const {
    const auto it = sessions_.find(id);
    return it != sessions_.end() && !it->second.record.released;
  }

  bool may_commit(const Commit& commit) const {
    return alive(commit.session) && has(commit.beats, sessions_.at(commit.session).record.beat) &&
           commit.marker == marker_;
  }

  bool claimable(const Claim& claim, const Commit& by) const {
    const auto it = leads_.find(claim.election);
    if (it == leads_.end()) return !claim.expected || *claim.expected <= retired_;
    if (it->second.spoilt) return false;
    const auto& lead = it->second.lead;
    if (lead.token != claim.expected) return false;
    return lead.released || lead.session == by.session || (has(by.ended, lead.session) && !alive(lead.session));
  }

  bool release(const Release& release, SessionId by) {
    const auto it = leads_.find(release.election);
    if (it == leads_.end() || it->second.spoilt) return false;
    auto& lead = it->second.lead;
    if (lead.token != release.token || lead.session != by || lead.released) return false;
    lead.released = true;
    lead.heir = release.heir;
    it->second.changed = changes_;
    return true;
  }

  bool may_be_retired(const std::string& election, Token token) const {
    const auto it = leads_.find(election);
    if (it == leads_.end() || it->second.spoilt || it->second.lead.token != token) return false;
    const auto session = sessions_.find(it->second.lead.session);
    return it->second.lead.released || (session != sessions_.end() && session->second.record.released);
  }

  void write(SessionId id, const Session& session, std::int64_t now_ms) {
    auto& record = (sessions_[id] = session).record;
    record.term = std::chrono::ceil<std::chrono::milliseconds>(record.term);
    record.written_ms = now_ms;
  }

  void tell(std::optional<Release> release = {}) {
    ++events_;
    last_but_one_ = std::exchange(last_, {changes_, std::move(release)});
  }

  const bool can_lose_;
  bool founded_{};
  std::uint64_t marker_{};
  std::map<SessionId, Session> sessions_;
  std::map<std::string, Row> leads_;
  Token retired_{};
  std::uint64_t changes_{};  ///< Counts the steps that changed a lead, or of which somebody is told.
  std::uint64_t losses_{};   ///< A cursor of before a loss means nothing.
  std::uint64_t events_{};
  Event last_{}, last_but_one_{};
};

}  // namespace tenure::memory
