// SPDX-License-Identifier: Apache-2.0
// The frame of a machine of roles: what Roles and NonExclusiveRoles have in common. Facts in, effects out, as in Neli:
// no thread, no librdkafka, no clock. The frame keeps the calls, the session, the plan of a commit and what is shown. A
// machine adds what its rules say of owning, claiming and losing a unit.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "membership.hpp"
#include "owner_search.hpp"
#include "record.hpp"
#include "role_facts.hpp"
#include "strangers.hpp"
#include "unit.hpp"

namespace tenure::kafka {

struct RoleConfig {
  int units{};
  Clock::Duration lease{}, margin{};  ///< lease - margin: how long a unit is led after a commit was asked for.
  Clock::Duration session{};          ///< Of the group's members. For NonExclusiveRoles alone.
  Clock::Duration observe_every{};
  std::string incarnation{};
  bool first_claim_waits{};  ///< For Roles alone.
};

/// Machines can be copied.
class RoleMachine : public Machine<RoleEffect> {
 public:
  virtual ~RoleMachine() = default;

  /// REQUIRES: `now` never falls from one fact to the next. `unix_ms` is a label, and the least token of a new unit.
  std::vector<RoleEffect> on(const RoleFact& fact, Time now, std::int64_t unix_ms);

  /// How many there are now. It never falls.
  int units() const { return config_.units; }

 protected:
  /// What each machine keeps of a unit. It adds what it knows of the others there.
  struct Unit {
    std::map<std::string, Token> held;  ///< Roles whose claims of this session were acknowledged.
    std::optional<Time> deadline;       ///< Until when they are led: by the last commit that was acknowledged.
    bool owned{};                       ///< By the last assignment.
    std::set<std::string> names;        ///< The roles of it in which we take part.
    std::uint64_t changes{};            ///< Of what is held, and of the names.

    /// Nothing there is led any more.
    void end() { held.clear(), deadline.reset(), ++changes; }
  };
  /// What one commit asks of the coordinator.
  struct Plan {
    std::map<int, Commit> commits;
    Token token;
    std::vector<std::string> claims, releases, not_renewed;
    std::set<int> claimed, renewed;  ///< Units. What is claimed is renewed, too.
    std::set<int> over, gone;        ///< Released with their last role; the same, where we do not own it.
    int units{};                     ///< The number that its records tell.
    bool tells{};                    ///< It is sent to tell that, and answers no call.
    std::optional<int> spent{};      ///< A unit where nothing is claimed, because no greater token can follow.
  };
  struct Sent {
    std::uint64_t id{};
    Time at{}, counts_from{};
    std::uint64_t call{};  ///< That it answers, or 0.
    Plan plan{};
  };
  /// Another process, as the record of a unit shows it.
  struct Stranger {
    Time since;
    Incumbent who;
  };

  RoleMachine(RoleConfig config, Exclusive exclusive);
  RoleMachine(const RoleMachine&) = default;
  RoleMachine(RoleMachine&&) = default;
  RoleMachine& operator=(const RoleMachine&) = default;
  RoleMachine& operator=(RoleMachine&&) = default;

  // Steps
  void own(const role_fact::Assigned&);
  void drop_member();
  void leave();
  void grow(int units);
  void send(Plan plan, std::uint64_t call);
  void carry_out(const Sent& sent);
  Plan plan_of(const tenure::Commit& commit) const;
  Commit record(int index, const Plan& plan, bool released) const;
  void look_for_strangers(const role_fact::Offsets& read, bool may_be_old);
  bool show(const std::string& election, std::optional<Lead> lead, bool allotted, std::uint64_t version);
  void fail(Error error);  ///< To a call that is answered by what a commit brings.

  // Questions
  bool owns(const Unit& unit) const { return member_.assigned() && unit.owned; }
  bool any_held() const;
  std::optional<Lead> own_lead(const Unit& unit, const std::string& election) const;
  const std::optional<Lead>& shown(const std::string& election) const { return shown_.at(election).lead; }
  bool awaited(const Sent& sent) const { return call_ && call_->id == sent.call; }
  template <class Call>
  bool asked() const {
    return call_ && std::holds_alternative<Call>(call_->what);
  }

  RoleConfig config_;
  std::optional<role_fact::Called> call_;
  std::optional<SessionId> session_;
  Membership<Sent> member_;
  std::uint64_t seq_{};  ///< Of our records.
  Strangers strangers_;
  /// One that was named as the owner of a unit may have led by a protocol of its own, and not know yet that it lost it.
  Time stranger_leads_until_{Time::min()};

 private:
  struct Shown {
    int unit{};
    std::optional<Lead> lead{};
    bool allotted{};
    std::uint64_t changed{};  ///< The version in which the lead did.
  };

  // What a machine decides itself
  virtual Unit& of(int index) = 0;
  virtual const Unit& of(int index) const = 0;
  // Of the present member: the frame has seen to that.
  virtual void take_part(const role_fact::Assigned&) = 0;
  virtual void give_back(const role_fact::Revoked&) = 0;
  virtual void answered(const Sent& sent, const role_fact::Committed& answer) = 0;
  virtual bool owes() const { return false; }              ///< A unit is ours to claim, and no read of it is believed.
  virtual void watch_member() {}                           ///< Drops it, when the time has come.
  virtual bool release_first(SessionId) { return false; }  ///< Whether an end must wait for a commit.
  virtual void dropped() {}                                ///< It has left.
  // Of the records, and of the topic
  virtual void serve_reads() {}
  virtual void read(const role_fact::MemberRead&) {}
  virtual void observed(const role_fact::Offsets& read) = 0;
  virtual bool may_grow() const { return false; }
  virtual void topic_has(int /*partitions*/) {}
  virtual int grown_from(int /*units*/) const { return 0; }  ///< The number before, as the record of unit 0 tells it.
  // Of a unit, and of what is written there
  virtual void forget(int index) { of(index).end(); }  ///< Its time is over, or others may know that.
  /// Shows what stands there to core, by show() for each role. Whether anything changed.
  virtual bool show_unit(int index, std::uint64_t version) = 0;
  virtual std::optional<Stranger> stranger(int index) const = 0;  ///< Who leads there, where we do not.
  virtual std::optional<Time> led_until(int index) const = 0;     ///< By whom its record names.
  virtual std::optional<Token> next_token(int index) const = 0;   ///< Of a claim there.
  virtual std::int64_t offset_of(int index, const Plan& plan) const = 0;
  virtual void farewells(Plan&) const {}  ///< Adds commits for the units that are gone.
  virtual void sending(const Plan&) {}    ///< From here on others may see its commits.
  virtual void learn(const Plan&) = 0;    ///< It was acknowledged.

  void take(const role_fact::Elapsed&) {}
  void take(const role_fact::Called&);
  void take(const role_fact::Abandoned&);
  void take(const role_fact::Joined&);
  void take(const role_fact::Quit&);
  void take(const role_fact::Broken&);
  void take(const role_fact::Troubled& troubled) { member_.take(troubled, now_); }
  void take(const role_fact::Assigned&);
  void take(const role_fact::Revoked&);
  void take(const role_fact::Committed&);
  void take(const role_fact::MemberRead& f) { read(f); }
  void take(const role_fact::Observed&);
  void take(const role_fact::OwnersFound&);
  void take(const role_fact::Left& left) { member_.take(left, now_); }
  void take(const role_fact::Closing&);

  // What is due
  void judge_units();
  void judge_idle();
  void judge_useless();
  void make_room();
  Time may_open_at() const;
  void serve_member();
  void serve_observer();
  bool may_create() const { return session_ || asked<role_call::Open>(); }
  /// Core may lead none of its elections now: its hooks hang, or all of them pause. And none of its work is under way.
  bool unable() const { return session_ && own_.most == 0 && !any_held(); }
  void serve_leaderless();
  void serve_call();
  void serve_look(const role_call::See&);
  void serve_open(const role_call::Open&);
  void serve_write(const role_call::Write&);
  void serve_end(const role_call::End&);
  void show();

  std::optional<Time> unled_since(int index);
  void own_what_is_assigned();
  void forget_tenures();
  void plan_claims(const tenure::Commit& commit, Plan& plan) const;
  Error spent(int index) const;
  Look look(const std::string& cursor) const;
  std::optional<Error> trouble() const { return member_.trouble ? member_.trouble : observer_trouble_; }
  Duration led_for() const { return config_.lease - config_.margin; }
  void reply(RoleAnswer answer);
  void fail_when_late(std::string message);

  Exclusive exclusive_;
  std::vector<int> partitions_;  ///< Of the last assignment.
  bool wanted_{};                ///< The present handle was dealt units of ours.
  bool served_{};                ///< A commit of it was accepted that says who leads.

  Time called_at_{}, last_asked_{};
  std::map<std::string, Shown> shown_;  ///< By election.
  std::uint64_t version_{1};
  bool told_spent_{};

  Session own_{};
  Time session_deadline_{};

  bool told_useless_{};
  Time back_at_{Time::min()};  ///< From then on the next member may come if nobody leads.
  Duration away_{};  ///< So long the last member stays out that could not claim what it owned. Zero: it could.
  bool gave_up_{};   ///< That was because core might lead nothing.

  std::optional<Error> observer_trouble_;
  OwnerSearch owner_search_{OwnerSearch::Form::roles};
  bool observing_{}, observed_{}, check_topic_{true};
  bool creates_{}, checks_{};  ///< Of the last look: it may create the topic, it demands the topic.
  bool new_group_{};           ///< No broker knew the group when the records were read last.
  Time observe_at_{Time::min()}, topic_at_{Time::min()};
};

}  // namespace tenure::kafka
