// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace tenure::tool {

/// A control group (cgroup v2, Linux 5.14) for what the command runs, below our own, where we may make one. By it the
/// kernel kills all at once, also what forks faster than anybody can list it. Elsewhere every call does nothing.
///
/// The tool makes it, and the guardian has a copy. What a kill needs is open from the beginning.
class ControlGroup {
 public:
  ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  bool there() const { return kill_ >= 0; }
  const std::string& path() const { return path_; }
  void enter() const;   ///< This process, and what it forks from now on.
  void kill() const;    ///< Whatever is in it.
  void remove() const;  ///< Either of the two may. REQUIRES: what is left in it was killed. Waits for a second at most.

 private:
  std::string path_;
  int enter_{-1}, kill_{-1};
};

}  // namespace tenure::tool
