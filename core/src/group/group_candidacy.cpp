// SPDX-License-Identifier: Apache-2.0
// The rules of README.md: how each fact changes the state, and which effects follow.
#include "group/group_candidacy.hpp"

#include <algorithm>
#include <utility>

#include <tenure/kit/who.hpp>

#include "kit/in_ms.hpp"
#include "kit/require.hpp"

namespace tenure {
namespace {

using std::chrono::milliseconds;

/// Kernel bits, of which stores keep 63.
constexpr std::uint64_t id_bits = (std::uint64_t{1} << 63) - 1;

/// So many wake-ups in a row, with less than a retry between them, are taken as news.
constexpr int prompt_wakes = 8;

/// By more no time is multiplied.
constexpr int most_doublings = 10;
constexpr int ends_before_a_look = 3;
constexpr std::size_t few_changes = 16;

/// A store may leave them out of the answer to a commit.
bool tells_leads(const Look& look) { return look.whole || !look.cursor.empty(); }

}  // namespace

GroupCandidacy::GroupCandidacy(std::string who, const Timing& timing, std::function<std::uint64_t()> draw,
                               const Spread& spread, std::size_t hook_threads)
    : who_(std::move(who)),
      timing_(timing),
      draw_(std::move(draw)),
      rivals_(timing.clock_rate_error),
      spread_(spread),
      hook_threads_(hook_threads) {}

// ---- facts ----

void GroupCandidacy::start(Time now) {
  started_ = true;
  next_look_ = now;
  tick(now);
}

bool GroupCandidacy::join(Time now, const std::string& election, StallLimits stall) {
  judge_expiry(now);
  auto& entry = entries_[election];
  const bool joined = !std::exchange(entry.joined, true);
  if (joined) {
    emit(group_effect::Joined{election});
    ++joined_;
    names_ ^= hash_of(election);
    entry.stall = stall;
    claims_stale_.push_back(election);
    tell_unreadable(election);
    if (allotted_) next_look_ = now;
    if (started_) untold_ = last_id_, next_whole_ = now;
  }
  tick(now);
  return joined;
}

void GroupCandidacy::leave(Time now, const std::string& election) {
  judge_expiry(now);
  if (const auto it = entries_.find(election); it != entries_.end() && std::exchange(it->second.joined, false)) {
    --joined_;
    names_ ^= hash_of(election);
    claims_stale_.push_back(election);
    end_voluntarily(now, election, it->second, Reason::resigned, "leave() was called");
    if (!it->second.tenure) {
      give_back_unled(election);
      forget(it);
    }
  }
  tick(now);
}

void GroupCandidacy::resign(Time now, const std::string& election, std::optional<Duration> cool_down) {
  judge_expiry(now);
  if (auto* entry = part_in(election)) {
    const auto pause = std::clamp(cool_down.value_or(others_look()), Duration::zero(), max_term);
    stalled_.erase(election);
    if (entry->tenure) {
      entry->cool_down = std::max(entry->cool_down, pause);
      end_voluntarily(now, election, *entry, Reason::resigned, "resign() was called");
    } else {
      entry->not_before = std::max(entry->not_before, now + pause);
      give_back_unled(election);
    }
    claims_stale_.push_back(election);
  }
  tick(now);
}

void GroupCandidacy::stop(Time now) {
  if (stopping_) return;
  judge_expiry(now);
  stopping_ = true;
  all_claims_stale_ = true;
  for (auto& [election, entry] : all_entries())
    end_voluntarily(now, election, entry, Reason::stopped, "stop() was called");
  tick(now);
}

void GroupCandidacy::committed(Time now, std::uint64_t id, Result<Committed> result) {
  judge_expiry(now);  // Before the answer: a lapsed session never comes back.
  if (const auto pending = settle(now, id)) {
    const auto& question = pending->question;
    const auto* open = std::get_if<ask::Open>(&question.what);
    if (pending->wedged || !result) {
      if (open) abandon(*open);
      if (!open)
        write_less(now, std::get<ask::Write>(question.what).commit,
                   result ? Error{Fault::timed_out, "the answer came too late"} : result.error());
      if (!pending->wedged) unanswered(now, std::move(result).error());
    } else if (open) {
      opened(now, question, *open, *result);
    } else {
      written(now, question, std::get<ask::Write>(question.what), *result);
    }
  }
  tick(now);
}

void GroupCandidacy::looked(Time now, std::uint64_t id, Result<Look> result) {
  judge_expiry(now);
  if (const auto pending = settle(now, id); pending && !pending->wedged) {
    unseen_ = result ? 0 : std::min(unseen_ + 1, most_doublings);
    if (std::exchange(ends_in_vain_, 0) >= ends_before_a_look && result) lapsed_.reset();
    if (result) {
      heard();
      const bool told = tells_leads(*result);
      const bool whole = result->whole;
      if (whole) whole_took_ = now - pending->question.asked;
      absorb(now, std::move(*result));
      tell_joined(now, pending->question, whole);
      if (own_ && own_->untold && told) extend(*std::exchange(own_->untold, std::nullopt));
    } else {
      unanswered(now, std::move(result).error());
    }
  }
  tick(now);
}

void GroupCandidacy::ended(Time now, std::uint64_t id, const Result<bool>& result) {
  judge_expiry(now);
  if (const auto pending = settle(now, id); pending && !pending->wedged) {
    const auto& end = std::get<ask::End>(pending->question.what);
    const bool abandoned = lapsed_ && lapsed_->id == end.id;
    if (!result) {
      unanswered(now, result.error());
      if (!abandoned) rivals_.not_ended(end.id, now, jittered(timing_.retry), timing_.term);
    } else {
      if (!abandoned) heard();  // An open may need more time than this did.
      if (*result) {
        rivals_.ended(end.id);
        if (!abandoned) sessions_changed(now);
      } else {  // It was renewed meanwhile, or is gone, as a look will show.
        rivals_.postpone(end.id, now + jittered(timing_.retry));
        next_look_ = now;
      }
      all_claims_stale_ = true;
    }
    ends_in_vain_ = abandoned && !result ? ends_in_vain_ + 1 : 0;
    if (abandoned && (result || stopping_)) lapsed_.reset();
    if (stopping_ && own_ && own_->id == end.id) own_.reset();
  }
  tick(now);
}

void GroupCandidacy::swept(Time now, std::uint64_t id, const Result<int>& result) {
  judge_expiry(now);
  if (const auto pending = settle(now, id); pending && !pending->wedged) {
    swept_in_vain_ = result && *result > 0 ? 0 : std::min(swept_in_vain_ + 1, most_doublings);
    if (!result) unanswered(now, result.error());
  }
  tick(now);
}

/// What was told is worth a look at once, but not more often than that helps: a store may wake us for nothing. A wait
/// that ended at its limit told nothing.
void GroupCandidacy::awaited(Time now, std::uint64_t id, const std::optional<Release>& pushed) {
  judge_expiry(now);
  const auto pending = settle(now, id);
  const bool returned = pending && !pending->wedged && !pending->interrupted;
  if (returned) deaf_ = false;
  if (returned && (pushed || now < pending->question.by) && now < next_due()) {
    const auto it = pushed ? entries_.find(pushed->election) : entries_.end();
    auto* lead = it != entries_.end() && it->second.lead ? &*it->second.lead : nullptr;
    if (lead && lead->token == pushed->token && !lead->released) {
      lead->released = lead->pushed = true;
      lead->at = now;
      lead->heir = pushed->heir;
      claims_stale_.push_back(pushed->election);
    } else {
      wakes_ = last_wake_ && now < *last_wake_ + timing_.retry ? wakes_ + 1 : 0;
      last_wake_ = now;
      next_look_ = wakes_ > prompt_wakes ? now + jittered(timing_.retry) : now;
      wait_from_ = next_look_;
    }
  }
  tick(now);
}

/// The look of the next commit has to do.
void GroupCandidacy::wait_failed(Time now, std::uint64_t id, Error error) {
  judge_expiry(now);
  if (const auto pending = settle(now, id); pending && !pending->wedged) {
    wait_from_ = now + jittered(timing_.renew);
    deaf_ = true;
    trouble(now, std::move(error));
  }
  tick(now);
}

void GroupCandidacy::ousting_returned(Time now, const std::string& election) {
  judge_expiry(now);
  const auto it = entries_.find(election);
  if (it != entries_.end() && it->second.tenure && !it->second.tenure->ending.leading()) {
    auto& tenure = *it->second.tenure;
    if (tenure.ending.draining()) emit(group_effect::Unlead{election});
    if (voluntary(tenure.ending.reason())) give_back(election, tenure);
    if (tenure.heir) --gifts_running_;
    if (tenure.ending.overran()) count_overrun(now, -1);
    if (!to_release_.contains(election)) cool_off(now, it->second);
    TENURE_REQUIRE(tenures_ > 0 && ending_.contains(election));
    it->second.tenure.reset();
    --tenures_;
    ending_.erase(election);
    claims_stale_.push_back(election);
    if (!it->second.joined) forget(it);
  }
  tick(now);
}

void GroupCandidacy::hooks_hang(Time now, bool hang) {
  judge_expiry(now);
  const bool was_full = hooks_full();
  hooks_hang_ = hang;
  tell_full(now, was_full);
  tick(now);
}

/// Whoever resigns meanwhile says himself when he contends again. Then it is no longer among the stalled ones.
void GroupCandidacy::progressed(const std::string& election, Time at) {
  const auto it = entries_.find(election);
  if (it == entries_.end()) return;
  auto& entry = it->second;
  if (entry.tenure) entry.tenure->progressed = std::max(entry.tenure->progressed, at);
  const auto stalled = stalled_.find(election);
  if (stalled == stalled_.end() || at <= stalled->second) return;
  stalled_.erase(stalled);
  entry.cool_down = std::min(entry.cool_down, timing_.retry);
  entry.not_before = std::min(entry.not_before, at);
  claims_stale_.push_back(election);
}

void GroupCandidacy::tick(Time now) {
  judge_expiry(now);
  watch_progress(now);
  watch_hooks(now);
  watch_store(now);
  ask_next(now);
}

void GroupCandidacy::take_effects(std::vector<GroupEffect>& into) {
  into.clear();
  into.swap(effects_);
}

// ---- answers ----

/// The outstanding question, if this is its answer. The answer to a wedged one is worth nothing. If nobody was told of
/// that yet, it is trouble like any other.
std::optional<GroupCandidacy::Pending> GroupCandidacy::settle(Time now, std::uint64_t id) {
  if (!pending_ || pending_->question.id != id) return std::nullopt;
  auto pending = std::exchange(pending_, std::nullopt);
  if (pending->told)
    emit(group_effect::Report{{Fault::wedged, "the store call that ignored its limit has returned"}, {}});
  else if (pending->wedged)
    unanswered(now, {Fault::timed_out,
                     "a store call took " + in_ms(now - pending->question.by) +
                         " longer than it may, so the answer is not used: make it quicker, or raise Timing::call"});
  return pending;
}

void GroupCandidacy::opened(Time now, const GroupQuestion& asked, const ask::Open& open, Committed& result) {
  heard();
  whole_took_ = now - asked.asked;
  const bool in_time = now < timing_.deadline(asked.asked);
  if (result.granted && in_time && !own_) {
    own_ = Own{open.id, {open.session.record.beat}, {.timing = timing_}, {}};
    most_changes_ = max_changes, unwritten_ = 0;
    all_claims_stale_ = true;
    gather_until_ = now + timing_.renew / 4;
    extend(asked.asked);
  } else {
    if (!result.granted)
      unanswered(now,
                 {Fault::unreachable, "the store has a session of this id already: the open was sent twice below us"});
    abandon(open);
  }
  const auto store_ms = result.look.now_ms;
  const bool whole = result.look.whole;
  absorb(now, std::move(result.look));
  tell_joined(now, asked, whole);
  if (own_) plan_next_commit(asked.asked, now, store_ms);
}

/// Of what was joined after that was asked, another look has to tell.
void GroupCandidacy::tell_joined(Time now, const GroupQuestion& asked, bool whole) {
  if (!untold_) return;
  if (whole && asked.id > *untold_)
    untold_.reset();
  else
    next_whole_ = now;
}

/// It may stand in the store and is not ours, so the next question ends it. Else the others would count it as one of
/// them for a term, and hand elections over to nobody.
void GroupCandidacy::abandon(const ask::Open& open) {
  lapsed_ = Own{open.id, {open.session.record.beat}, {.timing = timing_}, {}};
}

void GroupCandidacy::written(Time now, const GroupQuestion& asked, const ask::Write& write, Committed& result) {
  heard();
  const auto& commit = write.commit;
  const bool ours = own_ && own_->id == commit.session;
  const auto beat = commit.next.record.beat;
  if (ours && !result.granted) {
    const auto stands = result.look.sessions.find(commit.session);
    if (stands != result.look.sessions.end() && !stands->second.record.released && stands->second.record.beat == beat)
      return unanswered(now, {Fault::unreachable,
                              "the store refused a commit that stands there: it was sent twice "
                              "below us"});
    lose_session(now, Reason::superseded, "the store refused to renew the session", now);
  } else if (ours) {
    own_->beats = {beat};
    commit_took_ = now - asked.asked;
    write_more(commit);
    keep_unrenewed(result.not_renewed);  // Before the session's later deadline can be seen.
    const bool told = tells_leads(result.look);
    own_->untold = told ? std::nullopt : std::optional(asked.asked);
    if (told) extend(asked.asked);
    settle_changes(now, commit, result);
  }
  const auto store_ms = result.look.now_ms;
  absorb(now, std::move(result.look));
  if (!own_) return;
  plan_next_commit(asked.asked, now, store_ms);
  if (next_look_ < next_commit_) next_look_ = now;                             // The others' renewals are fresh now.
  if (own_->untold) next_commit_ = std::max(next_commit_, now + Duration(1));  // The look that is owed goes first.
}

/// Perhaps its changes took the store longer than a call may, and the session has to live until they are done. If it is
/// no matter of their number, it is one of them, and half as many each time find that one. It keeps up no other then.
void GroupCandidacy::write_less(Time now, const Commit& commit, const Error& why) {
  const auto changes = commit.releases.size() + commit.claims.size();
  if (changes == 0) return;
  const auto& first = commit.releases.empty() ? commit.claims.front().election : commit.releases.front().election;
  const bool found = most_changes_ == 1 || goes_alone(first);
  const auto least = std::exchange(unwritten_, unwritten_ + 1) == 0 ? few_changes : 1;
  most_changes_ = found ? std::max(most_changes_, few_changes) : std::min(most_changes_, std::max(changes / 2, least));
  if (!found) return;
  if (to_release_.contains(first))
    hold_up(now, first, why);
  else if (auto* entry = part_in(first))
    hold_up_claim(now, first, *entry, why);
  else
    return;
  held_up_[first].alone = true;
}

void GroupCandidacy::write_more(const Commit& commit) {
  const bool alone = commit.releases.empty() && commit.claims.empty();
  if (alone && unwritten_ < 2) return;
  unwritten_ = alone ? 1 : 0;
  if (!alone) most_changes_ = std::min(most_changes_ + std::max<std::size_t>(most_changes_ / 8, 1), max_changes);
}

/// After one without an answer few, as few as a call can always make. After another one none, or where the lease has no
/// room for it: then it is no matter of their number.
std::size_t GroupCandidacy::changes_now(Time now) const {
  if (unwritten_ == 0) return most_changes_;
  const bool may_miss_again = own_->lease.deadline - now > 2 * timing_.call + timing_.retry;
  return unwritten_ == 1 && may_miss_again ? std::min(most_changes_, few_changes) : 0;
}

/// What was asked for and not done has changed in the store, as its look shows. If it shows nothing new, what we
/// believed was wrong, and is not tried again at once.
void GroupCandidacy::settle_changes(Time now, const Commit& commit, const Committed& result) {
  const std::set<std::string_view> done(result.released.begin(), result.released.end());
  for (const auto& release : commit.releases) {
    const auto why = result.refused.find(release.election);
    if (why != result.refused.end() && !done.contains(release.election)) {
      hold_up(now, release.election, why->second);
      continue;
    }
    if (!done.contains(release.election) && !result.look.leads.contains(release.election)) doubt(now);
    to_release_.erase(release.election);
    held_up_.erase(release.election);
    if (auto* entry = part_in(release.election)) cool_off(now, *entry);
    claims_stale_.push_back(release.election);
  }
  for (const auto& election : result.claimed) elect(now, election, result.token, commit.at_least);
  for (const auto& claim : commit.claims) {
    const auto it = entries_.find(claim.election);
    if (it == entries_.end()) continue;
    auto& entry = it->second;
    if (entry.lead && std::exchange(entry.lead->pushed, false)) entry.lead->released = false;
    if (const auto why = result.refused.find(claim.election); why != result.refused.end()) {
      hold_up_claim(now, claim.election, entry, why->second);
      continue;
    }
    const auto shown = result.look.leads.find(claim.election);
    const bool news = entry.tenure ||
                      (shown != result.look.leads.end() && (!entry.lead || !entry.lead->shows(shown->second))) ||
                      result.look.unreadable.contains(claim.election);
    const bool again = std::exchange(entry.doubted, !news) && !news;
    if (again) doubt(now);
    if (!news && entry.lead && !entry.lead->released && !rivals_.find(entry.lead->session))
      next_look_ = now;  // Its session is not absent after all.
    if (!news) entry.not_before = std::max(entry.not_before, now + jittered(timing_.retry));
    if (shown == result.look.leads.end()) claims_stale_.push_back(claim.election);  // or else by the look
  }
}

/// It cannot be written just now. Says when it is tried again: a row may be locked for a moment, or for hours.
GroupCandidacy::Time GroupCandidacy::hold_up(Time now, const std::string& election, const Error& why) {
  auto& held = held_up_[election];
  held.again = now + std::min(jittered(timing_.retry) * (1 << held.tries), timing_.term / 2);
  held.tries = std::min(held.tries + 1, most_doublings);
  if (const auto due = to_release_.find(election); due != to_release_.end()) {
    held.due = due->second;
    to_release_.erase(due);
  }
  report(now, {why.fault, "the lead of election " + election + " cannot be written: " + why.message}, election);
  return held.again;
}

void GroupCandidacy::hold_up_claim(Time now, const std::string& election, Entry& entry, const Error& why) {
  entry.not_before = std::max(entry.not_before, hold_up(now, election, why));
  claims_stale_.push_back(election);
}

void GroupCandidacy::take_up(Time now) {
  for (auto& [election, held] : held_up_)
    if (held.due && now >= held.again) to_release_.insert_or_assign(election, *std::exchange(held.due, std::nullopt));
}

/// Perhaps somebody else wrote there, of which no change is told.
void GroupCandidacy::doubt(Time now) {
  next_whole_ = std::min(next_whole_, std::max(now, last_whole_ + timing_.term / 2));
}

void GroupCandidacy::elect(Time now, const std::string& election, Token token, Token at_least) {
  const auto it = entries_.find(election);
  highest_ = std::max(highest_, token);  // Perhaps no look tells it.
  const bool rises = token >= at_least;
  if (!rises)
    report(now,
           {Fault::corrupt, "the store granted token " + std::to_string(token.value) + " of election " + election +
                                " where at least " + std::to_string(at_least.value) +
                                " was asked for. This tenure is handed back unled; restore the store's data"},
           election);
  if (!rises || stopping_ || hooks_full() || it == entries_.end() || !it->second.joined || it->second.tenure ||
      now < it->second.not_before) {
    to_release_[election] = {token};
    return;
  }
  to_release_.erase(election);
  held_up_.erase(election);
  claims_.erase(election);
  wanted_.erase(election);
  stalled_.erase(election);
  it->second.tenure.emplace(Tenure{{.token = token, .progressed = now}, {.session = own_->id}});
  ++tenures_;
  if (const auto after = it->second.stall.after; after > Duration::zero())
    watch_work_at(now + after, election, it->second);
  emit(group_effect::Lead{election, token, own_->id});
  emit(group_effect::Begin{election, token});
}

void GroupCandidacy::extend(Time asked) {
  own_->lease.extend(asked);
  emit(group_effect::Publish{own_->id, own_->lease.deadline});
  for (const auto& election : ending_) {
    auto& tenure = *entries_.find(election)->second.tenure;
    if (tenure.session == own_->id && !tenure.kept) tenure.renewed(emitter(), election, own_->lease.end);
  }
}

/// These tenures keep the lease that they have. The others have the session's again.
void GroupCandidacy::keep_unrenewed(const std::vector<std::string>& elections) {
  const auto change = [this](const std::string& election, const std::optional<Bounds>& bounds) {
    const auto it = entries_.find(election);
    auto* tenure = it != entries_.end() && it->second.tenure ? &*it->second.tenure : nullptr;
    if (!tenure || tenure->session != own_->id || tenure->ending.over() || (bounds && tenure->kept)) return false;
    tenure->kept = bounds;
    cap(election, *tenure);
    return true;
  };
  const std::set<std::string_view> left_out(elections.begin(), elections.end());
  for (auto it = unrenewed_.begin(); it != unrenewed_.end();) {
    if (left_out.contains(*it)) {
      ++it;
    } else {
      change(*it, std::nullopt);
      it = unrenewed_.erase(it);
    }
  }
  for (const auto& election : elections)
    if (change(election, Bounds{own_->lease.deadline, own_->lease.end})) unrenewed_.insert(election);
}

void GroupCandidacy::cap(const std::string& election, const Tenure& tenure) {
  emit(group_effect::Cap{election, std::min(tenure.cap ? tenure.cap->deadline : Time::max(),
                                            tenure.kept ? tenure.kept->deadline : Time::max())});
}

/// On a grid of the store's clock, so that the renewals of all processes lie close together: then every renewal's
/// answer shows the others' fresh ones, and keeps the bounds of their leases tight.
void GroupCandidacy::plan_next_commit(Time asked, Time now, std::int64_t store_ms) {
  const auto spread = std::min<Duration>(timing_.renew / 20, milliseconds(100));
  const auto step = timing_.renew / milliseconds(1);
  next_commit_ = asked + timing_.renew;
  if (store_ms <= 0 || step <= 0) return;
  auto to_grid = milliseconds(step - store_ms % step);
  if (to_grid < timing_.renew / 4) to_grid += milliseconds(step);
  const auto grid = now + to_grid + Duration(static_cast<Clock::rep>(draw_() % std::uint64_t(spread.count() + 1)));
  next_commit_ = std::min(next_commit_ + spread, grid);
}

void GroupCandidacy::heard() {
  last_error_.reset();
  unheard_ = 0;
}

void GroupCandidacy::unanswered(Time now, Error error) {
  if (!own_) unheard_ = std::min(unheard_ + 1, most_doublings);
  trouble(now, std::move(error));
  next_ask_ = now + jittered(timing_.retry);
}

// ---- what the store shows ----

void GroupCandidacy::absorb(Time now, Look look) {
  const bool same_data = marker_ == look.marker;
  absorb_marker(now, look);
  if (look.all_sessions) absorb_sessions(now, look);
  judge_own(now, look);
  if (!tells_leads(look)) next_look_ = now;
  absorb_allotted(now, std::move(look.allotted));
  if (same_data || look.whole) return absorb_leads(now, look);
  cursor_.clear();  // What it does not tell is of the data before.
  next_look_ = now;
}

/// They are looked at again before the lease of any that renews is over, as far as we know, and not with each renewal.
void GroupCandidacy::absorb_sessions(Time now, const Look& look) {
  const auto news = rivals_.saw(look, own_ ? std::optional(own_->id) : std::nullopt, timing_.term, now);
  if (news != Rivals::News::none || std::exchange(gifts_wait_, false)) plan_stale_ = true;
  if (news == Rivals::News::sessions) sessions_changed(now);
  const auto renewals = deaf_ ? 1 : std::clamp<Clock::rep>(timing_.term / timing_.renew - 2, 1, 3);
  next_look_ = now + (joined_ > 0 ? renewals * timing_.renew + timing_.renew / 2 : timing_.term - timing_.renew);
}

/// One came or went, as a look shows, or because we ended it: no look shows that as news.
void GroupCandidacy::sessions_changed(Time now) {
  all_claims_stale_ = true;
  changed_ = now;
  if (std::exchange(swept_in_vain_, 0) > 0) next_sweep_ = Time::max();
  emit(group_effect::Changed{});
}

/// What we lead besides ends, and is given back.
void GroupCandidacy::absorb_allotted(Time now, std::optional<std::set<std::string>> allotted) {
  if (allotted_ == allotted) return;
  allotted_ = std::move(allotted);
  all_claims_stale_ = true;
  for (auto& [election, entry] : all_entries())
    if (own_ && !is_allotted(election))
      end_voluntarily(now, election, entry, Reason::handed_over, "the store has allotted it to another process");
}

/// Another marker means other data, of which nobody may rely on what is absent: not for a term.
void GroupCandidacy::absorb_marker(Time now, const Look& look) {
  if (marker_ == look.marker) return;
  if (marker_.value_or(0) != 0)
    report(now, {Fault::corrupt,
                 "the store lost the data of this group, and it was founded anew; restore it, and until "
                 "then fence every write with the token"});
  marker_ = look.marker;
  marker_since_ = now;
  forget_leads();
  spoilt_.clear();
  rivals_.forget_absent();
  all_claims_stale_ = true;
}

void GroupCandidacy::judge_own(Time now, const Look& look) {
  if (!own_) return;
  const auto it = look.sessions.find(own_->id);
  const auto ours = [&](std::uint64_t beat) {
    return std::find(own_->beats.begin(), own_->beats.end(), beat) != own_->beats.end();
  };
  if (it == look.sessions.end())
    lose_session(now, Reason::superseded, "the store has lost the session", now);
  else if (it->second.record.released)
    lose_session(now, Reason::superseded, "the session was ended in the store", now);
  else if (!ours(it->second.record.beat))
    lose_session(now, Reason::superseded, "a copy of this process renews the session", now);
}

void GroupCandidacy::absorb_leads(Time now, Look& look) {
  bool any_fell = false;
  const auto fell = [&](const std::string& election, Token token, const std::string& now_it_has) {
    if (std::exchange(any_fell, true)) return;
    report(now, {Fault::corrupt, "the store lost data: election " + election + " had token " +
                                     std::to_string(token.value) + ", and now " + now_it_has +
                                     "; restore it, and until then fence every write with the token"});
    claims_from_ = std::max(claims_from_, now + longest());
    all_claims_stale_ = true;
  };
  // Only what is free is retired. What a session leads that stands was lost, whatever was retired since its claim.
  const auto may_be_retired = [&](const SeenLead& lead) {
    const auto it = look.sessions.find(lead.session);
    return lead.token <= look.retired && (lead.released || it == look.sessions.end() || it->second.record.released);
  };
  if (look.whole)
    for (const auto& [election, entry] : entries_)  // it told as many
      if (entry.lead && entry.joined && !may_be_retired(*entry.lead) && !look.leads.contains(election) &&
          !look.unreadable.contains(election))
        fell(election, entry.lead->token, "no record at all");
  for (const auto& [election, lead] : look.leads) {
    const auto* before = lead_of(election);
    if (before && lead.token < before->token)
      fell(election, before->token, "token " + std::to_string(lead.token.value));
    highest_ = std::max(highest_, lead.token);
  }
  if (!look.leads.empty() || !look.unreadable.empty()) emit(group_effect::Changed{});
  for (const auto& [election, lead] : look.leads) {
    settle_lead(now, election, lead);
    claims_stale_.push_back(election);
  }
  absorb_unreadable(now, look);
  if (look.whole) forget_leads(&look);
  for (const auto& [election, lead] : look.leads) {
    const auto it = entries_.find(election);
    if (it == entries_.end()) continue;  // We take no part in it.
    auto& seen = it->second.lead;
    const auto at = seen && seen->shows(lead) ? seen->at : now;
    if (seen && seen->released && seen->heir && seen->token < lead.token)
      rivals_.given(*seen->heir, lead.session == *seen->heir, now, timing_.term);
    seen = SeenLead{lead.token, lead.session, lead.heir, at, lead.released};
  }
  cursor_ = std::move(look.cursor);
  const bool any_ended = std::any_of(rivals_.all().begin(), rivals_.all().end(),
                                     [](const auto& rival) { return rival.second.session.record.released; });
  if (any_ended && next_sweep_ == Time::max()) next_sweep_ = now + jittered(timing_.term * (1 << swept_in_vain_));
}

/// Nobody knows whom such a lead names. Who leads it goes on, and nobody else may. What it says once it can be read
/// again was not written by us: its leader learns that by its next commit, so the others wait for a term.
void GroupCandidacy::absorb_unreadable(Time now, const Look& look) {
  for (const auto& [election, error] : look.unreadable) {
    auto& spoilt = spoilt_[election];
    const bool told = spoilt.error == error;
    spoilt.error = error;
    const auto it = entries_.find(election);
    if (it == entries_.end()) continue;
    it->second.lead.reset();
    claims_stale_.push_back(election);
    if (!told) tell_unreadable(election);
  }
  bool any = false;
  for (auto it = spoilt_.begin(); it != spoilt_.end();) {
    auto& [election, spoilt] = *it;
    if (spoilt.error && !look.unreadable.contains(election) && (look.whole || look.leads.contains(election))) {
      spoilt = {std::nullopt, now};
      claims_stale_.push_back(election);
    }
    any |= spoilt.error.has_value();
    const bool over = !spoilt.error && now >= spoilt.since + longest();
    it = over ? spoilt_.erase(it) : std::next(it);
  }
  if (look.whole) next_whole_ = Time::max();
  if (any) next_whole_ = std::min(next_whole_, now + timing_.term / 2);
}

void GroupCandidacy::tell_unreadable(const std::string& election) {
  const auto* entry = part_in(election);
  const auto it = spoilt_.find(election);
  if (!entry || !entry->joined || it == spoilt_.end() || !it->second.error) return;
  emit(group_effect::Report{{it->second.error->fault, "the lead of election " + election +
                                                          " cannot be read, and nobody else can take it until it is "
                                                          "mended: " +
                                                          it->second.error->message},
                            election});
}

bool GroupCandidacy::is_unreadable(std::string_view election) const { return readable_from(election) == Time::max(); }

GroupCandidacy::Time GroupCandidacy::readable_from(std::string_view election) const {
  const auto it = spoilt_.find(election);
  if (it == spoilt_.end()) return Time::min();
  return it->second.error ? Time::max() : it->second.since + longest();
}

/// A lead that was written, held against what we believe.
void GroupCandidacy::settle_lead(Time now, const std::string& election, const Lead& lead) {
  if (!own_) return;
  const auto it = entries_.find(election);
  auto* tenure = it != entries_.end() && it->second.tenure ? &*it->second.tenure : nullptr;
  const bool names_us = lead.session == own_->id && !lead.released;
  if (tenure && tenure->session == own_->id && !tenure->ending.over()) {
    if (!names_us || lead.token != tenure->token)
      end_at_once(now, election, it->second, Reason::superseded, "another tenure stands in the store", now);
    else if (lead.step_down && lead.step_down->token == tenure->token)
      end_voluntarily(now, election, it->second, Reason::step_down, asked_by(lead.step_down->by, lead.step_down->why));
    return;
  }
  const auto due = to_release_.find(election);
  if (!names_us) {
    const bool held = held_up_.erase(election) > 0;
    if (due == to_release_.end() && !held) return;
    if (due != to_release_.end()) to_release_.erase(due);
    if (auto* entry = part_in(election)) cool_off(now, *entry);
  } else if (!tenure &&
             (it == entries_.end() || !it->second.joined || stopping_ || hooks_full() || now < it->second.not_before)) {
    if (!releases_later(election))
      to_release_[election] = {lead.token};  // a claim that was not answered, and that nobody wants any more
  } else if (due != to_release_.end()) {
    due->second.token = lead.token;
  }
}

std::optional<Incumbent> GroupCandidacy::incumbent(const std::string& election, Time now) const {
  const auto* lead = lead_of(election);
  const auto* rival = lead ? leader_by(*lead, now) : nullptr;
  if (!rival) return std::nullopt;
  const auto& record = rival->session.record;
  return incumbent_of(record.who, lead->token, rival->lease_end - now);
}

/// Another process, whose session has not ended, nor its lease by our clock.
const Rivals::Rival* GroupCandidacy::leader_by(const SeenLead& lead, Time now) const {
  const auto* rival = lead.released ? nullptr : rivals_.find(lead.session);
  return rival && !rival->session.record.released && now < rival->lease_end ? rival : nullptr;
}

std::vector<std::string> GroupCandidacy::unled(Time now) const {
  std::vector<std::string> out;
  for (const auto& [election, entry] : entries_) {
    if (!entry.joined || entry.tenure) continue;
    if (!entry.lead || !leader_by(*entry.lead, now)) out.push_back(election);
  }
  return out;
}

const GroupCandidacy::SeenLead* GroupCandidacy::lead_of(std::string_view election) const {
  const auto it = entries_.find(election);
  return it == entries_.end() || !it->second.lead ? nullptr : &*it->second.lead;
}

GroupCandidacy::Entry* GroupCandidacy::part_in(std::string_view election) {
  const auto it = entries_.find(election);
  return it == entries_.end() ? nullptr : &it->second;
}

/// All of them, or those that this look does not tell.
void GroupCandidacy::forget_leads(const Look* but_of) {
  for (auto& [election, entry] : entries_)
    if ((!but_of || !but_of->leads.contains(election)) && std::exchange(entry.lead, std::nullopt))
      claims_stale_.push_back(election);
}

// ---- time ----

void GroupCandidacy::judge_expiry(Time now) {
  judge_unrenewed(now);
  if (own_ && own_->lease.lapsed(now)) lose_session(now, Reason::lapsed, "", own_->lease.end);
}

void GroupCandidacy::judge_unrenewed(Time now) {
  for (auto it = unrenewed_.begin(); it != unrenewed_.end();) {
    const auto election = *it;
    const auto entry = entries_.find(election);
    auto* tenure = entry != entries_.end() && entry->second.tenure ? &*entry->second.tenure : nullptr;
    const bool stands = tenure && tenure->kept && !tenure->ending.over();
    if (stands && now < tenure->kept->deadline) {
      ++it;
      continue;
    }
    it = unrenewed_.erase(it);
    if (!stands) continue;
    if (tenure->ending.draining())
      lapse(election, *tenure, tenure->kept->end);
    else
      end_at_once(now, election, entry->second, Reason::lapsed, "the store renewed the session, but not this lead",
                  tenure->kept->end);
  }
}

/// It leads no more. Its work may run for as long as its lease, and nobody may have it before.
void GroupCandidacy::lapse(const std::string& election, Tenure& tenure, Time lease_end) {
  tenure.lapse(emitter(), election);
  tenure.free_at = lease_end;
  watch_later(election, tenure);
}

/// All work is told to stop before any end is told: the user's log and hooks take their time for each.
void GroupCandidacy::lose_session(Time now, Reason reason, const std::string& detail, Time done_by) {
  emit(group_effect::Withdraw{});
  const auto first = effects_.size();
  for (auto& [election, entry] : all_entries()) {
    if (!entry.tenure) cool_off(now, entry);
    if (entry.tenure && !entry.tenure->ending.over()) end_at_once(now, election, entry, reason, detail, done_by);
  }
  std::stable_partition(effects_.begin() + static_cast<std::ptrdiff_t>(first), effects_.end(),
                        [](const auto& effect) { return !std::holds_alternative<group_effect::End>(effect); });
  lapsed_ = std::exchange(own_, std::nullopt);
  if (reason == Reason::superseded) lapsed_.reset();  // The store knows.
  to_release_.clear();
  held_up_.clear();
  all_claims_stale_ = true;
  next_commit_ = Time::max();
  next_look_ = now;
}

std::vector<std::string> GroupCandidacy::progress_due(Time now) const {
  std::vector<std::string> out;
  for (auto it = work_due_.begin(); it != work_due_.end() && it->first <= now; ++it) out.push_back(it->second);
  return out;
}

/// A look at one election's work costs the same, however many there are, and is due once per stall time.
void GroupCandidacy::watch_progress(Time now) {
  while (!work_due_.empty() && work_due_.begin()->first <= now) {
    const auto election = work_due_.extract(work_due_.begin()).value().second;
    auto& entry = entries_.find(election)->second;
    watch_work_at(watch_work(now, election, entry), election, entry);
  }
}

/// In place of the moment that it has. Who leads and resigns by turns would gather one for each tenure.
void GroupCandidacy::watch_work_at(Time at, const std::string& election, Entry& entry) {
  work_due_.erase({std::exchange(entry.work_due, at), election});
  if (at < Time::max()) work_due_.emplace(at, election);
}

/// Says when to look again. Progress is told without a lock and wakes nobody, so what stalled is looked at as often as
/// a store in trouble.
GroupCandidacy::Time GroupCandidacy::watch_work(Time now, const std::string& election, Entry& entry) {
  auto& tenure = entry.tenure;
  if (const auto stalled = stalled_.find(election); stalled != stalled_.end()) {
    const bool contends = !tenure && entry.cool_down == Duration::zero() && now >= entry.not_before;
    if (!contends && !stopping_) return now + timing_.retry;
    stalled_.erase(stalled);
  } else if (tenure && tenure->stalls_at(entry.stall) < Time::max()) {
    if (!tenure->stalls(now, entry.stall)) return tenure->stalls_at(entry.stall);
    stalled_.emplace(election, tenure->progressed);
    entry.cool_down = std::max(entry.cool_down, entry.stall.pause);
    end_voluntarily(now, election, entry, Reason::stalled,
                    "the work has reported no progress for " + in_ms(entry.stall.after));
    return now + timing_.retry;
  }
  return Time::max();
}

void GroupCandidacy::watch_hooks(Time now) {
  while (!hook_due_.empty() && hook_due_.begin()->first <= now) {
    const auto election = hook_due_.extract(hook_due_.begin()).value().second;
    const auto it = entries_.find(election);
    if (it != entries_.end() && it->second.tenure && !it->second.tenure->ending.leading())
      watch_hook(now, election, *it->second.tenure);
  }
}

void GroupCandidacy::watch_hook(Time now, const std::string& election, Tenure& tenure) {
  auto& ending = tenure.ending;
  // It took longer than the drain. The others need their renewals, so this one gets an end of its own.
  if (ending.draining() && !ending.renews(now) && !tenure.cap) {
    tenure.cap = bounds_of(tenure);
    cap(election, tenure);
  }
  if (tenure.watch_hook(emitter(), election, now)) count_overrun(now, +1);
  if (ending.draining() && tenure.cap && now >= tenure.cap->deadline) lapse(election, tenure, tenure.cap->end);
  if (tenure.free_at && now >= *tenure.free_at) give_back(election, tenure);
  watch_later(election, tenure);
}

void GroupCandidacy::count_overrun(Time now, int by) {
  const bool was_full = hooks_full();
  TENURE_REQUIRE(by > 0 || overruns_ > 0);
  overruns_ += static_cast<std::size_t>(by);
  tell_full(now, was_full);
}

void GroupCandidacy::tell_full(Time now, bool was_full) {
  if (was_full == hooks_full()) return;
  all_claims_stale_ = true;
  if (was_full) return;
  report(
      now,
      {Fault::hook_overran,
       hooks_hang_
           ? "a hook waits for a thread, and none has begun for a term, because others hold them all: the work of some "
             "elections that we lead has not begun, and no election is claimed until one returns. "
             "elected() must start the work, not be it; or give Elections more hook threads"
           : "as many ousting() have not returned in time as there are hook threads: no election is "
             "claimed until one returns. Give Elections more of them, or make the work stop sooner"});
}

void GroupCandidacy::watch_later(const std::string& election, const Tenure& tenure) {
  auto at = tenure.ending.next_alarm();
  if (tenure.ending.draining()) at = std::min(at, tenure.cap ? tenure.cap->deadline : tenure.ending.drain_by());
  if (tenure.free_at && !tenure.given_back) at = std::min(at, *tenure.free_at);
  if (at != Time::max()) hook_due_.emplace(at, election);
}

void GroupCandidacy::watch_store(Time now) {
  if (!pending_ || !pending_->watch(now, pending_->question.by, timing_.call)) return;
  last_error_ = std::make_shared<const Error>(
      Error{Fault::wedged, "a store call has not returned by its limit: nothing more is asked until it does"});
  emit(group_effect::Report{*last_error_, {}});
}

/// It is always later than the last fact, whose tick() did all that was due by then.
GroupCandidacy::Time GroupCandidacy::next_alarm() const {
  auto at = Time::max();
  if (over_) return at;
  if (own_) at = std::min(at, own_->lease.deadline);
  for (const auto& election : unrenewed_)
    if (const auto it = entries_.find(election); it != entries_.end() && it->second.tenure && it->second.tenure->kept)
      at = std::min(at, it->second.tenure->kept->deadline);
  if (!hook_due_.empty()) at = std::min(at, hook_due_.begin()->first);
  if (!work_due_.empty()) at = std::min(at, work_due_.begin()->first);
  if (pending_) at = std::min(at, pending_->alarm(pending_->question.by, timing_.call));
  if (pending_ && pending_->wedged) return at;
  if (const auto needed = needed_until(); needed < Time::max()) return std::min(at, needed);
  if (started_ && !pending_) at = std::min(at, next_due());
  return started_ && !pending_ ? std::min(at, wait_from_) : at;
}

GroupCandidacy::Time GroupCandidacy::work_by() const {
  auto by = Time::max();
  for (const auto& election : ending_)
    if (const auto it = entries_.find(election); it != entries_.end() && it->second.tenure)
      by = std::min(by, it->second.tenure->ending.overrun_at());
  return by;
}

// ---- questions ----

/// When the next question is to be asked, a wait apart.
GroupCandidacy::Time GroupCandidacy::next_due() const {
  auto due = std::min(next_look_, next_whole_);
  if (lapsed_) return std::max(next_ask_, end_from());
  if (stopping_ && tenures_ == 0) return next_ask_;
  if (!own_) {
    if (joined_ > 0 && !stopping_) due = Time::min();
  } else {
    due = std::min({due, next_commit_, next_sweep_});
    if (!claims_due_.empty()) due = std::min(due, claims_due_.begin()->first);
    if (!stopping_ && !hooks_full()) due = std::min(due, plan_stale_ ? planned_ + timing_.retry / 4 : plan_again_);
    if (!to_release_.empty() || !wanted_.empty()) due = Time::min();
    for (const auto& [election, held] : held_up_)
      if (held.due) due = std::min(due, held.again);
    if (const auto next = next_to_end()) due = std::min(due, next->second);
  }
  return std::max(due, next_ask_);
}

void GroupCandidacy::ask_next(Time now) {
  if (over_ || !started_) {
    if (stopping_ && !over_ && !pending_) end(false);
    return;
  }
  take_up(now);
  find_claims(now);
  // A plan looks at every election. What is due already goes first, and the next fact finds the plan still to be made.
  if (pending_ || !own_ || (to_release_.empty() && wanted_.empty())) plan(now);
  if (pending_) {
    if (now >= needed_until()) {
      pending_->interrupted = true;
      if (!std::holds_alternative<ask::Await>(pending_->question.what)) pending_->question.by = now;
      emit(group_effect::Interrupt{});
    }
    if (pending_->wedged && stopping_ && tenures_ == 0) end(true);
    return;
  }
  if (stopping_ && tenures_ == 0) return ask_last(now);
  if (now < next_due()) {
    if (now >= wait_from_) ask(now, ask::Await{cursor_}, std::min(next_due(), now + timing_.term));
    return;
  }
  // A store that answers, and does not let it be ended: the others see to it, and we open another one.
  if (lapsed_ && ends_in_vain_ >= ends_before_a_look) return ask_look(now);
  if (lapsed_) return ask_end(now, lapsed_->id, lapsed_->beats);
  if (!own_) return joined_ > 0 && !stopping_ ? ask_open(now) : ask_look(now);
  ask_in_session(now);
}

/// From when on nobody needs the answer to what is asked now. Time::max(): it is needed, or cannot be interrupted.
GroupCandidacy::Time GroupCandidacy::needed_until() const {
  if (!pending_ || pending_->interrupted) return Time::max();
  const bool last = stopping_ && tenures_ == 0;
  const bool waits = std::holds_alternative<ask::Await>(pending_->question.what);
  if (waits) return last ? Time::min() : next_due();
  return last && !pending_->wedged ? pending_->question.asked + timing_.call : Time::max();
}

/// All work is over. One write ends the session, and with it every lead that names it.
void GroupCandidacy::ask_last(Time now) {
  if (lapsed_) return ask_end(now, lapsed_->id, lapsed_->beats);
  if (!own_) return end(false);
  emit(group_effect::Withdraw{});
  ask_end(now, own_->id, own_->beats);
}

void GroupCandidacy::end(bool wedged) {
  emit(group_effect::Ended{wedged});
  over_ = true;
}

/// Whoever joins elections without a pause has a look to make at any time, and ends the dead all the same.
void GroupCandidacy::ask_in_session(Time now) {
  const auto rival = next_to_end();
  const bool one_is_dead = rival && now >= rival->second;
  const bool looks_first = own_->untold || (untold_ && to_release_.empty() && !one_is_dead);
  if (looks_first && now < next_commit_) return ask_look(now);
  if (!to_release_.empty() || (!wanted_.empty() && !untold_) || now >= next_commit_)
    ask_commit(now);
  else if (one_is_dead)
    ask_end(now, rival->first, {rivals_.find(rival->first)->session.record.beat});
  else if (now >= std::min(next_look_, next_whole_))
    ask_look(now);
  else
    ask_sweep(now);
}

/// A whole one is no part of a commit: it may take a busy store longer than a renewal may. So it is not repeated at
/// once either.
void GroupCandidacy::ask_look(Time now) {
  const bool whole = now >= next_whole_;
  if (whole) last_whole_ = now, next_whole_ = now + timing_.term / 2;
  const auto cursor = whole ? std::string() : cursor_;
  const auto limit = own_ ? patience_beside_a_lease(now, cursor.empty()) : patience();
  ask(now, ask::See{cursor}, now + limit);
}

void GroupCandidacy::ask_sweep(Time now) {
  next_sweep_ = Time::max();
  ask(now, ask::Sweep{}, now + timing_.call);
}

void GroupCandidacy::ask_open(Time now) {
  ask(now, ask::Open{SessionId{draw_() & id_bits}, own_session(now)}, now + patience());
}

void GroupCandidacy::ask_end(Time now, SessionId id, std::vector<std::uint64_t> beats) {
  ask(now, ask::End{id, std::move(beats), draw_()}, now + patience());
}

void GroupCandidacy::ask_commit(Time now) {
  Commit commit{.session = own_->id,
                .beats = own_->beats,
                .next = own_session(now),
                .marker = marker_.value_or(0),
                .at_least = Token{highest_.value + 1},
                .cursor = cursor_};
  name_heirs(now);
  const auto most = changes_now(now);
  gather(commit, most, false);
  if (commit.releases.empty() && commit.claims.empty()) gather(commit, std::min<std::size_t>(most, 1), true);
  own_->beats.push_back(commit.next.record.beat);
  ask(now, ask::Write{std::move(commit)}, now + timing_.call);
}

/// Takes what goes alone, or the others.
void GroupCandidacy::gather(Commit& commit, std::size_t most, bool alone) const {
  for (const auto& [election, due] : to_release_) {
    if (commit.releases.size() >= most) break;
    if (goes_alone(election) == alone) commit.releases.push_back({election, due.token, due.heir});
  }
  std::set<SessionId> ended;
  for (const auto& election : wanted_) {
    if (commit.releases.size() + commit.claims.size() >= most) break;
    if (goes_alone(election) != alone) continue;
    const auto* lead = lead_of(election);
    commit.claims.push_back({election, lead ? std::optional(lead->token) : std::nullopt});
    if (lead && !lead->released && lead->session != commit.session) ended.insert(lead->session);
  }
  commit.ended.assign(ended.begin(), ended.end());
}

/// While no lease is at stake, each call that was not answered gives the next one twice the time. All leads of a great
/// group may take a busy store longer than a renewal may. It would be asked for them for ever, and nobody would lead.
GroupCandidacy::Duration GroupCandidacy::patience() const {
  if (own_ || stopping_) return timing_.call;
  const auto most = std::max(timing_.call, (timing_.term - timing_.margin) / 2);
  return std::min(timing_.call * (1 << unheard_), most);
}

/// Half of what is left of the lease is for the renewals after it. What all leads took before, they may take again.
GroupCandidacy::Duration GroupCandidacy::patience_beside_a_lease(Time now, bool for_all_leads) const {
  if (stopping_) return timing_.call;
  const auto most = std::max(timing_.call, (own_->lease.deadline - now) / 2);
  return std::min(std::max(timing_.call * (1 << unseen_), for_all_leads ? 2 * whole_took_ : Duration()), most);
}

void GroupCandidacy::ask(Time now, decltype(GroupQuestion::what) what, Time by) {
  TENURE_REQUIRE(!pending_);
  pending_.emplace(Pending{{}, {++last_id_, std::move(what), now, by}});
  emit(group_effect::Ask{pending_->question});
}

Session GroupCandidacy::own_session(Time asked) {
  return {.record = {.token = Token{1},
                     .beat = draw_(),
                     .who = who_,
                     .released = false,
                     .term = timing_.term,
                     .asked = asked.time_since_epoch()},
          .joined = joined_,
          .names = names_,
          .weight = spread_.weight,
          .most = most_now()};
}

// ---- claims ----

void GroupCandidacy::find_claims(Time now) {
  if (all_claims_stale_) {
    plan_stale_ = true;
    claims_.clear();
    wanted_.clear();
    claims_due_.clear();
    claims_stale_.clear();
    gifts_.clear();
    for (auto& [election, entry] : all_entries()) judge(now, election, entry);
    all_claims_stale_ = false;
  }
  while (!claims_due_.empty() && claims_due_.begin()->first <= now)
    claims_stale_.push_back(claims_due_.extract(claims_due_.begin()).value().second);
  if (!claims_stale_.empty()) plan_stale_ = true;
  for (const auto& election : std::exchange(claims_stale_, {})) {
    claims_.erase(election);
    wanted_.erase(election);
    if (const auto it = entries_.find(election); it != entries_.end()) judge(now, election, it->second);
  }
}

void GroupCandidacy::judge(Time now, const std::string& election, Entry& entry) {
  auto again = judge_claim(now, election, entry);
  count_for(entry, holder_of(election, entry));
  count_able(entry, is_able(now, entry));
  if (entry.joined && entry.not_before > now + timing_.renew) again = std::min(again, entry.not_before - timing_.renew);
  judge_at(again, election, entry);
}

/// In place of the moment that it has. Who resigns again and again would gather one each time.
void GroupCandidacy::judge_at(Time at, const std::string& election, Entry& entry) {
  claims_due_.erase({std::exchange(entry.claim_due, at), election});
  if (at < Time::max()) claims_due_.emplace(at, election);
}

/// Says when to look again, if nothing changes.
GroupCandidacy::Time GroupCandidacy::judge_claim(Time now, const std::string& election, Entry& entry) {
  const auto free_since = std::exchange(entry.free_since, std::nullopt);
  if (own_ && hooks_full() && !entry.tenure && !releases_later(election)) give_back_unled(election);
  if (!own_ || stopping_ || hooks_full() || !entry.joined || entry.tenure || to_release_.contains(election) ||
      releases_later(election) || !is_allotted(election))
    return Time::max();
  if (entry.lead && !entry.lead->released && entry.lead->session != own_->id && rivals_.named(entry.lead->session, now))
    next_look_ = now;
  const auto from = std::max({free_from(entry.lead), entry.not_before, claims_from_, readable_from(election)});
  if (from > now) return from;
  claims_.insert(claims_.end(), election);  // They mostly come in order.
  entry.free_since = free_since.value_or(now);
  if (is_heir(entry.lead) || alone()) want(election);
  return Time::max();
}

/// From when we may claim it. Time::max(): not before something in the store changes.
GroupCandidacy::Time GroupCandidacy::free_from(const std::optional<SeenLead>& lead) const {
  if (!lead) return marker_.value_or(0) == 0 ? Time::min() : marker_since_ + longest();
  if (lead->released && lead->heir && *lead->heir != own_->id) {  // It is offered to somebody else for a moment.
    const auto* heir = rivals_.find(*lead->heir);
    // An heir that we do not know is gone, or came after our last look.
    if (heir ? !heir->session.record.released : lead->at > rivals_.looked()) return lead->at + others_look();
  }
  if (lead->released || lead->session == own_->id) return Time::min();
  return rivals_.free_from(lead->session, lead->at, longest());
}

// ---- ends ----

void GroupCandidacy::end_voluntarily(Time now, const std::string& election, Entry& entry, Reason reason,
                                     std::string detail) {
  if (!entry.tenure || !entry.tenure->ending.leading()) return;
  auto& tenure = *entry.tenure;
  tenure.end_voluntarily(emitter(), election, reason, std::move(detail), now + timing_.drain, bounds_of(tenure).end);
  ending_.insert(election);
  claims_stale_.push_back(election);
  watch_later(election, tenure);
  if (reason == Reason::step_down) entry.cool_down = std::max(entry.cool_down, timing_.term);
}

void GroupCandidacy::end_at_once(Time now, const std::string& election, Entry& entry, Reason reason,
                                 const std::string& detail, Time done_by) {
  auto& tenure = *entry.tenure;
  tenure.end_at_once(emitter(), election, reason, detail, std::nullopt, done_by,
                     now + timing_.margin - timing_.clock_allowance());
  ending_.insert(election);
  watch_later(election, tenure);
}

/// The next commit releases it.
void GroupCandidacy::give_back(const std::string& election, Tenure& tenure) {
  if (std::exchange(tenure.given_back, true) || !own_ || tenure.session != own_->id) return;
  to_release_[election] = {tenure.token, tenure.heir};
}

/// A claim of ours was not answered, but carried out. No look will tell that again.
void GroupCandidacy::give_back_unled(const std::string& election) {
  const auto* lead = lead_of(election);
  if (own_ && lead && !lead->released && lead->session == own_->id) to_release_.try_emplace(election, Due{lead->token});
}

/// The lead is given back, or the store holds it for us no longer.
void GroupCandidacy::cool_off(Time now, Entry& entry) {
  entry.not_before = std::max(entry.not_before, now + std::exchange(entry.cool_down, {}));
}

/// The work of an election that was left is over.
void GroupCandidacy::forget(Entries::iterator entry) {
  stalled_.erase(entry->first);
  if (!releases_later(entry->first)) held_up_.erase(entry->first);
  watch_work_at(Time::max(), entry->first, entry->second);
  judge_at(Time::max(), entry->first, entry->second);
  emit(group_effect::Left{entry->first});
  count_for(entry->second, std::nullopt);
  count_able(entry->second, false);
  entries_.erase(entry);
}

/// The store gave no answer, but this.
void GroupCandidacy::trouble(Time now, Error error) {
  error.message = printable(error.message, longest_text);
  last_error_ = std::make_shared<const Error>(error);
  report(now, std::move(error));
}

/// The names of elections may differ by a number alone, so that each has its own repeats.
void GroupCandidacy::report(Time now, Error error, const std::string& election) {
  auto* entry = part_in(election);
  auto& repeats = entry ? entry->repeats : repeats_;
  if (auto told = repeats.told(now, std::move(error))) emit(group_effect::Report{std::move(*told), election});
}

}  // namespace tenure
