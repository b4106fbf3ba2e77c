// SPDX-License-Identifier: Apache-2.0
// The tool, or another program, as a process of its own.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "scratch.hpp"

namespace tenure::test {

struct Streams {
  bool stdin_closed{};
  std::string in{};  ///< A file; /dev/null if empty.
};

/// `words[0]` is looked for in PATH. One thread uses it. The destructor kills the process; if ours dies, the kernel
/// does.
class Process {
 public:
  explicit Process(std::vector<std::string> words, Streams streams = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// The exit code, or -n if signal n killed it. Waits; -1000 if it does not end for a very long time.
  int ended();
  bool running();
  std::string out() const;  ///< What it has written to stdout so far.
  std::string err() const;

 private:
  Scratch scratch_;
  pid_t pid_{};
  std::optional<int> status_;
};

#ifdef TENURE_TOOL_PROGRAM
/// The tool with these words.
inline std::vector<std::string> tool(std::vector<std::string> words) {
  words.insert(words.begin(), TENURE_TOOL_PROGRAM);
  return words;
}
#endif

/// A program that finds these signals ignored, as its parent may have left them: "HUP,INT".
inline std::vector<std::string> ignoring(const std::string& signals, std::vector<std::string> words) {
  words.insert(words.begin(), {"env", "--ignore-signal=" + signals});
  return words;
}

std::string contents(const std::string& path);  ///< Empty if there is no such file.
bool alive(pid_t pid);                          ///< It runs, and is no zombie.

}  // namespace tenure::test
