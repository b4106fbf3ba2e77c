// SPDX-License-Identifier: Apache-2.0
// A server that does as a test tells it.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace tenure::test {

/// Listens on loopback. What each connection sends is answered by `answer`, chunk by chunk.
class FakeServer {
 public:
  struct Answer {
    std::string bytes;
    bool close{};
  };
  /// `port`: 0 is any. `ip`: of loopback.
  explicit FakeServer(std::function<Answer(const std::string& request)> answer, int port = 0,
                      std::uint32_t ip = INADDR_LOOPBACK)
      : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(ip);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no port to listen on");
    port_ = ntohs(address.sin_port);
    accepter_ = std::jthread([this] { accept(); });
  }
  ~FakeServer() {
    ::shutdown(listener_, SHUT_RDWR);
    accepter_ = {};
    for (const auto& connection : connections_) ::shutdown(connection.first, SHUT_RDWR);
    for (auto& connection : connections_) {
      connection.second = {};
      ::close(connection.first);
    }
    ::close(listener_);
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  int accepted() const { return accepted_; }  ///< Connections so far, in the order in which they were made.
  /// What nobody asked for, to the connection that was made as the nth one, from 0. REQUIRES: it has asked something.
  void push(std::ptrdiff_t nth, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    ::send(std::next(connections_.begin(), nth)->first, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

 private:
  void accept() {
    for (int fd = 0; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      ++accepted_;
      const std::lock_guard lock(mutex_);
      auto& connection = connections_.emplace_back();
      connection.first = fd;
      connection.second = std::jthread([this, fd] { serve(fd); });
    }
  }
  void serve(int fd) {
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;) {
      const auto [bytes, close] = answer_(std::string(buffer, static_cast<std::size_t>(got)));
      ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (close) break;
    }
    ::shutdown(fd, SHUT_RDWR);
  }

  const std::function<Answer(const std::string&)> answer_;
  int listener_{-1}, port_{};
  std::atomic<int> accepted_{0};
  std::mutex mutex_;
  std::list<std::pair<int, std::jthread>> connections_;
  std::jthread accepter_;
};

}  // namespace tenure::test
