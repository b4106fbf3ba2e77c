// SPDX-License-Identifier: Apache-2.0
// `tenure run` over a file store of the test's own.
#pragma once
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "process.hpp"
#include "process_tree.hpp"

namespace tenure::test {

using Words = std::vector<std::string>;

/// Shell: waits, and can be ended by every signal that it does not ignore.
inline const std::string for_ever = "while :; do sleep 0.01; done";

/// A configuration for `-c` with a lease of 4 s. Half of its margin is what the kill of a command may take: 400 ms on a
/// busy machine.
inline std::string with_a_wide_margin(const Scratch& files, const std::string& store) {
  return files.file("configuration.json", R"({"store": ")" + store + R"(", "election": "e", )" +
                                              R"("timing": {"term": "4s", "renew": "500ms", "margin": "800ms"}})");
}

/// It has begun: its first line is there.
inline bool begun(const Process& run) {
  return eventually([&] { return run.out().find('\n') != std::string::npos; });
}

class RunTool : public ::testing::Test {
 protected:
  /// What stubborn() starts.
  struct Stubborn {
    explicit Stubborn(const RunTool& test) : child(test.told("child")), grandchild(test.told("grandchild")) {}
    void expect_ended() const {
      EXPECT_FALSE(alive(child));
      EXPECT_FALSE(alive(grandchild));
    }
    const pid_t child, grandchild;
  };

  // What our tools leave behind becomes a child of ours.
  RunTool() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~RunTool() override {
    EXPECT_TRUE(eventually(all_have_ended)) << "what the test started runs on";
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

  std::string url() const { return "file://" + directory_.path().string(); }
  Words words(Words options, Words command) const {
    Words all{"run"};
    const bool by_document = std::find(options.begin(), options.end(), "-c") != options.end();
    if (!by_document) all.insert(all.end(), {"-e", "e", "--store", url()});
    all.insert(all.end(), options.begin(), options.end());
    all.push_back("--");
    all.insert(all.end(), command.begin(), command.end());
    return tool(all);
  }
  Words shell(Words options, const std::string& script) const { return words(options, {"sh", "-c", script}); }
  std::string path(const std::string& name) const { return (files_ / name).string(); }

  /// The process that a command wrote into this file.
  pid_t told(const std::string& name) const {
    pid_t pid = 0;
    EXPECT_TRUE(eventually([&] { return contents(path(name)).ends_with('\n'); })) << name;
    std::istringstream(contents(path(name))) >> pid;
    return pid;
  }

  /// A script that ignores SIGTERM, and so does a process that it puts into a session of its own. Both say who they
  /// are.
  std::string stubborn() const {
    const auto one = [&](const std::string& name) { return "trap '' TERM; echo $$ >" + path(name) + "; " + for_ever; };
    return "setsid sh -c \"" + escaped(one("grandchild")) + "\" & " + one("child");
  }

  /// A script that says whether one of the two runs.
  std::string witness() const {
    return "for f in " + path("child") + " " + path("grandchild") +
           "; do p=$(cat $f); [ -e /proc/$p/stat ] && ! grep -qs '^State:.[ZX]' /proc/$p/status && echo overlap; done; "
           "echo looked";
  }

  Scratch directory_, files_;

 private:
  static bool all_have_ended() {
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    return ended < 0 && errno == ECHILD;
  }

  static std::string escaped(std::string text) {
    for (auto at = text.find('$'); at != text.npos; at = text.find('$', at + 2)) text.insert(at, "\\");
    return text;
  }
};

/// A signal has stopped it.
inline bool stands_still(pid_t pid) {
  return contents("/proc/" + std::to_string(pid) + "/status").find("State:\tT") != std::string::npos;
}

inline auto lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

inline pid_t supervisor_of(const Process& tool) {
  std::vector<pid_t> children;
  EXPECT_TRUE(eventually([&] { return (children = tool::children_of(tool.pid())).size() == 1; }));
  return children.empty() ? 0 : children.front();
}

}  // namespace tenure::test
