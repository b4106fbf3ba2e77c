// SPDX-License-Identifier: Apache-2.0
// Starts a broker by docker/kafka.
#include "server.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "launched.hpp"

namespace tenure::kafka::test {

bool available() { return std::getenv("TENURE_KAFKA_VERSION") != nullptr; }

Server::Server() {
  const auto command = "'" TENURE_LAUNCHER "' start --owner " + std::to_string(::getpid()) +
                       " --set group.min.session.timeout.ms=100 --set group.initial.rebalance.delay.ms=0 2>/dev/null";
  directory_ = tenure::test::output_of(command);
  if (directory_.empty()) throw std::runtime_error("failed: " + command);
  brokers_ = tenure::test::read_env(directory_).at("TENURE_KAFKA_BROKERS");
}

Server::~Server() {
  const auto command = "'" TENURE_LAUNCHER "' stop '" + directory_.string() + "'";
  if (std::system(command.c_str()) != 0) std::fprintf(stderr, "failed: %s\n", command.c_str());
}

void Server::crash() const {
  node("kill");
  node("start");
}

void Server::freeze(bool on) const { node(on ? "freeze" : "thaw"); }

void Server::node(const std::string& action) const {
  const auto command = "'" TENURE_LAUNCHER "' node 1 " + action + " --dir '" + directory_.string() + "'";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

}  // namespace tenure::kafka::test
