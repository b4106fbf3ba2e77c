// SPDX-License-Identifier: Apache-2.0
#include "teller.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <tenure/kit/logging.hpp>

#include "paint.hpp"

namespace tenure::tool {
namespace {

constexpr std::string_view erased_line = "\r\x1b[K";
constexpr std::string_view spinner = "|/-\\";

/// Whether we may draw there, and not the shell or another job.
bool in_foreground() { return ::tcgetpgrp(STDERR_FILENO) == ::getpgrp(); }

/// What fits beside the spinner, so that no line is broken: only one could be erased.
std::size_t columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 3 ? size.ws_col - 3U : 77U;
}

}  // namespace

Teller::Teller(ServiceManager& manager) : manager_(manager), live_(is_terminal(STDERR_FILENO)) {}

void Teller::clear() {
  if (std::exchange(drawn_, false)) write_to_stderr(erased_line);
}

void Teller::say(const std::string& what) {
  clear();
  write_to_stderr("tenure: " + printable(what, 1000) + "\n");
}

void Teller::waits(const std::string& what, const std::string& more) {
  manager_.status(what);
  if (!live_ || !in_foreground()) return;
  const auto room = columns();
  const auto start = printable(what, room);
  const std::string turn(1, spinner[turn_++ % spinner.size()]);
  write_to_stderr(std::string(erased_line) + painted(Colour::doubtful, turn, STDERR_FILENO) + " " + start +
                  painted(Colour::faint, more.substr(0, room - std::min(room, start.size())), STDERR_FILENO));
  drawn_ = true;
}

void Teller::runs(const std::string& what) {
  manager_.status(what);
  clear();
}

}  // namespace tenure::tool
