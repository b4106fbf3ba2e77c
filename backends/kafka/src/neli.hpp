// SPDX-License-Identifier: Apache-2.0
// Fenced NELI: every decision of a Kafka candidate. Facts in, actions out: no thread, no librdkafka, no
// clock. Copyable, so that it can be explored and simulated. The README of this room has its rules, by number.
//
// What keeps one that lost partition 0 from writing over its successor: commits go out between an assignment and our
// own unassign only, one at a time, and the unassign waits for the answer; else the handle is dropped. The generation
// is no help. The coordinator checks that a commit carries the present one, never who owns the partition, and
// librdkafka stamps a commit that had to wait when it sends it.
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
struct Elapsed {};
struct Called {
  std::uint64_t id{};
  Verb verb{};
  Clock::Time by{};
  Token token{};
  Sight seen{};
};
struct Abandoned {
  std::uint64_t id{};
};  ///< Its caller has gone and got no answer.
struct Broken {
  std::uint64_t handle{};
  Error error;
};  ///< Could not be opened, or is of no more use.
struct Troubled {
  std::uint64_t handle{};
  Error error;
};  ///< The client said so of itself; it goes on trying.
struct Assigned {
  std::uint64_t handle{};
  bool owner{};
  int generation{};
};
struct Revoked {
  std::uint64_t handle{};
  bool lost{};
};
struct Committed {
  std::uint64_t id{};
  Outcome outcome{};
  Error error;
};
struct MemberRead {
  std::uint64_t id{};
  Result<Reading> result;
};
struct Observed {
  std::uint64_t id{};
  Result<std::optional<Commit>> result;
};
struct Requested {
  Result<std::optional<Commit>> result;
};
struct OwnerFound {
  Result<std::optional<PartitionOwner>> result;
};
struct Left {
  std::uint64_t handle{};
};                  ///< A dropped handle is out of the group.
struct Closing {};  ///< The backend is being destroyed.
}  // namespace fact

using Fact = std::variant<fact::Elapsed, fact::Called, fact::Abandoned, fact::Broken, fact::Troubled, fact::Assigned,
                          fact::Revoked, fact::Committed, fact::MemberRead, fact::Observed, fact::Requested,
                          fact::OwnerFound, fact::Left, fact::Closing>;

namespace action {
struct Open {
  std::uint64_t handle{};
  std::string client_id;
};  ///< A member handle; subscribes.
struct Assign {
  std::uint64_t handle{};
};
struct Unassign {
  std::uint64_t handle{};
};  ///< Lets the rebalance go on.
struct SendCommit {
  std::uint64_t id{};
  int partition{};
  Commit commit;
};
struct ReadMember {
  std::uint64_t id{};
};
struct Observe {
  std::uint64_t id{};
  bool check_topic{};
};
struct ReadRequests {};
struct FindOwner {};
struct Drop {
  std::uint64_t handle{};
};  ///< unsubscribe, unassign, close in the background; then Left.
struct Reply {
  std::uint64_t id{};
  Answer answer;
};
struct ReplySight {
  std::uint64_t id{};
  Sight sight;
};
struct ReplyReleased {
  std::uint64_t id{};
  std::optional<Error> error;
};
struct Wake {
  std::uint64_t id{};
};  ///< Ends an await_change.
struct Report {
  Level level{};
  std::string message;
};
}  // namespace action

using Action = std::variant<action::Open, action::Assign, action::Unassign, action::SendCommit, action::ReadMember,
                            action::Observe, action::ReadRequests, action::FindOwner, action::Drop, action::Reply,
                            action::ReplySight, action::ReplyReleased, action::Wake, action::Report>;

class Neli {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  struct Settings {
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
  static constexpr Duration requests_every = std::chrono::seconds(3);
  static constexpr Duration reply_reserve = std::chrono::milliseconds(20);  ///< before a call's limit

  explicit Neli(Settings settings);

  /// `now` never falls from one fact to the next; `unix_ms` is a label, and where no record of ours stands, a floor for
  /// tokens.
  std::vector<Action> on(const Fact& fact, Time now, std::int64_t unix_ms);

  /// When fact::Elapsed is due at the latest.
  Time alarm() const { return alarm_; }

  /// The highest token ever read, or acknowledged to us.
  Token highest() const { return view_.highest(); }

 private:
  friend class NeliState;  ///< tests/kafka/neli_explore_test.cpp: what counts as the same state

  enum class Purpose { nonce, claim, renewal, release };
  enum class Place {
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
    std::uint64_t call{};  ///< which verb it answers
  };
  /// One member handle.
  struct Member {
    explicit Member(std::uint64_t number) : handle(number) {}

    std::uint64_t handle;
    Place place{Place::joining};
    bool lost{};      ///< the last assignment ended without our doing
    bool deposed{};   ///< this generation takes no commit of ours
    bool doubtful{};  ///< a record of this generation may yet be written, after later ones
    Time deposed_at{}, drain_by{};
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
    std::optional<StepDown> recalled;
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
  void take(const fact::OwnerFound&);
  void take(const fact::Left&);
  void take(const fact::Closing&);

  // Answers to commits
  void nonce_answered(const fact::Committed&);
  void claim_answered(const Outstanding&, const fact::Committed&);
  void renewal_answered(const Outstanding&, const fact::Committed&);

  // What is due
  void judge_tenure();
  void judge_idle();
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
  /// The one that a commit leads to, if it is acknowledged.
  Time deadline_of(const Outstanding& commit) const {
    return Timing{.term = settings_.lease, .margin = settings_.margin}.deadline(commit.sent);
  }
  std::optional<Time> led_until() const;
  bool owner() const { return member_ && member_->place == Place::owner; }
  Time claimable_at() const { return view_.claimable_at(member_->assigned_at, member_->generation); }
  bool may_claim() const;
  Sight sight() const;
  std::optional<Incumbent> holder() const;
  std::optional<Error> trouble() const { return member_trouble_ ? member_trouble_ : observer_trouble_; }
  bool observing() const;
  bool due(Time at);  ///< Now or before? If not, wakes us then.

  void reply(Answer answer);
  void reply_when_late(Fault fault, std::string message);
  void reply_released(std::optional<Error> error);
  void emit(Action action) { actions_.push_back(std::move(action)); }

  Settings settings_;
  Time now_{};
  std::int64_t unix_ms_{};
  std::vector<Action> actions_;
  Time alarm_{Time::max()};
  std::uint64_t last_id_{0};

  std::optional<fact::Called> call_;
  Time called_at_{};           ///< when call_ came
  Time last_asked_{};          ///< when a verb of a candidate last came or ended
  bool campaigning_{};         ///< acquire() came, and no release() since
  std::optional<Error> told_;  ///< the trouble that a verb has already answered

  std::optional<Member> member_;
  Time open_after_{Time::min()};
  std::uint64_t rank_after_{};  ///< only a later observation may rank us
  std::optional<Error> member_trouble_, observer_trouble_;

  std::optional<std::uint64_t> leaving_;
  Time leave_by_{};
  std::optional<Error> leave_error_;

  std::optional<Tenure> tenure_;
  std::optional<Token> unreleased_;  ///< what we wrote and nobody can have written over
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

  std::optional<Time> leaderless_since_;
  bool finding_owner_{}, stranger_told_{};

  bool requesting_{};
  Time request_at_{Time::min()};
  std::string requests_trouble_;  ///< As reported last, until a read succeeds.
};

}  // namespace tenure::kafka
