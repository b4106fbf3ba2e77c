// SPDX-License-Identifier: Apache-2.0
// The smallest store: records on a shelf of this process.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <tenure/conditional_store.hpp>

/// The server.
struct Shelf {
  std::mutex mutex{};
  std::map<std::string, std::optional<tenure::Record>> records{};  ///< By election.
};

//! [store]
/// A connection to one record of it. Hand it to tenure::lock_table(), which makes a Backend of it.
class ShelfStore final : public tenure::ConditionalStore {
 public:
  ShelfStore(std::shared_ptr<Shelf> shelf, std::string election)
      : shelf_(std::move(shelf)), election_(std::move(election)) {}

  tenure::Result<tenure::Read> read(const tenure::Limit& limit) override {
    if (limit.passed()) return late();
    const std::lock_guard lock(shelf_->mutex);
    return found(limit);
  }

  tenure::Result<tenure::Swap> compare_and_set(const std::optional<tenure::Expected>& expected,
                                               const tenure::Record& next, const tenure::Limit& limit) override {
    if (limit.passed()) return late();
    const std::lock_guard lock(shelf_->mutex);
    auto& record = shelf_->records[election_];
    const bool applied = matches(expected, record);
    if (applied) {
      record = next;
      record->term = std::chrono::ceil<std::chrono::milliseconds>(next.term);
      record->written_ms = limit.clock.unix_ms();
    }
    return tenure::Swap{applied, found(limit)};
  }

 private:
  static tenure::Error late() { return {tenure::Fault::timed_out, "the limit had passed before the call"}; }
  tenure::Read found(const tenure::Limit& limit) {
    return {.record = shelf_->records[election_], .now_ms = limit.clock.unix_ms(), .absence_certain = true};
  }

  const std::shared_ptr<Shelf> shelf_;
  const std::string election_;
};
//! [store]
