// SPDX-License-Identifier: Apache-2.0
// A service that is told when it leads: hooks, over PostgreSQL. It prints what it hears first.
#include <cstdio>
#include <future>
#include <mutex>
#include <string>

#include <tenure/leader_manager.hpp>
#include <tenure/postgres.hpp>

int main(int, char** argv) {
  std::promise<std::string> heard;
  std::once_flag once;
  const auto hear = [&](const std::string& what) { std::call_once(once, [&] { heard.set_value(what); }); };
  tenure::Hooks hooks;
  hooks.elected = [&](const tenure::Elected&) { hear("leads"); };
  hooks.ousting = [](const tenure::Ousting&) { std::puts("ends"); };
  hooks.error = [&](const tenure::Error& e) { hear(std::string(to_string(e.fault))); };

  const auto store = tenure::postgres::open_url({.url = argv[1], .election = "hooks"});
  tenure::LeaderManager manager(store.backend, store.presets.fast, hooks);
  manager.start();
  std::puts(heard.get_future().get().c_str());
}
