// SPDX-License-Identifier: Apache-2.0
#include "service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::tool {
namespace {

/// The variable's text, which is taken away.
std::string taken(const char* name) {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs
  const char* text = std::getenv(name);
  std::string out = text ? text : "";
  ::unsetenv(name);
  // NOLINTEND(concurrency-mt-unsafe)
  return out;
}

/// A socket that sends there; -1 if there is none. A name that begins with '@' is no file's.
int connected_to(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() < 2 || name.size() >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@')) return -1;
  std::copy(name.begin(), name.end(), address.sun_path);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0 || ::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0) return socket;
  ::close(socket);
  return -1;
}

}  // namespace

ServiceManager::ServiceManager() : socket_(connected_to(taken("NOTIFY_SOCKET"))) {
  const auto limit = number<std::int64_t>(taken("WATCHDOG_USEC"));
  const auto pid = taken("WATCHDOG_PID");
  if (limit && *limit > 1 && (pid.empty() || pid == std::to_string(::getpid())))
    beat_ = std::chrono::microseconds(*limit / 2);
}

ServiceManager::~ServiceManager() {
  if (listens()) ::close(socket_);
}

void ServiceManager::tell(std::string_view assignment) const {
  if (listens()) ::send(socket_, assignment.data(), assignment.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ServiceManager::status(std::string_view text) {
  const auto line = "STATUS=" + printable(text, 1000);
  if (line == status_) return;
  tell(status_ = line);
}

}  // namespace tenure::tool
