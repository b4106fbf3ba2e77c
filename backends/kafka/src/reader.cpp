// SPDX-License-Identifier: Apache-2.0
// Reads offsets, and makes the handle anew where brokers turn it away.
#include "reader.hpp"

#include <stdexcept>
#include <utility>

namespace tenure::kafka {
namespace {

/// Also the least time between two handles.
constexpr auto longest_refusal = std::chrono::seconds(5);

}  // namespace

Reader::Reader(Options options, std::string group, std::shared_ptr<ClosableLog> log, int partitions)
    : options_(std::move(options)),
      group_(std::move(group)),
      log_(std::move(log)),
      partitions_(partitions),
      target_{options_.brokers, group_, options_.topic, partitions_},
      client_(make_observer(options_, group_, log_, partitions_)) {}

void Reader::judge(bool answered) {
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

}  // namespace tenure::kafka
