// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: gives up a thread that must not be waited for now.
#pragma once
#include <thread>

#include <tenure/export.hpp>
#include <tenure/kit/same_build.hpp>

namespace tenure {

/// Leaves a thread to itself that must not be waited for now. Use it in place of std::thread::detach(): when the
/// process ends, libraries such as OpenSSL take down what a thread may still use. So all threads that are left behind
/// are waited for then, for one second together. Any thread may call it. It needs some bytes of memory; without them it
/// detaches.
TENURE_EXPORT void leave_behind(std::thread thread) noexcept;

}  // namespace tenure
