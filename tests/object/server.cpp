// SPDX-License-Identifier: Apache-2.0
// Starts servers by their launcher.
#include "server.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "eventually.hpp"
#include "launched.hpp"
#include "messages.hpp"
#include "scratch.hpp"

namespace tenure::object::test {
namespace {

const std::string launcher = TENURE_LAUNCHER;

/// Whether each thread of it is.
bool stopped(pid_t pid) {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream in(thread.path() / "stat");
    std::string text;
    std::getline(in, text);
    if (const auto end = text.rfind(") "); end != text.npos && text.compare(end, 3, ") T") != 0) return false;
  }
  return true;
}

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

/// It has many threads, which stop one after the other.
void Server::freeze(bool on) const {
  ::kill(pid_, on ? SIGSTOP : SIGCONT);
  if (on) tenure::test::eventually([this] { return stopped(pid_); });
}

int Server::requests(const std::string& prefix) const {
  std::ifstream in(directory_ / "log");
  int count = 0;
  for (std::string line; std::getline(in, line);) count += tenure::test::mentions(line, "/" + prefix + "/");
  return count;
}

bool Server::restart() {
  if (kind_ != "versitygw" && kind_ != "azurite") return false;
  tenure::test::output_of(launcher + " restart " + directory_.string());
  read();
  return true;
}

}  // namespace tenure::object::test
