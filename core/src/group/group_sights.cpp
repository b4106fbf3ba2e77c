// SPDX-License-Identifier: Apache-2.0
// What a look at a group changes of what was seen before.
#include "group/group_sights.hpp"

#include <algorithm>

#include <tenure/kit/who.hpp>

namespace tenure {

GroupSights::GroupSights(Exclusive mode, const std::vector<std::string>& only)
    : mode_(mode), all_watched_(only.empty()) {
  for (const auto& election : only) entries_.try_emplace(election);
}

// ---- looks ----

std::vector<GroupSights::Change> GroupSights::saw(const Look& look, Time asked, Time at) {
  const bool lives_changed = saw_sessions(look, at);
  asked_before_ = asked;
  cursor_ = look.cursor;
  std::vector<Entries::iterator> touched;
  take(look, touched);
  if (look.whole || lives_changed) return judge_all(at);
  std::vector<Change> out;
  for (const auto it : touched) judge(it, at, out);
  return out;
}

/// Whether one of them began to live, or ended.
bool GroupSights::saw_sessions(const Look& look, Time at) {
  bool changed = std::erase_if(sessions_, [&](const auto& seen) { return !look.sessions.contains(seen.first); }) > 0;
  for (const auto& [id, session] : look.sessions) {
    const auto [it, added] = sessions_.try_emplace(id);
    auto& seen = it->second;
    const auto& record = session.record;
    if (added || seen.session.record.beat != record.beat) {
      const auto term = std::min<Duration>(record.term, max_term);
      const auto ms = std::chrono::milliseconds(
          std::clamp<std::int64_t>(look.now_ms - std::max<std::int64_t>(record.written_ms, 0), 0,
                                   std::chrono::ceil<std::chrono::milliseconds>(term).count()));
      const auto since = asked_before_ && !added ? at - *asked_before_ : term;
      seen.end = at + term - std::min<Duration>({ms, since, term});
      seen.renewed = !added;
    }
    seen.session = session;
    const bool alive = !record.released && at < seen.end;
    changed = changed || added || alive != seen.alive;
    seen.alive = alive;
  }
  return changed;
}

void GroupSights::take(const Look& look, std::vector<Entries::iterator>& touched) {
  if (look.whole)
    for (auto& [election, entry] : entries_) entry.lead.reset(), entry.error.reset();
  for (const auto& [election, lead] : look.leads)
    if (const auto it = entry(election); it != entries_.end()) {
      it->second.lead = lead;
      it->second.error.reset();
      touched.push_back(it);
    }
  for (const auto& [election, error] : look.unreadable)
    if (const auto it = entry(election); it != entries_.end()) {
      it->second.error = error;
      touched.push_back(it);
    }
}

/// end(): it is not watched.
GroupSights::Entries::iterator GroupSights::entry(const std::string& election) {
  return all_watched_ ? entries_.try_emplace(election).first : entries_.find(election);
}

// ---- changes ----

std::vector<GroupSights::Change> GroupSights::lapsed(Time now) {
  bool ended = false;
  for (auto& [id, seen] : sessions_)
    if (seen.alive && now >= seen.end) seen.alive = false, ended = true;
  return ended ? judge_all(now) : std::vector<Change>();
}

std::vector<GroupSights::Change> GroupSights::judge_all(Time now) {
  std::vector<Change> out;
  for (auto it = entries_.begin(); it != entries_.end();) {
    judge(it, now, out);
    const bool gone = all_watched_ && !it->second.lead && !it->second.error;
    it = gone ? entries_.erase(it) : std::next(it);
  }
  return out;
}

void GroupSights::judge(Entries::iterator it, Time now, std::vector<Change>& out) {
  auto& entry = it->second;
  Told is{.unknown = entry.error.has_value()};
  if (!is.unknown && leader(entry, now)) is = {true, false, entry.lead->token, entry.lead->session};
  if (is == entry.told) return;
  unreadable_ += is.unknown ? 1U : 0U;
  unreadable_ -= entry.told.unknown ? 1U : 0U;
  entry.told = is;
  out.push_back({it->first, sight_of(entry, now)});
}

bool GroupSights::any_unreadable() const { return unreadable_ > 0; }

Clock::Time GroupSights::next_end() const {
  auto first = Time::max();
  for (const auto& [id, seen] : sessions_)
    if (seen.alive) first = std::min(first, seen.end);
  return first;
}

// ---- answers ----

/// Nothing: nobody leads it.
const GroupSights::Seen* GroupSights::leader(const Entry& entry, Time now) const {
  if (!entry.lead || entry.lead->released) return nullptr;
  const auto it = sessions_.find(entry.lead->session);
  return it != sessions_.end() && !it->second.session.record.released && now < it->second.end ? &it->second : nullptr;
}

Sight GroupSights::sight_of(const Entry& entry, Time now) const {
  if (entry.error) return Unknown{*entry.error};
  const auto* seen = leader(entry, now);
  if (!seen) return Vacant{};
  const auto& record = seen->session.record;
  return incumbent_of(record.who, mode_ == Exclusive::yes ? entry.lead->token : Token{}, seen->end - now);
}

Sight GroupSights::sight(const std::string& election, Time now) const {
  const auto it = entries_.find(election);
  return it == entries_.end() ? Vacant{} : sight_of(it->second, now);
}

std::vector<ObservedElection> GroupSights::all(Time now) const {
  std::vector<ObservedElection> out;
  out.reserve(entries_.size());
  for (const auto& [election, entry] : entries_) {
    const auto* seen = leader(entry, now);
    out.push_back({election, sight_of(entry, now), seen && seen->renewed});
  }
  return out;
}

}  // namespace tenure
