// SPDX-License-Identifier: Apache-2.0
// Closes client handles and joins the threads that used them, so that nobody has to wait for either. Here is also the
// lock of what a process has once.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "client.hpp"

namespace tenure::kafka {

/// Nobody holds this lock while the process is forked, so that a child finds it free and what it guards whole. It is
/// never destroyed, because threads may still run while statics are destroyed. REQUIRES: it is held for moments only,
/// and nobody forks meanwhile.
std::mutex& fork_safe_mutex();

/// A process has one such thread, and a child of fork has its own. When the process ends, the thread has three seconds
/// to finish. What comes later is done by its caller.
class Reaper {
 public:
  /// Throws std::system_error if threads or descriptors have run out. So ask for it when a backend is made, not when
  /// it ends.
  static Reaper& instance();

  /// Leaves the group, then destroys the handle. `left` is called on the reaper's thread after the group was left.
  void close(std::shared_ptr<Client> client, std::function<void()> left);

  /// The same for a handle whose coordinator does not answer. librdkafka tells it once that we leave, and only if it is
  /// connected. So this waits until it answers a read again, or until the session is over. `client` is subscribed.
  void close_when_heard(const std::shared_ptr<Client>& client, Clock::Duration session, std::function<void()> left);

  /// Joins the thread once `over` is set. REQUIRES: the thread was told to end, and sets `over` as its last act.
  void join(std::thread thread, std::shared_ptr<const std::atomic<bool>> over);

 private:
  struct Impl;
  Reaper();
  Impl& impl_;
};

}  // namespace tenure::kafka
