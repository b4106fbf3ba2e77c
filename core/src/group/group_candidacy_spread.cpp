// SPDX-License-Identifier: Apache-2.0
// The part of GroupCandidacy that spreads elections over processes. It decides what is claimed of all that may be
// claimed, and what is handed over; never what may be.
#include <algorithm>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/who.hpp>

#include "group/group_candidacy.hpp"

namespace tenure {
namespace {

std::string name_of(const Session& session) { return incumbent_of(session.record.who, {}, {}).name; }

}  // namespace

/// The others do not count on us for what we may not lead yet, unless that is over by the next renewal. The cool-down
/// of what still ends has not begun.
bool GroupCandidacy::is_able(Time now, const Entry& entry) const {
  return entry.joined && entry.cool_down <= timing_.renew && entry.not_before <= now + timing_.renew;
}

/// How many we lead and go on to lead, or may lead as soon as they are free.
std::uint32_t GroupCandidacy::most_now() const {
  const auto can = stopping_ ? 0 : hooks_full() ? tenures_ - ending_.size() : able_;
  return static_cast<std::uint32_t>(std::min<std::size_t>(spread_.most, can));
}

/// Who let a gift lie takes nothing for a term, and then one at a time, ever more seldom, until it took one.
Member GroupCandidacy::member_of(Time now, SessionId id, const Rivals::Rival& rival) const {
  const auto held = held_by(id);
  std::size_t most = rival.session.most;
  if (rival.doubted) most = std::min(most, held + (now < rival.takes_from ? 0 : 1));
  return {held, std::clamp(rival.session.weight, 1u, max_weight), most};
}

/// Whoever died leaves its part soon, and whoever came may be dead. So nothing is handed over before.
bool GroupCandidacy::all_heard(Time now) const {
  return std::all_of(rivals_.all().begin(), rivals_.all().end(), [&](const auto& rival) {
    return !takes_part(now, rival.second) || rival.second.heard > changed_;
  });
}

bool GroupCandidacy::takes_the_same(const Session& session) const {
  return !session.record.released && session.joined == joined_ && session.names == names_;
}

/// Whose lease is over takes nothing, also if its session cannot be ended for as long as a lock on its row lasts.
bool GroupCandidacy::takes_part(Time now, const Rivals::Rival& rival) const {
  return takes_the_same(rival.session) && now < rival.lease_end;
}

/// Nobody shares these elections with us, or it is not for us to share them.
bool GroupCandidacy::alone() const {
  return !spread_.on || allotted_ ||
         std::none_of(rivals_.all().begin(), rivals_.all().end(),
                      [this](const auto& rival) { return takes_the_same(rival.second.session); });
}

/// It was released in our favour.
bool GroupCandidacy::is_heir(const std::optional<SeenLead>& lead) const {
  return lead && lead->released && lead->heir == own_->id;
}

void GroupCandidacy::want(const std::string& election) {
  if (tenures_ + wanted_.size() < spread_.most) wanted_.insert(wanted_.end(), election);
}

void GroupCandidacy::plan(Time now) {
  if (!own_ || stopping_ || hooks_full() || (plan_stale_ ? now < planned_ + timing_.retry / 4 : now < plan_again_))
    return;
  if (wanted_.size() >= max_changes) return;  // The next commit is full without it.
  plan_stale_ = false;
  looked_through_ += claims_.size();
  planned_ = now;
  plan_again_ = Time::max();
  if (alone()) {
    gifts_.clear();
    for (const auto& election : claims_) want(election);
    return;
  }
  if (now < gather_until_) {
    plan_again_ = gather_until_;
    return;
  }
  auto seen = numbers(now);
  const auto part = allot(seen);
  for (const auto& election : part.claims) want(election);
  // Whose part it is may not know of it, or may be in trouble. So nothing stays free for long. But whoever has many to
  // claim needs some commits for them, which take as long as ours did.
  const auto commits = static_cast<Clock::rep>(claims_.size() / max_changes);
  const auto patience = others_look() + 2 * commits * commit_took_;
  for (const auto& election : claims_) {
    const auto due = *entries_.find(election)->second.free_since + patience;
    if (due <= now)
      want(election);
    else if (!wanted_.contains(election))
      plan_again_ = std::min(plan_again_, due);
  }
  for (const auto& [id, rival] : rivals_.all())
    if (rival.doubted && rival.takes_from > now) plan_again_ = std::min(plan_again_, rival.takes_from);
  if (part.excess == 0) return gifts_.clear();
  gifts_wait_ = !all_heard(now);  // The next look may bring it.
  if (gifts_wait_) next_look_ = std::min(next_look_, next_commit_);
  if (!gifts_wait_) give(now, std::move(seen), part.excess, part.room);
}

/// What was found once stands for as long as the numbers bear it out: to find it looks at every election.
void GroupCandidacy::give(Time now, Holdings seen, std::size_t excess, std::map<SessionId, std::size_t> room) {
  if (gifts_running_ < spread_.handovers_at_once && gifts_.empty()) {
    tell_led(seen);
    const auto gifts = allot(seen).gifts;
    gifts_.assign(gifts.begin(), gifts.end());
  }
  while (!gifts_.empty() && gifts_running_ < spread_.handovers_at_once) {
    const auto [election, heir] = std::move(gifts_.front());
    gifts_.pop_front();
    if (excess-- == 0 || room[heir]-- == 0) {
      gifts_.clear();
      plan_stale_ = true;
      return;
    }
    const auto* rival = rivals_.find(heir);
    give_to(now, election, heir,
            "to " + (rival ? name_of(rival->session) : std::string("another process")) + ", whose share it is");
  }
}

void GroupCandidacy::give_to(Time now, const std::string& election, SessionId heir, const std::string& detail) {
  const auto it = entries_.find(election);
  if (it == entries_.end() || !it->second.tenure || !it->second.tenure->ending.leading() || is_unreadable(election))
    return;
  it->second.tenure->heir = heir;
  rivals_.offered(heir, now, timing_.term);
  claims_stale_.push_back(election);
  ++gifts_running_;
  end_voluntarily(now, election, it->second, Reason::handed_over, printable(detail));
}

/// To whom, if it can be. Of several processes of this name the one whose lease ends last, by our clock.
std::optional<SessionId> GroupCandidacy::heir_named(Time now, const std::string& election,
                                                    const std::string& to) const {
  const auto entry = entries_.find(election);
  if (!own_ || stopping_ || allotted_ || entry == entries_.end() || !entry->second.joined || !entry->second.tenure ||
      !entry->second.tenure->ending.leading() || is_unreadable(election))  // nobody could take it
    return std::nullopt;
  const std::pair<const SessionId, Rivals::Rival>* found = nullptr;
  for (const auto& rival : rivals_.all()) {
    const auto& session = rival.second.session;
    if (name_of(session) != to || !takes_the_same(session) || session.most <= held_by(rival.first)) continue;
    const auto lease_end = rival.second.lease_end;
    if (lease_end > now && (!found || lease_end > found->second.lease_end)) found = &rival;
  }
  return found ? std::optional(found->first) : std::nullopt;
}

void GroupCandidacy::hand_over(Time now, const std::string& election, const std::string& to) {
  judge_expiry(now);
  if (const auto heir = heir_named(now, election, to))
    give_to(now, election, *heir, "to " + to + ", as hand_over() asked");
  tick(now);
}

/// Whatever we give back goes to somebody, and not all of it to the same one.
void GroupCandidacy::name_heirs(Time now) {
  if (to_release_.empty() || alone()) return;
  Holdings seen{.own = own_->id};
  for (const auto& [id, rival] : rivals_.all())
    if (takes_part(now, rival)) seen.members[id] = member_of(now, id, rival);
  for (auto& [election, due] : to_release_) {
    if (due.heir) continue;
    due.heir = heir_of(election, seen);
    if (!due.heir) continue;
    ++seen.members[*due.heir].held;
    rivals_.offered(*due.heir, now, timing_.term);
    claims_stale_.push_back(election);
  }
}

/// Whose it is, or will be if nothing comes between.
std::optional<SessionId> GroupCandidacy::holder_of(const std::string& election, const Entry& entry) const {
  if (!own_ || !entry.joined) return std::nullopt;
  const auto ours = entry.cool_down > timing_.renew ? std::nullopt : std::optional(own_->id);
  if (entry.tenure) return entry.tenure->heir ? entry.tenure->heir : ours;
  if (const auto due = to_release_.find(election); due != to_release_.end())
    return due->second.heir ? due->second.heir : ours;
  if (entry.free_since) return std::nullopt;
  if (!entry.lead) return std::nullopt;
  return entry.lead->released ? entry.lead->heir : std::optional(entry.lead->session);
}

/// The numbers are kept with each change, so that a plan need not look at every election.
void GroupCandidacy::count_for(Entry& entry, std::optional<SessionId> holder) {
  if (entry.holder == holder) return;
  if (entry.holder && --held_.at(*entry.holder) == 0) held_.erase(*entry.holder);
  if (holder) ++held_[*holder];
  entry.holder = holder;
}

void GroupCandidacy::count_able(Entry& entry, bool able) {
  if (std::exchange(entry.able, able) != able) able ? ++able_ : --able_;
}

std::size_t GroupCandidacy::held_by(SessionId session) const {
  const auto it = held_.find(session);
  return it == held_.end() ? 0 : it->second;
}

/// Of each member, and what is free.
Holdings GroupCandidacy::numbers(Time now) const {
  Holdings out{.own = own_->id, .free = {claims_.begin(), claims_.end()}};
  out.members[own_->id] = {held_by(own_->id), spread_.weight, most_now()};
  for (const auto& [id, rival] : rivals_.all())
    if (takes_part(now, rival)) out.members[id] = member_of(now, id, rival);
  out.waiting = joined_ - claims_.size();
  for (const auto& [id, held] : held_) out.waiting -= held;
  return out;
}

void GroupCandidacy::tell_led(Holdings& seen) {
  for (const auto& [election, entry] : all_entries()) {
    if (!entry.holder || !seen.members.contains(*entry.holder) || is_unreadable(election)) continue;
    seen.led.push_back({election, *entry.holder, entry.lead ? entry.lead->token : Token{}});
  }
}

}  // namespace tenure
