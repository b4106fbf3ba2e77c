// SPDX-License-Identifier: Apache-2.0
// A server that accepts no connection, so that connecting to it never ends.
#pragma once
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tenure::test {

/// Its queue holds one connection, which is there. Those that come now stay under way.
class FullServer {
 public:
  explicit FullServer(int port = 0, std::uint32_t ip = INADDR_LOOPBACK) {
    const auto* const at = reinterpret_cast<const sockaddr*>(&address_);
    address_.sin_family = AF_INET;
    address_.sin_port = htons(static_cast<std::uint16_t>(port));
    address_.sin_addr.s_addr = htonl(ip);
    socklen_t size = sizeof address_;
    pollfd full{listener_, POLLIN, 0};
    if (::bind(listener_, at, size) != 0 || ::listen(listener_, 0) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size) != 0 ||
        ::connect(first_, at, size) != 0 || ::poll(&full, 1, 30'000) != 1)
      throw std::runtime_error("no server with a full queue");
  }
  ~FullServer() { ::close(first_), ::close(listener_); }
  FullServer(const FullServer&) = delete;
  FullServer& operator=(const FullServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  const int listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int first_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address_{};
};

}  // namespace tenure::test
