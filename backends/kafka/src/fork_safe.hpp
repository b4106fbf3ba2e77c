// SPDX-License-Identifier: Apache-2.0
// The lock of what a process has once. A child of fork can go on with it.
#pragma once
#include <mutex>

namespace tenure::kafka {

/// Nobody holds this lock while the process is forked, so that a child finds it free and what it guards whole. It is
/// never destroyed, because threads may still run while statics are destroyed. REQUIRES: it is held for moments only,
/// and nobody forks meanwhile.
std::mutex& fork_safe_mutex();

}  // namespace tenure::kafka
