// SPDX-License-Identifier: Apache-2.0
#include "shared_roles.hpp"

#include <algorithm>

namespace tenure::kafka {

SharedRoles::SharedRoles(Config config)
    : config_(std::move(config)),
      units_(static_cast<std::size_t>(config_.units)),
      strangers_(config_.units, Exclusive::no, config_.lease) {}

std::vector<RoleEffect> SharedRoles::on(const RoleFact& fact, Time now, std::int64_t unix_ms) {
  now_ = now;
  unix_ms_ = unix_ms;
  alarm_ = Time::max();
  judge_units();  // Before any answer: what lapsed is never revived.
  std::visit([this](const auto& f) { take(f); }, fact);
  judge_units();
  judge_idle();
  serve_member();
  show();
  serve_call();
  serve_observer();
  show();
  return std::exchange(effects_, {});
}

// ---- facts ----

void SharedRoles::take(const role_fact::Called& call) {
  call_ = call;
  called_at_ = last_asked_ = now_;
  leaving_.reset();
}

void SharedRoles::take(const role_fact::Abandoned& gone) {
  if (!call_ || call_->id != gone.id) return;
  const bool end = std::holds_alternative<role_call::End>(call_->what);
  call_.reset();
  last_asked_ = now_;
  if (end && session_) leave();
}

void SharedRoles::take(const role_fact::Joined& joined) {
  const int index = unit_of(joined.election, config_.units);
  of(index).names.insert(joined.election);
  shown_.try_emplace(joined.election, Shown{.unit = index});
}

void SharedRoles::take(const role_fact::Quit& quit) {
  of(unit_of(quit.election, config_.units)).names.erase(quit.election);
  shown_.erase(quit.election);
}

void SharedRoles::take(const role_fact::Broken& broken) {
  if (!member_ || member_->handle != broken.handle) return;
  member_trouble_ = broken.error;
  drop_member();
}

void SharedRoles::take(const role_fact::Troubled& troubled) {
  if (member_ && member_->handle == troubled.handle) member_trouble_ = troubled.error;
}

void SharedRoles::take(const role_fact::Assigned& assigned) {
  if (!member_ || member_->handle != assigned.handle) return;
  member_->assigned = true;
  member_->heard_at = now_;
  member_->fenced_at.reset();
  member_trouble_.reset();
  for (auto& unit : units_) unit.owned = unit.taken = false, unit.heir.reset();
  for (const int partition : assigned.partitions)
    if (partition % 3 == 0 && partition < partitions_of(config_.units)) of(partition / 3).owned = true;
  emit(role_effect::Assign{assigned.handle});
}

/// No answer is waited for. A commit that goes out late can make us lead on from when it was asked for, and no longer.
void SharedRoles::take(const role_fact::Revoked& revoked) {
  if (!member_ || member_->handle != revoked.handle) return;
  if (revoked.lost) return drop_member();  // Its old place may be a healthy successor's now.
  member_->assigned = false;
  emit(role_effect::Unassign{revoked.handle});
}

void SharedRoles::take(const role_fact::Committed& answer) {
  if (!member_ || !member_->outstanding || member_->outstanding->id != answer.id) return;
  const auto asked = *std::exchange(member_->outstanding, std::nullopt);
  const bool awaited = call_ && call_->id == asked.call;
  if (answer.outcome == Outcome::unknown_topic) check_topic_ = true;
  if (answer.outcome == Outcome::accepted) {
    member_trouble_.reset();
    member_->fenced_at.reset();
    member_->heard_at = std::max(member_->heard_at, asked.sent);
    return carry_out(asked, awaited);
  }
  member_->try_again = now_ + role_retry_pause;
  if (answer.outcome == Outcome::fenced && !member_->fenced_at) member_->fenced_at = now_;
  if (awaited) reply(Result<tenure::Committed>(answer.error));
}

/// What was acknowledged has happened, whether or not somebody waits for it.
void SharedRoles::carry_out(const Outstanding& asked, bool awaited) {
  const auto& plan = asked.plan;
  const auto deadline = asked.counts_from + led_for();
  for (const auto& election : plan.claims) of(unit_of(election, config_.units)).held[election] = plan.token;
  for (const auto& election : plan.releases) of(unit_of(election, config_.units)).held.erase(election);
  for (const int index : plan.renewed) of(index).deadline = std::max(of(index).deadline.value_or(deadline), deadline);
  for (auto& unit : units_)
    if (unit.held.empty()) unit.deadline.reset();
  last_token_ = std::max(last_token_, plan.token);
  if (!awaited) return;
  session_deadline_ = deadline;
  show();
  const auto& cursor = std::get<role_call::Write>(call_->what).commit.cursor;
  reply(Result<tenure::Committed>(tenure::Committed{.granted = true,
                                                    .token = plan.token,
                                                    .claimed = plan.claims,
                                                    .released = plan.releases,
                                                    .not_renewed = plan.not_renewed,
                                                    .look = look(cursor)}));
}

void SharedRoles::take(const role_fact::Observed& observed) {
  observing_ = false;
  if (!observed.result) {
    observer_trouble_ = observed.result.error();
    return;
  }
  observer_trouble_.reset();
  check_topic_ = false;
  observed_ = true;
  const auto& read = *observed.result;
  for (auto& message : strangers_.saw(read, now_)) emit(role_effect::Tell{Level::error, std::move(message)});
  for (int i = 0; i < config_.units; ++i) see(i, read.at(static_cast<std::size_t>(record_of(i))));
}

/// A new owner leads for certain once it writes that an earlier commit of it was acknowledged. It must have written
/// since we lost the unit: an old record may say so, too. So two of its records must be seen.
void SharedRoles::see(int index, const std::optional<Commit>& commit) {
  auto& unit = of(index);
  const auto record = commit ? decode(commit->metadata) : std::nullopt;
  if (commit) unit.offset = std::max(unit.offset, commit->offset);
  if (!record || record->incarnation == config_.incarnation) return unit.other.reset();
  if (!unit.other || unit.other->commit != *commit) unit.other = Seen{*commit, *record, now_};
  if (!assigned() || unit.owned || record->released || record->units != config_.units) return;
  const bool next = unit.heir && unit.heir->incarnation == record->incarnation && unit.heir->seq < record->seq;
  if (next && record->exclusive == Exclusive::no && record->leads) unit.taken = true;
  if (!next) unit.heir = record;
}

void SharedRoles::take(const role_fact::Left& left) {
  if (leaving_ == left.handle) leave_by_ = now_;
}

void SharedRoles::take(const role_fact::Closing&) {
  call_.reset();
  session_.reset();
  if (member_) drop_member();
}

// ---- what is due ----

bool SharedRoles::due(Time when) {
  if (now_ >= when) return true;
  alarm_ = std::min(alarm_, when);
  return false;
}

void SharedRoles::judge_units() {
  for (auto& unit : units_)
    if (unit.deadline && due(*unit.deadline)) {
      unit.deadline.reset();
      unit.held.clear();
    }
}

/// A process that asks nothing must not keep its units from the others.
void SharedRoles::judge_idle() {
  if ((!session_ && !member_) || call_ || any_held() || !due(last_asked_ + config_.lease)) return;
  session_.reset();
  if (member_) drop_member();
}

/// Who was heard of last a session ago must send nothing more. If answers alone are lost, the coordinator would take it
/// for alive as long as it sends, and nobody else would get its units.
void SharedRoles::serve_member() {
  if (!member_) {
    if (!session_ || !observed_ || leaving_ || !due(open_after_)) return;
    open_after_ = now_ + role_reopen_pause;
    member_.emplace(++last_id_);
    emit(role_effect::Open{member_->handle, role_member_name(unix_ms_, config_.incarnation)});
    return;
  }
  if (const auto since = silent_since(); since && due(*since + config_.session)) drop_member();
}

std::optional<SharedRoles::Time> SharedRoles::silent_since() const {
  const auto& m = *member_;
  const bool keeps =
      m.assigned && std::any_of(units_.begin(), units_.end(), [](const Unit& u) { return u.owned && !u.held.empty(); });
  if (keeps) return m.heard_at;
  if (m.outstanding) return m.outstanding->sent;
  return m.fenced_at;
}

void SharedRoles::serve_observer() {
  const bool asked = call_ && std::holds_alternative<role_call::Open>(call_->what);
  const bool wanted = session_ || asked || now_ < last_asked_ + config_.lease;
  if (observing_ || !wanted || !due(observe_at_)) return;
  observing_ = true;
  observe_at_ = now_ + config_.observe_every;
  emit(role_effect::Observe{check_topic_});
}

// ---- the member ----

void SharedRoles::drop_member() {
  emit(role_effect::Drop{member_->handle});
  const auto outstanding = member_->outstanding;
  member_.reset();
  open_after_ = std::max(open_after_, now_ + role_reopen_pause);
  for (auto& unit : units_) unit.owned = false;
  if (outstanding && call_ && outstanding->call == call_->id)
    reply(Result<tenure::Committed>(Error{Fault::timed_out, "the coordinator did not answer the commit in time"}));
}

/// What is held is not led any more, as the caller has said.
void SharedRoles::forget_tenures() {
  for (auto& unit : units_) {
    unit.held.clear();
    unit.deadline.reset();
  }
}

void SharedRoles::leave() {
  session_.reset();
  forget_tenures();
  leave_by_ = now_;
  if (!member_) return;
  leaving_ = member_->handle;
  leave_by_ = now_ + role_leave_limit;
  drop_member();
}

// ---- the commit ----

void SharedRoles::send(Plan plan) {
  auto commits = plan.commits;
  member_->outstanding = Outstanding{
      .id = ++last_id_, .sent = now_, .counts_from = called_at_, .call = call_->id, .plan = std::move(plan)};
  emit(role_effect::SendCommit{last_id_, std::move(commits)});
}

Commit SharedRoles::record(const Unit& unit, bool released) const {
  return {unit.offset, encode(Record{.released = released,
                                     .lease = config_.lease,
                                     .incarnation = config_.incarnation,
                                     .seq = seq_,
                                     .name = own_.record.holder,
                                     .address = own_.record.address,
                                     .units = config_.units,
                                     .exclusive = Exclusive::no,
                                     .leads = !unit.held.empty()})};
}

void SharedRoles::plan_claims(const tenure::Commit& commit, Plan& plan) const {
  plan.token = std::max(commit.at_least, Token{last_token_.value + 1});
  for (const auto& claim : commit.claims) {
    const auto it = shown_.find(claim.election);
    if (it == shown_.end() || !it->second.allotted || !owns(of(it->second.unit))) continue;
    const auto& lead = it->second.lead;
    if (claim.expected == (lead ? std::optional(lead->token) : std::nullopt)) plan.claims.push_back(claim.election);
  }
}

SharedRoles::Plan SharedRoles::plan_of(const tenure::Commit& commit) const {
  Plan plan;
  plan_claims(commit, plan);
  std::map<int, int> more;  // Roles of a unit that are led after this commit, compared with now.
  for (const auto& election : plan.claims) ++more[unit_of(election, config_.units)];
  std::set<std::string> released;
  for (const auto& release : commit.releases) {
    const int index = unit_of(release.election, config_.units);
    const auto it = of(index).held.find(release.election);
    if (it == of(index).held.end() || it->second != release.token) continue;
    plan.releases.push_back(release.election);
    released.insert(release.election);
    --more[index];
  }
  for (int i = 0; i < config_.units; ++i) {
    const auto& unit = of(i);
    const auto changed = more.find(i);
    if (unit.held.empty() && changed == more.end()) continue;
    if (owns(unit)) {
      const bool leads = static_cast<int>(unit.held.size()) + (changed == more.end() ? 0 : changed->second) > 0;
      plan.commits[record_of(i)] = record(unit, !leads);
      if (leads) plan.renewed.insert(i);
      continue;
    }
    for (const auto& [election, token] : unit.held)
      if (!released.contains(election)) plan.not_renewed.push_back(election);
  }
  return plan;
}

// ---- calls ----

void SharedRoles::serve_call() {
  if (!call_) return;
  struct Caller {
    SharedRoles& r;
    void operator()(const role_call::See& c) {
      if (const auto trouble = r.trouble(); trouble && !r.observed_) return r.reply(Result<Look>(*trouble));
      r.reply(Result<Look>(r.look(c.cursor)));
    }
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

void SharedRoles::serve_open(const role_call::Open& open) {
  if (!observed_ || observer_trouble_) {
    if (const auto error = trouble()) return reply(Result<tenure::Committed>(*error));
    return reply_when_late("the records could not be read in time");
  }
  forget_tenures();
  session_ = open.id;
  own_ = open.session;
  session_deadline_ = called_at_ + led_for();
  show();
  reply(Result<tenure::Committed>(tenure::Committed{.granted = true, .look = look({})}));
}

void SharedRoles::serve_write(const role_call::Write& write) {
  const auto& commit = write.commit;
  if (member_ && member_->outstanding && member_->outstanding->call == call_->id)
    return reply_when_late("the coordinator has not acknowledged the commit");
  if (auto error = refused_commit(commit)) return reply(Result<tenure::Committed>(std::move(*error)));
  if (session_ != commit.session)
    return reply(Result<tenure::Committed>(tenure::Committed{.granted = false, .look = look({})}));
  own_ = commit.next;
  const bool idle = !any_held() && (commit.claims.empty() || !assigned());  // There is nothing to be written.
  if (!idle && !assigned()) return reply_when_late("this member of the group has no assignment yet");
  if (!idle && member_->fenced_at) return reply_when_late("the coordinator accepts no commit of this member");
  if (!idle && (member_->outstanding || !due(member_->try_again)))
    return reply_when_late("the coordinator has not answered the commit before");
  ++seq_;
  auto plan = plan_of(commit);
  if (!plan.commits.empty()) return send(std::move(plan));
  if (idle)
    if (const auto error = trouble()) return reply(Result<tenure::Committed>(*error));
  carry_out(Outstanding{.counts_from = called_at_, .call = call_->id, .plan = std::move(plan)}, true);
}

/// A session that lapsed just ends. Any other end is a stop: the group is left, so that others get the units.
void SharedRoles::serve_end(const role_call::End& end) {
  if (leaving_) {
    if (!due(leave_by_)) return;
    leaving_.reset();
    return reply(Result<bool>(true));
  }
  if (session_ != end.id) return reply(Result<bool>(true));
  if (now_ >= session_deadline_) {
    forget_tenures();
    session_.reset();
    return reply(Result<bool>(true));
  }
  leave();
  if (!leaving_)
    reply(Result<bool>(true));
  else
    due(leave_by_);
}

// ---- answers ----

bool SharedRoles::any_held() const {
  return std::any_of(units_.begin(), units_.end(), [](const Unit& unit) { return !unit.held.empty(); });
}

/// Another one's record whose lease is not over, as far as we know.
const SharedRoles::Seen* SharedRoles::rival(const Unit& unit) const {
  if (!unit.other || unit.other->record.released) return nullptr;
  return now_ < unit.other->since + std::max(unit.other->record.lease, config_.lease) ? &*unit.other : nullptr;
}

/// The lead of a role that we do not hold. Its token never falls, and a lead that was shown is never taken back.
std::optional<Lead> SharedRoles::others(int index, const Shown& shown, bool claimable) const {
  const auto* holder = rival(of(index));
  if (!holder && !shown.lead) return std::nullopt;
  const auto session = session_of_stranger(index, holder ? holder->record.incarnation : "");
  const bool same = shown.lead && shown.lead->session == session;
  return Lead{.token = same ? shown.lead->token : Token{last_token_.value + 1},
              .session = session,
              .released = claimable || !holder};
}

void SharedRoles::show() {
  const auto before = version_;
  for (int i = 0; i < config_.units; ++i)
    if (show(i, before + 1)) version_ = before + 1;
  if (version_ != before && call_ && std::holds_alternative<role_call::Await>(call_->what)) serve_call();
}

/// What we own is ours at once. What we lost stays ours until its new owner leads, or our time is over. Says whether
/// anything changed.
bool SharedRoles::show(int index, std::uint64_t version) {
  const auto& unit = of(index);
  const bool claimable = session_ && owns(unit) && due(strangers_.until());
  bool changed = false;
  for (const auto& election : unit.names) {
    auto& shown = shown_[election];
    const auto held = unit.held.find(election);
    const bool holds = held != unit.held.end();
    const auto lead = holds ? Lead{.token = held->second, .session = session_.value_or(SessionId{})}
                            : others(index, shown, claimable);
    const bool allotted = claimable || (session_ && holds && !unit.taken);
    if (lead == shown.lead && allotted == shown.allotted) continue;
    if (lead != shown.lead) shown.changed = version;
    if (lead) last_token_ = std::max(last_token_, lead->token);
    shown = {.unit = index, .lead = lead, .allotted = allotted, .changed = shown.changed};
    changed = true;
  }
  return changed;
}

Look SharedRoles::look(const std::string& cursor) const {
  std::uint64_t since = 0;
  for (const char c : cursor) since = since * 10 + static_cast<std::uint64_t>(c - '0');
  Look out{.whole = cursor.empty(), .cursor = std::to_string(version_), .allotted = std::set<std::string>()};
  if (session_) out.sessions[*session_] = own_;
  for (int i = 0; i < config_.units; ++i) {
    const auto* holder = rival(of(i));
    if (!holder || of(i).names.empty() || owns(of(i))) continue;
    out.sessions[session_of_stranger(i, holder->record.incarnation)] =
        Session{.record = {.token = Token{1},
                           .beat = static_cast<std::uint64_t>(holder->since.time_since_epoch().count()),
                           .holder = holder->record.name,
                           .incarnation = holder->record.incarnation,
                           .address = holder->record.address,
                           .term = config_.lease,
                           .asked = holder->since.time_since_epoch()}};
  }
  for (const auto& [election, shown] : shown_) {
    if (shown.allotted) out.allotted->insert(election);
    if (shown.lead && (out.whole || shown.changed > since)) out.leads.emplace(election, *shown.lead);
  }
  return out;
}

void SharedRoles::reply(RoleAnswer answer) {
  emit(role_effect::Reply{call_->id, std::move(answer)});
  last_asked_ = now_;
  call_.reset();
}

/// To a call that is answered by what a commit brings.
void SharedRoles::reply_when_late(std::string message) {
  if (due(call_->by - role_reply_reserve))
    reply(Result<tenure::Committed>(trouble().value_or(Error{Fault::timed_out, std::move(message)})));
}

}  // namespace tenure::kafka
