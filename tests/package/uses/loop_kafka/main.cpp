// SPDX-License-Identifier: Apache-2.0
// A loop of one's own that waits until it leads, over Kafka. It gives up when it has heard of an error.
#include <atomic>
#include <cstdio>

#include <tenure/kafka.hpp>
#include <tenure/leader_manager.hpp>

int main(int, char** argv) {
  std::atomic<bool> trouble{false};
  tenure::Hooks hooks;
  hooks.error = [&](const tenure::Error&) { trouble = true; };

  const auto store = tenure::kafka::open_url({.url = argv[1], .election = "loop"});
  tenure::LeaderManager manager(store.backend, store.presets.fast, hooks);
  manager.start();
  while (!trouble) {
    if (!manager.await_leadership(std::chrono::milliseconds(200))) continue;
    const auto token = manager.leadership().guard(std::chrono::milliseconds(1));
    std::puts(token ? "leads" : "has lost it already");
    manager.stop();
    std::puts("ends");
    return 0;
  }
  std::puts("unreachable");
}
