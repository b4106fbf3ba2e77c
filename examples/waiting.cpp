// SPDX-License-Identifier: Apache-2.0
// Waiting: a program that does one thing once it leads, and then hands over.
#include <iostream>

#include <tenure/file.hpp>
#include <tenure/leader_manager.hpp>

using namespace std::chrono_literals;

int main() {
  auto backend = tenure::file::open("/tmp/tenure-example", "migration");
  tenure::LeaderManager manager(backend, tenure::file::presets().balanced);
  //! [waiting]
  manager.start();
  const auto token = manager.await_leadership(1min);
  if (!token) {
    const auto error = manager.last_error();
    std::cerr << (error ? error->message : "somebody else led all the time") << std::endl;
    return 1;
  }
  std::cout << "migrates with token " << token->value << std::endl;
  manager.stop();  // a candidate that waits leads at once
  //! [waiting]
}
