// SPDX-License-Identifier: Apache-2.0
// Fenced NELI: every decision of a Kafka candidate. Facts in, effects out: no thread, no librdkafka, no clock. It can
// be copied, so that tests explore it. The README of this room has its rules, by number.
//
// A candidate that lost partition 0 must not write over its successor. So it sends commits only between an assignment
// and its own unassign, one at a time. The unassign waits for the answer; if none comes, the handle is dropped. The
// generation is no help: the coordinator checks that a commit carries the present one, and never who owns the
// partition. librdkafka stamps a commit in the moment of sending, even if the commit had to wait.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/log.hpp>
#include <tenure/result.hpp>
#include <tenure/timing.hpp>

#include "group.hpp"
#include "owner_search.hpp"
#include "record.hpp"
#include "record_view.hpp"

namespace tenure::kafka {

enum class Verb { acquire, renew, release, observe, await_change };

/// What a read of both partitions on the member handle showed.
struct Reading {
  std::optional<Commit> record;
  std::string nonce;
};

namespace fact {
// clang-format off
struct Elapsed {};                                                   ///< Time has passed, and nothing else is new.
struct Called { std::uint64_t id{}; Verb verb{}; Clock::Time by{}; Token token{}; Sight seen{}; };
struct Abandoned { std::uint64_t id{}; };                            ///< The caller has left without an answer.
/// It could not be opened, or is of no more use. any_handle: memory ran out, and effects may have been lost.
struct Broken { std::uint64_t handle{}; Error error; };
struct Troubled { std::uint64_t handle{}; Error error; };            ///< The client reports trouble and goes on trying.
struct Assigned { std::uint64_t handle{}; bool owner{}; int generation{}; };
struct Revoked { std::uint64_t handle{}; bool lost{}; };             ///< `lost`: by an eviction, not by a rebalance.
/// `again`: another copy of it may be handled, now or later.
struct Committed { std::uint64_t id{}; Outcome outcome{}; Error error; bool again{}; };
struct MemberRead { std::uint64_t id{}; Result<Reading> result; };
struct Observed { std::uint64_t id{}; Result<std::optional<Commit>> result; };
struct Requested { Result<std::optional<Commit>> result; };          ///< The request to step down, if there is one.
struct OwnersFound { Result<Owners> result; };
struct Left { std::uint64_t handle{}; };                             ///< A dropped handle is out of the group.
struct Closing {};                                                   ///< The backend is being destroyed.
// clang-format on
}  // namespace fact

using Fact = std::variant<fact::Elapsed, fact::Called, fact::Abandoned, fact::Broken, fact::Troubled, fact::Assigned,
                          fact::Revoked, fact::Committed, fact::MemberRead, fact::Observed, fact::Requested,
                          fact::OwnersFound, fact::Left, fact::Closing>;

namespace effect {
// clang-format off
struct Open { std::uint64_t handle{}; std::string client_id; };      ///< Opens a member handle and subscribes.
struct Assign { std::uint64_t handle{}; };                           ///< Answers an assignment: nothing is consumed.
struct Unassign { std::uint64_t handle{}; };                         ///< Lets the rebalance go on.
struct SendCommit { std::uint64_t id{}; int partition{}; Commit commit; };
struct ReadMember { std::uint64_t id{}; };                           ///< Reads both partitions by the member handle.
/// Reads the record by the observer. `create`: who campaigns may create a missing topic.
struct Observe { std::uint64_t id{}; bool check_topic{}, create{}; };
struct ReadRequests {};
struct FindOwners {};                                                ///< Asks who owns the partitions.
struct Drop { std::uint64_t handle{}; };                             ///< Unsubscribes, unassigns, closes; then Left.
struct Reply { std::uint64_t id{}; Answer answer; };                 ///< To acquire and renew.
struct ReplySight { std::uint64_t id{}; Sight sight; };              ///< To observe.
struct ReplyReleased { std::uint64_t id{}; std::optional<Error> error; };
struct Wake { std::uint64_t id{}; };                                 ///< Ends an await_change.
struct Tell { Level level{}; std::string message; };                 ///< Tells the user's log.
// clang-format on
}  // namespace effect

using Effect = std::variant<effect::Open, effect::Assign, effect::Unassign, effect::SendCommit, effect::ReadMember,
                            effect::Observe, effect::ReadRequests, effect::FindOwners, effect::Drop, effect::Reply,
                            effect::ReplySight, effect::ReplyReleased, effect::Wake, effect::Tell>;

class Neli {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  struct Config {
    Duration lease, margin;
    Duration observe_every;
    std::string name, address, incarnation;
    bool first_claim_waits{};
    bool remote_step_down{};
    Token highest{};  ///< Of any record that this process has ever read of this election.
  };

  static constexpr Duration claim_pause = std::chrono::milliseconds(250);  ///< after a claim or nonce that failed
  static constexpr Duration renew_pause = std::chrono::milliseconds(100);  ///< after a renewal that failed
  static constexpr Duration drain_limit = std::chrono::milliseconds(500);  ///< for a commit when a rebalance begins
  static constexpr Duration leave_limit = std::chrono::milliseconds(300);  ///< for the LeaveGroup of a release
  static constexpr Duration reopen_pause = std::chrono::seconds(1);        ///< between member handles
  static constexpr Duration sign_in_limit = std::chrono::seconds(5);       ///< for one that is refused to join
  static constexpr Duration requests_every = std::chrono::seconds(3);
  static constexpr Duration reply_reserve = std::chrono::milliseconds(20);  ///< before a call's limit

  explicit Neli(Config config);

  /// REQUIRES: `now` never falls from one fact to the next. `unix_ms` is a label. Where no record of ours stands, it
  /// is also the least token.
  std::vector<Effect> on(const Fact& fact, Time now, std::int64_t unix_ms);

  /// When fact::Elapsed is due at the latest.
  Time alarm() const { return alarm_; }

  /// The highest token ever read, or acknowledged to us.
  Token highest() const { return view_.highest(); }

 private:
  friend class NeliState;  ///< tests/kafka/neli_explore_test.cpp: what counts as the same state

  enum class Purpose { nonce, claim, renewal, release };
  enum class Phase {
    joining,    ///< no assignment: before the first one, or within a rebalance
    draining,   ///< a rebalance began and waits for our outstanding commit
    owner,      ///< of partition 0
    bystander,  ///< assigned, without partition 0
  };
  struct Outstanding {
    std::uint64_t id{};
    Purpose purpose{};
    Token token;
    Time sent{};
    std::uint64_t call{};  ///< which call it answers
  };
  /// One member handle.
  struct Member {
    explicit Member(std::uint64_t number, std::string its_rank = {}) : handle(number), rank(std::move(its_rank)) {}

    std::uint64_t handle;
    std::string rank;  ///< its name
    Phase phase{Phase::joining};
    bool keeps_rank{};  ///< of the handle before, for the tenure's sake
    bool lost{};        ///< the last assignment ended by an eviction, without our unassign
    bool fenced{};      ///< the coordinator takes no commit of ours in this generation
    bool doubtful{};    ///< a commit of this generation may yet be written, over later ones
    Time fenced_at{}, drain_by{}, troubled_at{};
    std::optional<Time> failing_since{};  ///< every answer to a commit since then was an error
    std::optional<Time> unread_since{};   ///< it owns partition 0 since then, leads nothing, and no read was believed
    std::optional<Outstanding> outstanding;
    // Of the present assignment:
    Time assigned_at{};
    int generation{};
    std::string nonce;
    bool nonce_stands{};          ///< acknowledged
    Time try_again{Time::min()};  ///< no commit before
    std::optional<std::uint64_t> reading;
    Time read_again{Time::min()};
    bool believed{};  ///< the view is from a read that carried the nonce
  };
  struct Tenure {
    Token token;
    Time deadline{};
    std::uint64_t granted_by{};
    std::optional<StepDown> step_down;
  };

  // Facts
  void take(const fact::Elapsed&) {}
  void take(const fact::Called&);
  void take(const fact::Abandoned&);
  void take(const fact::Broken&);
  void take(const fact::Troubled&);
  void take(const fact::Assigned&);
  void take(const fact::Revoked&);
  void take(const fact::Committed&);
  void take(const fact::MemberRead&);
  void take(const fact::Observed&);
  void take(const fact::Requested&);
  void take(const fact::OwnersFound&);
  void take(const fact::Left&);
  void take(const fact::Closing&);

  // Answers to commits
  void change_handle();
  void nonce_answered(const fact::Committed&);
  void claim_answered(const Outstanding&, const fact::Committed&);
  void renewal_answered(const Outstanding&, const fact::Committed&);

  // What is due
  void judge_tenure();
  void judge_idle();
  void judge_useless();
  void serve_member();
  void serve_owner();
  void serve_ranking();
  void serve_observer();
  void serve_requests();
  void serve_leaderless();
  void serve_call();
  void serve_acquire();
  void serve_acquire_as_owner();
  void serve_renew();
  void serve_release();
  void serve_observe();
  void serve_await();

  // Steps
  void open_member();
  void drop_member();
  void rerank() { drop_member(); }
  void leave();
  void end_tenure();
  void send(Purpose purpose, Token token, bool released);
  void send_nonce();
  void claim();
  void report(const std::optional<Commit>& read, const RecordView::Finding& found);

  // Questions to ourselves
  /// The deadline that a commit brings if it is acknowledged.
  Time deadline_of(const Outstanding& commit) const {
    return Timing{.term = config_.lease, .margin = config_.margin}.deadline(commit.sent);
  }
  std::optional<Time> led_until() const;
  bool owner() const { return member_ && member_->phase == Phase::owner; }
  Time claimable_at() const;
  bool may_claim() const;
  Sight sight() const;
  std::optional<Incumbent> holder() const;
  std::optional<Error> trouble() const { return member_trouble_ ? member_trouble_ : observer_trouble_; }
  bool observing() const;
  bool due(Time at);  ///< True if that time has come. If not, the alarm is set for it.

  void reply(Answer answer);
  void reply_when_late(Fault fault, std::string message);
  void reply_released(std::optional<Error> error);
  void emit(Effect effect) { effects_.push_back(std::move(effect)); }

  Config config_;
  Time now_{};
  std::int64_t unix_ms_{};
  std::vector<Effect> effects_;
  Time alarm_{Time::max()};
  std::uint64_t last_id_{0};

  std::optional<fact::Called> call_;
  Time called_at_{};           ///< when call_ came
  Time last_asked_{};          ///< when a verb of a candidate last came or ended
  bool campaigning_{};         ///< acquire() came, and no release() since
  std::optional<Error> told_;  ///< the trouble that a verb has already answered

  std::optional<Member> member_;
  Time open_after_{Time::min()};
  std::string kept_rank_;       ///< of a handle that was changed, for the next one
  std::uint64_t rank_after_{};  ///< only a later observation may rank us
  std::optional<Error> member_trouble_, observer_trouble_;
  bool told_useless_{};  ///< Since somebody was granted the lead here.

  std::optional<std::uint64_t> leaving_;
  Time leave_by_{};
  std::optional<Error> leave_error_;

  std::optional<Tenure> tenure_;
  std::optional<Token> unreleased_;  ///< the token that we wrote and nobody can have written over
  std::uint64_t seq_{};
  std::uint64_t nonces_{};

  RecordView view_;
  Token tried_;  ///< The highest token of any claim of ours.

  bool observing_{};             ///< an observation is under way
  std::uint64_t observation_{};  ///< the last one begun
  std::uint64_t observed_{};     ///< the last one answered
  std::uint64_t observation_before_call_{};
  Time observe_at_{Time::min()}, observe_until_{Time::min()};
  bool check_topic_{true};

  OwnerSearch owner_search_{OwnerSearch::Form::single};

  bool requesting_{};
  Time request_at_{Time::min()};
  std::string requests_trouble_;  ///< As reported last, until a read succeeds.
};

}  // namespace tenure::kafka
