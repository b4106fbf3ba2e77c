// SPDX-License-Identifier: Apache-2.0
// A master with a replica, for tests.
#pragma once
#include <stdexcept>
#include <string>

#include "server.hpp"

namespace tenure::redis::test {

/// A master and its replica.
struct Replicated {
  /// Until the replica acknowledges a write: it is in step only once it has acknowledged something that was written
  /// since it came on line.
  template <class Write>
  void await(Write write) {
    const auto online = [&] { return master.ask({"INFO", "replication"}).find("state=online") != std::string::npos; };
    if (!eventually(online) || !eventually(write)) throw std::runtime_error("the replica acknowledges nothing");
  }

  Server master;
  Server replica{{"replicaof 127.0.0.1 " + std::to_string(master.port())}};
};

}  // namespace tenure::redis::test
