// SPDX-License-Identifier: Apache-2.0
// Every decision of the lock-table protocol, and nothing else. Facts go in: a read, a compare-and-set that was answered
// or not. Attempts and answers come out. There is no thread here, no I/O, no clock and no randomness; it can be copied.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <utility>
#include <vector>

#include "lock_table/lease_bound.hpp"

namespace tenure {

class LockTableDecisions {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  /// This is handed to compare_and_set.
  struct Attempt {
    std::optional<Expected> expected;
    Record next;
  };

  /// `who`: who_text() of a candidate, and of no other.
  LockTableDecisions(std::string who, const Timing& timing);

  /// REQUIRES: before the first claim.
  void run_by(const Timing& timing) { timing_ = timing; }

  // Facts. `at` is our clock after the answer was received.

  void saw(const Read& read, Time at);

  /// The store's answer to the attempt that claim(), renewal() or surrender() gave out last. An Error is no answer.
  Answer claimed(const Result<Swap>& result, Time at);
  Answer renewed(const Result<Swap>& result, Time at);
  std::optional<Error> surrendered(const Result<Swap>& result, Time at);

  // Questions. `asked` is our clock when the call began, before anything was sent. `beat` is freshly drawn.

  /// The write that takes over. There is none if that is not allowed at `now`.
  std::optional<Attempt> claim(Time asked, Time now, std::uint64_t beat);

  /// The write that takes over a record which a push called released, with no read before it. There is none if the push
  /// says nothing to us.
  std::optional<Attempt> succession(const Version& released, Time asked, std::uint64_t beat);

  /// The write that keeps the tenure `token`. There is none if it is not ours, or over by our own clock.
  std::optional<Attempt> renewal(Token token, Time asked, std::uint64_t beat);

  /// The write that ends what we hold or may hold. There is none if nothing is left to end.
  std::optional<Attempt> surrender(Time asked, std::uint64_t beat);

  /// The earliest time of a take-over, if nothing changes. Time::min(): at once.
  Time earliest() const;

  /// When to look again, if nothing changes: at earliest(), or just after the holder's next renewal.
  Time next_look() const;

  /// When the lease that stands is over. There is none if nobody holds one.
  std::optional<Time> lease_end() const;

  /// Who holds the record: nobody if it is absent, released or cannot be read.
  std::optional<Incumbent> incumbent(Time now) const;

  /// The same for who only watches: by the store's clock a lease may have been over at the first look.
  std::optional<Incumbent> watched(Time now) const;

  /// When who only watches is to look again, if nothing changes. Time::max(): no look shows more.
  Time watch_again(Time now) const;

  /// The answer to a candidate that may not take over.
  Denied denied(Time now) const;

  std::optional<Version> version() const;
  bool unreadable() const { return sighting_ && sighting_->read.unreadable; }

  /// The store shows our `who` with a beat that we never sent: a copy of us is at work. become() somebody else.
  bool copied() const;
  void become(std::string who) { who_ = std::move(who); }

  /// An error that people must hear of. It is returned once.
  std::optional<Error> take_alarm() { return std::exchange(alarm_, std::nullopt); }

 private:
  struct Sighting {
    Read read;
    Time first{};                ///< Receipt of the first answer that showed this version.
    bool fell{};                 ///< It is older than another one that we saw: the store lost data.
    Time told_end{Time::max()};  ///< Of the lease that was there at the first look of all, by the store's clock.
  };
  struct Tenure {
    Token token;
    Time deadline;  ///< The deadline of the last acknowledged grant. A later answer counts for nothing.
  };
  struct Beat {
    std::uint64_t value;
    /// A claim where no record was, and one may have been lost. It counts once it has stood for a term.
    bool unproven;
  };
  /// A claim that was not answered. It may still take effect while the version that it expected stands.
  struct OpenClaim {
    std::optional<Expected> expected;
    Token token;
  };
  /// The longest term that we know of: a lease may run that long.
  Duration longest() const { return std::max(timing_.term, longest_seen_); }
  void time_lease(const Read& read, Time at);
  void time_look(const Read& read, Time at, bool fresh);
  void judge_fall(bool fell_before);
  std::optional<Attempt> take_over(std::optional<Expected> expected, Time asked, std::uint64_t beat);
  std::optional<Token> next_token() const;
  Record written(Token token, Time asked, std::uint64_t beat, Duration term, bool released = false) const;
  Attempt send(std::optional<Expected> expected, Record next, bool unproven = false);
  const Beat* sent(const Record& record) const;
  std::vector<std::uint64_t> sent_beats() const;
  std::optional<Error> no_answer(const Result<Swap>& result, Time at);

  std::string who_;
  Timing timing_;
  Duration longest_seen_{};
  Token highest_{};  ///< The highest that we ever saw.
  std::optional<Sighting> sighting_;
  LeaseBound bound_;
  Time lease_end_{};
  std::optional<Time> timed_look_;
  int timed_looks_{};  ///< How many in a row were in vain.
  std::optional<Tenure> tenure_;
  std::optional<OpenClaim> open_claim_;
  std::vector<Beat> sent_;  ///< Since the last acknowledged write, its own included.
  Attempt attempt_;         ///< Given out last.
  std::optional<Error> alarm_;
};

}  // namespace tenure
