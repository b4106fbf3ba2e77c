// SPDX-License-Identifier: Apache-2.0
// Starts several threads, or none.
#pragma once
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace tenure {

/// Starts a thread of this name, a literal, for each body, or none. Each begins once the last one is there and `keep`
/// has taken them all, in order. Throws std::system_error if one cannot be had; those that could have ended by then,
/// and none has begun.
void start_together(const std::vector<std::pair<const char*, std::function<void()>>>& bodies,
                    const std::function<void(std::vector<std::thread>)>& keep);

}  // namespace tenure
