// SPDX-License-Identifier: Apache-2.0
// What tests look for in messages and logs.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/log.hpp>

namespace tenure::test {

/// A secret. Tests hand it over as a password, and no message may have it.
inline const std::string canary = "s3cr3t-canary";

inline bool mentions(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

/// An error of this fault, whose message has these words and no secret.
inline void expect_error(const Error& error, Fault fault, const std::vector<std::string>& words = {},
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const testing::ScopedTrace trace(file, line, error.message);  // clang 14 has no std::source_location
  EXPECT_EQ(to_string(error.fault), to_string(fault));
  for (const auto& part : words) EXPECT_TRUE(mentions(error.message, part)) << "it does not say: " << part;
  EXPECT_FALSE(mentions(error.message, canary));
}

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
