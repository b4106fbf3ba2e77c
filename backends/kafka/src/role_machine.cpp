// SPDX-License-Identifier: Apache-2.0
// Calls, session, plan of a commit and look, which both machines of roles share.
#include "role_machine.hpp"

#include <algorithm>
#include <utility>

#include <tenure/kit/who.hpp>

namespace tenure::kafka {

RoleMachine::RoleMachine(RoleConfig config, Exclusive exclusive)
    : config_(std::move(config)), strangers_(config_.units, exclusive, config_.lease), exclusive_(exclusive) {}

std::vector<RoleEffect> RoleMachine::on(const RoleFact& fact, Time now, std::int64_t unix_ms) {
  now_ = now;
  unix_ms_ = unix_ms;
  // Thousands may come at once. So these are only noted; the time, which comes behind them, judges and shows all.
  if (std::holds_alternative<role_fact::Joined>(fact) || std::holds_alternative<role_fact::Quit>(fact)) {
    std::visit([this](const auto& f) { take(f); }, fact);
    alarm_ = now;
    return {};
  }
  alarm_ = Time::max();
  judge_units();  // Before any answer: what lapsed is never revived.
  std::visit([this](const auto& f) { take(f); }, fact);
  judge_units();
  judge_idle();
  serve_member();
  show();
  serve_call();
  serve_reads();
  judge_useless();
  serve_leaderless();
  serve_observer();
  show();
  return std::exchange(effects_, {});
}

// ---- facts ----

void RoleMachine::take(const role_fact::Called& call) {
  call_ = call;
  called_at_ = last_asked_ = now_;
  member_.left();
  if (asked<role_call::Open>() && !creates_) check_topic_ = true, observed_ = false, observe_at_ = now_;
}

void RoleMachine::take(const role_fact::Abandoned& gone) {
  if (!call_ || call_->id != gone.id) return;
  const bool end = asked<role_call::End>();
  call_.reset();
  last_asked_ = now_;
  if (end && session_) leave();
}

void RoleMachine::take(const role_fact::Joined& joined) {
  const int index = unit_of(joined.election, config_.units);
  shown_.try_emplace(joined.election, Shown{.unit = index});  // First: each name of a unit is shown.
  of(index).names.insert(joined.election);
  ++of(index).changes;
}

void RoleMachine::take(const role_fact::Quit& quit) {
  auto& unit = of(unit_of(quit.election, config_.units));
  unit.names.erase(quit.election);
  ++unit.changes;
  shown_.erase(quit.election);
}

void RoleMachine::take(const role_fact::Broken& broken) {
  const bool any = broken.handle == any_handle;
  if (any) {  // Nobody may be reading what we wait for.
    observing_ = false;
    owner_search_.lost();
  }
  if (any && !member_) emit(role_effect::Drop{any_handle});  // Perhaps that failed.
  if (member_.take(broken)) drop_member();
}

void RoleMachine::take(const role_fact::Assigned& assigned) {
  if (!member_.is(assigned.handle)) return;
  if (member_.evicted(assigned.member)) take(role_fact::Revoked{assigned.handle, true});
  if (member_) take_part(assigned);
}

void RoleMachine::take(const role_fact::Revoked& revoked) {
  if (!member_.is(revoked.handle)) return;
  if (revoked.lost && !any_held()) return drop_member();  // Its old place may be a healthy successor's now.
  member_.lose_place(revoked.lost, now_);
  give_back(revoked);
}

void RoleMachine::take(const role_fact::Committed& answer) {
  const auto sent = member_.answered(answer, now_);
  if (!sent) return;
  const bool nonce = sent->call == 0 && !sent->plan.tells;
  const bool gave = answer.outcome == Outcome::accepted && !nonce;
  if (gave) served_ = true, told_useless_ = false;
  // Hooks that hung once may hang again: they are trusted after as long in the group as out of it.
  if (gave && (!gave_up_ || now_ >= *member_->joined_at + away_)) away_ = {}, gave_up_ = false;
  if (answer.outcome == Outcome::unknown_topic) check_topic_ = true;
  answered(*sent, answer);
  if (gave && member_ && !owes()) member_.gave();
}

void RoleMachine::take(const role_fact::Observed& seen) {
  observing_ = false;
  if (may_create() && !creates_) return;  // From here on a missing topic may be created.
  new_group_ = seen.new_group;
  if (!seen.result) {
    observer_trouble_ = seen.result.error();
    return;
  }
  if (observer_trouble_ && refusal(*observer_trouble_)) away_ = {}, member_.may_open_at = now_;  // The rights are back.
  observer_trouble_.reset();
  if (seen.topic) topic_has(*seen.topic);
  if (seen.result->size() < static_cast<std::size_t>(partitions_of(config_.units))) return;  // Of before we grew.
  if (checks_) check_topic_ = false;
  observed_ = true;
  look_for_strangers(*seen.result, exclusive_ == Exclusive::yes);  // It carries no nonce, and elsewhere nothing does.
  observed(*seen.result);
}

void RoleMachine::take(const role_fact::OwnersFound& found) {
  std::vector<int> unled;
  for (int i = 0; i < config_.units; ++i)
    if (unled_since(i)) unled.push_back(record_of(i));
  if (auto message = owner_search_.answered(found.result, unled))
    emit(role_effect::Tell{Level::warning, std::move(*message)});
}

void RoleMachine::take(const role_fact::Closing&) {
  call_.reset();
  session_.reset();
  if (member_) drop_member();
}

void RoleMachine::look_for_strangers(const role_fact::Offsets& read, bool may_be_old) {
  for (auto& message : strangers_.saw(read, now_, may_be_old))
    emit(role_effect::Tell{Level::error, std::move(message)});
}

// ---- what is due ----

/// A tenure that lapsed is over.
void RoleMachine::judge_units() {
  for (int i = 0; i < config_.units; ++i)
    if (const auto deadline = of(i).deadline; deadline && due(*deadline)) forget(i);
}

/// A process that asks nothing must not keep its units from the others.
void RoleMachine::judge_idle() {
  if ((!session_ && !member_) || call_ || any_held() || !due(last_asked_ + config_.lease)) return;
  session_.reset();
  if (member_) drop_member();
}

/// Each time that such a member comes and goes, units move between the others. So it stays out for longer each time.
/// The first time, without a refusal, a coordinator that was away may be to blame.
void RoleMachine::make_room() {
  const auto& failed = member_->failed;
  const bool useless = now_ >= member_.useless_at(config_.lease);
  const bool refused = useless && failed && refusal(failed->error);
  const bool gives_up = useless && unable();
  if (!session_ || !wanted_ || (served_ && !refused && !gives_up)) return;
  gave_up_ = gives_up;
  const bool first = away_ == Duration::zero() && !gives_up;
  const auto least = refused ? 4 * config_.lease : first ? member_.reopen_pause : config_.lease;
  away_ = std::min(std::max(2 * away_, least), role_longest_pause);
  member_.may_open_at = now_ + away_;
  if (away_ < config_.lease || std::exchange(told_useless_, true)) return;
  const auto& why = gives_up          ? "Its hooks hang, or all its elections pause after a resign or a stall"
                    : failed          ? failed->error.message
                    : member_.trouble ? member_.trouble->message
                                      : "";
  emit(role_effect::Tell{
      Level::warning, "stays out of the group for " + std::to_string(away_ / std::chrono::seconds(1)) +
                          " s, and then for longer, because it could not claim the roles that it was dealt, and other "
                          "processes may be able to. " +
                          (why.empty() ? "The coordinator answered nothing that it asked" : why)});
}

/// A member that cannot claim must not keep its units from others, who may have the right that it lacks, a way to the
/// coordinator, or hooks that return.
void RoleMachine::judge_useless() {
  const bool failing = member_ && !any_held() && member_.failing(config_.lease, now_);
  member_.watch(member_.assigned() && (failing || owes() || (wanted_ && unable())), now_);
  if (due(member_.useless_at(config_.lease))) drop_member();
}

/// Where nobody leads, nobody has use of the room, and what kept us all out may be over.
RoleMachine::Time RoleMachine::may_open_at() const {
  for (int i = 0; i < config_.units; ++i)
    if (const auto led = led_until(i); led && now_ < *led) return member_.may_open_at;
  return std::min(back_at_, member_.may_open_at);
}

void RoleMachine::serve_member() {
  if (member_ && due(member_.drop_at(any_held()))) drop_member();
  if (member_ && member_.drained()) emit(role_effect::Unassign{member_->number});
  if (member_) return watch_member();
  const bool refused = observer_trouble_ && refusal(*observer_trouble_);
  if (!session_ || unable() || !observed_ || refused || member_.leaving() || !due(may_open_at())) return;
  wanted_ = served_ = false;
  emit(member_.open(next_id(), role_member_name(unix_ms_, config_.incarnation), any_held(), now_));
  member_->founder = std::exchange(new_group_, false);
}

void RoleMachine::serve_observer() {
  const bool wanted = session_ || asked<role_call::Open>() || now_ < last_asked_ + config_.lease;
  if (observing_ || !wanted || !due(observe_at_)) return;
  observing_ = true;
  observe_at_ = now_ + config_.observe_every;
  const bool looks = check_topic_ || (may_grow() && now_ >= topic_at_);
  if (looks) topic_at_ = now_ + role_topic_pause;
  creates_ = may_create();
  checks_ = check_topic_;
  emit(role_effect::Observe{partitions_of(config_.units), checks_, looks, creates_});
}

/// Of a unit that is not ours. Nothing if it is led, or if we take part in none of its roles.
std::optional<RoleMachine::Time> RoleMachine::unled_since(int index) {
  const auto& unit = of(index);
  if (unit.owned || unit.names.empty()) return std::nullopt;
  const auto led = unit.deadline ? unit.deadline : led_until(index);
  if (led && !due(*led)) return std::nullopt;
  return led.value_or(now_);
}

/// Where nobody has led for a lease, it looks for a consumer that keeps the unit from all of us.
void RoleMachine::serve_leaderless() {
  if (member_ && !member_.assigned()) return;  // A rebalance may end it.
  std::optional<Time> since;
  for (int i = 0; member_ && i < config_.units; ++i)
    if (const auto unled = unled_since(i)) since = std::min(since.value_or(*unled), *unled);
  if (!since) return owner_search_.all_led();
  const auto at = owner_search_.ask_at(*since, config_.lease);
  if (!at || !due(*at)) return;
  owner_search_.asked(now_);
  check_topic_ = true;  // Perhaps it is gone.
  emit(role_effect::FindOwners{});
}

// ---- the member ----

void RoleMachine::own(const role_fact::Assigned& assigned) {
  member_.take_place(assigned.generation, now_, assigned.member);
  partitions_ = assigned.partitions;
  own_what_is_assigned();
  if (owner_search_.named_owner()) stranger_leads_until_ = now_ + config_.lease;
  for (int i = 0; i < config_.units; ++i) wanted_ = wanted_ || (of(i).owned && !of(i).names.empty());
  emit(role_effect::Assign{assigned.handle});
}

void RoleMachine::own_what_is_assigned() {
  for (int i = 0; i < config_.units; ++i)
    of(i).owned = std::find(partitions_.begin(), partitions_.end(), record_of(i)) != partitions_.end();
}

void RoleMachine::drop_member() {
  make_room();
  const auto outstanding = std::move(member_->outstanding);
  emit(member_.drop());
  member_.may_open_at = std::max(member_.may_open_at, now_ + member_.reopen_pause);
  back_at_ = now_ + std::max(4 * config_.lease, member_.reopen_pause);
  for (int i = 0; i < config_.units; ++i) of(i).owned = false;
  dropped();
  if (outstanding && awaited(*outstanding) && asked<role_call::Write>())
    fail({Fault::timed_out, "the coordinator did not answer the commit in time"});
}

void RoleMachine::leave() {
  session_.reset();
  forget_tenures();
  member_.leave(now_);
  if (member_) drop_member();
}

/// REQUIRES: the machine has that many units already, and nothing is held that moves.
void RoleMachine::grow(int units) {
  emit(role_effect::Tell{
      Level::info, "the group grows from " + std::to_string(config_.units) + " units to " + std::to_string(units)});
  config_.units = units;
  strangers_.grow(units);
  for (auto& [election, shown] : shown_) {
    const int unit = unit_of(election, units);
    if (unit == shown.unit) continue;
    of(unit).names.insert(of(shown.unit).names.extract(election));  // This needs no memory.
    ++of(shown.unit).changes, ++of(unit).changes;
    shown.unit = unit;
  }
  if (member_.assigned()) own_what_is_assigned();
  observe_at_ = now_;
}

/// What is held is not led any more, as the caller has said. What is known of the units stays.
void RoleMachine::forget_tenures() {
  for (int i = 0; i < config_.units; ++i) of(i).end();
}

// ---- the commit ----

void RoleMachine::plan_claims(const tenure::Commit& commit, Plan& plan) const {
  plan.token = commit.at_least;
  for (const auto& claim : commit.claims) {
    const auto it = shown_.find(claim.election);
    if (it == shown_.end() || !it->second.allotted || !owns(of(it->second.unit))) continue;
    const auto& lead = it->second.lead;
    const auto next = next_token(it->second.unit);
    if (claim.expected != (lead ? std::optional(lead->token) : std::nullopt)) continue;
    if (!next || std::max(commit.at_least, *next) > greatest_lead_token) {
      plan.spent = it->second.unit;
      continue;
    }
    plan.token = std::max(plan.token, *next);
    plan.claims.push_back(claim.election);
    plan.claimed.insert(it->second.unit);
  }
}

RoleMachine::Plan RoleMachine::plan_of(const tenure::Commit& commit) const {
  Plan plan;
  plan.units = config_.units;
  plan_claims(commit, plan);
  std::map<int, std::set<std::string>> released;  // By unit.
  for (const auto& release : commit.releases) {
    const int index = unit_of(release.election, config_.units);
    const auto& held = of(index).held;
    const auto it = held.find(release.election);
    if (it == held.end() || it->second != release.token) continue;
    plan.releases.push_back(release.election);
    released[index].insert(release.election);
  }
  for (int i = 0; i < config_.units; ++i) {
    const auto& unit = of(i);
    const bool claimed = plan.claimed.contains(i);
    if (unit.held.empty() && !claimed) continue;
    const bool none_left = !claimed && released[i].size() == unit.held.size();
    if (owns(unit)) {
      plan.commits[record_of(i)] = record(i, plan, none_left);
      (none_left ? plan.over : plan.renewed).insert(i);
    } else if (none_left) {
      plan.gone.insert(i);
    } else {
      for (const auto& [election, token] : unit.held)
        if (!released[i].contains(election)) plan.not_renewed.push_back(election);
    }
  }
  farewells(plan);
  return plan;
}

Commit RoleMachine::record(int index, const Plan& plan, bool released) const {
  auto who = incumbent_of(own_.record.who, {}, {});
  who.incarnation = config_.incarnation;
  return {offset_of(index, plan), encode(Record{.released = released,
                                                .lease = config_.lease,
                                                .seq = seq_,
                                                .who = std::move(who),
                                                .units = plan.units,
                                                .exclusive = exclusive_,
                                                .leads = !of(index).held.empty(),
                                                .grown_from = index == 0 ? grown_from(plan.units) : 0})};
}

void RoleMachine::send(Plan plan, std::uint64_t call) {
  sending(plan);
  auto commits = plan.commits;
  member_->outstanding =
      Sent{.id = next_id(), .at = now_, .counts_from = called_at_, .call = call, .plan = std::move(plan)};
  emit(role_effect::SendCommit{member_->outstanding->id, std::move(commits)});
}

/// What was acknowledged has happened, whether or not somebody waits for it.
void RoleMachine::carry_out(const Sent& sent) {
  const auto& plan = sent.plan;
  const auto deadline = sent.counts_from + led_for();
  learn(plan);
  // First: what is held without a deadline would be held for ever, if there were no memory for the rest.
  for (const int index : plan.renewed) of(index).deadline = std::max(of(index).deadline.value_or(deadline), deadline);
  for (const auto& election : plan.claims) {
    auto& unit = of(unit_of(election, config_.units));
    unit.held[election] = plan.token;
    ++unit.changes;
  }
  for (const auto& election : plan.releases) {
    auto& unit = of(unit_of(election, config_.units));
    unit.held.erase(election);
    ++unit.changes;
  }
  for (int i = 0; i < config_.units; ++i)
    if (of(i).held.empty()) of(i).deadline.reset();  // What lapsed while the coordinator answered stays over.
  if (!awaited(sent) || !asked<role_call::Write>()) return;
  session_deadline_ = deadline;
  show();
  const auto& cursor = std::get<role_call::Write>(call_->what).commit.cursor;
  reply(Result<Committed>(Committed{.granted = true,
                                    .token = plan.token,
                                    .claimed = plan.claims,
                                    .released = plan.releases,
                                    .not_renewed = plan.not_renewed,
                                    .look = look(cursor)}));
}

// ---- calls ----

void RoleMachine::serve_call() {
  if (!call_) return;
  struct Caller {
    RoleMachine& r;
    void operator()(const role_call::See& c) { r.serve_look(c); }
    void operator()(const role_call::Open& c) { r.serve_open(c); }
    void operator()(const role_call::Write& c) { r.serve_write(c); }
    void operator()(const role_call::End& c) { r.serve_end(c); }
    void operator()(const role_call::Await& c) {
      if (c.cursor != std::to_string(r.version_) || r.due(r.call_->by)) r.reply(std::monostate());
    }
  };
  const auto what = call_->what;
  std::visit(Caller{*this}, what);
}

/// Who takes no part knows nothing but what was read.
void RoleMachine::serve_look(const role_call::See& see) {
  if (!session_ || !observed_) {
    if (const auto error = trouble()) return fail(*error);
    if (!observed_) return fail_when_late("the records could not be read in time");
  }
  reply(Result<Look>(look(see.cursor)));
}

void RoleMachine::serve_open(const role_call::Open& open) {
  if (!observed_ || observer_trouble_) {
    // The trouble of a member that is gone says nothing of the look that is under way for this call.
    if (observer_trouble_) return fail(*observer_trouble_);
    return fail_when_late("the records could not be read in time");
  }
  forget_tenures();
  session_ = open.id;
  own_ = open.session;
  session_deadline_ = called_at_ + led_for();
  show();
  reply(Result<Committed>(Committed{.granted = true, .look = look({})}));
}

void RoleMachine::serve_write(const role_call::Write& write) {
  const auto& commit = write.commit;
  if (member_ && member_->outstanding && awaited(*member_->outstanding))
    return fail_when_late("the coordinator has not acknowledged the commit");
  if (auto error = refused_commit(commit)) return fail(std::move(*error));
  if (session_ != commit.session) return reply(Result<Committed>(Committed{.granted = false, .look = look({})}));
  own_ = commit.next;
  const bool idle = !any_held() && (commit.claims.empty() || !member_.assigned());  // There is nothing to be written.
  if (!idle && !member_.assigned()) return fail_when_late("this member of the group has no assignment yet");
  if (!idle && member_->fenced) return fail_when_late("the coordinator accepts no commit of this member");
  if (!idle && (member_->outstanding || !due(member_->try_again)))
    return fail_when_late("the coordinator has not answered the commit before");
  ++seq_;
  auto plan = plan_of(commit);
  if (plan.spent && !std::exchange(told_spent_, true))
    emit(role_effect::Tell{Level::error, spent(*plan.spent).message});
  if (!plan.claims.empty() && member_->doubtful) {
    drop_member();
    return fail(
        {Fault::timed_out, "an older commit was not answered and may come after this one; the group is joined anew"});
  }
  if (!plan.commits.empty()) return send(std::move(plan), call_->id);
  if (idle)
    if (const auto error = trouble()) {
      // No answer ends it where nothing is asked. It is reported again while it lasts.
      if (member_.assigned() && !owes()) member_.trouble.reset();
      return fail(*error);
    }
  carry_out(Sent{.counts_from = called_at_, .call = call_->id, .plan = std::move(plan)});
}

/// A session that lapsed just ends. Any other end is a stop: the group is left, so that others get the units.
void RoleMachine::serve_end(const role_call::End& end) {
  if (member_.leaving()) {
    if (!due(member_.leave_by())) return;
    member_.left();
    return reply(Result<bool>(true));
  }
  if (session_ != end.id) return reply(Result<bool>(true));
  if (now_ >= session_deadline_) {
    forget_tenures();
    session_.reset();
    return reply(Result<bool>(true));
  }
  if (release_first(end.id)) return;
  leave();
  if (!member_.leaving())
    reply(Result<bool>(true));
  else
    due(member_.leave_by());
}

// ---- what is shown ----

bool RoleMachine::any_held() const {
  for (int i = 0; i < config_.units; ++i)
    if (!of(i).held.empty()) return true;
  return false;
}

std::optional<Lead> RoleMachine::own_lead(const Unit& unit, const std::string& election) const {
  const auto it = unit.held.find(election);
  if (it == unit.held.end()) return std::nullopt;
  return Lead{.token = it->second, .session = session_.value_or(SessionId{})};
}

void RoleMachine::show() {
  const auto before = version_;
  for (int i = 0; i < config_.units; ++i)
    if (show_unit(i, before + 1)) version_ = before + 1;
  if (version_ != before && asked<role_call::Await>()) serve_call();
}

/// Whether anything changed.
bool RoleMachine::show(const std::string& election, std::optional<Lead> lead, bool allotted, std::uint64_t version) {
  auto& shown = shown_.at(election);
  if (lead == shown.lead && allotted == shown.allotted) return false;
  if (lead != shown.lead) shown.changed = version;
  shown.lead = std::move(lead);
  shown.allotted = allotted;
  return true;
}

/// By rule 23 of core: or else the token would spread over all units.
Error RoleMachine::spent(int index) const {
  return {Fault::corrupt,
          "roles of partition " + std::to_string(record_of(index)) +
              " cannot be claimed: the offset of this group is too large there, and a greater token "
              "would have to follow. Stop all processes and reset the group's offset of that partition"};
}

Look RoleMachine::look(const std::string& cursor) const {
  std::uint64_t since = 0;
  for (const char c : cursor) since = since * 10 + static_cast<std::uint64_t>(c - '0');
  Look out{.whole = cursor.empty(), .cursor = std::to_string(version_), .allotted = std::set<std::string>()};
  if (session_) out.sessions[*session_] = own_;
  for (int i = 0; i < config_.units; ++i) {
    if (of(i).names.empty()) continue;
    const auto other = stranger(i);
    if (!other) continue;
    out.sessions[session_of_stranger(i, other->who.incarnation)] =
        Session{.record = {.token = Token{1},
                           .beat = static_cast<std::uint64_t>(other->since.time_since_epoch().count()),
                           .who = who_text(other->who),
                           .term = config_.lease,
                           .asked = other->since.time_since_epoch()}};
  }
  for (const auto& [election, shown] : shown_) {
    if (shown.allotted) out.allotted->insert(election);
    if (!shown.lead || !(out.whole || shown.changed > since)) continue;
    if (shown.lead->token > greatest_lead_token)
      out.unreadable.emplace(election, spent(shown.unit));
    else
      out.leads.emplace(election, *shown.lead);
  }
  return out;
}

// ---- answers ----

void RoleMachine::reply(RoleAnswer answer) {
  emit(role_effect::Reply{call_->id, std::move(answer)});
  last_asked_ = now_;
  call_.reset();
}

void RoleMachine::fail(Error error) { reply(Result<Committed>(std::move(error))); }

void RoleMachine::fail_when_late(std::string message) {
  if (due(call_->by - reply_reserve)) fail(trouble().value_or(Error{Fault::timed_out, std::move(message)}));
}

}  // namespace tenure::kafka
