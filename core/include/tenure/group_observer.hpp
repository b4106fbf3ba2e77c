// SPDX-License-Identifier: Apache-2.0
// Watches who leads the elections of a group, without taking part.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/clock.hpp>
#include <tenure/export.hpp>
#include <tenure/group_store.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// Who leads one election of a group, as the store said last.
struct ObservedElection {
  std::string election{};
  Sight sight{};   ///< Unknown: its lead cannot be read.
  bool renewed{};  ///< The leader's session was seen to renew. Else the store's clock alone tells that it lives.
};

/// What a GroupObserver watches, and whom it tells.
struct GroupObserverOptions {
  /// The elections to watch. Empty: all that anybody ever led. REQUIRES: it is not empty where the store keeps no
  /// names: GroupStore::allots(), as over Kafka.
  std::vector<std::string> elections{};

  /// Called on the observer's thread, for each election that is led at first, and then for each change: another one
  /// leads, or nobody, or its lead cannot be read. A lease that ends without a renewal is such a change, also while the
  /// store does not answer. While it runs, changes are missed only if they are over before it returns. The destructor
  /// waits for it. What it throws goes to the log. REQUIRES: it does not destroy the observer.
  std::function<void(const std::string& election, const Sight& sight)> changed{};

  Log log{};  ///< Hears why the store does not answer: each reason at most once a minute, with a count.
};

/// Watches the elections of a group without taking part: it opens no session and writes nothing, so that the right to
/// read is enough. It asks once per Timing::renew, whatever their number, and when something is pushed. It has one
/// thread. Any thread may call any method.
///
/// It tells what the store said last. That is good enough to send requests to a leader, but nobody may act as leader by
/// it. Over Kafka a record names who owns an election's unit: that one leads it only if it has joined it.
class TENURE_EXPORT GroupObserver {
 public:
  /// `timing` is that of the processes: `call` limits each question, twice as much each further one that was not
  /// answered, up to half of `term`; `retry` is the pause after an unanswered one.
  /// Throws std::invalid_argument as Elections does, and where names are needed. Throws std::system_error if no thread
  /// can be started, or if no file descriptor is left. REQUIRES: the store is this observer's alone, and the clock
  /// outlives it, and every call into a wedged store.
  GroupObserver(std::shared_ptr<GroupStore> store, const Timing& timing, GroupObserverOptions options = {},
                Clock& clock = boot_clock());
  ~GroupObserver();
  GroupObserver(const GroupObserver&) = delete;
  GroupObserver& operator=(const GroupObserver&) = delete;

  /// Who leads it: also while the store does not answer. Empty once that lease has ended by our clock, and if nobody
  /// leads it, or it is not watched.
  std::optional<Incumbent> incumbent(const std::string& election) const;

  /// All that are watched, by name. It takes as long as they are many.
  std::vector<ObservedElection> all() const;

  /// Why the store's last answer did not come. Empty: it came, or none was expected yet.
  std::optional<Error> last_error() const;

  /// For how long `changed`, or the log, has run by now: nothing is looked at meanwhile. 0: neither does.
  Clock::Duration telling() const;

  /// Rises with changes, and with the store's first answer.
  std::uint64_t changes() const;

  /// Waits until changes() is no longer `seen`, or for `within`, or until the stop is requested. Returns changes().
  std::uint64_t await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop = {});

  /// The group's name.
  std::string group() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tenure
