// SPDX-License-Identifier: Apache-2.0
#include "descendants.hpp"

#include <dirent.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <tenure/kit/text.hpp>

namespace tenure::tool {
namespace {

void close_directory(DIR* directory) { ::closedir(directory); }

/// The parent of a process, or 0 if it has gone.
pid_t parent_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(in), {});
  const auto name_end = stat.rfind(") ");  // the name may have anything in it
  if (name_end == stat.npos || stat.size() < name_end + 5) return 0;
  const auto begin = name_end + 4;
  return number<pid_t>(std::string_view(stat).substr(begin, stat.find(' ', begin) - begin)).value_or(0);
}

/// Where the kernel lists no children: every process is asked for its parent.
std::vector<pid_t> search_children_of(pid_t parent) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, void (*)(DIR*)> all(::opendir("/proc"), close_directory);
  while (const auto* entry = all ? ::readdir(all.get()) : nullptr)
    if (const auto pid = number<pid_t>(entry->d_name); pid && parent_of(*pid) == parent) out.push_back(*pid);
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
  const std::unique_ptr<DIR, void (*)(DIR*)> threads(::opendir(tasks.c_str()), close_directory);
  while (const auto* thread = threads ? ::readdir(threads.get()) : nullptr) {
    if (thread->d_name[0] == '.') continue;
    std::ifstream in(tasks + thread->d_name + "/children");
    std::copy(std::istream_iterator<pid_t>(in), {}, std::back_inserter(out));
  }
  return out;
}

void signal_descendants(pid_t top, int signal) {
  for (const auto child : children_of(top)) {
    signal_descendants(child, signal);  // before its children go to somebody else
    ::kill(child, signal);
  }
}

}  // namespace tenure::tool
