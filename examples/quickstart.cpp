// SPDX-License-Identifier: Apache-2.0
// One candidate. It campaigns until SIGTERM, and says when it leads, when it stops leading, and whom it follows.
// examples/quickstart starts three of them.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stop_token>
#include <string>
#include <thread>

#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>

namespace {

/// Prints one line per event: the time (microseconds since 1970, to be shown only), the candidate, the event.
void say(const std::string& name, const std::string& what) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::printf("%lld %s %s\n", static_cast<long long>(us), name.c_str(), what.c_str());
  std::fflush(stdout);
}

void campaign(const std::string& url, const std::string& name, const sigset_t& terminations) {
  const auto opened = tenure::open(url, "quickstart", {name, ""});
  tenure::Hooks hooks;
  hooks.elected = [&](const tenure::Elected& e) { say(name, "leads " + std::to_string(e.token.value)); };
  hooks.ousting = [&](const tenure::Ousting& o) { say(name, "ends " + std::string(to_string(o.reason))); };

  tenure::LeaderManager manager(opened.backend, opened.presets.fast, hooks);
  manager.start();

  std::stop_source end;
  const std::jthread terminator([&] {
    int signal = 0;
    sigwait(&terminations, &signal);
    end.request_stop();
  });
  const auto leadership = manager.leadership();
  for (std::uint64_t seen = 0; !end.stop_requested();) {
    seen = manager.await_change(seen, std::chrono::hours(1), end.get_token());
    if (const auto incumbent = leadership.incumbent()) say(name, "follows " + incumbent->name);
  }
  manager.stop();  // ousting() first, then the store is told, so that the next one leads at once
}

}  // namespace

int main(int argc, char** argv) {
  // The URL may hold a password, so it does not stand on the command line, which everybody can read.
  const auto* url = std::getenv("TENURE_STORE");  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  if (argc != 2 || url == nullptr) {
    std::fprintf(stderr, "usage: TENURE_STORE=URL quickstart NAME, with a URL as <tenure/stores.hpp> lists them\n");
    return 2;
  }
  sigset_t terminations;
  sigemptyset(&terminations);
  sigaddset(&terminations, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &terminations, nullptr);  // before the first thread, so that sigwait() gets it
  try {
    campaign(url, argv[1], terminations);
  } catch (const std::exception& e) {
    say(argv[1], std::string("fails: ") + e.what());
    return 1;
  }
}
