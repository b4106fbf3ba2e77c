// SPDX-License-Identifier: Apache-2.0
// The rules R1 to R16 of README.md.
#include "roles.hpp"

#include <algorithm>

namespace tenure::kafka {
namespace {

std::string farewell_text(const std::string& incarnation) { return "v1;" + incarnation; }

/// Ends the nonce of who knows that the group is new. The next generation may be without it.
std::string new_in(int generation) { return ";new" + std::to_string(generation); }

const std::optional<Commit>& commit_at(const role_fact::Offsets& read, int partition) {
  return read.at(static_cast<std::size_t>(partition));
}

}  // namespace

Roles::Roles(RoleConfig config) : RoleMachine(std::move(config), Exclusive::yes) {
  for (int i = 0; i < config_.units; ++i) units_.emplace_back(config_);
}

// ---- facts ----

void Roles::take_part(const role_fact::Assigned& assigned) {
  if (member_->outstanding) return drop_member();  // The commit could go out under this generation.
  read_pause_ = first_read_pause;
  planned_ = 0;  // Another one may have unit 0 by now.
  const bool follows = assigned.generation == member_->generation + 1;
  for (auto& unit : units_) {
    unit.believed = false;
    if (!unit.owned || !follows) unit.view.end_absence();  // Somebody else may have led it meanwhile.
  }
  own(assigned);
}

void Roles::answered(const Sent& sent, const role_fact::Committed& answer) {
  if (sent.call == 0 && !sent.plan.tells) return member_.proved(answer, now_);
  const bool last = std::exchange(last_, false) && asked<role_call::End>();
  if (answer.outcome == Outcome::accepted) carry_out(sent);
  if (last) return leave();
  if (answer.outcome != Outcome::accepted && awaited(sent)) fail(answer.error);
  if (answer.again) {  // Rule 23 of the single election.
    member_.keep_rank();
    return drop_member();
  }
  if (answer.outcome == Outcome::accepted) return;
  member_->try_again = now_ + retry_pause;
  // The coordinator may handle it after later commits. A member that does not join again is in no later generation.
  const bool changes = !sent.plan.claimed.empty() || !sent.plan.over.empty();
  if (answer.outcome == Outcome::failed && changes) return drop_member();
  member_->doubtful |= answer.outcome == Outcome::failed;
}

/// Of our own writing. Nobody else writes in this assignment where we released the last role.
void Roles::learn(const Plan& plan) {
  for (const auto& [partition, commit] : plan.commits) {
    if (partition % 3 != 0) continue;
    numbers_.wrote(partition / 3, plan.units, grown_from(plan.units));
    auto& view = of(partition / 3).view;
    view.acknowledged(token_of(commit));
    view.believed(commit, now_, member_->assigned_at);
  }
  for (const int index : plan.over) of(index).believed = member_.assigned();
  seen(numbers_);
}

void Roles::read(const role_fact::MemberRead& read) {
  if (!member_.was_read(read, now_)) return;
  const auto owned = lowest();
  if (!owned) return;
  const auto& found = *read.result;
  const auto& nonce = commit_at(found, nonce_of(*owned));
  if (!member_.believes(nonce ? nonce->metadata : "", now_)) {
    if (member_.tells_of_stale(now_)) emit(role_effect::Tell{Level::warning, std::string(not_believed)});
    return;
  }
  member_->read_again = now_ + std::min(read_pause_, config_.observe_every);
  read_pause_ = std::min(2 * read_pause_, config_.observe_every);
  look_for_strangers(found, false);
  for (int i = 0; i < config_.units; ++i)
    if (const auto& said = commit_at(found, nonce_of(i)); said && said->metadata.ends_with(new_in(member_->generation)))
      member_->vouched = true;
  numbers_ = UnitNumbers(found);
  for (int i = 0; i < config_.units; ++i) {
    auto& unit = of(i);
    if (!unit.owned || live(unit)) continue;
    unit.farewell = commit_at(found, farewell_of(i));
    const auto& record = commit_at(found, record_of(i));
    tell(report_of(record_of(i), record, unit.view.believed(record, now_, member_->assigned_at)));
    unit.believed = true;
    // Of a unit that is not ours, whose view may be older.
    if (const int before = numbers_.grown_from(); before && i >= before && !tells(i))
      unit.tried = std::max(unit.tried, token_of(commit_at(found, record_of(i % before))));
  }
  seen(numbers_);
}

void Roles::observed(const role_fact::Offsets& read) {
  const UnitNumbers told(read);
  seen(told);
  plan_growth(told);
  for (int i = 0; i < config_.units; ++i) {
    auto& unit = of(i);
    if (live(unit) || unit.believed) continue;  // We know better.
    const auto& record = commit_at(read, record_of(i));
    if (record) unit.view.end_absence();
    tell(report_of(record_of(i), record, unit.view.observed(record, now_)));
    unit.farewell = commit_at(read, farewell_of(i));
  }
}

// ---- what is due ----

/// A unit is ours to claim, and no read of it is believed.
bool Roles::owes() const {
  return std::any_of(units_.begin(), units_.end(),
                     [this](const Unit& u) { return u.owned && !u.names.empty() && !live(u) && !u.believed; });
}

/// Whether nothing is to be read to know when this unit may be claimed, or may tell our number. Unit 0 is read in each
/// assignment: all wait for what it tells, and the records may be gone since.
bool Roles::settled(int index) {
  const auto& unit = of(index);
  if (!unit.owned || live(unit) || (index > 0 && unit.names.empty() && tells(index))) return true;
  if (!unit.believed) return false;
  if (unit.names.empty() && tells(index)) return true;
  return (outgrown() || numbers_.exclude_older(index, config_.units)) && due(claimable_at(index));
}

bool Roles::all_settled() {
  bool out = true;
  for (int i = 0; i < config_.units; ++i) out = settled(i) && out;
  return out;
}

void Roles::serve_reads() {
  grow_if_free();
  if (!member_.assigned() || member_->fenced || member_->reading || member_->outstanding) return;
  serve_numbers();
  const bool vouches = member_.vouches(config_.lease, now_) && !member_->nonce_stands;
  if (!member_.assigned() || member_->outstanding || (all_settled() && !vouches) || !due(member_->try_again)) return;
  if (!member_->nonce_stands) return send_nonce();
  if (!due(member_->read_again)) return;
  member_->reading = next_id();
  emit(role_effect::ReadMember{*member_->reading, partitions_of(config_.units)});
}

// ---- the member ----

void Roles::dropped() {
  last_ = false;
  planned_ = 0;
  for (auto& unit : units_) {
    unit.believed = false;
    unit.view.end_absence();
  }
}

/// What is owned must then be read again, because others may have claimed meanwhile.
void Roles::forget(int index) {
  of(index).end();
  of(index).believed = false;
}

void Roles::send_nonce() {
  const auto owned = lowest();
  if (!owned) return;
  member_->nonce = config_.incarnation + "." + std::to_string(++nonces_);
  if (member_.vouches(config_.lease, now_)) member_->nonce += new_in(member_->generation);
  member_->read_again = now_;
  Plan plan;
  plan.commits[nonce_of(*owned)] = {1, member_->nonce};
  send(std::move(plan), 0);
}

/// Who reads these claims at once. So a deadline that has not come proves nothing from here on.
void Roles::sending(const Plan& plan) {
  if (!plan.claimed.empty() || !plan.over.empty()) member_->reading.reset();  // It may show what was there before.
  for (const int index : plan.claimed) of(index).tried = plan.token;
  for (const auto* ended : {&plan.over, &plan.gone})
    for (const int index : *ended) forget(index);
}

/// All is released in one commit, whose answer is waited for: a handle that is dropped may not send it. In a rebalance,
/// or behind a commit that is not answered, it must wait itself.
bool Roles::release_first(SessionId id) {
  if (last_) return !due(call_->by - reply_reserve);
  if (!member_ || member_->fenced || !any_held()) return false;
  if (!member_.assigned() || member_->outstanding) return !due(call_->by - reply_reserve);
  ++seq_;
  last_ = true;
  tenure::Commit all{.session = id};
  for (const auto& unit : units_)
    for (const auto& [election, token] : unit.held) all.releases.push_back({election, token, std::nullopt});
  send(plan_of(all), call_->id);
  return true;
}

// ---- the number of units (R15) ----

int Roles::grown_from(int units) const {
  if (numbers_.units() == units) return numbers_.grown_from();
  return is_multiple(units, numbers_.units()) ? numbers_.units() : 0;
}

/// Whether it tells our number, where that matters.
bool Roles::tells(int index) const {
  const bool grew = numbers_.grown_from() != 0;
  return numbers_.units() == config_.units && (index == 0 || !grew || numbers_.of(index) == config_.units);
}

/// Of what we lead. Whoever has unit 0 tell a new number leads nothing there, so that this is like a claim.
bool Roles::moves(const std::string& election, int index) const {
  return unit_of(election, next_units()) != index || (index == 0 && planned_ > told_);
}

void Roles::seen(const UnitNumbers& told) {
  if (!is_multiple(told.units(), config_.units) || told.units() > max_units || told.units() <= told_) return;
  told_ = told.units();
  for (auto& unit : units_) ++unit.changes;
}

void Roles::topic_has(int partitions) {
  if (std::exchange(topic_, partitions) == partitions) return;
  topic_seen_ = now_;
  if (partitions % partitions_of(config_.units) != 0 || partitions > partitions_of(max_units))
    emit(role_effect::Tell{Level::warning, "the topic has " + std::to_string(partitions) +
                                               " partitions now. A group of " + std::to_string(config_.units) +
                                               " units grows to a multiple of " +
                                               std::to_string(partitions_of(config_.units)) + " partitions, and to " +
                                               std::to_string(partitions_of(max_units)) + " at most"});
}

/// By unit 0's owner, once every member's client has seen that the topic has grown: so the new units have owners.
void Roles::plan_growth(const UnitNumbers& told) {
  const bool may = owns(units_.front()) && told.units() == config_.units && told.complete();
  const bool room = topic_ <= partitions_of(max_units) && is_multiple(topic_, partitions_of(config_.units));
  const int planned = may && room && now_ >= topic_seen_ + 2 * role_topic_pause ? topic_ / partitions_of(1) : 0;
  if (std::exchange(planned_, planned) == planned) return;
  for (auto& unit : units_) ++unit.changes;
}

/// As soon as we lead no role that moves. What stays keeps its tenure.
void Roles::grow_if_free() {
  if (told_ <= config_.units || (member_ && member_->outstanding)) return;
  for (int i = 0; i < config_.units; ++i)
    for (const auto& [election, token] : of(i).held)
      if (moves(election, i)) return;
  const int before = config_.units;
  for (int i = before; i < told_; ++i) {
    units_.emplace_back(config_);
    const auto& old = of(i % before);
    of(i).tried = std::max(old.tried, old.view.highest());
  }
  if (member_) member_->reading.reset();  // It asked for less.
  read_pause_ = first_read_pause;
  grow(told_);
}

/// Which number our units are to tell: ours, or, by unit 0, the next one. Who was started with a larger one tells that
/// of unit 0 where it is missing: the processes that knew no other may all be gone, and their growth half done.
int Roles::number_to_tell() const {
  if (outgrown() && planned_ > told_) return planned_;
  const bool half_grown = is_multiple(config_.units, numbers_.units()) && !numbers_.complete();
  return half_grown ? numbers_.units() : config_.units;
}

/// Whether the unit has no need to tell this number now.
bool Roles::need_not_tell(int index, int number) const {
  if (number > config_.units) return index > 0;
  if (outgrown()) return true;
  if (number == config_.units) return tells(index);
  return index >= number || numbers_.of(index) == number || live(of(index));
}

/// The owner of a unit writes the number there, if nobody can lead by another one: by the same rules as a claim. Where
/// we lead, a renewal would tell it, but later.
void Roles::serve_numbers() {
  Plan plan;
  plan.tells = true;
  plan.units = number_to_tell();
  std::set<int> led;
  for (int i = 0; i < config_.units; ++i) {
    const auto& unit = of(i);
    if (!unit.owned || need_not_tell(i, plan.units)) continue;
    if (live(unit)) {
      if (plan.units == config_.units && numbers_.of(i) != config_.units) led.insert(i);
    } else if (const auto token = next_token(i); may_tell(i, plan.units) && token) {
      plan.claimed.insert(i);
      plan.token = std::max(plan.token, *token);
    }
  }
  if ((led.empty() && plan.claimed.empty()) || !due(member_->try_again)) return;
  if (member_->doubtful) return drop_member();
  ++seq_;
  for (const int i : plan.claimed) plan.commits[record_of(i)] = record(i, plan, true);
  for (const int i : led) plan.commits[record_of(i)] = record(i, plan, false);
  send(std::move(plan), 0);
}

/// Unit 0 speaks for all. It tells a new number when each unit has the one before.
bool Roles::may_tell(int index, int number) {
  const auto& unit = of(index);
  if (!unit.believed || !due(claimable_at(index))) return false;
  if (index > 0) return numbers_.exclude_older(index, number);
  return !is_multiple(config_.units, numbers_.units()) || numbers_.complete();
}

// ---- the commit ----

/// The roles of a new unit had their tokens where they were before.
std::optional<Token> Roles::next_token(int index) const {
  const auto& unit = of(index);
  if (!unit.view.was_read()) return std::nullopt;
  auto tried = unit.tried;
  if (const int before = numbers_.grown_from(); before && index >= before) {
    const auto& old = of(index % before);
    tried = std::max({tried, old.tried, old.view.highest()});
  }
  return unit.view.next_token(tried, unix_ms_);
}

std::int64_t Roles::offset_of(int index, const Plan& plan) const {
  const auto& unit = of(index);
  const auto token = plan.claimed.contains(index) ? plan.token : std::max(unit.view.highest(), unit.tried);
  return static_cast<std::int64_t>(token.value);
}

/// For units that another one owns now: we wrote last, and lead there no more.
void Roles::farewells(Plan& plan) const {
  for (const int index : plan.gone)
    plan.commits[farewell_of(index)] = {offset_of(index, plan), farewell_text(config_.incarnation)};
}

// ---- answers ----

std::optional<int> Roles::lowest() const {
  for (int i = 0; i < config_.units; ++i)
    if (of(i).owned) return i;
  return std::nullopt;
}

std::optional<Incumbent> Roles::holder_of(const Unit& unit) const {
  const auto seen = unit.view.sight(now_);
  const auto* holder = std::get_if<Incumbent>(&seen);
  return holder ? std::optional(*holder) : std::nullopt;
}

/// Its last holder has said that it leads there no more. A token is used once, so this stays true.
bool Roles::given_up(const Unit& unit) const {
  const auto holder = holder_of(unit);
  return holder && unit.farewell && token_of(unit.farewell) == holder->token && !holder->incarnation.empty() &&
         unit.farewell->metadata == farewell_text(holder->incarnation);
}

/// A unit that has come by growth and has no record was never led. But who expects that records are deleted waits where
/// there is none.
Roles::Time Roles::claimable_at(int index) const {
  const auto& unit = of(index);
  const bool fresh = numbers_.grown_from() && index >= numbers_.grown_from() && !unit.view.ever_seen();
  const bool free = (fresh && !config_.first_claim_waits) || given_up(unit);
  const auto own = free ? unit.view.doubted_until()
                        : unit.view.claimable_at(member_->assigned_at, member_->founder || member_->vouched);
  return std::max({own, strangers_.until(), stranger_leads_until_});
}

bool Roles::claimable(int index) const {
  const auto& unit = of(index);
  if (!owns(unit) || member_->fenced || !unit.believed) return false;
  return numbers_.exclude_older(index, config_.units) && now_ >= claimable_at(index);
}

/// As the roles of it show that we do not hold.
std::optional<Lead> Roles::lead_of(int index) const {
  const auto& unit = of(index);
  const auto token = std::max(unit.view.highest(), unit.tried);
  if (token == Token{}) return std::nullopt;
  const auto holder = holder_of(unit);
  const bool free = live(unit) || !holder || claimable(index);
  return Lead{
      .token = token, .session = session_of_stranger(index, holder ? holder->incarnation : ""), .released = free};
}

std::optional<Roles::Stranger> Roles::stranger(int index) const {
  const auto holder = holder_of(of(index));
  if (!holder || live(of(index))) return std::nullopt;
  return Stranger{now_ + holder->remaining - config_.lease, *holder};
}

/// In a rebalance we keep what we have. Afterwards we keep what we own.
bool Roles::show_unit(int index, std::uint64_t version) {
  auto& unit = of(index);
  if (unit.names.empty()) return false;
  const auto others = lead_of(index);
  const bool ours = session_ && owns(unit) && (live(unit) || claimable(index));
  const bool kept = session_ && !member_.assigned() && live(unit);
  // With thousands of elections most facts change what is shown of no unit.
  if (const std::tuple now_shown(others, ours, kept, session_, unit.changes);
      std::exchange(unit.shown, now_shown) == now_shown)
    return false;
  bool changed = false;
  for (const auto& election : unit.names) {
    const auto own = own_lead(unit, election);
    const bool stays = !outgrown() || !moves(election, index);
    changed |= show(election, own ? own : others, stays && (ours || (kept && own)), version);
  }
  return changed;
}

}  // namespace tenure::kafka
