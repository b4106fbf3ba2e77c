// SPDX-License-Identifier: Apache-2.0
// Asks and sets who stands in the foreground of the terminal.
#include "terminal.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace tenure::tool {
namespace {

/// Whoever does so in the background is stopped, unless SIGTTOU is blocked.
void put_in_foreground(pid_t group) {
  sigset_t stops, before;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &stops, &before);
  ::tcsetpgrp(STDIN_FILENO, group);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// No process of it is left. kill() takes 1 for all processes.
bool has_gone(pid_t group) { return group > 1 && ::kill(-group, 0) != 0 && errno == ESRCH; }

}  // namespace

Terminal::Terminal() : tool_(::isatty(STDIN_FILENO) == 1 ? ::getpgrp() : 0) {}

bool Terminal::belongs_to(pid_t group) const { return tool_ > 0 && group > 0 && ::tcgetpgrp(STDIN_FILENO) == group; }

void Terminal::give_to(pid_t group, pid_t before) const {
  if (belongs_to(tool_) || belongs_to(before)) put_in_foreground(group);
}

void Terminal::give_back() const {
  if (tool_ > 0 && has_gone(::tcgetpgrp(STDIN_FILENO))) put_in_foreground(tool_);
}

}  // namespace tenure::tool
