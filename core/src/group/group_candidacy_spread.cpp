// SPDX-License-Identifier: Apache-2.0
// The part of GroupCandidacy that spreads elections over processes. It decides what is claimed of all that may be
// claimed, and what is handed over; never what may be.
#include <algorithm>
#include <utility>

#include "group/group_candidacy.hpp"

namespace tenure {

bool GroupCandidacy::takes_the_same(const Session& session) const {
  return !session.record.released && session.joined == joined_ && session.names == names_;
}

/// Nobody shares these elections with us, or it is not for us to share them.
bool GroupCandidacy::alone() const {
  return !spread_.on || allotted_ ||
         std::none_of(rivals_.all().begin(), rivals_.all().end(),
                      [this](const auto& rival) { return takes_the_same(rival.second.session); });
}

/// It was released in our favour.
bool GroupCandidacy::is_heir(const std::string& election) const {
  const auto* lead = lead_of(election);
  return lead && lead->released && lead->heir == own_->id;
}

void GroupCandidacy::want(const std::string& election) {
  if (tenures_ + wanted_.size() < spread_.most) wanted_.insert(election);
}

void GroupCandidacy::plan(Time now) {
  if (!own_ || stopping_ || (plan_stale_ ? now < planned_ + timing_.retry / 4 : now < plan_again_)) return;
  plan_stale_ = false;
  planned_ = now;
  plan_again_ = Time::max();
  if (alone()) {
    for (const auto& election : claims_) want(election);
    return;
  }
  if (now < gather_until_) {
    plan_again_ = gather_until_;
    return;
  }
  const auto seen = holdings();
  held_ = seen.held;
  const auto part = allot(seen);
  for (const auto& election : part.claims)
    if (claims_.contains(election)) want(election);
  // Whose part it is may not know of it, or may be in trouble. So nothing stays free for long.
  for (const auto& election : claims_) {
    const auto due = *entries_.find(election)->second.free_since + timing_.renew + timing_.retry;
    if (due <= now)
      want(election);
    else if (!wanted_.contains(election))
      plan_again_ = std::min(plan_again_, due);
  }
  if (part.gifts.empty()) return;
  if (now >= settled_from_)
    hand_over(now, part.gifts);
  else
    plan_again_ = std::min(plan_again_, settled_from_);
}

void GroupCandidacy::hand_over(Time now, const std::vector<std::pair<std::string, SessionId>>& gifts) {
  for (const auto& [election, heir] : gifts) {
    if (gifts_running_ >= spread_.handovers_at_once) return;
    auto& entry = entries_.find(election)->second;
    if (!entry.tenure || !entry.tenure->ending.leading()) continue;
    const auto* rival = rivals_.find(heir);
    entry.tenure->heir = heir;
    ++gifts_running_;
    end_voluntarily(
        now, election, entry, Reason::handed_over,
        "to " + (rival ? rival->session.record.holder : std::string("another process")) + ", whose share it is");
  }
}

/// Whatever we give back goes to somebody, and not all of it to the same one. An heir is a hint, so what they held at
/// the last plan is good enough: to count it anew would look at every election.
void GroupCandidacy::name_heirs() {
  if (to_release_.empty() || alone()) return;
  Holdings seen{.own = own_->id};
  for (const auto& [id, rival] : rivals_.all())
    if (takes_the_same(rival.session)) seen.held[id] = held_[id];
  for (auto& [election, due] : to_release_) {
    if (due.heir) continue;
    due.heir = heir_of(election, seen);
    if (due.heir) ++seen.held[*due.heir], ++held_[*due.heir];
  }
}

Holdings GroupCandidacy::holdings() const {
  Holdings out{.own = own_->id};
  out.held[own_->id] = 0;
  for (const auto& [id, rival] : rivals_.all())
    if (takes_the_same(rival.session)) out.held[id] = 0;
  const auto holds = [&](SessionId id, const std::string& election) {
    const auto it = out.held.find(id);
    if (it == out.held.end()) return;
    ++it->second;
    out.led.emplace_back(election, id);
  };
  for (const auto& [election, entry] : entries_) {
    if (!entry.joined) continue;
    const auto* lead = lead_of(election);
    const auto due = to_release_.find(election);
    if (entry.tenure)
      holds(entry.tenure->heir.value_or(own_->id), election);
    else if (due != to_release_.end())
      holds(due->second.heir.value_or(own_->id), election);
    else if (claims_.contains(election))
      out.free.push_back(election);
    else if (lead && lead->released && lead->heir)
      holds(*lead->heir, election);
    else if (lead && !lead->released)
      holds(lead->session, election);
    else
      ++out.waiting;
  }
  return out;
}

}  // namespace tenure
