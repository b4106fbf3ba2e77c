// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <stdexcept>
#include <utility>

namespace tenure::kafka {
namespace {

/// Also the least times between two handles.
constexpr auto longest_refusal = std::chrono::seconds(5), longest_silence = std::chrono::seconds(15);

}  // namespace

Reader::Reader(Options options, std::string group, std::shared_ptr<ClosableLog> log, int partitions)
    : options_(std::move(options)),
      group_(std::move(group)),
      log_(std::move(log)),
      partitions_(partitions),
      target_{options_.brokers, group_, options_.topic, partitions_},
      client_(make_observer(options_, group_, log_, partitions_)) {}

void Reader::judge(bool answered) {
  if (answered) return unanswered_since_.reset();
  const auto now = boot_clock().now();
  if (!unanswered_since_) unanswered_since_ = now;
  if (now < *unanswered_since_ + (client_->turned_away() ? longest_refusal : longest_silence)) return;
  unanswered_since_ = now;
  try {
    client_ = make_observer(options_, group_, log_, partitions_);
  } catch (const std::invalid_argument& e) {  // such as a file that is just being written
    log_->write(Level::warning, e.what());
  }
}

}  // namespace tenure::kafka
