// SPDX-License-Identifier: Apache-2.0
// Follows the other sessions from look to look, and bounds their leases.
#include "group/rivals.hpp"

#include <algorithm>
#include <utility>

namespace tenure {

Rivals::News Rivals::saw(const Look& look, std::optional<SessionId> own, Duration own_term, Time at) {
  auto news = News::none;
  const auto tell = [&news](News more) { news = std::max(news, more); };
  for (const auto& [id, session] : look.sessions)
    if (!session.record.released) longest_ = std::max(longest_, session.record.term);
  const auto longest = std::max(longest_, own_term);
  for (const auto& [id, session] : look.sessions) {
    if (id == own) continue;
    const auto [it, added] = rivals_.try_emplace(id);
    auto& rival = it->second;
    const auto& record = session.record;
    const auto& before = rival.session;
    if (added || before.record.released != record.released || before.joined != session.joined ||
        before.names != session.names)
      tell(News::sessions);
    if (before.weight != session.weight || before.most != session.most) {
      tell(News::numbers);
      if (before.most < session.most) rival.doubted = false;
    }
    absent_since_.erase(id);
    if (added || rival.session.record.beat != record.beat) {
      rival.bound.saw(record.who, record.asked, at, age(record, look.now_ms, longest).value_or(longest), longest,
                      rate_);
      rival.lease_end = rival.bound.end(longest);
      rival.heard = at;
      rival.end_again = {}, rival.ends_in_vain = 0;
    }
    rival.session = session;
  }
  if (std::erase_if(rivals_, [&](const auto& rival) { return !look.sessions.contains(rival.first); }) > 0)
    tell(News::sessions);
  for (auto& [id, since] : absent_since_)
    if (since == Time::max()) since = at, tell(News::sessions);
  looked_ = at;
  return news;
}

void Rivals::given(SessionId id, bool took, Time at, Duration term) {
  const auto it = rivals_.find(id);
  if (it == rivals_.end()) return;
  if (took)
    it->second.doubted = false;
  else
    doubt(it->second, at, term);
}

/// What it lets lie is led by nobody for a moment, so it gets ever more time. Those of one time count once: its giver
/// counts it when it offers it, the others when they see it lie.
void Rivals::doubt(Rival& rival, Time at, Duration term) {
  if (rival.doubted && at < rival.takes_from) return;
  rival.let_more_lie = std::exchange(rival.doubted, true) ? std::min(rival.let_more_lie + 1, 2) : 0;
  rival.takes_from = at + term * (1 << rival.let_more_lie);
}

void Rivals::offered(SessionId id, Time at, Duration term) {
  if (const auto it = rivals_.find(id); it != rivals_.end() && it->second.doubted) doubt(it->second, at, term);
}

bool Rivals::named(SessionId id, Time at) {
  return !rivals_.contains(id) && absent_since_.try_emplace(id, at == looked_ ? at : Time::max()).second &&
         at != looked_;
}

void Rivals::ended(SessionId id) {
  if (const auto it = rivals_.find(id); it != rivals_.end()) it->second.session.record.released = true;
}

void Rivals::postpone(SessionId id, Time until) {
  if (const auto it = rivals_.find(id); it != rivals_.end())
    it->second.lease_end = std::max(it->second.lease_end, until);
}

void Rivals::not_ended(SessionId id, Time at, Duration pause, Duration most) {
  const auto it = rivals_.find(id);
  if (it == rivals_.end()) return;
  auto& rival = it->second;
  rival.end_again = at + std::min(pause * (1 << rival.ends_in_vain), most);
  rival.ends_in_vain = std::min(rival.ends_in_vain + 1, 10);
}

Clock::Time Rivals::free_from(SessionId id, Time since, Duration longest) const {
  if (const auto* rival = find(id)) return rival->session.record.released ? Time::min() : Time::max();
  const auto it = absent_since_.find(id);
  return it == absent_since_.end() || it->second == Time::max() ? Time::max() : std::max(it->second, since) + longest;
}

std::optional<std::pair<SessionId, Clock::Time>> Rivals::next_to_end() const {
  std::optional<std::pair<SessionId, Time>> first;
  for (const auto& [id, rival] : rivals_) {
    const auto from = std::max(rival.lease_end, rival.end_again);
    if (!rival.session.record.released && (!first || from < first->second)) first = {id, from};
  }
  return first;
}

const Rivals::Rival* Rivals::find(SessionId id) const {
  const auto it = rivals_.find(id);
  return it == rivals_.end() ? nullptr : &it->second;
}

}  // namespace tenure
