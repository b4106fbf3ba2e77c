// SPDX-License-Identifier: Apache-2.0
// Metrics beside those that a program serves by prometheus-cpp. An argument names another address.
#include <csignal>
#include <exception>
#include <iostream>
#include <memory>

#include <prometheus/exposer.h>

#include <tenure/file.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/prometheuscpp.hpp>

int main(int argc, char** argv) try {
  sigset_t end;
  sigemptyset(&end), sigaddset(&end, SIGINT), sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);

  auto backend = tenure::file::open("/tmp/tenure-example", "reports");
  tenure::LeaderManager manager(backend, tenure::file::presets().fast);
  manager.start();

  const auto metrics = std::make_shared<tenure::prometheus::Collectable>(
      [&manager] { return tenure::prometheus::families({manager.metrics()}); });
  prometheus::Exposer exposer(argc > 1 ? argv[1] : "127.0.0.1:9464");
  exposer.RegisterCollectable(metrics);  // it does not own the metrics: keep them
  std::cout << "http://127.0.0.1:" << exposer.GetListeningPorts().front() << "/metrics" << std::endl;

  int signal = 0;
  sigwait(&end, &signal);
} catch (const std::exception& e) {  // such as an address that is taken
  std::cerr << e.what() << "\n";
  return 1;
}
