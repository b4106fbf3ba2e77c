// SPDX-License-Identifier: Apache-2.0
// The lock of what a process has once. A child of fork can go on with it.
#pragma once
#include <mutex>

namespace tenure::kafka {

/// Nobody holds it while the process is forked, so that a child finds it free and what it guards whole. Never
/// destroyed: threads may still run while statics are torn down. REQUIRES: held for moments; no fork meanwhile.
std::mutex& fork_safe_mutex();

}  // namespace tenure::kafka
