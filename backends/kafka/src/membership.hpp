// SPDX-License-Identifier: Apache-2.0
// What both protocols of this room decide alike of their place in the group: rules 3, 12, 13, 15, 16, 22 and 23 of the
// README of this room, as far as a handle is concerned. A value.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/clock.hpp>
#include <tenure/result.hpp>

#include "handle_facts.hpp"

namespace tenure::kafka {

/// What the log is told of a read without our nonce.
inline constexpr std::string_view not_believed =
    "ignored a stale answer of the group's coordinator, because it did not carry our nonce; asking again";

/// A process is in the group by one handle after another. `Sent` is what a machine keeps of a commit that was not
/// answered yet; it has an `id`.
template <class Sent>
class Membership {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  static constexpr Duration reopen_pause = std::chrono::seconds(1);        ///< between handles
  static constexpr Duration sign_in_limit = std::chrono::seconds(5);       ///< for one that is refused to join
  static constexpr Duration drain_limit = std::chrono::milliseconds(500);  ///< for a commit when a rebalance begins
  static constexpr Duration leave_limit = std::chrono::milliseconds(300);  ///< for the LeaveGroup
  static constexpr Duration prove_pause = std::chrono::milliseconds(250);  ///< after a claim, nonce or read that failed

  /// The last answer to a commit, if it was an error.
  struct Failure {
    Time at{};
    Error error;
  };
  /// What a handle has by its last assignment.
  struct Place {
    bool assigned{};  ///< And no rebalance has begun since.
    Time assigned_at{};
    int generation{};
    bool lost{};                      ///< It ended by an eviction.
    bool fenced{};                    ///< The coordinator accepts nothing more in it.
    bool doubtful{};                  ///< A commit of it may yet be written, over later ones.
    std::optional<Failure> failed{};  ///< Of a commit.
    std::optional<Time> drain_by{};   ///< A rebalance has begun. The unassign waits so long for an answer.
    std::string nonce{};              ///< As sent last.
    bool nonce_stands{};              ///< It was acknowledged.
    bool late_claim{};                ///< The last claim was acknowledged when nobody waited for it any more.
    bool vouched{};                   ///< A founder that is in this generation, too, says that the group is new.
    Time try_again{Time::min()};      ///< No commit before.
    std::optional<std::uint64_t> reading{};
    Time read_again{Time::min()};  ///< No read before.
  };
  struct Handle : Place {
    std::uint64_t number{};
    std::string rank{};                ///< Its client id.
    std::string member{};              ///< Its id in the group, by its last assignment.
    bool keeps_rank{};                 ///< Of the handle before, for the sake of what is led. Until it is assigned.
    std::optional<Time> joined_at{};   ///< Of its first assignment.
    bool founder{};                    ///< The group was not there before it, and it has been a member ever since.
    Time troubled_at{};                ///< REQUIRES: there is trouble with it.
    std::optional<Time> owes_since{};  ///< A commit is unanswered, or it has not got what its owner needs.
    Duration owed{};                   ///< In the places before, if it has owed ever since.
    std::optional<Sent> outstanding{};
  };

  explicit operator bool() const { return handle_.has_value(); }
  Handle& operator*() { return *handle_; }
  const Handle& operator*() const { return *handle_; }
  Handle* operator->() { return &*handle_; }
  const Handle* operator->() const { return &*handle_; }
  bool is(std::uint64_t number) const { return handle_ && handle_->number == number; }
  bool assigned() const { return handle_ && handle_->assigned; }
  bool may_send(Time now) const {
    return assigned() && !handle_->fenced && !handle_->outstanding && now >= handle_->try_again;
  }

  // ---- what is heard ----

  /// Whether the handle is to be dropped.
  bool take(const fact::Broken& broken) {
    if (!handle_ || (broken.handle != any_handle && !is(broken.handle))) return false;
    trouble = broken.error;
    return true;
  }
  void take(const fact::Troubled& troubled, Time now) {
    if (!is(troubled.handle)) return;
    if (!trouble) handle_->troubled_at = now;
    trouble = troubled.error;
  }
  /// Whether it was out of the group before it was assigned this. No revoke tells of an eviction while it joins: the
  /// client just joins anew, by another id.
  bool evicted(const std::string& member) const { return !handle_->member.empty() && handle_->member != member; }
  void take_place(int generation, Time now, const std::string& member = {}) {
    static_cast<Place&>(*handle_) = {.assigned = true, .assigned_at = now, .generation = generation};
    handle_->member = member;
    if (!handle_->joined_at) handle_->joined_at = now, handle_->founder = handle_->founder || generation == 1;
    handle_->keeps_rank = false;
    handle_->owes_since.reset();
    trouble.reset();
  }
  void lose_place(bool lost, Time now) {
    if (handle_->assigned && handle_->owes_since) handle_->owed += now - std::exchange(*handle_->owes_since, now);
    handle_->assigned = false;
    handle_->lost = lost;
    if (lost) handle_->founder = false;
    handle_->drain_by = now + drain_limit;
    trouble.reset();
  }
  /// The commit that is answered. Nothing if that is none of ours.
  std::optional<Sent> answered(const fact::Committed& answer, Time now) {
    if (!handle_ || !handle_->outstanding || handle_->outstanding->id != answer.id) return std::nullopt;
    if (answer.outcome == Outcome::accepted)
      trouble.reset(), handle_->failed.reset();
    else
      handle_->failed = {now, answer.error};
    handle_->fenced = answer.outcome == Outcome::fenced;
    return std::exchange(handle_->outstanding, std::nullopt);
  }
  /// A commit of use was accepted, however late. The next one may be outstanding already.
  void gave() { handle_->owes_since.reset(), handle_->owed = {}; }
  /// Of a nonce.
  void proved(const fact::Committed& answer, Time now) {
    if (!handle_->assigned) return;
    handle_->nonce_stands = answer.outcome == Outcome::accepted;
    if (handle_->nonce_stands) return;
    handle_->try_again = now + prove_pause;
    if (answer.outcome != Outcome::fenced) trouble = answer.error;
  }
  /// Whether this answers the read under way, and has something to show.
  template <class Read>
  bool was_read(const Read& read, Time now) {
    if (!handle_ || handle_->reading != read.id) return false;
    handle_->reading.reset();
    if (read.result) return true;
    handle_->read_again = now + prove_pause;
    trouble = read.result.error();
    return false;
  }
  /// Whether a read is to be believed. If it has another nonce, an old coordinator answered, or somebody wrote over it.
  bool believes(const std::string& nonce, Time now) {
    handle_->nonce_stands = nonce == handle_->nonce;
    if (handle_->nonce_stands)
      trouble.reset();
    else
      handle_->try_again = now + prove_pause;
    return handle_->nonce_stands;
  }
  /// Whether the log is to hear again of a read that is not believed. A coordinator may be asked four times a second.
  bool tells_of_stale(Time now) {
    if (now < stale_again_) return false;
    stale_again_ = now + std::chrono::minutes(1);
    return true;
  }
  void take(const fact::Left& left, Time now) {
    if (leaving_ == left.handle) leave_by_ = now;
  }

  // ---- what is done ----

  /// REQUIRES: none is open, and may_open_at() has come. `leads`: by the handle before.
  effect::Open open(std::uint64_t number, const std::string& new_rank, bool leads, Time now) {
    may_open_at = now + reopen_pause;
    const auto kept = std::exchange(kept_rank_, {});
    const bool keeps = leads && !kept.empty();
    handle_.emplace();
    handle_->number = number;
    handle_->rank = keeps ? kept : new_rank;
    handle_->keeps_rank = keeps;
    handle_->troubled_at = now;  // The handle before may have left its trouble behind.
    return {number, handle_->rank};
  }
  effect::Drop drop() { return {std::exchange(handle_, std::nullopt)->number}; }
  /// The next handle, which is opened for the sake of what is led, takes the rank of this one.
  void keep_rank() { kept_rank_ = handle_->rank; }
  bool has_kept_rank() const { return !kept_rank_.empty(); }
  /// The handle is dropped next, and the LeaveGroup is waited for.
  void leave(Time now) {
    if (handle_) leaving_ = handle_->number, leave_by_ = now + leave_limit;
  }
  bool leaving() const { return leaving_.has_value(); }
  Time leave_by() const { return leave_by_; }
  void left() { leaving_.reset(); }
  /// Whether the rebalance may go on. True once.
  bool drained() {
    if (!handle_->drain_by || handle_->outstanding) return false;
    handle_->drain_by.reset();
    return true;
  }

  // ---- what follows ----

  /// `owes`: it has not got what its owner needs.
  void watch(bool owes, Time now) {
    if (!handle_) return;
    const bool waits = owes || handle_->outstanding;
    if (!waits && handle_->assigned) handle_->owed = {};
    handle_->owes_since = waits ? std::optional(handle_->owes_since.value_or(now)) : std::nullopt;
  }
  /// It knows that what has no record was never led, and others cannot know it yet: the group is as young as that.
  bool vouches(Duration lease, Time now) const {
    return handle_ && handle_->founder && now < *handle_->joined_at + lease;
  }
  /// Its commits fail. One failure that no other follows is none.
  bool failing(Duration lease, Time now) const { return handle_->failed && now < handle_->failed->at + lease; }
  /// The one clock of a handle that is of no use: so long it may owe us something.
  Time useless_at(Duration lease) const {
    return handle_ && handle_->owes_since ? *handle_->owes_since + lease - handle_->owed : Time::max();
  }
  /// When the handle must go, for other reasons. `leads`: by it, or by the one before.
  Time drop_at(bool leads) const {
    const auto& h = *handle_;
    if (h.drain_by) return h.outstanding ? *h.drain_by : Time::max();  // Sent later, it would have another generation.
    if (leads) return Time::max();
    // An eviction gave the old place to a healthy successor, from whom the old rank would take it.
    if (h.fenced || (!h.assigned && (h.lost || h.keeps_rank))) return Time::min();
    // A new handle reads the files of certificates and passwords again.
    const bool refused = trouble && trouble->fault == Fault::forbidden && !h.assigned;
    return refused ? h.troubled_at + sign_in_limit : Time::max();
  }

  std::optional<Error> trouble;  ///< With the handle, or the one before.
  Time may_open_at{Time::min()};

 private:
  friend class NeliState;  ///< tests/kafka/neli_explore_test.cpp: what counts as the same state

  std::optional<Handle> handle_;
  Time stale_again_{Time::min()};  ///< The log hears of no read that is not believed before.
  std::string kept_rank_;          ///< Of a handle that was changed, for the next one.
  std::optional<std::uint64_t> leaving_;
  Time leave_by_{};
};

}  // namespace tenure::kafka
