// SPDX-License-Identifier: Apache-2.0
// The handle by which a process reads what a group keeps, without being in it.
#pragma once
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <tenure/clock.hpp>

#include "client.hpp"
#include "closable_log.hpp"
#include "settings.hpp"

namespace tenure::kafka {

/// A handle reads certificates and passwords from files when it is made, and never again. So one that was turned away
/// for a while is made anew. One thread at a time calls it; explained() may be called by any.
class Reader {
 public:
  /// Throws std::invalid_argument, redacted, if librdkafka refuses the properties.
  Reader(Options options, std::string group, std::shared_ptr<ClosableLog> log, int partitions = 2)
      : options_(std::move(options)),
        group_(std::move(group)),
        log_(std::move(log)),
        partitions_(partitions),
        target_{options_.brokers, group_, options_.topic, partitions_},
        client_(make_observer(options_, group_, log_, partitions_)) {}

  Client& client() const { return *client_; }

  /// After each question to client(): it may be replaced.
  void judge(bool answered) {
    const auto now = boot_clock().now();
    if (answered || !client_->turned_away()) return turned_away_since_.reset();
    if (!turned_away_since_) turned_away_since_ = now;
    if (now < *turned_away_since_ + longest_refusal) return;
    turned_away_since_ = now;
    try {
      client_ = make_observer(options_, group_, log_, partitions_);
    } catch (const std::invalid_argument& e) {  // such as a file that is just being written
      log_->write(Level::warning, e.what());
    }
  }

  Error explained(rd_kafka_resp_err_t code, const std::string& context) const {
    return explain(code, context, target_, log_->redacted());
  }

 private:
  /// Also the least time between two handles.
  static constexpr auto longest_refusal = std::chrono::seconds(5);

  const Options options_;
  const std::string group_;
  const std::shared_ptr<ClosableLog> log_;
  const int partitions_;
  const Target target_;
  std::shared_ptr<Client> client_;
  std::optional<Clock::Time> turned_away_since_;
};

}  // namespace tenure::kafka
