// SPDX-License-Identifier: Apache-2.0
// What a hub keeps behind one mutex, and the faults of real stores behind switches.
#pragma once
#include <concepts>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/kit/wait.hpp>
#include <tenure/memory.hpp>

#include "group_tables.hpp"

namespace tenure::memory {

/// One election's record.
struct Slot {
  std::optional<Record> record;
  std::optional<StepDown> step_down;
  const Clock* clock{};  ///< That `record->asked` was read from.

  std::optional<Version> version() const {
    if (!record) return std::nullopt;
    return Version{record->token, record->beat};
  }
};

struct TENURE_MEMORY_NO_EXPORT Hub::State {
  const Traits traits;
  std::mutex mutex;
  std::map<std::string, Slot> slots;          ///< Never erased from: whoever waits is known by the address.
  std::map<std::string, GroupTables> groups;  ///< The same.
  std::vector<std::function<void()>> held;
  std::list<std::pair<const void*, Waker*>> waiters;  ///< Each with the slot or the group that it waits for.
  Clock::Duration clock_error{};
  bool unreachable{}, hang{};
  std::size_t lose{}, hold{};
  std::uint64_t reconnects{};  ///< Whoever waited through an outage may have missed a push.

  explicit State(Traits t) : traits(t) {}

  std::int64_t now_ms(const Clock& clock) const {
    return clock.unix_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(clock_error).count();
  }

  void wake(const void* what) {
    if (!traits.push) return;
    for (const auto& [waits_for, waker] : waiters)
      if (waits_for == what) waker->wake();
  }

  void wake_all() {
    for (const auto& waiter : waiters) waiter.second->wake();
  }

  void recovered() {
    ++reconnects;
    wake_all();
  }

  std::optional<Error> outage(std::unique_lock<std::mutex>& lock, const Limit& limit) const {
    if (unreachable) return Error{Fault::unreachable, "memory: the hub is set to be unreachable"};
    if (hang) {
      lock.unlock();
      wait_out(limit);
      lock.lock();
      return Error{Fault::timed_out, "memory: the hub is set to hang"};
    }
    if (limit.passed()) return Error{Fault::timed_out, "memory: the limit had passed before the call"};
    return std::nullopt;
  }

  template <std::invocable Ask>
  Result<std::invoke_result_t<Ask>> read(const Limit& limit, Ask ask) {
    std::unique_lock lock(mutex);
    if (auto error = outage(lock, limit)) return *std::move(error);
    return ask();
  }

  /// Carries out `change`, unless a fault says otherwise. REQUIRES: `change` may be called as long as the hub lives.
  template <std::invocable Change>
  Result<std::invoke_result_t<Change>> write(const Limit& limit, Change change) {
    std::unique_lock lock(mutex);
    if (auto error = outage(lock, limit)) return *std::move(error);
    if (take(hold)) {
      held.emplace_back([change] { static_cast<void>(change()); });
      return Error{Fault::timed_out, "memory: the write is held back"};
    }
    auto done = change();
    if (take(lose)) return Error{Fault::timed_out, "memory: the answer is lost"};
    return done;
  }

  /// Sleeps until `changed`, until an outage was over, or until the limit. Then returns what `tell` says of it.
  template <std::predicate Changed, std::invocable Tell>
  std::invoke_result_t<Tell> await(const void* what, const Limit& limit, Changed changed, Tell tell) {
    const auto waker = limit.clock.make_waker();
    std::unique_lock lock(mutex);
    const auto place = waiters.emplace(waiters.end(), what, waker.get());
    const auto before = reconnects;
    const auto told = [&] { return reconnects != before || (traits.push && !unreachable && !hang && changed()); };
    while (!told() && !limit.passed()) {
      lock.unlock();
      tenure::wait(*waker, limit);
      lock.lock();
    }
    waiters.erase(place);
    return told() ? tell() : std::invoke_result_t<Tell>{};
  }

 private:
  static bool take(std::size_t& count) {
    if (count == 0) return false;
    --count;
    return true;
  }
};

}  // namespace tenure::memory
