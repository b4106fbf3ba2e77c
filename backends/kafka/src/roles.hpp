// SPDX-License-Identifier: Apache-2.0
// Many elections in one consumer group: the decisions of exclusive roles. The chapter "Roles" of the README of this
// room has its rules, by number.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "record_view.hpp"
#include "role_machine.hpp"
#include "unit.hpp"

namespace tenure::kafka {

class Roles final : public RoleMachine {
 public:
  /// Doubled with each read of a unit's owner.
  static constexpr Duration first_read_pause = std::chrono::milliseconds(5);

  explicit Roles(RoleConfig config);

 private:
  struct Unit : RoleMachine::Unit {
    explicit Unit(const RoleConfig& config)
        : view(config.incarnation, config.lease, config.first_claim_waits, Token{}) {}

    RecordView view;
    std::optional<Commit> farewell;  ///< As read last.
    Token tried;                     ///< The highest of any claim of ours.
    bool believed{};                 ///< The view is from a read that carried this assignment's nonce.
    /// All that what we show of it depends on, as shown last.
    std::optional<std::tuple<std::optional<Lead>, bool, bool, std::optional<SessionId>, std::uint64_t>> shown;
  };
  Unit& of(int index) override { return units_[static_cast<std::size_t>(index)]; }
  const Unit& of(int index) const override { return units_[static_cast<std::size_t>(index)]; }
  void take_part(const role_fact::Assigned&) override;
  void give_back(const role_fact::Revoked&) override {}
  void answered(const Sent& sent, const role_fact::Committed& answer) override;
  void read(const role_fact::MemberRead&) override;
  void observed(const role_fact::Offsets& read) override;
  bool owes() const override;
  void serve_reads() override;
  void forget(int index) override;
  void dropped() override;
  bool show_unit(int index, std::uint64_t version) override;
  std::optional<Stranger> stranger(int index) const override;
  std::optional<Time> led_until(int index) const override {
    return holder_of(of(index)) ? of(index).view.led_until() : std::nullopt;
  }
  std::optional<Token> next_token(int index) const override;
  std::int64_t offset_of(int index, const Plan& plan) const override;
  void farewells(Plan& plan) const override;
  void sending(const Plan& plan) override;
  void learn(const Plan& plan) override;
  bool release_first(SessionId id) override;
  bool may_grow() const override { return true; }
  void topic_has(int partitions) override;
  int grown_from(int units) const override;

  void send_nonce();

  // Growth
  void seen(const UnitNumbers& told);
  void plan_growth(const UnitNumbers& told);
  void grow_if_free();
  void serve_numbers();

  // Questions to ourselves
  bool live(const Unit& unit) const { return unit.deadline && now_ < *unit.deadline; }
  bool given_up(const Unit& unit) const;
  Time claimable_at(int index) const;
  bool claimable(int index) const;
  bool settled(int index);
  bool all_settled();
  bool tells(int index) const;
  int next_units() const { return std::max(told_, planned_); }
  bool outgrown() const { return next_units() > config_.units; }
  bool moves(const std::string& election, int index) const;
  int number_to_tell() const;
  bool need_not_tell(int index, int number) const;
  bool may_tell(int index, int number);
  std::optional<int> lowest() const;
  std::optional<Incumbent> holder_of(const Unit& unit) const;
  std::optional<Lead> lead_of(int index) const;

  std::vector<Unit> units_;
  bool last_{};  ///< What is outstanding releases all, and then we leave.
  Duration read_pause_{first_read_pause};
  std::uint64_t nonces_{};

  UnitNumbers numbers_;  ///< As the last read with a nonce showed them, and what we wrote since.
  int told_{};           ///< The largest number that unit 0 was ever seen to tell.
  int planned_{};        ///< What we would have it tell next.
  int topic_{};          ///< So many partitions the topic has had since:
  Time topic_seen_{Time::max()};
};

}  // namespace tenure::kafka
