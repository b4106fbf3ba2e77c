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
#include <tenure/result.hpp>
#include <tenure/timing.hpp>

#include "group.hpp"
#include "handle_facts.hpp"
#include "membership.hpp"
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
struct Called { std::uint64_t id{}; Verb verb{}; Clock::Time by{}; Token token{}; Sight seen{}; };
struct Assigned { std::uint64_t handle{}; bool owner{}; int generation{}; std::string member{}; };
struct MemberRead { std::uint64_t id{}; Result<Reading> result; };
struct Observed { std::uint64_t id{}; Result<std::optional<Commit>> result; bool new_group{}; };
struct Requested { Result<std::optional<Commit>> result; };          ///< The request to step down, if there is one.
struct Lent { int generation{}; };  ///< A transaction may still come in it, for a tenure that is over.
// clang-format on
}  // namespace fact

using Fact = std::variant<fact::Elapsed, fact::Called, fact::Abandoned, fact::Broken, fact::Troubled, fact::Assigned,
                          fact::Revoked, fact::Committed, fact::MemberRead, fact::Observed, fact::Requested,
                          fact::OwnersFound, fact::Left, fact::Lent, fact::Closing>;

namespace effect {
// clang-format off
struct SendCommit { std::uint64_t id{}; int partition{}; Commit commit; };
struct ReadMember { std::uint64_t id{}; };                           ///< Reads both partitions by the member handle.
/// Reads the record by the observer. `create`: who campaigns may create a missing topic.
struct Observe { std::uint64_t id{}; bool check_topic{}, create{}; };
struct ReadRequests {};
struct Reply { std::uint64_t id{}; Answer answer; };                 ///< To acquire and renew.
struct ReplySight { std::uint64_t id{}; Sight sight; };              ///< To observe.
struct ReplyReleased { std::uint64_t id{}; std::optional<Error> error; };
struct Wake { std::uint64_t id{}; };                                 ///< Ends an await_change.
// clang-format on
}  // namespace effect

using Effect = std::variant<effect::Open, effect::Assign, effect::Unassign, effect::SendCommit, effect::ReadMember,
                            effect::Observe, effect::ReadRequests, effect::FindOwners, effect::Drop, effect::Reply,
                            effect::ReplySight, effect::ReplyReleased, effect::Wake, effect::Tell>;

class Neli : public Machine<Effect> {
 public:
  struct Config {
    Duration lease, margin;
    Duration observe_every;
    std::string name, address, incarnation;
    bool first_claim_waits{};
    bool remote_step_down{};
    Token highest{};  ///< Of any record that this process has ever read of this election.
  };

  static constexpr Duration requests_every = std::chrono::seconds(3);

  explicit Neli(Config config);

  /// REQUIRES: `now` never falls from one fact to the next. `unix_ms` is a label. Where no record of ours stands, it
  /// is also the least token.
  std::vector<Effect> on(const Fact& fact, Time now, std::int64_t unix_ms);

  /// The highest token ever read, or acknowledged to us.
  Token highest() const { return view_.highest(); }

  /// The tenure that is led by the present assignment, so that the coordinator refuses its transactions in a later one.
  std::optional<Token> leads_in_generation() const {
    return tenure_ && owner() && !member_->fenced ? std::optional(tenure_->token) : std::nullopt;
  }

 private:
  friend class NeliState;  ///< tests/kafka/neli_explore_test.cpp: what counts as the same state

  enum class Purpose { nonce, claim, renewal, release };
  struct Sent {
    std::uint64_t id{};
    Purpose purpose{};
    Token token;
    Time sent{};
    std::uint64_t call{};  ///< which call it answers
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
  void take(const fact::Troubled& troubled) { member_.take(troubled, now_); }
  void take(const fact::Assigned&);
  void take(const fact::Revoked&);
  void take(const fact::Committed&);
  void take(const fact::MemberRead&);
  void take(const fact::Observed&);
  void take(const fact::Requested&);
  void take(const fact::OwnersFound&);
  void take(const fact::Left& left) { member_.take(left, now_); }
  void take(const fact::Lent& lent) { lent_ = lent.generation; }
  void take(const fact::Closing&);

  // Answers to commits
  void claim_answered(const Sent&, const fact::Committed&);
  void renewal_answered(const Sent&, const fact::Committed&);

  // What is due
  void judge_tenure();
  void judge_idle();
  void judge_useless();
  void judge_rank();
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
  void drop_member(Duration pause = {});
  void leave();
  void end_tenure();
  void send(Purpose purpose, Token token, bool released);
  void send_nonce();
  void claim();

  // Questions to ourselves
  /// The deadline that a commit brings if it is acknowledged.
  Time deadline_of(const Sent& commit) const {
    return Timing{.term = config_.lease, .margin = config_.margin}.deadline(commit.sent);
  }
  std::optional<Time> led_until() const;
  bool owner() const { return member_.assigned() && owner_; }
  bool bystander() const { return member_.assigned() && !owner_; }
  Time claimable_at() const;
  bool may_claim() const;
  Sight sight() const;
  std::optional<Incumbent> holder() const;
  std::optional<Error> trouble() const { return member_.trouble ? member_.trouble : observer_trouble_; }
  bool observing() const;

  void reply(Answer answer);
  void reply_when_late(Fault fault, std::string message);
  void reply_released(std::optional<Error> error);

  Config config_;
  Incumbent self_;  ///< Its texts alone.
  std::optional<fact::Called> call_;
  Time called_at_{};           ///< when call_ came
  Time last_asked_{};          ///< when a verb of a candidate last came or ended
  bool campaigning_{};         ///< acquire() came, and no release() since
  std::optional<Error> told_;  ///< the trouble that a verb has already answered

  Membership<Sent> member_;
  bool owner_{};                ///< of partition 0, by the last assignment
  bool believed_{};             ///< the view is from a read that carried its nonce
  std::uint64_t rank_after_{};  ///< only a later observation may rank us
  Token ranked_{};              ///< the token in the rank of the handle
  std::optional<int> lent_;     ///< The last generation that a transaction was given.
  bool made_room_{};            ///< by rule 24, and not found another owner nor led since
  std::optional<Error> observer_trouble_;
  bool told_useless_{};  ///< Since somebody was granted the lead here.
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
  bool check_topic_{true}, checks_{};  ///< The next one is to look at the topic; the last one begun does.

  OwnerSearch owner_search_{OwnerSearch::Form::single};

  bool requesting_{};
  Time request_at_{Time::min()};
  std::string requests_trouble_;  ///< As reported last, until a read succeeds.
};

}  // namespace tenure::kafka
