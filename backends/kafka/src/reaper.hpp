// SPDX-License-Identifier: Apache-2.0
// Closes client handles, and joins the threads that used them, where nobody has to wait for it.
#pragma once
#include <functional>
#include <memory>
#include <thread>

#include "client.hpp"

namespace tenure::kafka {

/// One thread per process, started at first use. When the process ends it gets one second to finish.
class Reaper {
 public:
  static Reaper& instance();

  /// Leaves the group, then destroys the handle. `left` is called on the reaper's thread, once out of the
  /// group.
  void close(std::shared_ptr<Client> client, std::function<void()> left);

  /// Joins once the thread's work is over. REQUIRES: it has been told to end.
  void join(std::thread thread);

 private:
  struct Impl;
  Reaper();
  Impl& impl_;
};

}  // namespace tenure::kafka
