// SPDX-License-Identifier: Apache-2.0
// Which store, election and timing: a document says so.
#include <cstdio>
#include <string>

#include <tenure/json.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/stores.hpp>

int main(int, char** argv) {
  const auto configured = tenure::from_json(
      R"({"store": ")" + std::string(argv[1]) + R"(", "election": "document", "timing": "fast"})", tenure::open);
  tenure::LeaderManager manager(configured.backend, configured.timing);
  manager.start();
  std::puts(manager.await_leadership(std::chrono::seconds(20)) ? "leads" : "nobody");
}
