// SPDX-License-Identifier: Apache-2.0
// Makes a handle of librdkafka: its properties, and where its log lines go.
#pragma once
#include <librdkafka/rdkafka.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/clock.hpp>

#include "closable_log.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// librdkafka repeats itself: a coordinator that hangs makes a line each second. So a line of one kind from one of its
/// threads is told once a minute, with how many were not told.
class LineLimit {
 public:
  /// What is to be appended to the line; nothing if it is not told. Any thread.
  std::optional<std::string> told(std::string_view facility, std::string_view text, Clock::Time now);

 private:
  struct Kind {
    Clock::Time told{};
    int untold{};
  };
  std::mutex mutex_;
  std::map<std::string, Kind> kinds_;
};

/// What librdkafka's threads reach of a handle's owner.
struct Callbacks {
  ClosableLog& log;
  std::atomic<unsigned> closed{0};  ///< Connections of the handle that are over.
  LineLimit lines{};
};

/// Makes a handle, which the caller owns. `events` is a set of RD_KAFKA_EVENT_..., which a queue tells. Throws
/// std::runtime_error, redacted, if librdkafka refuses. REQUIRES: `callbacks` outlives the handle.
rd_kafka_t* make_handle(rd_kafka_type_t type, const Properties& properties, Callbacks& callbacks, int events = 0);

/// Ends a handle of either type, and tells no group of it: for that a consumer would wait for the coordinator.
void end_handle(rd_kafka_t* handle);

}  // namespace tenure::kafka
