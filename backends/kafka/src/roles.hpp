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
#include <variant>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/log.hpp>
#include <tenure/result.hpp>

#include "group.hpp"
#include "record.hpp"
#include "record_view.hpp"
#include "unit.hpp"

namespace tenure::kafka {

namespace role_call {
// clang-format off
struct See { std::string cursor; };
struct Open { SessionId id; Session session; };
struct Write { tenure::Commit commit; };
struct End { SessionId id; };
struct Await { std::string cursor; };
// clang-format on
}  // namespace role_call
using RoleCall = std::variant<role_call::See, role_call::Open, role_call::Write, role_call::End, role_call::Await>;

/// The last one ends an await.
using RoleAnswer = std::variant<Result<Look>, Result<Committed>, Result<bool>, std::monostate>;

namespace role_fact {
// clang-format off
using Offsets = std::vector<std::optional<Commit>>;                  ///< By partition.
struct Elapsed {};
struct Called { std::uint64_t id{}; RoleCall what; Clock::Time by{}; };
struct Abandoned { std::uint64_t id{}; };                            ///< The caller has left without an answer.
struct Joined { std::string election; };
struct Quit { std::string election; };                               ///< This process takes part in it no more.
struct Broken { std::uint64_t handle{}; Error error; };
struct Troubled { std::uint64_t handle{}; Error error; };
struct Assigned { std::uint64_t handle{}; std::vector<int> partitions; int generation{}; };
struct Revoked { std::uint64_t handle{}; bool lost{}; };
struct Committed { std::uint64_t id{}; Outcome outcome{}; Error error; };
struct MemberRead { std::uint64_t id{}; Result<Offsets> result; };
struct Observed { Result<Offsets> result; };
struct Left { std::uint64_t handle{}; };                             ///< A dropped handle is out of the group.
struct Closing {};
// clang-format on
}  // namespace role_fact

using RoleFact =
    std::variant<role_fact::Elapsed, role_fact::Called, role_fact::Abandoned, role_fact::Joined, role_fact::Quit,
                 role_fact::Broken, role_fact::Troubled, role_fact::Assigned, role_fact::Revoked, role_fact::Committed,
                 role_fact::MemberRead, role_fact::Observed, role_fact::Left, role_fact::Closing>;

namespace role_effect {
// clang-format off
struct Open { std::uint64_t handle{}; std::string client_id; };      ///< Opens a member handle and subscribes.
struct Assign { std::uint64_t handle{}; };
struct Unassign { std::uint64_t handle{}; };
struct SendCommit { std::uint64_t id{}; std::map<int, Commit> commits; };  ///< In one request. By partition.
struct ReadMember { std::uint64_t id{}; };                           ///< Reads all partitions by the member handle.
struct Observe { bool check_topic{}; };                              ///< Reads them by the observer.
struct Drop { std::uint64_t handle{}; };                             ///< Unsubscribes, unassigns, closes; then Left.
struct Reply { std::uint64_t id{}; RoleAnswer answer; };
struct Tell { Level level{}; std::string message; };
// clang-format on
}  // namespace role_effect

using RoleEffect = std::variant<role_effect::Open, role_effect::Assign, role_effect::Unassign, role_effect::SendCommit,
                                role_effect::ReadMember, role_effect::Observe, role_effect::Drop, role_effect::Reply,
                                role_effect::Tell>;

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

  static constexpr Duration retry_pause = std::chrono::milliseconds(100);   ///< after a renewal that failed
  static constexpr Duration nonce_pause = std::chrono::milliseconds(250);   ///< after a nonce or read that failed
  static constexpr Duration drain_limit = std::chrono::milliseconds(500);   ///< for a commit when a rebalance begins
  static constexpr Duration leave_limit = std::chrono::milliseconds(300);   ///< for the LeaveGroup of a stop
  static constexpr Duration reopen_pause = std::chrono::seconds(1);         ///< between member handles
  static constexpr Duration reply_reserve = std::chrono::milliseconds(20);  ///< before a call's limit

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
  SessionId stranger(int index, const std::string& incarnation) const;
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
  std::map<int, std::pair<Commit, Time>> strange_;  ///< Live records of processes with another number of units.
  Time strangers_until_{Time::min()};
};

}  // namespace tenure::kafka
