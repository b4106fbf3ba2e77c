// SPDX-License-Identifier: Apache-2.0
// A tool for a GroupStore: of which elections a process wants to be told.
#pragma once
#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>

namespace tenure {

/// What is left stays among them until a later commit was granted: before, a claim of it may still take effect. Any
/// thread may call any method.
class JoinedNames {
 public:
  /// As GroupStore::joined().
  void join(const std::string& election) {
    const std::lock_guard lock(mutex_);
    joined_.insert(election);
    left_.erase(election);
    any_ = true;
  }

  /// As GroupStore::left().
  void leave(const std::string& election) {
    const std::lock_guard lock(mutex_);
    if (joined_.erase(election) > 0) left_.insert(election);
  }

  /// What an earlier session claimed has ended with it.
  void session_begins() {
    const std::lock_guard lock(mutex_);
    left_.clear();
  }

  /// What forget() may be given once this commit was granted, and its look has a cursor. Ask before it is sent.
  std::vector<std::string> left_before(const Commit& commit) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    std::copy_if(left_.begin(), left_.end(), std::back_inserter(out), [&](const auto& election) {
      return std::ranges::find(commit.claims, election, &Claim::election) == commit.claims.end();
    });
    return out;
  }

  /// They are told no more, unless they were joined again.
  void forget(const std::vector<std::string>& elections) {
    const std::lock_guard lock(mutex_);
    for (const auto& election : elections) left_.erase(election);
  }

  /// Sorted. None: nothing was ever joined, so everything may be told. One without a name, which no election has: what
  /// was joined is left.
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    if (any_ && joined_.empty() && left_.empty()) out.emplace_back();
    std::merge(joined_.begin(), joined_.end(), left_.begin(), left_.end(), std::back_inserter(out));
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> joined_, left_;
  bool any_{};
};

}  // namespace tenure
