// SPDX-License-Identifier: Apache-2.0
// Work that one process may do: a task, over Redis. It prints what it hears first.
#include <cstdio>
#include <future>
#include <mutex>
#include <string>

#include <tenure/leader_task.hpp>
#include <tenure/redis.hpp>

int main(int, char** argv) {
  std::promise<std::string> heard;
  std::once_flag once;
  const auto hear = [&](const std::string& what) { std::call_once(once, [&] { heard.set_value(what); }); };
  const auto work = [&](std::stop_token, tenure::Token) { hear("leads"); };
  tenure::Hooks hooks;
  hooks.error = [&](const tenure::Error& e) { hear(std::string(to_string(e.fault))); };

  const auto store = tenure::redis::open_url({.url = argv[1], .election = "task"});
  tenure::LeaderTask task(store.backend, store.presets.fast, work, tenure::LeaderTask::OnReturn::stay, hooks);
  std::puts(heard.get_future().get().c_str());
}
