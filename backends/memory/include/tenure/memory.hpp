// SPDX-License-Identifier: Apache-2.0
// Elections within one process: for your tests and examples, and for threads that contend.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/log.hpp>
#include <tenure/memory_export.hpp>
#include <tenure/open.hpp>

namespace tenure::memory {

/// What kind of store to resemble. By default the best there can be.
struct Traits {
  bool push{true};             ///< Tells waiters of a change. If not, they sleep to the end of the lease.
  bool absence_certain{true};  ///< As PostgreSQL. If not, as Redis: a missing record may have been lost.
  bool same_clock{true};       ///< Knows that candidates share a Clock. If not, as candidates on several hosts.
};

/// The "server": a handle, cheap to copy, to records that live as long as any handle, seat or store.
/// Any thread may call any method.
class TENURE_MEMORY_EXPORT Hub {
 public:
  explicit Hub(Traits traits = {});

  // What may go wrong with a store, for your tests. Every verb still returns by its limit.

  void unreachable(bool on);            ///< Every call fails at once.
  void hang(bool on);                   ///< Every call runs to its limit and has no effect.
  void lose_answers(std::size_t n);     ///< The next n writes take effect, and their callers hear nothing of it.
  void hold_writes(std::size_t n);      ///< The next n writes stay on their way, and their callers hear nothing...
  void deliver_held();                  ///< ... until they arrive, in order, each taking effect if it still can.
  void flush();                         ///< Every record is gone.
  void step_clock(Clock::Duration by);  ///< The hub's clock (the candidates' unix_ms()) goes wrong by so much more.

  /// One election's record. Throws std::invalid_argument for a name that is empty or too long.
  std::shared_ptr<ConditionalStore> store(const std::string& election) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// A seat at an election on this hub: what LeaderManager takes. Throws as lock_table() does.
TENURE_MEMORY_EXPORT std::shared_ptr<Backend> open(const Hub& hub, const std::string& election,
                                                   Candidate candidate = {}, Log log = {});

/// The hub of that name: one per name and process, as long as the process lives.
TENURE_MEMORY_EXPORT Hub hub(const std::string& name = {});

/// A seat by URL, on hub(name): "memory:" or "memory:name". No user, no properties.
/// Throws std::invalid_argument for another URL, and as open() does.
TENURE_MEMORY_EXPORT Opened open_url(const Opening& opening);

/// Terms of 3, 10 and 30 s: lock_table_presets().
TENURE_MEMORY_EXPORT Presets presets();

}  // namespace tenure::memory
