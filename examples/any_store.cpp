// SPDX-License-Identifier: Apache-2.0
// One program, any store: elects through whatever the string names, a URL or a JSON document. Start it twice.
//   any_store file:///tmp/tenure-example                any_store postgres://localhost/postgres
//   any_store kafka://localhost:9092/reports            any_store redis://localhost
//   any_store configuration.json
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

#include <tenure/json.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>

static tenure::Configured configured(const std::string& what) {
  if (what.ends_with(".json")) return tenure::from_json_file(what, tenure::open);
  const auto store = tenure::open(what, "any-store");
  return {.backend = store.backend, .timing = store.presets.fast};
}

int main(int argc, char** argv) {
  sigset_t end;
  sigemptyset(&end), sigaddset(&end, SIGINT), sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);  // before the first thread, so that sigwait() gets them
  if (argc != 2) {
    std::cerr << "usage: any_store URL|FILE.json" << std::endl;
    return 2;
  }
  try {
    const auto [backend, timing] = configured(argv[1]);
    tenure::Hooks hooks;
    hooks.elected = [](const tenure::Elected& e) { std::cout << "leads " << e.token.value << std::endl; };
    hooks.ousting = [](const tenure::Ousting& o) { std::cout << "ends " << to_string(o.reason) << std::endl; };
    tenure::LeaderManager manager(backend, timing, hooks);
    manager.start();
    int signal = 0;
    sigwait(&end, &signal);  // leaving this scope hands the lead over
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
}
