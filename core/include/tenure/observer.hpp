// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include <tenure/backend.hpp>
#include <tenure/clock.hpp>
#include <tenure/export.hpp>

namespace tenure {

/// Watches an election without being a candidate. One thread; any thread may call any method.
///
/// Takes a seat of its own, which never acquires. What it tells is what the store last said: for routing requests to
/// the leader, never for acting as one.
class TENURE_EXPORT Observer {
 public:
  /// Called on the observer's thread with every change, the first sight included, none skipped by a slow callee
  /// but those that were over before it returned. The destructor waits for it. It must not destroy the observer; what
  /// it throws is told on stderr; without a callee so is the beginning of every time that the store does not answer.
  using Changed = std::function<void(const Sight&)>;

  /// `timing` as the candidates have it: `call` limits each question, `retry` the pause after an unanswered one.
  /// Throws std::invalid_argument as LeaderManager does, and std::system_error if there can be no thread or descriptor.
  /// REQUIRES: the clock outlives the observer, and every call into a wedged backend.
  Observer(std::shared_ptr<Backend> backend, const Timing& timing, Changed changed = {}, Clock& clock = boot_clock());
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Who leads, as last heard; nobody once that lease has ended by our clock.
  std::optional<Incumbent> incumbent() const;

  /// As LeaderManager's: `seen` when timed out, and a greater count when who leads has changed.
  std::uint64_t changes() const;
  std::uint64_t await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop = {});

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tenure
