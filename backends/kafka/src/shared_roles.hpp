// SPDX-License-Identifier: Apache-2.0
// Many elections in one consumer group that must not be without a leader, and may have two for a while (Exclusive::no):
// every decision. Facts in, effects out, as in Roles. It can be copied. The chapter "Roles that several may lead" of
// the README of this room has its rules, by number.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record.hpp"
#include "role_facts.hpp"
#include "strangers.hpp"
#include "unit.hpp"

namespace tenure::kafka {

class SharedRoles {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  struct Config {
    int units{};
    Duration lease, margin;  ///< lease - margin: how long a unit is presumed to be ours.
    Duration session;        ///< of the group's members
    Duration observe_every;
    std::string incarnation;
  };

  explicit SharedRoles(Config config);

  /// REQUIRES: `now` never falls from one fact to the next. `unix_ms` is a label.
  std::vector<RoleEffect> on(const RoleFact& fact, Time now, std::int64_t unix_ms);

  /// When role_fact::Elapsed is due at the latest.
  Time alarm() const { return alarm_; }

 private:
  /// Somebody else's record, as seen last.
  struct Seen {
    Commit commit;
    Record record;
    Time since{};
  };
  struct Unit {
    std::map<std::string, Token> held;  ///< Roles that we lead.
    std::optional<Time> deadline;       ///< Until when. Counts from the last acknowledged commit for this unit.
    bool owned{};                       ///< By the last assignment.
    std::optional<Record> heir;         ///< We lost it, and this was the first record of another one since.
    bool taken{};                       ///< We lost it, and the new owner knows that it leads.
    std::optional<Seen> other;
    std::int64_t offset{1};       ///< The highest that was seen. It never falls.
    std::set<std::string> names;  ///< The roles of it in which we take part.
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
    std::set<int> renewed;  ///< Units.
  };
  struct Outstanding {
    std::uint64_t id{};
    Time sent{}, counts_from{};
    std::uint64_t call{};
    Plan plan{};
  };
  struct Member {
    explicit Member(std::uint64_t number) : handle(number) {}

    std::uint64_t handle;
    bool assigned{};
    Time heard_at{};  ///< When the last commit that was acknowledged was sent, or the assignment came.
    std::optional<Time> fenced_at;
    Time try_again{Time::min()};
    std::optional<Outstanding> outstanding;
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
  void take(const role_fact::MemberRead&) {}  // None is asked for.
  void take(const role_fact::Observed&);
  void take(const role_fact::Left&);
  void take(const role_fact::Closing&);

  // What is due
  void judge_units();
  void judge_idle();
  void serve_member();
  void serve_observer();
  void serve_call();
  void serve_open(const role_call::Open&);
  void serve_write(const role_call::Write&);
  void serve_end(const role_call::End&);
  void show();
  bool show(int index, std::uint64_t version);

  // Steps
  void see(int index, const std::optional<Commit>& commit);
  void carry_out(const Outstanding& asked, bool awaited);
  void drop_member();
  void leave();
  void forget_tenures();
  void send(Plan plan);
  Plan plan_of(const tenure::Commit& commit) const;
  void plan_claims(const tenure::Commit& commit, Plan& plan) const;
  Commit record(const Unit& unit, bool released) const;

  // Questions to ourselves
  Unit& of(int index) { return units_[static_cast<std::size_t>(index)]; }
  const Unit& of(int index) const { return units_[static_cast<std::size_t>(index)]; }
  Duration led_for() const { return config_.lease - config_.margin; }
  bool assigned() const { return member_ && member_->assigned; }
  bool owns(const Unit& unit) const { return assigned() && unit.owned; }
  bool any_held() const;
  std::optional<Time> silent_since() const;
  const Seen* rival(const Unit& unit) const;
  std::optional<Lead> others(int index, const Shown& shown, bool claimable) const;
  Look look(const std::string& cursor) const;
  std::optional<Error> trouble() const { return member_trouble_ ? member_trouble_ : observer_trouble_; }
  bool due(Time at);  ///< True if that time has come. If not, the alarm is set for it.

  void reply(RoleAnswer answer);
  void reply_when_late(std::string message);
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
  Token last_token_{};  ///< Versions of leads, for core. They fence nothing.

  std::optional<SessionId> session_;
  Session own_{};
  Time session_deadline_{};

  std::optional<Member> member_;
  Time open_after_{Time::min()};
  std::optional<Error> member_trouble_, observer_trouble_;
  std::optional<std::uint64_t> leaving_;
  Time leave_by_{};

  std::uint64_t seq_{};
  bool observing_{}, observed_{}, check_topic_{true};
  Time observe_at_{Time::min()};
  Strangers strangers_;
};

}  // namespace tenure::kafka
