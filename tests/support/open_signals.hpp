// SPDX-License-Identifier: Apache-2.0
// Which of the program's signals its threads would take.
#pragma once
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenure::test {

/// By the names of the threads that begin so. What the kernel says counts, not what we believe.
inline std::map<std::string, std::vector<int>> open_signals(std::string_view prefix) {
  std::map<std::string, std::vector<int>> out;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm"), status(task.path() / "status");
    std::string name, line;
    std::getline(comm, name);
    while (std::getline(status, line) && !line.starts_with("SigBlk:")) {
    }
    if (!name.starts_with(prefix) || line.empty()) continue;
    const auto blocked = std::stoull(line.substr(7), nullptr, 16);
    auto& taken = out[name];
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM})
      if (!(blocked >> (signal - 1) & 1)) taken.push_back(signal);
  }
  return out;
}

}  // namespace tenure::test
