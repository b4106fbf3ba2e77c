// SPDX-License-Identifier: Apache-2.0
#include "descendants.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
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

}  // namespace tenure::tool
