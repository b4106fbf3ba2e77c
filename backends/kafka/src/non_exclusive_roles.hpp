// SPDX-License-Identifier: Apache-2.0
// Many elections in one consumer group that must not be without a leader, and may have two for a while (Exclusive::no):
// the decisions of shared roles. The chapter "Roles that several may lead" of the README of this room has its rules, by
// number.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record.hpp"
#include "role_machine.hpp"

namespace tenure::kafka {

class NonExclusiveRoles final : public RoleMachine {
 public:
  explicit NonExclusiveRoles(RoleConfig config);

 private:
  /// Somebody else's record, as seen last.
  struct Seen {
    Commit commit;
    Record record;
    Time since{};
  };
  struct Unit : RoleMachine::Unit {
    std::optional<Record> heir;  ///< We lost it, and this was the first record of another one since.
    bool taken{};                ///< We lost it, and the new owner knows that it leads.
    std::optional<Seen> other;
    std::int64_t offset{1};  ///< The highest that was seen. It never falls.
  };

  Unit& of(int index) override { return units_[static_cast<std::size_t>(index)]; }
  const Unit& of(int index) const override { return units_[static_cast<std::size_t>(index)]; }
  void take_part(const role_fact::Assigned&) override;
  void give_back(const role_fact::Revoked&) override;
  void answered(const Sent& sent, const role_fact::Committed& answer) override;
  void observed(const role_fact::Offsets& read) override;
  void watch_member() override;
  bool show_unit(int index, std::uint64_t version) override;
  std::optional<Stranger> stranger(int index) const override;
  std::optional<Time> led_until(int index) const override;
  std::optional<Token> next_token(int) const override { return Token{last_token_.value + 1}; }
  std::int64_t offset_of(int index, const Plan&) const override { return of(index).offset; }
  void learn(const Plan& plan) override;

  void see(int index, const std::optional<Commit>& commit);

  // Questions to ourselves
  std::optional<Time> silent_since() const;
  Time lease_end(const Seen& other) const { return other.since + std::max(other.record.lease, config_.lease); }
  const Seen* rival(const Unit& unit) const;
  std::optional<Lead> others(int index, const std::optional<Lead>& shown, bool claimable) const;

  std::vector<Unit> units_;
  Token last_token_{};  ///< Versions of leads, for core. They fence nothing.
  Time heard_at_{};     ///< When the last commit that was acknowledged was sent, or the assignment came.
};

}  // namespace tenure::kafka
