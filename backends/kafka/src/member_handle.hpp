// SPDX-License-Identifier: Apache-2.0
// The handle by which a process is in the group.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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
  MemberHandle(std::shared_ptr<ClosableLog> log, std::shared_ptr<Waker> waker)
      : log_(std::move(log)), waker_(std::move(waker)), reaper_(Reaper::instance()) {}

  /// Opens one for so many partitions of the topic. Why it could not be opened, if it could not.
  std::optional<Error> open(std::uint64_t handle, const Options& options, const Pace& pace,
                            const std::string& client_id, int partitions) {
    handle_ = handle;
    pace_ = pace;
    try {
      client_ =
          std::make_shared<Client>(member_properties(options, pace, client_id), target_of(options, partitions), log_);
    } catch (const std::exception& e) {
      return Error{Fault::misconfigured, e.what()};
    }
    nudge_at_ = boot_clock().now();
    client_->on_events(waker_);
    return client_->subscribe();
  }

  /// Leaves the group. `left` is called when that is done, at once or on the reaper's thread. `waits`: a handle that
  /// was not answered leaves once it is heard again. Until then it goes on sending heartbeats.
  void drop(bool waits, std::function<void()> left) {
    if (!client_) return left();
    const auto client = std::exchange(client_, nullptr);
    client->on_events(nullptr);
    if (waits && client->unheard()) return reaper_.close_when_heard(client, pace_.session, std::move(left));
    client->unsubscribe();
    reaper_.close(client, std::move(left));
  }

  /// When librdkafka's main loop is woken next, for a heartbeat faster than its own, or for a poll in time.
  Clock::Time next_nudge() {
    if (!client_) return Clock::Time::max();
    const auto now = boot_clock().now();
    const bool fast = pace_.heartbeat < own_heartbeat;
    if (now >= nudge_at_) {
      if (fast) client_->nudge();
      nudge_at_ = now + (fast ? pace_.heartbeat / 2 : pace_.session / 4);
    }
    return nudge_at_;
  }

  const std::shared_ptr<Client>& client() const { return client_; }
  std::uint64_t handle() const { return handle_; }  ///< The number of the last one that was opened.

 private:
  /// librdkafka keeps heartbeats of this interval or longer by itself.
  static constexpr auto own_heartbeat = std::chrono::milliseconds(500);

  const std::shared_ptr<ClosableLog> log_;
  const std::shared_ptr<Waker> waker_;
  Reaper& reaper_;
  std::shared_ptr<Client> client_;
  std::uint64_t handle_{};
  Pace pace_{};
  Clock::Time nudge_at_{Clock::Time::max()};
};

}  // namespace tenure::kafka
