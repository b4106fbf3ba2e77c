// SPDX-License-Identifier: Apache-2.0
#include "control_group.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <sstream>

namespace tenure::tool {
namespace {

/// Our own one in the tree of version 2; empty if there is none.
std::string own_group() {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return {};
}

/// The directory of that group; empty if no tree is mounted that has it.
std::string directory_of(const std::string& group) {
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.find(" - cgroup2 ") == line.npos) continue;
    std::istringstream fields(line);
    std::string skipped, root, mounted;
    fields >> skipped >> skipped >> skipped >> root >> mounted;
    if (root == "/") root.clear();
    if (!group.empty() && group.starts_with(root)) return mounted + group.substr(root.size());
  }
  return {};
}

int open_in(const std::string& path, const char* file) {
  return ::open((path + "/" + file).c_str(), O_WRONLY | O_CLOEXEC);
}

}  // namespace

ControlGroup::ControlGroup() {
  const auto parent = directory_of(own_group());
  if (parent.empty()) return;
  path_ = parent + "/tenure-" + std::to_string(::getpid());
  remove();                                 // of an earlier process with this id, if both of its processes were killed
  if (::mkdir(path_.c_str(), 0700) != 0) {  // Whoever made the one that may stand there removes it.
    path_.clear();
    return;
  }
  enter_ = open_in(path_, "cgroup.procs");
  kill_ = open_in(path_, "cgroup.kill");
  if (enter_ >= 0 && kill_ >= 0) return;
  for (int* descriptor : {&enter_, &kill_}) {
    if (*descriptor >= 0) ::close(*descriptor);
    *descriptor = -1;
  }
  remove();
  path_.clear();
}

void ControlGroup::enter() const {
  // If it may not, the guardian finds it all the same, as where there is no group.
  if (enter_ >= 0 && ::write(enter_, "0", 1) < 0) return;
}

void ControlGroup::kill() const {
  if (kill_ >= 0 && ::write(kill_, "1", 1) < 0) return;  // the group has been removed
}

void ControlGroup::remove() const {
  constexpr timespec pause{0, 1'000'000};
  for (int tries = 0; tries < 1000 && !path_.empty(); ++tries) {  // What was killed leaves it some moments later.
    if (::rmdir(path_.c_str()) == 0 || errno != EBUSY) return;
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace tenure::tool
