// SPDX-License-Identifier: Apache-2.0
// Holds new threads at a gate until the last one is there.
#include "kit/start_together.hpp"

#include <future>

#include <tenure/kit/start_thread.hpp>

namespace tenure {

void start_together(const std::vector<std::pair<const char*, std::function<void()>>>& bodies,
                    const std::function<void(std::vector<std::thread>)>& keep) {
  std::promise<bool> gate;
  const std::shared_future<bool> complete = gate.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(bodies.size());
  try {
    for (const auto& [name, body] : bodies)
      threads.push_back(start_thread(name, [complete, run = body] {
        if (complete.get()) run();
      }));
  } catch (...) {
    gate.set_value(false);
    for (auto& thread : threads) thread.join();
    throw;
  }
  keep(std::move(threads));
  gate.set_value(true);
}

}  // namespace tenure
