// SPDX-License-Identifier: Apache-2.0
// A tool for a GroupStore: of which elections a process wants to be told.
#pragma once
#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tenure {

/// What is left stays among them until the next session: a claim of it may still be under way. Any thread.
class JoinedNames {
 public:
  void join(const std::string& election) {
    const std::lock_guard lock(mutex_);
    joined_.insert(election);
    named_.insert(election);
  }
  void leave(const std::string& election) {
    const std::lock_guard lock(mutex_);
    joined_.erase(election);
  }
  void session_begins() {
    const std::lock_guard lock(mutex_);
    if (!named_.empty()) named_ = joined_;
  }

  /// Sorted. None: nothing was joined, so everything may be told.
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return {named_.begin(), named_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> joined_, named_;
};

}  // namespace tenure
