// SPDX-License-Identifier: Apache-2.0
// What one candidate knows of the record, and what follows from it: a value, which acts on nothing. It has rules 4 to 7
// and 9 of the README of this room.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/clock.hpp>
#include <tenure/token.hpp>

#include "group.hpp"
#include "handle_facts.hpp"
#include "record.hpp"

namespace tenure::kafka {

/// A commit from elsewhere may have any offset; a token is never below zero.
Token token_of(const std::optional<Commit>& commit);

class RecordView {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  /// `highest`: of any record that this process has ever read of this election.
  RecordView(std::string incarnation, Duration lease, bool first_claim_waits, Token highest);

  /// What is wrong with a read, for the log. One of the two at most.
  struct Finding {
    std::optional<Token> fell_from;  ///< The store lost a commit: this token had been seen.
    bool foreign{};                  ///< No version of ours wrote it.
  };
  /// A read that may be old: an answer that was overtaken is not believed.
  Finding observed(const std::optional<Commit>& read, Time now);
  /// A read that carried the nonce, by the owner of partition 0 since `assigned_at`.
  Finding believed(const std::optional<Commit>& read, Time now, Time assigned_at);
  /// Our claim stands.
  void acknowledged(Token token);

  /// An absence counts while one member handle owns the partition in each generation, and no read shows a record.
  void end_absence() { absent_since_.reset(); }

  bool was_read() const { return seen_.has_value(); }
  bool ever_seen() const { return ever_seen_; }  ///< A record, by any read.
  /// A lease after the token fell: until then whoever had the lost one may lead, whatever the record says.
  Time doubted_until() const { return doubted_until_; }
  Token highest() const { return highest_; }
  Duration longest_lease() const { return longest_lease_; }
  /// When the last leader's lease is over. Nothing if, for as long as is known, no candidate leads.
  std::optional<Time> led_until() const;
  /// Who leads, where it is not this candidate.
  Sight sight(Time now) const;
  /// When partition 0's owner may claim; Time::min() is at once. REQUIRES: a read was believed since this assignment.
  /// `founder`: by a handle that has been in the group since that began.
  Time claimable_at(Time assigned_at, bool founder) const;
  /// Whether another one leads who claimed after this candidate was ranked with this token. REQUIRES: as before.
  bool claimed_since(Token ranked, Time now) const;
  /// Returns the token of a claim, or nothing if the offset is already the largest that there can be.
  std::optional<Token> next_token(Token tried, std::int64_t unix_ms) const;

 private:
  friend class NeliState;  ///< tests/kafka/neli_explore_test.cpp: what counts as the same state

  /// The record as last read.
  struct Seen {
    std::optional<Commit> commit;
    std::optional<Record> record;  ///< if it is one of ours
    Time first_seen{};
  };

  bool stale(const std::optional<Commit>& read) const;
  Finding alarm(const std::optional<Commit>& read, Time now);
  Finding see(const std::optional<Commit>& read, Time now);
  bool free() const;

  std::string incarnation_;
  bool first_claim_waits_{};
  std::optional<Seen> seen_;
  std::optional<Time> stale_since_;
  std::optional<Time> absent_since_;  ///< The assignment since whose read no record stood, of this handle.
  Token highest_;                     ///< ever read, or acknowledged to us
  Token least_;                       ///< A read of less is old. Our records' highest, until the store lost that.
  Time doubted_until_{Time::min()};
  bool ever_seen_{};
  Duration longest_lease_{};
};

/// What the log is to hear of a read of this partition.
std::optional<effect::Tell> report_of(int partition, const std::optional<Commit>& read,
                                      const RecordView::Finding& found);

}  // namespace tenure::kafka
