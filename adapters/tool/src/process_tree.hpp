// SPDX-License-Identifier: Apache-2.0
// The processes below one: children, their children, and so on. Whoever leaves his parent's group and session stays
// below it. If his parent ends he goes to the nearest process above that is a subreaper.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include <tenure/kit/descriptor.hpp>

namespace tenure::tool {

/// Orphans below this process become its children.
bool become_subreaper();

std::vector<pid_t> children_of(pid_t parent);

/// Sends the signal to each process below `top`, and not to `top`. New ones may appear meanwhile: a caller who kills
/// repeats it until nothing is left. Returns one that belongs to another user, so that we may not; 0: there is none.
pid_t signal_descendants(pid_t top, int signal);

/// A control group (cgroup v2, Linux 5.14) for what the command runs, below our own, where we may make one. By it the
/// kernel kills all at once, also what forks faster than anybody can list it. Elsewhere every call does nothing.
///
/// The tool makes it, and the supervisor has a copy. What a kill needs is open from the beginning.
class ControlGroup {
 public:
  ControlGroup();

  bool there() const { return bool(kill_); }
  const std::string& path() const { return path_; }
  void enter() const;   ///< This process, and what it forks from now on.
  void kill() const;    ///< Whatever is in it.
  void remove() const;  ///< Either of the two may. REQUIRES: what is left in it was killed. Waits for a second at most.

 private:
  std::string path_;
  Descriptor enter_, kill_;
};

}  // namespace tenure::tool
