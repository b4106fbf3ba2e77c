// SPDX-License-Identifier: Apache-2.0
// Makes a handle of librdkafka: its properties, and where its log lines go.
#pragma once
#include <librdkafka/rdkafka.h>

#include <mutex>
#include <utility>

#include "closable_log.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// The requests of one commit, as they went over the handle's connections: librdkafka sends a commit again that was not
/// answered, by itself, and tells only the last outcome. It has one copy under way at a time. Any thread may call it.
class CommitRequests {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    under_way_ = false;
    given_up_ = 0;
  }
  void sent() {
    const std::lock_guard lock(mutex_);
    given_up_ += std::exchange(under_way_, true) ? 1 : 0;
  }
  void answered() {
    const std::lock_guard lock(mutex_);
    under_way_ = false;
  }
  /// How many copies the coordinator may handle yet, or may have handled.
  int unanswered() const {
    const std::lock_guard lock(mutex_);
    return given_up_ + (under_way_ ? 1 : 0);
  }

 private:
  mutable std::mutex mutex_;
  bool under_way_{};
  int given_up_{};
};

/// Makes a handle, which the caller owns. `events` is a set of RD_KAFKA_EVENT_..., which a queue tells. Throws
/// std::runtime_error, redacted, if librdkafka refuses. REQUIRES: `log` and `commits` outlive the handle.
rd_kafka_t* make_handle(rd_kafka_type_t type, const Properties& properties, ClosableLog& log, int events = 0,
                        CommitRequests* commits = nullptr);

/// Ends a handle of either type, and tells no group of it: for that a consumer would wait for the coordinator.
void end_handle(rd_kafka_t* handle);

}  // namespace tenure::kafka
