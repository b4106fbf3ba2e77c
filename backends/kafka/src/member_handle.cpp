// SPDX-License-Identifier: Apache-2.0
// Opens, nudges and drops the handle that is in the group.
#include "member_handle.hpp"

#include <chrono>
#include <utility>

namespace tenure::kafka {
namespace {

/// librdkafka keeps heartbeats of this interval or longer by itself.
constexpr auto own_heartbeat = std::chrono::milliseconds(500);

}  // namespace

MemberHandle::MemberHandle(std::shared_ptr<ClosableLog> log, std::shared_ptr<Waker> waker)
    : log_(std::move(log)), waker_(std::move(waker)), reaper_(Reaper::instance()) {}

std::optional<Error> MemberHandle::open(std::uint64_t handle, const Options& options, const Pace& pace,
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

void MemberHandle::drop(bool waits, std::function<void()> left) {
  if (!client_) return left();
  const auto client = std::exchange(client_, nullptr);
  client->on_events(nullptr);
  if (waits && client->unheard()) return reaper_.close_when_heard(client, pace_.session, std::move(left));
  client->unsubscribe();
  reaper_.close(client, std::move(left));
}

Clock::Time MemberHandle::next_nudge() {
  if (!client_) return Clock::Time::max();
  const auto now = boot_clock().now();
  const bool fast = pace_.heartbeat < own_heartbeat;
  if (now >= nudge_at_) {
    if (fast) client_->nudge();
    nudge_at_ = now + (fast ? pace_.heartbeat / 2 : pace_.session / 4);
  }
  return nudge_at_;
}

}  // namespace tenure::kafka
