// SPDX-License-Identifier: Apache-2.0
// The second seam: a store that can replace one record on condition. lock_table() adds the whole election protocol, so
// a new store needs only these functions.
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

/// The state of one election. It is never deleted.
struct Record {
  Token token{};            ///< Token and beat together are the version.
  std::uint64_t beat{};     ///< A random number of the kernel, new with every write.
  std::string who{};        ///< What the holder tells of itself: <tenure/kit/who.hpp>. A store looks at nothing in it.
  bool released{};          ///< The holder gave the lead back, or the store knows that the holder is dead.
  Clock::Duration term{};   ///< The holder's term, which the store rounds up to milliseconds.
  Clock::Duration asked{};  ///< The holder's CLOCK_BOOTTIME when it asked for this write.
  std::int64_t written_ms{};  ///< The store's clock, set by the store. A hint: nothing may be decided by it.
  friend bool operator==(const Record&, const Record&) = default;
};

/// Names one write of a record: no two writes have the same version.
struct Version {
  Token token{};
  std::uint64_t beat{};
  friend bool operator==(const Version&, const Version&) = default;
};

/// What compare_and_set demands of the present record: this token, and one of these beats.
struct Expected {
  Token token{};
  std::vector<std::uint64_t> beats{};
  bool released{};  ///< The record must be released, too. A claim demands it if it knows of the release only from a
                    ///< push.
};

/// Whether `record` is as compare_and_set demands. An `expected` of nullopt demands that there is no record.
TENURE_EXPORT bool matches(const std::optional<Expected>& expected, const std::optional<Record>& record);

/// A request to step down. It stands beside the record and is not part of its version.
struct StepDown {
  Token token{};            ///< The tenure that is to end. The request means nothing to another one.
  std::string by{}, why{};  ///< They have at most max_candidate_bytes and max_why_bytes.
  friend bool operator==(const StepDown&, const StepDown&) = default;
};

/// What stands in the store.
struct Read {
  std::optional<Record> record{};
  std::optional<StepDown> step_down{};
  std::int64_t now_ms{};   ///< The store's clock.
  bool same_clock{};       ///< `record->asked` was read from the same clock that we read.
  bool absence_certain{};  ///< No record means that there never was one, because this store loses none. If false, a
                           ///< claim on an absent record counts only once it has stood for a term.
  std::optional<Error> read_only{};  ///< Why a write of ours would be refused, so that a candidate hears of it at once.
  bool unreadable{};  ///< There is a record that cannot be read. `record` holds only the version that it counts as.
};

/// The answer to a conditional write.
struct Swap {
  bool applied{};
  Read found{};  ///< What stands there now: our record if applied.
};

/// The record of one election in a store. One thread at a time calls it. Limits hold as for a Backend; after its limit
/// a call is an Error and writes nothing. An Error means that the call may or may not have taken effect.
class TENURE_EXPORT ConditionalStore {
 public:
  virtual ~ConditionalStore() = default;

  /// Reads what stands. REQUIRES of an implementation: it sees every write that was answered before it began.
  virtual Result<Read> read(const Limit& limit) = 0;

  /// Replaces the record by `next` if the present one is as `expected` (nullopt: if there is none). Sets `written_ms`.
  /// REQUIRES of an implementation: it is linearizable, and durable once it has answered. (A crash may undo a release.)
  /// It does not repeat the write by itself.
  virtual Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                                       const Limit& limit) = 0;

  /// Sleeps until the store says that the version is no longer `seen`, or until the limit. May return for no reason. By
  /// default it only sleeps. If a push named the version of a release, it returns that version, and a candidate then
  /// claims without a read. The version may be late or forged. It is never that of a new tenure.
  virtual std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit);

  /// Puts the request beside the record, if that has its token, in place of an earlier one. By default an error.
  virtual std::optional<Error> request_step_down(const StepDown& request, const Limit& limit);

  /// Says whether the store can keep records of this term. An error says why not.
  virtual std::optional<Error> accepts(const Timing& timing);
};

}  // namespace tenure
