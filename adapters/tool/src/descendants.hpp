// SPDX-License-Identifier: Apache-2.0
// The processes below one: children, their children, and so on. Whoever leaves his parent's group and session stays
// below it. If his parent ends he goes to the nearest process above that is a subreaper.
#pragma once
#include <sys/types.h>

#include <vector>

namespace tenure::tool {

/// Orphans below this process become its children.
bool become_subreaper();

std::vector<pid_t> children_of(pid_t parent);

/// Sends the signal to each process below `top`, and not to `top`. New ones may appear meanwhile: a caller who kills
/// repeats it until nothing is left. Returns one that belongs to another user, so that we may not; 0: there is none.
pid_t signal_descendants(pid_t top, int signal);

}  // namespace tenure::tool
