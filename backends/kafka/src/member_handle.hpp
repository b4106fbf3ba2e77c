// SPDX-License-Identifier: Apache-2.0
// The handle by which a process is in the group.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <tenure/clock.hpp>

#include "client.hpp"
#include "closable_log.hpp"
#include "reaper.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// The handle by which this process is in the group: one at a time, or none. The serving thread's.
class MemberHandle {
 public:
  /// `waker` is woken when the handle has an event.
  MemberHandle(std::shared_ptr<ClosableLog> log, std::shared_ptr<Waker> waker);

  /// Opens one for so many partitions of the topic. Why it could not be opened, if it could not.
  std::optional<Error> open(std::uint64_t handle, const Options& options, const Pace& pace,
                            const std::string& client_id, int partitions);

  /// Leaves the group. `left` is called when that is done, at once or on the reaper's thread. `waits`: a handle that
  /// was not answered leaves once it is heard again. Until then it goes on sending heartbeats.
  void drop(bool waits, std::function<void()> left);

  /// When librdkafka's main loop is woken next, for a heartbeat faster than its own, or for a poll in time.
  Clock::Time next_nudge();

  const std::shared_ptr<Client>& client() const { return client_; }
  std::uint64_t handle() const { return handle_; }  ///< The number of the last one that was opened.

 private:
  const std::shared_ptr<ClosableLog> log_;
  const std::shared_ptr<Waker> waker_;
  Reaper& reaper_;
  std::shared_ptr<Client> client_;
  std::uint64_t handle_{};
  Pace pace_{};
  Clock::Time nudge_at_{Clock::Time::max()};
};

}  // namespace tenure::kafka
