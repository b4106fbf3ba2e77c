// SPDX-License-Identifier: Apache-2.0
#include "roles.hpp"

#include <algorithm>

namespace tenure::kafka {
namespace {

std::string farewell_text(const std::string& incarnation) { return "v1;" + incarnation; }

const std::optional<Commit>& offset_of(const role_fact::Offsets& read, int partition) {
  return read.at(static_cast<std::size_t>(partition));
}

}  // namespace

Roles::Roles(Config config) : config_(std::move(config)), strangers_(config_.units, Exclusive::yes, config_.lease) {
  for (int i = 0; i < config_.units; ++i)
    units_.emplace_back(RecordView(config_.incarnation, config_.lease, config_.first_claim_waits, Token{}));
}

std::vector<RoleEffect> Roles::on(const RoleFact& fact, Time now, std::int64_t unix_ms) {
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
  serve_reads();
  serve_observer();
  show();
  return std::exchange(effects_, {});
}

// ---- facts ----

void Roles::take(const role_fact::Called& call) {
  call_ = call;
  called_at_ = last_asked_ = now_;
  leaving_.reset();
}

void Roles::take(const role_fact::Abandoned& gone) {
  if (!call_ || call_->id != gone.id) return;
  const bool end = std::holds_alternative<role_call::End>(call_->what);
  call_.reset();
  last_asked_ = now_;
  if (end && session_) leave();
}

void Roles::take(const role_fact::Joined& joined) {
  const int index = unit_of(joined.election, config_.units);
  of(index).names.insert(joined.election);
  shown_.try_emplace(joined.election, Shown{.unit = index});
}

void Roles::take(const role_fact::Quit& quit) {
  of(unit_of(quit.election, config_.units)).names.erase(quit.election);
  shown_.erase(quit.election);
}

void Roles::take(const role_fact::Broken& broken) {
  if (!member_ || member_->handle != broken.handle) return;
  member_trouble_ = broken.error;
  drop_member();
}

void Roles::take(const role_fact::Troubled& troubled) {
  if (member_ && member_->handle == troubled.handle) member_trouble_ = troubled.error;
}

void Roles::take(const role_fact::Assigned& assigned) {
  if (!member_ || member_->handle != assigned.handle) return;
  if (member_->outstanding) return drop_member();  // The commit could go out under this generation.
  *member_ = Member(assigned.handle);
  member_->phase = Phase::assigned;
  member_->assigned_at = now_;
  member_->generation = assigned.generation;
  member_trouble_.reset();
  for (auto& unit : units_) unit.owned = unit.believed = false;
  for (const int partition : assigned.partitions)
    for (int i = 0; i < config_.units; ++i)
      if (record_of(i) == partition) of(i).owned = true;
  emit(role_effect::Assign{assigned.handle});
}

void Roles::take(const role_fact::Revoked& revoked) {
  if (!member_ || member_->handle != revoked.handle) return;
  if (revoked.lost && !any_live()) return drop_member();  // Its old place may be a healthy successor's now.
  member_->lost = revoked.lost;
  member_->phase = Phase::draining;
  member_->drain_by = now_ + drain_limit;
}

void Roles::take(const role_fact::Committed& answer) {
  if (!member_ || !member_->outstanding || member_->outstanding->id != answer.id) return;
  auto asked = *std::exchange(member_->outstanding, std::nullopt);
  if (answer.outcome == Outcome::accepted) member_trouble_.reset();
  if (answer.outcome == Outcome::fenced && !std::exchange(member_->fenced, true)) member_->fenced_at = now_;
  if (answer.outcome == Outcome::unknown_topic) check_topic_ = true;
  if (asked.purpose == Outstanding::Purpose::nonce) return nonce_answered(answer);
  commit_answered(asked, answer);
}

void Roles::nonce_answered(const role_fact::Committed& answer) {
  if (answer.outcome == Outcome::accepted) {
    member_->nonce_stands = true;
    return;
  }
  member_->try_again = now_ + nonce_pause;
  if (answer.outcome == Outcome::failed || answer.outcome == Outcome::unknown_topic) member_trouble_ = answer.error;
}

void Roles::commit_answered(Outstanding& asked, const role_fact::Committed& answer) {
  const bool awaited = call_ && call_->id == asked.call;
  const auto& plan = asked.plan;
  if (answer.outcome == Outcome::accepted) {
    carry_out(asked, awaited);
    if (asked.purpose == Outstanding::Purpose::last) leave();
    return;
  }
  member_->try_again = now_ + role_retry_pause;
  const bool was_end = asked.purpose == Outstanding::Purpose::last;
  if (awaited && !was_end) reply(failed(answer.error));
  if (was_end) return leave();
  // The coordinator may handle it after later commits. A member that does not join again is in no later generation.
  if (answer.outcome == Outcome::failed && (!plan.claimed.empty() || !plan.over.empty())) drop_member();
}

/// What was acknowledged has happened, whether or not somebody waits for it.
void Roles::carry_out(Outstanding& asked, bool awaited) {
  auto& plan = asked.plan;
  const auto deadline = asked.counts_from + led_for();
  for (const auto& [partition, commit] : plan.commits)
    if (partition % 3 == 0) learn(partition / 3, commit);
  for (const int index : plan.active) {
    auto& unit = of(index);
    // What lapsed while the coordinator answered stays over.
    if (plan.claimed.contains(index) || live(unit))
      unit.deadline = std::max(unit.deadline.value_or(deadline), deadline);
  }
  for (const int index : plan.over) of(index).believed = assigned();  // Nobody else writes there in this assignment.
  for (const auto& election : plan.claims) of(unit_of(election, config_.units)).held[election] = plan.token;
  for (const auto& election : plan.releases) of(unit_of(election, config_.units)).held.erase(election);
  for (auto& unit : units_)
    if (unit.held.empty()) unit.deadline.reset();
  if (!awaited || asked.purpose == Outstanding::Purpose::last) return;
  session_deadline_ = deadline;
  show();
  const auto& cursor = std::get<role_call::Write>(call_->what).commit.cursor;
  reply(Result<Committed>(tenure::Committed{.granted = true,
                                            .token = plan.token,
                                            .claimed = plan.claims,
                                            .released = plan.releases,
                                            .not_renewed = plan.not_renewed,
                                            .look = look(cursor)}));
}

/// Of our own writing.
void Roles::learn(int index, const Commit& commit) {
  auto& unit = of(index);
  unit.view.acknowledged(token_of(commit));
  unit.view.believed(commit, now_, member_ ? member_->assigned_at : now_);
}

void Roles::take(const role_fact::MemberRead& read) {
  if (!member_ || member_->reading != read.id) return;
  member_->reading.reset();
  if (!read.result) {
    member_->read_again = now_ + nonce_pause;
    member_trouble_ = read.result.error();
    return;
  }
  const auto owned = lowest();
  if (!owned) return;
  const auto& found = *read.result;
  const auto& nonce = offset_of(found, nonce_of(*owned));
  if (!nonce || nonce->metadata != member_->nonce) {
    member_->nonce_stands = false;
    member_->try_again = now_ + nonce_pause;
    return emit(role_effect::Tell{Level::warning,
                                  "a read of the records was not believed, because it did not carry our nonce"});
  }
  member_->read_again = now_ + config_.observe_every;
  member_trouble_.reset();
  look_for_strangers(found);
  for (int i = 0; i < config_.units; ++i) {
    auto& unit = of(i);
    if (!unit.owned || live(unit)) continue;
    unit.farewell = offset_of(found, farewell_of(i));
    const auto wrong = unit.view.believed(offset_of(found, record_of(i)), now_, member_->assigned_at);
    unit.believed = true;
    if (wrong.fell_from)
      emit(role_effect::Tell{Level::error, "the token of partition " + std::to_string(record_of(i)) + " fell from " +
                                               std::to_string(wrong.fell_from->value) +
                                               ": Kafka lost an acknowledged commit. Nobody claims its roles before a "
                                               "full lease is over"});
  }
}

void Roles::take(const role_fact::Observed& observed) {
  observing_ = false;
  if (!observed.result) {
    observer_trouble_ = observed.result.error();
    return;
  }
  observer_trouble_.reset();
  check_topic_ = false;
  observed_ = true;
  look_for_strangers(*observed.result);
  for (int i = 0; i < config_.units; ++i) {
    auto& unit = of(i);
    if (live(unit) || unit.believed) continue;  // We know better.
    const auto& record = offset_of(*observed.result, record_of(i));
    if (record) unit.view.end_absence();
    unit.view.observed(record, now_);
    unit.farewell = offset_of(*observed.result, farewell_of(i));
  }
}

void Roles::look_for_strangers(const role_fact::Offsets& read) {
  for (auto& message : strangers_.saw(read, now_)) emit(role_effect::Tell{Level::error, std::move(message)});
}

void Roles::take(const role_fact::Left& left) {
  if (leaving_ == left.handle) leave_by_ = now_;
}

void Roles::take(const role_fact::Closing&) {
  call_.reset();
  session_.reset();
  if (member_) drop_member();
}

// ---- what is due ----

bool Roles::due(Time when) {
  if (now_ >= when) return true;
  alarm_ = std::min(alarm_, when);
  return false;
}

/// A tenure that lapsed is over.
void Roles::judge_units() {
  for (auto& unit : units_) {
    if (unit.deadline && due(*unit.deadline)) forget(unit);
  }
}

/// A process that asks nothing must not keep its units from the others.
void Roles::judge_idle() {
  if ((!session_ && !member_) || call_ || any_live() || !due(last_asked_ + config_.lease)) return;
  session_.reset();
  if (member_) drop_member();
}

void Roles::serve_member() {
  const bool wanted = session_ && observed_ && !leaving_;
  if (!member_) {
    if (wanted && due(open_after_)) open_member();
    return;
  }
  auto& m = *member_;
  if (m.outstanding && due(m.outstanding->sent + config_.lease)) return drop_member();
  if (m.fenced && due(m.fenced_at + config_.lease)) return drop_member();
  if (m.lost && m.phase == Phase::joining && !any_live()) return drop_member();
  if (m.phase != Phase::draining) return;
  if (!m.outstanding) {
    m.phase = Phase::joining;
    emit(role_effect::Unassign{m.handle});
  } else if (due(m.drain_by)) {
    drop_member();  // A commit that is sent later would carry the next generation.
  }
}

/// Whether nothing is to be read to know when this unit may be claimed.
bool Roles::settled(const Unit& unit) {
  if (!unit.owned || unit.names.empty() || live(unit)) return true;
  return unit.believed && due(claimable_at(unit));
}

void Roles::serve_reads() {
  if (!assigned()) return;
  auto& m = *member_;
  if (m.fenced || m.reading || m.outstanding) return;
  bool all_settled = true;
  for (const auto& unit : units_) all_settled = settled(unit) && all_settled;
  if (all_settled || !due(m.try_again)) return;
  if (!m.nonce_stands) return send_nonce();
  if (!due(m.read_again)) return;
  m.reading = ++last_id_;
  emit(role_effect::ReadMember{*m.reading});
}

void Roles::serve_observer() {
  const bool asked = call_ && std::holds_alternative<role_call::Open>(call_->what);
  const bool wanted = session_ || asked || now_ < last_asked_ + config_.lease;
  if (observing_ || !wanted || !due(observe_at_)) return;
  observing_ = true;
  observe_at_ = now_ + config_.observe_every;
  emit(role_effect::Observe{check_topic_});
}

// ---- the member ----

void Roles::open_member() {
  open_after_ = now_ + role_reopen_pause;
  member_.emplace(++last_id_);
  emit(role_effect::Open{member_->handle, role_member_name(unix_ms_, config_.incarnation)});
}

void Roles::drop_member() {
  emit(role_effect::Drop{member_->handle});
  const auto outstanding = member_->outstanding;
  member_.reset();
  open_after_ = std::max(open_after_, now_ + role_reopen_pause);
  for (auto& unit : units_) {
    unit.owned = unit.believed = false;
    unit.view.end_absence();
  }
  const bool awaited = outstanding && call_ && outstanding->call == call_->id;
  if (awaited && std::holds_alternative<role_call::Write>(call_->what))
    reply(failed({Fault::timed_out, "the coordinator did not answer the commit in time"}));
}

/// What is owned must then be read again, because others may have claimed meanwhile.
void Roles::forget(Unit& unit) {
  unit.deadline.reset();
  unit.held.clear();
  unit.believed = false;
}

/// What is held is not led any more: the caller has said so, or its lease is over.
void Roles::forget_tenures() {
  for (auto& unit : units_) {
    unit.held.clear();
    if (unit.deadline) unit.believed = unit.believed && live(unit);
    unit.deadline.reset();
  }
}

void Roles::leave() {
  session_.reset();
  forget_tenures();
  leave_by_ = now_;
  if (!member_) return;
  leaving_ = member_->handle;
  leave_by_ = now_ + role_leave_limit;
  drop_member();
}

void Roles::send_nonce() {
  auto& m = *member_;
  const auto owned = lowest();
  if (!owned) return;
  m.nonce = config_.incarnation + "." + std::to_string(++nonces_);
  m.read_again = now_;
  Plan plan;
  plan.commits[nonce_of(*owned)] = {1, m.nonce};
  send(Outstanding::Purpose::nonce, std::move(plan));
}

void Roles::send(Outstanding::Purpose purpose, Plan plan) {
  auto commits = plan.commits;
  for (const int index : plan.claimed) of(index).tried = plan.token;
  // Who reads these claims at once. So a deadline that has not come proves nothing from here on.
  for (const auto* ended : {&plan.over, &plan.gone})
    for (const int index : *ended) forget(of(index));
  const bool answers = purpose != Outstanding::Purpose::nonce && call_;
  member_->outstanding = Outstanding{.id = ++last_id_,
                                     .purpose = purpose,
                                     .sent = now_,
                                     .counts_from = called_at_,
                                     .call = answers ? call_->id : 0,
                                     .plan = std::move(plan)};
  emit(role_effect::SendCommit{last_id_, std::move(commits)});
}

Commit Roles::record(Token offset, bool released) const {
  return {static_cast<std::int64_t>(offset.value), encode(Record{.released = released,
                                                                 .lease = config_.lease,
                                                                 .incarnation = config_.incarnation,
                                                                 .seq = seq_,
                                                                 .name = own_.record.holder,
                                                                 .address = own_.record.address,
                                                                 .units = config_.units})};
}

// ---- the commit ----

void Roles::plan_claims(const tenure::Commit& commit, Plan& plan) const {
  Token token = commit.at_least;
  for (const auto& claim : commit.claims) {
    const auto it = shown_.find(claim.election);
    if (it == shown_.end() || !it->second.allotted) continue;
    const auto& unit = of(it->second.unit);
    const auto& lead = it->second.lead;
    const auto next = unit.view.was_read() ? unit.view.next_token(unit.tried, unix_ms_) : std::nullopt;
    if (!next || claim.expected != (lead ? std::optional(lead->token) : std::nullopt)) continue;
    token = std::max(token, *next);
    plan.claims.push_back(claim.election);
    plan.claimed.insert(it->second.unit);
  }
  plan.token = token;
}

/// For units that another one owns now: we wrote last, and lead there no more.
void Roles::plan_farewells(Plan& plan) const {
  for (const int index : plan.gone) {
    const auto& unit = of(index);
    plan.commits[farewell_of(index)] = {static_cast<std::int64_t>(std::max(unit.view.highest(), unit.tried).value),
                                        farewell_text(config_.incarnation)};
  }
}

Roles::Plan Roles::plan_of(const tenure::Commit& commit) const {
  Plan plan;
  plan_claims(commit, plan);
  std::map<int, std::size_t> released;
  for (const auto& release : commit.releases) {
    const int index = unit_of(release.election, config_.units);
    const auto& held = of(index).held;
    const auto it = held.find(release.election);
    if (it == held.end() || it->second != release.token) continue;
    plan.releases.push_back(release.election);
    ++released[index];
  }
  for (int i = 0; i < config_.units; ++i) {
    const auto& unit = of(i);
    const bool claimed = plan.claimed.contains(i);
    if (unit.held.empty() && !claimed) continue;
    const bool none_left = !claimed && released.contains(i) && released.at(i) == unit.held.size();
    if (unit.owned) {
      (none_left ? plan.over : plan.active).insert(i);
      const auto offset = claimed ? plan.token : std::max(unit.view.highest(), unit.tried);
      plan.commits[record_of(i)] = record(offset, none_left);
    } else if (none_left) {
      plan.gone.insert(i);
    }
    if (unit.owned || none_left) continue;
    for (const auto& [election, token] : unit.held)
      if (std::find(plan.releases.begin(), plan.releases.end(), election) == plan.releases.end())
        plan.not_renewed.push_back(election);
  }
  plan_farewells(plan);
  return plan;
}

// ---- calls ----

void Roles::serve_call() {
  if (!call_) return;
  struct Caller {
    Roles& r;
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

void Roles::serve_open(const role_call::Open& open) {
  if (!observed_ || observer_trouble_) {
    if (const auto error = trouble()) return reply(Result<Committed>(*error));
    return reply_when_late("the records could not be read in time");
  }
  forget_tenures();
  session_ = open.id;
  own_ = open.session;
  session_deadline_ = called_at_ + led_for();
  show();
  reply(Result<Committed>(tenure::Committed{.granted = true, .look = look({})}));
}

void Roles::serve_write(const role_call::Write& write) {
  const auto& commit = write.commit;
  if (member_ && member_->outstanding && member_->outstanding->call == call_->id)
    return reply_when_late("the coordinator has not acknowledged the commit");
  if (auto error = refused_commit(commit)) return reply(Result<Committed>(std::move(*error)));
  if (session_ != commit.session)
    return reply(Result<Committed>(tenure::Committed{.granted = false, .look = look({})}));
  own_ = commit.next;
  const bool idle = !any_live() && (commit.claims.empty() || !assigned());  // There is nothing to be written.
  if (!idle && !assigned()) return reply_when_late("this member of the group has no assignment yet");
  if (!idle && member_->fenced) return reply_when_late("the coordinator accepts no commit of this member");
  if (!idle && (member_->outstanding || !due(member_->try_again)))
    return reply_when_late("the coordinator has not answered the commit before");
  ++seq_;
  auto plan = plan_of(commit);
  if (!plan.commits.empty()) return send(Outstanding::Purpose::commit, std::move(plan));
  if (idle)
    if (const auto error = trouble()) return reply(failed(*error));
  Outstanding local{.counts_from = called_at_, .call = call_->id, .plan = std::move(plan)};
  carry_out(local, true);
}

/// A session that lapsed just ends. Any other end is a stop: its units are released, and the group is left.
void Roles::serve_end(const role_call::End& end) {
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
  const bool busy = member_ && member_->outstanding;
  if (assigned() && !busy && !member_->fenced && any_live()) {
    ++seq_;
    tenure::Commit all{.session = end.id};
    for (const auto& unit : units_)
      for (const auto& [election, token] : unit.held) all.releases.push_back({election, token, std::nullopt});
    return send(Outstanding::Purpose::last, plan_of(all));
  }
  // In a rebalance, or behind a commit that is not answered.
  if (member_ && !member_->fenced && any_live() && !due(call_->by - role_reply_reserve)) return;
  leave();
  if (!leaving_)
    reply(Result<bool>(true));
  else
    due(leave_by_);
}

// ---- answers ----

bool Roles::any_live() const {
  return std::any_of(units_.begin(), units_.end(), [this](const Unit& unit) { return live(unit); });
}

std::optional<int> Roles::lowest() const {
  for (int i = 0; i < config_.units; ++i)
    if (of(i).owned) return i;
  return std::nullopt;
}

/// Its last holder has said that it leads there no more. A token is used once, so this stays true.
bool Roles::given_up(const Unit& unit) const {
  const auto seen = unit.view.sight(now_);
  const auto* holder = std::get_if<Incumbent>(&seen);
  return holder && unit.farewell && !unit.view.suspect() && token_of(unit.farewell) == holder->token &&
         !holder->incarnation.empty() && unit.farewell->metadata == farewell_text(holder->incarnation);
}

Roles::Time Roles::claimable_at(const Unit& unit) const {
  const auto own = given_up(unit) ? Time::min() : unit.view.claimable_at(member_->assigned_at, member_->generation);
  return std::max(own, strangers_.until());
}

bool Roles::claimable(const Unit& unit) const {
  return assigned() && !member_->fenced && unit.owned && unit.believed && now_ >= claimable_at(unit);
}

/// As the roles of it show that we do not hold.
std::optional<Lead> Roles::lead_of(int index) const {
  const auto& unit = of(index);
  const auto token = std::max(unit.view.highest(), unit.tried);
  if (token == Token{}) return std::nullopt;
  const auto seen = unit.view.sight(now_);
  const auto* holder = std::get_if<Incumbent>(&seen);
  const bool free = live(unit) || !holder || claimable(unit);
  return Lead{
      .token = token, .session = session_of_stranger(index, holder ? holder->incarnation : ""), .released = free};
}

/// In a rebalance we keep what we have. Afterwards we keep what we own.
void Roles::show() {
  const auto before = version_;
  for (int i = 0; i < config_.units; ++i)
    if (show(i, before + 1)) version_ = before + 1;
  if (version_ != before && call_ && std::holds_alternative<role_call::Await>(call_->what)) serve_call();
}

/// Whether anything changed.
bool Roles::show(int index, std::uint64_t version) {
  const auto& unit = of(index);
  if (unit.names.empty() && unit.held.empty()) return false;
  const auto others = lead_of(index);
  const bool ours = session_ && assigned() && unit.owned && (live(unit) || claimable(unit));
  const bool kept = session_ && !assigned() && live(unit);
  bool changed = false;
  for (const auto& election : unit.names) {
    auto& shown = shown_[election];
    const auto held = unit.held.find(election);
    const bool holds = held != unit.held.end();
    const auto lead = holds ? Lead{.token = held->second, .session = session_.value_or(SessionId{})} : others;
    const bool allotted = ours || (kept && holds);
    if (lead == shown.lead && allotted == shown.allotted) continue;
    if (lead != shown.lead) shown.changed = version;
    shown = {.unit = index, .lead = lead, .allotted = allotted, .changed = shown.changed};
    changed = true;
  }
  return changed;
}

Look Roles::look(const std::string& cursor) const {
  std::uint64_t since = 0;
  for (const char c : cursor) since = since * 10 + static_cast<std::uint64_t>(c - '0');
  Look out{.whole = cursor.empty(), .cursor = std::to_string(version_), .allotted = std::set<std::string>()};
  if (session_) out.sessions[*session_] = own_;
  for (int i = 0; i < config_.units; ++i) {
    const auto& unit = of(i);
    const auto seen = unit.view.sight(now_);
    const auto* holder = std::get_if<Incumbent>(&seen);
    if (!holder || unit.names.empty() || live(unit)) continue;
    const auto first_seen = now_ + holder->remaining - config_.lease;
    out.sessions[session_of_stranger(i, holder->incarnation)] =
        Session{.record = {.token = Token{1},
                           .beat = static_cast<std::uint64_t>(first_seen.time_since_epoch().count()),
                           .holder = holder->name,
                           .incarnation = holder->incarnation,
                           .address = holder->address,
                           .term = config_.lease,
                           .asked = first_seen.time_since_epoch()}};
  }
  for (const auto& [election, shown] : shown_) {
    if (shown.allotted) out.allotted->insert(election);
    if (shown.lead && (out.whole || shown.changed > since)) out.leads.emplace(election, *shown.lead);
  }
  return out;
}

void Roles::reply(RoleAnswer answer) {
  emit(role_effect::Reply{call_->id, std::move(answer)});
  last_asked_ = now_;
  call_.reset();
}

RoleAnswer Roles::failed(Error error) const { return Result<Committed>(std::move(error)); }

/// To a call that is answered by what a commit brings.
void Roles::reply_when_late(std::string message) {
  if (due(call_->by - role_reply_reserve))
    reply(failed(trouble().value_or(Error{Fault::timed_out, std::move(message)})));
}

}  // namespace tenure::kafka
