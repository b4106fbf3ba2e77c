// SPDX-License-Identifier: Apache-2.0
// What the connections of one store share: what deserves a line in the log, each once, and that they are to go
// elsewhere. A connection notes it on its thread, which may outlive the store; whoever calls the store then tells it.
#pragma once
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/kit/logging.hpp>
#include <tenure/log.hpp>

namespace tenure::postgres {

class Notes final {
 public:
  /// `what`: an "election" or a "group", of that name.
  Notes(Log log, std::string what, std::string name)
      : log_(std::move(log)), what_(std::move(what)), name_(std::move(name)) {}

  void add(Level level, const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (noted_.size() < 100 && noted_.insert(message).second) untold_.emplace_back(level, message);
  }

  /// A server was left, because another one may do. The other connections are not to stay there alone.
  void leave() { ++left_; }
  int left() const { return left_; }

  void tell() {
    std::vector<std::pair<Level, std::string>> lines;
    {
      const std::lock_guard lock(mutex_);
      lines.swap(untold_);
    }
    for (const auto& [level, message] : lines)
      tenure::tell(log_, level, message, {{what_, name_}, {"store", "postgres"}});
  }

 private:
  const Log log_;
  const std::string what_, name_;
  std::atomic<int> left_{0};
  std::mutex mutex_;
  std::set<std::string> noted_;
  std::vector<std::pair<Level, std::string>> untold_;
};

}  // namespace tenure::postgres
