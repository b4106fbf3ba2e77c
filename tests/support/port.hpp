// SPDX-License-Identifier: Apache-2.0
// A port for a server of a test.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace tenure::test {

/// A port of 127.0.0.1, and the one 10000 above it, where a Redis cluster has its bus. No other test gets them before
/// this object is gone, also where its server is away: a stranger's server there would answer our clients, or keep ours
/// from starting again. docker/common.sh takes others, and the kernel too, for outgoing connections.
class Port {
 public:
  /// One that nobody uses.
  Port() {
    static std::mt19937 random{std::random_device{}()};
    std::uniform_int_distribution<int> numbers(10'000, 14'999);
    std::optional<Port> taken;
    while (!taken) taken = take(numbers(random));
    *this = std::move(*taken);
  }
  ~Port() {
    if (mark_ >= 0) ::close(mark_);
  }
  Port(Port&& other) noexcept : number_(other.number_), mark_(std::exchange(other.mark_, -1)) {}
  Port& operator=(Port&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(mark_, other.mark_);
    return *this;
  }

  /// Nothing if somebody has it.
  static std::optional<Port> take(int number) {
    Port out(number, ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!mark(out.mark_, number) || !can_bind(number) || !can_bind(number + 10'000)) return {};
    return out;
  }

  int number() const { return number_; }
  std::string text() const { return std::to_string(number_); }

 private:
  Port(int number, int fd) : number_(number), mark_(fd) {}

  /// An abstract name ends with its process, and is known as far as the port is.
  static bool mark(int fd, int number) {
    const auto name = "tenure-port-" + std::to_string(number);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path + 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0;
  }
  static bool can_bind(int number) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<in_port_t>(number));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(fd);
    return bound;
  }

  int number_{};
  int mark_{-1};
};

}  // namespace tenure::test
