// SPDX-License-Identifier: Apache-2.0
// The second seam: a store that can replace one record on condition. One class over it (lock_table.hpp) holds the
// whole election protocol, so a new store is these functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>
#include <tenure/timing.hpp>
#include <tenure/token.hpp>

namespace tenure {

/// The state of one election. Never deleted.
struct Record {
  Token token{};         ///< With `beat` the version.
  std::uint64_t beat{};  ///< Drawn from the kernel at every write.
  std::string holder{}, incarnation{}, address{};
  bool released{};            ///< The holder gave it back, or the store knows that it is dead.
  Clock::Duration term{};     ///< The holder's own, rounded up to milliseconds by the store.
  Clock::Duration asked{};    ///< The holder's CLOCK_BOOTTIME when it asked for this write.
  std::int64_t written_ms{};  ///< The store's clock, set by the store: a hint, never a ground for a decision.
  friend bool operator==(const Record&, const Record&) = default;
};

struct Version {
  Token token{};
  std::uint64_t beat{};
  friend bool operator==(const Version&, const Version&) = default;
};

/// What compare_and_set demands: this token, and one of these beats.
struct Expected {
  Token token{};
  std::vector<std::uint64_t> beats{};
  bool released{};  ///< And that it was given back: whoever asks knows it from a push alone.
};

/// Whether `record` is what compare_and_set demands; nullopt demands that there is none.
TENURE_EXPORT bool matches(const std::optional<Expected>& expected, const std::optional<Record>& record);

/// A request to hand back a tenure. Stands beside the record and is not part of its version.
struct Recall {
  Token token{};  ///< The tenure to give up. Of any other it means nothing.
  std::string by{}, why{};
};

struct Read {
  std::optional<Record> record{};
  std::optional<Recall> recall{};
  std::int64_t now_ms{};   ///< The store's clock.
  bool same_clock{};       ///< `record->asked` was read from the clock that we read.
  bool absence_certain{};  ///< No record means that there never was one: this store is not flushed and evicts nothing.
                           ///< If not, a claim on nothing counts once it has stood for a term.
  std::optional<Error> read_only{};  ///< A write of ours would be refused, and why: a candidate hears of it at once.
  bool unreadable{};  ///< A record is there and cannot be read: `record` holds nothing but the version it counts as.
};

struct Swap {
  bool applied{};
  Read found{};  ///< What stands there now: ours if applied.
};

/// The record of one election. One thread at a time calls it; limits as Backend's. An Error means that the call may
/// or may not have taken effect.
class TENURE_EXPORT ConditionalStore {
 public:
  virtual ~ConditionalStore() = default;

  virtual Result<Read> read(const Limit& limit) = 0;

  /// Replaces the record by `next` if what stands there is as expected (nullopt: nothing stands there). Linearizable,
  /// durable when answered (a release may be lost in a crash as if never made), and sets `written_ms`. Never retried
  /// inside.
  virtual Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                                       const Limit& limit) = 0;

  /// Sleeps until the store says that the version differs from `seen`, or until the limit. May return for no reason.
  /// By default it only sleeps. What it returns is the version that a release left behind, if the push named it (never
  /// that of a new tenure): a candidate then claims without a read before. It may be late, or forged.
  virtual std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit);

  /// Sets the request beside the record. By default an error: not offered.
  virtual std::optional<Error> recall(const Recall& request, const Limit& limit);

  /// Whether the store can keep records of this term; an error says why not.
  virtual std::optional<Error> accepts(const Timing& timing);
};

}  // namespace tenure
