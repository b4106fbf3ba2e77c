// SPDX-License-Identifier: Apache-2.0
// Closes client handles, and joins the threads that used them, where nobody has to wait for it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "client.hpp"

namespace tenure::kafka {

/// One thread per process, also in a child of fork. When the process ends it gets three seconds to finish; what comes
/// later is done by its caller.
class Reaper {
 public:
  /// Throws std::system_error if there can be no thread or descriptor more: to be asked for when a backend is made, not
  /// when it ends.
  static Reaper& instance();

  /// Leaves the group, then destroys the handle. `left` is called on the reaper's thread, once out of the
  /// group.
  void close(std::shared_ptr<Client> client, std::function<void()> left);

  /// Joins once `over` is set. REQUIRES: the thread has been told to end, and sets it as its last act.
  void join(std::thread thread, std::shared_ptr<const std::atomic<bool>> over);

 private:
  struct Impl;
  Reaper();
  Impl& impl_;
};

}  // namespace tenure::kafka
