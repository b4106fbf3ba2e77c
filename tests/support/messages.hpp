// SPDX-License-Identifier: Apache-2.0
// What tests look for in messages and logs.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <tenure/log.hpp>

namespace tenure::test {

/// A secret. Tests hand it over as a password, and no message may have it.
inline const std::string canary = "s3cr3t-canary";

inline bool mentions(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// Keeps the lines of a log, from any thread.
class Lines {
 public:
  Log log() {
    return [this](const LogLine& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line.message);
    };
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  bool mention(const std::string& part) const {
    const auto lines = all();
    return std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return mentions(line, part); });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace tenure::test
