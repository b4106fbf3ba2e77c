// SPDX-License-Identifier: Apache-2.0
// The rules S1 to S9 of README.md.
#include "non_exclusive_roles.hpp"

#include <algorithm>
#include <utility>

namespace tenure::kafka {

NonExclusiveRoles::NonExclusiveRoles(RoleConfig config)
    : RoleMachine(std::move(config), Exclusive::no), units_(static_cast<std::size_t>(config_.units)) {}

// ---- facts ----

void NonExclusiveRoles::take_part(const role_fact::Assigned& assigned) {
  heard_at_ = now_;
  for (auto& unit : units_) unit.taken = false, unit.heir.reset();
  own(assigned);
}

/// No answer is waited for. A commit that goes out late can make us lead on from when it was asked for, and no longer.
void NonExclusiveRoles::give_back(const role_fact::Revoked& revoked) {
  if (revoked.lost) return drop_member();  // Its old place may be a healthy successor's now.
  member_->drain_by.reset();
  emit(role_effect::Unassign{revoked.handle});
}

void NonExclusiveRoles::answered(const Sent& sent, const role_fact::Committed& answer) {
  if (answer.outcome == Outcome::accepted) {
    heard_at_ = std::max(heard_at_, sent.at);
    return carry_out(sent);
  }
  member_->try_again = now_ + retry_pause;
  if (awaited(sent)) fail(answer.error);
}

void NonExclusiveRoles::learn(const Plan& plan) { last_token_ = std::max(last_token_, plan.token); }

void NonExclusiveRoles::observed(const role_fact::Offsets& read) {
  for (int i = 0; i < config_.units; ++i) see(i, read.at(static_cast<std::size_t>(record_of(i))));
}

/// A new owner leads for certain once it writes that an earlier commit of it was acknowledged. It must have written
/// since we lost the unit: an old record may say so, too. So two of its records must be seen.
void NonExclusiveRoles::see(int index, const std::optional<Commit>& commit) {
  auto& unit = of(index);
  const auto record = commit ? decode(commit->metadata) : std::nullopt;
  if (commit) unit.offset = std::max(unit.offset, commit->offset);
  if (!record || record->who.incarnation == config_.incarnation) return unit.other.reset();
  if (!unit.other || unit.other->commit != *commit) unit.other = Seen{*commit, *record, now_};
  if (!member_.assigned() || unit.owned || record->released || record->units != config_.units) return;
  const bool next = unit.heir && unit.heir->who.incarnation == record->who.incarnation && unit.heir->seq < record->seq;
  if (next && record->exclusive == Exclusive::no && record->leads) unit.taken = true;
  if (!next) unit.heir = record;
}

// ---- the member ----

/// Who was heard of last a session ago must send nothing more. If answers alone are lost, the coordinator would take it
/// for alive as long as it sends, and nobody else would get its units.
void NonExclusiveRoles::watch_member() {
  if (const auto since = silent_since(); since && due(*since + config_.session)) drop_member();
}

std::optional<NonExclusiveRoles::Time> NonExclusiveRoles::silent_since() const {
  const auto& m = *member_;
  const bool keeps =
      m.assigned && std::any_of(units_.begin(), units_.end(), [](const Unit& u) { return u.owned && !u.held.empty(); });
  if (keeps || m.fenced) return heard_at_;
  return m.outstanding ? std::optional(m.outstanding->at) : std::nullopt;
}

// ---- what is shown ----

/// Another one's record whose lease is not over, as far as we know.
const NonExclusiveRoles::Seen* NonExclusiveRoles::rival(const Unit& unit) const {
  if (!unit.other || unit.other->record.released) return nullptr;
  return now_ < lease_end(*unit.other) ? &*unit.other : nullptr;
}

std::optional<NonExclusiveRoles::Stranger> NonExclusiveRoles::stranger(int index) const {
  const auto* holder = rival(of(index));
  if (!holder || owns(of(index))) return std::nullopt;
  return Stranger{holder->since, holder->record.who};
}

std::optional<NonExclusiveRoles::Time> NonExclusiveRoles::led_until(int index) const {
  const auto& other = of(index).other;
  return other && !other->record.released ? std::optional(lease_end(*other)) : std::nullopt;
}

/// The lead of a role that we do not hold. Its token never falls, and a lead that was shown is never taken back.
std::optional<Lead> NonExclusiveRoles::others(int index, const std::optional<Lead>& shown, bool claimable) const {
  const auto* holder = rival(of(index));
  if (!holder && !shown) return std::nullopt;
  const auto session = session_of_stranger(index, holder ? holder->record.who.incarnation : "");
  const bool same = shown && shown->session == session;
  return Lead{.token = same ? shown->token : Token{last_token_.value + 1},
              .session = session,
              .released = claimable || !holder};
}

/// What we own is ours at once. What we lost stays ours until its new owner leads, or our time is over.
bool NonExclusiveRoles::show_unit(int index, std::uint64_t version) {
  const auto& unit = of(index);
  const bool claimable = session_ && owns(unit) && due(strangers_.until());
  bool changed = false;
  for (const auto& election : unit.names) {
    const auto own = own_lead(unit, election);
    const auto lead = own ? own : others(index, shown(election), claimable);
    const bool allotted = claimable || (session_ && own && !unit.taken);
    if (lead) last_token_ = std::max(last_token_, lead->token);
    changed |= show(election, lead, allotted, version);
  }
  return changed;
}

}  // namespace tenure::kafka
