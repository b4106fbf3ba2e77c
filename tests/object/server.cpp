// SPDX-License-Identifier: Apache-2.0
// Starts servers by their launcher.
#include "server.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "launched.hpp"
#include "scratch.hpp"

namespace tenure::object::test {
namespace {

const std::string launcher = TENURE_LAUNCHER;

}  // namespace

std::string missing_server(const std::string& kind) {
  if (tenure::test::output_of(launcher + " has " + kind + " && echo yes") == "yes") return {};
  return "needs " + kind + ": docker/object fetch " + kind;
}

Server::Server(std::string kind) : kind_(std::move(kind)) {
  directory_ = tenure::test::output_of("TENURE_SERVER_DATA='" + tenure::test::server_data().string() + "' " + launcher +
                                       " start --server " + kind_ + " --owner " + std::to_string(::getpid()));
  if (directory_.empty()) throw std::runtime_error(kind_ + " did not start");
  read();
}

Server::~Server() { tenure::test::output_of(launcher + " stop " + directory_.string()); }

void Server::read() {
  const auto env = tenure::test::read_env(directory_);
  url_ = env.at("TENURE_OBJECT");
  pid_ = static_cast<pid_t>(std::stol(env.at("TENURE_OBJECT_PID")));
}

Options Server::options() {
  auto out = from_url(url_);
  if (out.service == Service::gcs) out.credentials = [] { return Credentials{"", "token"}; };
  out.prefix = "test/" + std::to_string(++prefixes_);
  return out;
}

void Server::freeze(bool on) const { ::kill(pid_, on ? SIGSTOP : SIGCONT); }

bool Server::restart() {
  if (kind_ != "versitygw") return false;
  tenure::test::output_of(launcher + " restart " + directory_.string());
  read();
  return true;
}

}  // namespace tenure::object::test
