// SPDX-License-Identifier: Apache-2.0
// Elections within one process: for your tests and examples, and for threads that contend.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/group_store.hpp>
#include <tenure/log.hpp>
#include <tenure/memory_export.hpp>
#include <tenure/open.hpp>

namespace tenure::memory {

/// The kind of store that a hub resembles. By default it resembles the best one.
struct Traits {
  bool push{true};             ///< It wakes waiters at a change. If not, they sleep until the lease ends.
  bool absence_certain{true};  ///< It loses no record, as PostgreSQL. If not, a missing one may be lost, as in Redis.
  bool same_clock{true};       ///< All candidates share one clock, as on one host. If not, each has its own.
};

/// The "server": a handle to records and groups, cheap to copy. They live as long as a handle, a backend or a store of
/// it.
/// Any thread may call any method.
class TENURE_MEMORY_EXPORT Hub {
 public:
  explicit Hub(Traits traits = {});  ///< It has no record and no group.

  // These are faults of a store, for your tests. Every verb still returns by its limit.

  void unreachable(bool on);         ///< Every call fails at once.
  void hang(bool on);                ///< Every call ends at its limit, and has no effect.
  void lose_answers(std::size_t n);  ///< The next n writes take effect, but their answers are lost.
  void hold_writes(std::size_t n);   ///< The next n writes are held on their way, and get no answer.
  void deliver_held();               ///< The held writes arrive in their order. Each takes effect if it still can.
  void flush();                      ///< Every record and every group is gone.
  void lose_session(const std::string& group, SessionId id);  ///< The session is gone, and the leads that name it stay.
  void spoil_lead(const std::string& group, const std::string& election);  ///< The lead cannot be read from now on.
  void mend_lead(const std::string& group, const std::string& election);   ///< The lead can be read again.
  void step_clock(Clock::Duration by);  ///< Steps the hub's clock, which otherwise is the candidates' unix_ms().

  /// Returns the store of one election's record. Throws std::invalid_argument for a name that is empty or too long.
  std::shared_ptr<ConditionalStore> store(const std::string& election) const;

  /// Returns the store of one group. Throws as store() does. Without certain absence the group has a marker.
  std::shared_ptr<GroupStore> group(const std::string& name) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Returns a backend of an election on this hub, for one LeaderManager or one Observer. Throws as lock_table() does.
TENURE_MEMORY_EXPORT std::shared_ptr<Backend> open(const Hub& hub, const std::string& election,
                                                   Candidate candidate = {}, Log log = {});

/// Returns the process's one hub of that name, which lives as long as the process. Any thread may call it.
TENURE_MEMORY_EXPORT Hub hub(const std::string& name = {});

/// Opens a backend by URL, on hub(name): "memory:" or "memory:name". It takes no host, no user and no properties.
/// Throws std::invalid_argument for another URL, and otherwise as open() does.
TENURE_MEMORY_EXPORT Opened open_url(const Opening& opening);
TENURE_MEMORY_EXPORT OpenedGroup open_group_url(const Opening& opening);  ///< The same for a group.

/// The terms are 3, 10 and 30 s: see lock_table_presets().
TENURE_MEMORY_EXPORT Presets presets();

}  // namespace tenure::memory
