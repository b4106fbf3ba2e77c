// SPDX-License-Identifier: Apache-2.0
// Watches who leads, without being a candidate.
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

/// Watches an election without being a candidate. It has one thread. Any thread may call any method.
///
/// It needs a backend of its own, and never acquires by it. It reports what the store said last. That is good enough to
/// send requests to the leader, but nobody may act as leader by it. At its first sight a server's clock tells whether a
/// lease is over already; Kafka tells no such time, and a dead leader's lease then counts from that sight.
class TENURE_EXPORT Observer {
 public:
  /// Called on the observer's thread for the first sight and for every change after it. A lease that ends without a
  /// renewal is such a change: Vacant, also while the store does not answer. While it runs, changes are
  /// missed only if they are over before it returns. The destructor waits for it. What it throws goes to stderr.
  /// If it is empty, stderr gets a line when the store stops answering, each reason at most once a minute.
  /// REQUIRES: it does not destroy the observer.
  using Changed = std::function<void(const Sight&)>;

  /// `timing` is that of the candidates: `call` limits each question, `retry` is the pause after an unanswered one.
  /// Throws std::invalid_argument as LeaderManager does. Throws std::system_error if no thread can be started, or if no
  /// file descriptor is left. REQUIRES: the clock outlives the observer, and every call into a wedged backend.
  Observer(std::shared_ptr<Backend> backend, const Timing& timing, Changed changed = {}, Clock& clock = boot_clock());
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Who leads, as the store said last: also while it does not answer. Empty once that lease has ended by our clock.
  std::optional<Incumbent> incumbent() const;

  /// Rises when another one leads, or nobody, as the store said last; when the lease that it told of ends; and with its
  /// first answer.
  std::uint64_t changes() const;

  /// Waits until changes() is no longer `seen`, or for `within`, or until the stop is requested. Returns changes().
  std::uint64_t await_change(std::uint64_t seen, Clock::Duration within, std::stop_token stop = {});

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tenure
