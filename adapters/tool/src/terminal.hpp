// SPDX-License-Identifier: Apache-2.0
// The terminal of the tool and of its command.
#pragma once
#include <sys/types.h>

namespace tenure::tool {

/// The terminal that is the tool's stdin. If the tool stands in its foreground when a command starts, the command takes
/// that place while it runs. The user may send the tool to the background at any time, so this is looked at each time.
class Terminal {
 public:
  Terminal();  ///< Made by the tool, whose supervisor copies it.

  bool there() const { return tool_ > 0; }
  bool belongs_to(pid_t group) const;  ///< This group stands in the foreground.

  /// If it belongs to the tool, or still to the group of the command `before`.
  void give_to(pid_t group, pid_t before) const;
  /// To the tool, unless a process has it that runs: then the shell has taken it.
  void give_back() const;

 private:
  pid_t tool_;  ///< The tool's group; 0: there is no terminal.
};

}  // namespace tenure::tool
