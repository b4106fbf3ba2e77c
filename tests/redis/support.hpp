// SPDX-License-Identifier: Apache-2.0
// Records to write, answers taken apart, and servers that do as a test tells them.
#pragma once
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/redis.hpp>

#include "messages.hpp"
#include "within.hpp"

namespace tenure::redis::test {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::Lines;
using tenure::test::within;

inline Record record(std::uint64_t token, std::uint64_t beat, Clock::Duration term = 10s) {
  Record made;
  made.token = {token};
  made.beat = beat;
  made.holder = "holder";
  made.incarnation = "incarnation";
  made.address = "address";
  made.term = term;
  made.asked = boot_clock().now().time_since_epoch();
  return made;
}

/// The answer, or a failed test with the error.
template <class T>
T value(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << to_string(result.error().fault) << ": " << result.error().message;
    return {};
  }
  return *std::move(result);
}

template <class T>
Error error_of(const Result<T>& result) {
  if (!result) return result.error();
  ADD_FAILURE() << "an error was expected";
  return {};
}

inline Read read(ConditionalStore& store) { return value(store.read(within(2s))); }
inline Error refused_read(ConditionalStore& store) { return error_of(store.read(within(2s))); }

inline bool swap(ConditionalStore& store, const std::optional<Expected>& expected, const Record& next) {
  return value(store.compare_and_set(expected, next, within(2s))).applied;
}
inline Error refused_swap(ConditionalStore& store, const std::optional<Expected>& expected, const Record& next) {
  return error_of(store.compare_and_set(expected, next, within(2s)));
}

/// The same answer to every command of a batch.
inline std::string to_each(const std::string& request, const std::string& answer) {
  std::string out;
  for (std::size_t at = 0; at != request.npos; at = request.find("\r\n*", at + 1)) out += answer;
  return out;
}

/// Listens on loopback. What each connection sends is answered by `answer`, chunk by chunk.
class FakeServer {
 public:
  struct Answer {
    std::string bytes;
    bool close{};
  };
  explicit FakeServer(std::function<Answer(const std::string& request)> answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
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
  int accepted() const { return accepted_; }  ///< Connections so far, in the order in which they were made.

 private:
  void accept() {
    for (int fd = 0; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      ++accepted_;
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
  std::list<std::pair<int, std::jthread>> connections_;
  std::jthread accepter_;
};

}  // namespace tenure::redis::test
