// SPDX-License-Identifier: Apache-2.0
// Metrics: what a Prometheus server is to read.
//! [all]
#include <chrono>
#include <iostream>

#include <tenure/file.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/prometheus.hpp>

int main() {
  auto backend = tenure::file::open("/tmp/tenure-example", "reports");
  tenure::LeaderManager manager(backend, tenure::file::presets().fast);
  manager.start();
  manager.await_leadership(std::chrono::seconds(10));

  std::cout << tenure::prometheus::to_text({manager.metrics()});  // your answer to GET /metrics
}
//! [all]
