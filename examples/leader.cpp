// SPDX-License-Identifier: Apache-2.0
// A task: work that exactly one of several processes does. Start it in several terminals.
//! [all]
#include <iostream>

#include <tenure/file.hpp>
#include <tenure/leader_task.hpp>

int main() {
  auto backend = tenure::file::open("/tmp/tenure-example", "reports");
  tenure::LeaderTask task(backend, tenure::file::presets().fast, [](std::stop_token stop, tenure::Token token) {
    std::cout << "leading with token " << token.value << std::endl;
    while (tenure::sleep_for(std::chrono::milliseconds(50), stop)) {  // one step of your work
    }
    std::cout << "no longer leading" << std::endl;
  });
  std::cin.get();  // Enter ends the program, and hands the lead over
}
//! [all]
