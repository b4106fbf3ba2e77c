// SPDX-License-Identifier: Apache-2.0
// A program of examples/ as a process.
#pragma once
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "process.hpp"

namespace tenure::test {

class Example : public Process {
 public:
  /// words[0] is the program's name in examples/. `environment` is of NAME=VALUE.
  explicit Example(std::vector<std::string> words, const std::vector<std::string>& environment = {},
                   Streams streams = {})
      : Process(command(std::move(words), environment), std::move(streams)) {}

  static bool is_built(const std::string& name) { return std::filesystem::exists(TENURE_EXAMPLES "/" + name); }

  int count(const std::string& part) const {
    int found = 0;
    const auto text = "\n" + out();
    for (auto at = text.find("\n" + part); at != text.npos; at = text.find("\n" + part, at + 1)) ++found;
    return found;
  }
  /// Waits until it has printed this.
  bool says(const std::string& part) const {
    return eventually([&] { return out().find(part) != std::string::npos; }, std::chrono::seconds(50));
  }
  /// It ends well when it is asked to.
  void stop() {
    signal(SIGTERM);
    EXPECT_EQ(ended(), 0) << told();
  }
  std::string told() const { return "It said:\n" + out() + "and on stderr:\n" + err(); }

 private:
  static std::vector<std::string> command(std::vector<std::string> words, const std::vector<std::string>& environment) {
    words[0] = TENURE_EXAMPLES "/" + words[0];
    words.insert(words.begin(), environment.begin(), environment.end());
    words.insert(words.begin(), "env");
    return words;
  }
};

}  // namespace tenure::test
