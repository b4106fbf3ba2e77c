// SPDX-License-Identifier: Apache-2.0
// What a candidate as a process is told, and what it writes.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include <tenure/clock.hpp>
#include <tenure/hooks.hpp>
#include <tenure/timing.hpp>
#include <tenure/token.hpp>

namespace tenure::test {

/// Any thread may write.
class Journal {
 public:
  explicit Journal(const std::string& path);
  void write(Clock::Time at, const std::string& event, const std::string& fields = {}) const;
  void now(const std::string& event, const std::string& fields = {}) const { write(boot_clock().now(), event, fields); }
  void start(const std::string& name, const Timing& timing) const;

 private:
  int fd_;
};

std::string json_text(std::string_view text);
std::string token_field(Token token);
std::string nanoseconds(const char* name, Clock::Time at);
std::string works_until(const Ousting& ousting);  ///< By Ousting::remaining(); 0: it may not.

/// "--option value" pairs.
class Arguments {
 public:
  /// Throws std::invalid_argument if one is missing that every candidate needs.
  Arguments(int argc, char** argv);
  const std::string& text(const std::string& name) const { return all_.at(name); }
  long number(const std::string& name, long otherwise) const;
  Timing timing(const Presets& presets) const;

 private:
  std::map<std::string, std::string> all_;
};

}  // namespace tenure::test
