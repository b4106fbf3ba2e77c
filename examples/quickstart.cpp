// SPDX-License-Identifier: Apache-2.0
// One candidate: campaigns until SIGTERM, and says when it leads, when it stops leading, and whom it follows.
// examples/quickstart starts three of them.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include <tenure/file.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/lock_table.hpp>
#ifdef TENURE_EXAMPLE_KAFKA
#include <tenure/kafka.hpp>
#endif

namespace {

struct Store {
  std::shared_ptr<tenure::Backend> seat;
  tenure::Timing timing;
};

Store open(const std::string& kind, const std::string& where, const std::string& name) {
  if (kind == "file") return {tenure::file::open(where, "quickstart", {name, ""}), tenure::lock_table_timing::fast()};
#ifdef TENURE_EXAMPLE_KAFKA
  if (kind == "kafka") {
    tenure::kafka::Options options;
    options.brokers = where;
    options.group = "quickstart";
    options.candidate = {name, ""};
    options.create_topic.emplace();
    return {tenure::kafka::open(options), tenure::kafka::fast()};
  }
#endif
  throw std::invalid_argument("this build has no store named " + kind);
}

/// One line per event: when (microseconds since 1970, for the reader's arithmetic only), who, what.
void say(const std::string& name, const std::string& what) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::printf("%lld %s %s\n", static_cast<long long>(us), name.c_str(), what.c_str());
  std::fflush(stdout);
}

void campaign(const std::string& kind, const std::string& where, const std::string& name,
              const sigset_t& terminations) {
  auto [seat, timing] = open(kind, where, name);
  tenure::Hooks hooks;
  hooks.elected = [&](const tenure::Elected& e) { say(name, "leads " + std::to_string(e.token.value)); };
  hooks.ousting = [&](const tenure::Ousting& o) { say(name, "ends " + std::string(to_string(o.reason))); };
  hooks.error = [&](const tenure::Error& e) { say(name, "reports " + e.message); };

  tenure::LeaderManager manager(seat, timing, hooks);
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
  if (argc != 4) {
    std::fprintf(stderr, "usage: quickstart file DIRECTORY NAME | quickstart kafka BROKERS NAME\n");
    return 2;
  }
  sigset_t terminations;
  sigemptyset(&terminations);
  sigaddset(&terminations, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &terminations, nullptr);  // before the first thread, so that sigwait() gets it
  try {
    campaign(argv[1], argv[2], argv[3], terminations);
  } catch (const std::exception& e) {
    say(argv[3], std::string("fails: ") + e.what());
    return 1;
  }
}
