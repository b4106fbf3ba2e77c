// SPDX-License-Identifier: Apache-2.0
// Finds processes in /proc, and makes the control group.
#include "process_tree.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include <tenure/kit/text.hpp>

namespace tenure::tool {
namespace {

/// The parent of a process, or 0 if it has gone.
pid_t parent_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(in), {});
  const auto name_end = stat.rfind(") ");  // the name may have anything in it
  if (name_end == stat.npos || stat.size() < name_end + 5) return 0;
  const auto begin = name_end + 4;
  return number<pid_t>(std::string_view(stat).substr(begin, stat.find(' ', begin) - begin)).value_or(0);
}

/// The directory's entries whose names are numbers. The directory may have gone.
std::vector<pid_t> numbers_in(const std::string& directory) {
  std::vector<pid_t> out;
  std::error_code gone;
  for (std::filesystem::directory_iterator at(directory, gone), end; !gone && at != end; at.increment(gone))
    if (const auto id = number<pid_t>(at->path().filename().native())) out.push_back(*id);
  return out;
}

/// Where the kernel lists no children: every process is asked for its parent.
std::vector<pid_t> search_children_of(pid_t parent) {
  auto out = numbers_in("/proc");
  std::erase_if(out, [parent](pid_t pid) { return parent_of(pid) != parent; });
  return out;
}

bool kernel_lists_children() { return ::access("/proc/thread-self/children", R_OK) == 0; }

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

Descriptor open_in(const std::string& path, const char* file) {
  return Descriptor(::open((path + "/" + file).c_str(), O_WRONLY | O_CLOEXEC));
}

}  // namespace

bool become_subreaper() { return ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0; }

std::vector<pid_t> children_of(pid_t parent) {
  // The kernel keeps a list for each thread that forks.
  const auto tasks = "/proc/" + std::to_string(parent) + "/task/";
  if (!kernel_lists_children()) return search_children_of(parent);
  std::vector<pid_t> out;
  for (const auto thread : numbers_in(tasks)) {
    std::ifstream in(tasks + std::to_string(thread) + "/children");
    std::copy(std::istream_iterator<pid_t>(in), {}, std::back_inserter(out));
  }
  return out;
}

pid_t signal_descendants(pid_t top, int signal) {
  pid_t stranger = 0;
  for (const auto child : children_of(top)) {
    if (const auto below = signal_descendants(child, signal)) stranger = below;  // before its children go elsewhere
    if (::kill(child, signal) != 0 && errno == EPERM) stranger = child;
  }
  return stranger;
}

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
  if (enter_ && kill_) return;
  enter_.reset();
  kill_.reset();
  remove();
  path_.clear();
}

void ControlGroup::enter() const {
  // If it may not, the supervisor finds it all the same, as where there is no group.
  if (enter_ && ::write(enter_.get(), "0", 1) < 0) return;
}

void ControlGroup::kill() const {
  if (kill_ && ::write(kill_.get(), "1", 1) < 0) return;  // the group has been removed
}

void ControlGroup::remove() const {
  constexpr timespec pause{0, 1'000'000};
  for (int tries = 0; tries < 1000 && !path_.empty(); ++tries) {  // What was killed leaves it some moments later.
    if (::rmdir(path_.c_str()) == 0 || errno != EBUSY) return;
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace tenure::tool
