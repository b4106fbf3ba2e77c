// SPDX-License-Identifier: Apache-2.0
// Many elections in one consumer group: every decision. Facts in, effects out, as in Neli: no thread, no librdkafka, no
// clock. It can be copied. The chapter "Roles" of the README of this room has its rules, by number.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record.hpp"
#include "record_view.hpp"
#include "role_facts.hpp"
#include "strangers.hpp"
#include "unit.hpp"

namespace tenure::kafka {

class Roles {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  struct Config {
    int units{};
    Duration lease, margin;
    Duration observe_every;
    std::string incarnation;
    bool first_claim_waits{};
  };

  static constexpr Duration nonce_pause = std::chrono::milliseconds(250);  ///< after a nonce or read that failed
  static constexpr Duration drain_limit = std::chrono::milliseconds(500);  ///< for a commit when a rebalance begins

  explicit Roles(Config config);

  /// REQUIRES: `now` never falls from one fact to the next. `unix_ms` is a label, and the least token of a new unit.
  std::vector<RoleEffect> on(const RoleFact& fact, Time now, std::int64_t unix_ms);

  /// When role_fact::Elapsed is due at the latest.
  Time alarm() const { return alarm_; }

 private:
  struct Unit {
    explicit Unit(RecordView seen) : view(std::move(seen)) {}

    RecordView view;
    std::optional<Commit> farewell;     ///< As read last.
    Token tried;                        ///< The highest of any claim of ours.
    std::map<std::string, Token> held;  ///< Roles whose claims of this session were acknowledged.
    std::optional<Time> deadline;       ///< While it has not come, nobody else can have claimed the unit.
    bool owned{};                       ///< By the last assignment.
    bool believed{};                    ///< The view is from a read that carried this assignment's nonce.
    std::set<std::string> names;        ///< The roles of it in which we take part.
  };
  struct Shown {
    int unit{};
    std::optional<Lead> lead{};
    bool allotted{};
    std::uint64_t changed{};
  };
  /// What one commit asks of the coordinator.
  struct Plan {
    std::map<int, Commit> commits;
    Token token;
    std::vector<std::string> claims, releases, not_renewed;
    std::set<int> active, over, gone;  ///< Units renewed or claimed; released; left to their new owner.
    std::set<int> claimed;
  };
  struct Outstanding {
    std::uint64_t id{};
    enum class Purpose { nonce, commit, last } purpose{};
    Time sent{}, counts_from{};
    std::uint64_t call{};
    Plan plan{};
  };
  enum class Phase { joining, draining, assigned };
  struct Member {
    explicit Member(std::uint64_t number) : handle(number) {}

    std::uint64_t handle;
    Phase phase{Phase::joining};
    bool lost{}, fenced{};
    Time fenced_at{}, drain_by{};
    std::optional<Outstanding> outstanding;
    Time assigned_at{};
    int generation{};
    std::string nonce;
    bool nonce_stands{};
    Time try_again{Time::min()};
    std::optional<std::uint64_t> reading;
    Time read_again{Time::min()};
  };

  void take(const role_fact::Elapsed&) {}
  void take(const role_fact::Called&);
  void take(const role_fact::Abandoned&);
  void take(const role_fact::Joined&);
  void take(const role_fact::Quit&);
  void take(const role_fact::Broken&);
  void take(const role_fact::Troubled&);
  void take(const role_fact::Assigned&);
  void take(const role_fact::Revoked&);
  void take(const role_fact::Committed&);
  void take(const role_fact::MemberRead&);
  void take(const role_fact::Observed&);
  void take(const role_fact::Left&);
  void take(const role_fact::Closing&);

  // Answers to commits
  void nonce_answered(const role_fact::Committed&);
  void commit_answered(Outstanding&, const role_fact::Committed&);
  void carry_out(Outstanding&, bool awaited);
  void learn(int unit, const Commit& commit);
  void look_for_strangers(const role_fact::Offsets& read);

  // What is due
  void judge_units();
  void judge_idle();
  void serve_member();
  void serve_reads();
  void serve_observer();
  void serve_call();
  void serve_open(const role_call::Open&);
  void serve_write(const role_call::Write&);
  void serve_end(const role_call::End&);
  void show();
  bool show(int index, std::uint64_t version);

  // Steps
  void open_member();
  void drop_member();
  void leave();
  void forget_tenures();
  static void forget(Unit& unit);
  void send_nonce();
  void send(Outstanding::Purpose purpose, Plan plan);
  Plan plan_of(const tenure::Commit& commit) const;
  void plan_claims(const tenure::Commit& commit, Plan& plan) const;
  void plan_farewells(Plan& plan) const;
  Commit record(Token offset, bool released) const;

  // Questions to ourselves
  Unit& of(int index) { return units_[static_cast<std::size_t>(index)]; }
  const Unit& of(int index) const { return units_[static_cast<std::size_t>(index)]; }
  Duration led_for() const { return config_.lease - config_.margin; }
  bool assigned() const { return member_ && member_->phase == Phase::assigned; }
  bool live(const Unit& unit) const { return unit.deadline && now_ < *unit.deadline; }
  bool any_live() const;
  bool given_up(const Unit& unit) const;
  Time claimable_at(const Unit& unit) const;
  bool claimable(const Unit& unit) const;
  bool settled(const Unit& unit);
  std::optional<int> lowest() const;
  std::optional<Lead> lead_of(int index) const;
  Look look(const std::string& cursor) const;
  std::optional<Error> trouble() const { return member_trouble_ ? member_trouble_ : observer_trouble_; }
  bool due(Time at);  ///< True if that time has come. If not, the alarm is set for it.

  void reply(RoleAnswer answer);
  void reply_when_late(std::string message);
  RoleAnswer failed(Error error) const;
  void emit(RoleEffect effect) { effects_.push_back(std::move(effect)); }

  Config config_;
  Time now_{};
  std::int64_t unix_ms_{};
  std::vector<RoleEffect> effects_;
  Time alarm_{Time::max()};
  std::uint64_t last_id_{0};

  std::optional<role_fact::Called> call_;
  Time called_at_{}, last_asked_{};

  std::vector<Unit> units_;
  std::map<std::string, Shown> shown_;  ///< By election.
  std::uint64_t version_{1};

  std::optional<SessionId> session_;
  Session own_{};
  Time session_deadline_{};

  std::optional<Member> member_;
  Time open_after_{Time::min()};
  std::optional<Error> member_trouble_, observer_trouble_;
  std::optional<std::uint64_t> leaving_;
  Time leave_by_{};

  std::uint64_t seq_{}, nonces_{};
  bool observing_{}, observed_{}, check_topic_{true};
  Time observe_at_{Time::min()};
  Strangers strangers_;
};

}  // namespace tenure::kafka
