// SPDX-License-Identifier: Apache-2.0
// A client that sends whatever a test wants, through a socket of its own.
#pragma once
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include <tenure/clock.hpp>

namespace tenure::test {

class Client {
 public:
  explicit Client(const std::string& address) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto colon = address.rfind(':');
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &at.sin_addr);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  }
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }

  /// False: the server has closed.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const auto n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  /// Reads on until `what` has come; false if the server closed before, or after 30 s.
  bool await(const std::string& what) {
    while (got_.find(what) == got_.npos)
      if (!read_some()) return false;
    return true;
  }

  /// Reads on until the server closes; false after 30 s.
  bool await_end() {
    while (!ended_)
      if (!read_some() && !ended_) return false;
    return true;
  }

  const std::string& got() const { return got_; }

 private:
  bool read_some() {
    if (ended_) return false;
    pollfd waits{fd_, POLLIN, 0};
    if (::poll(&waits, 1, 30'000) <= 0) return false;
    char buffer[4096];
    const auto n = ::recv(fd_, buffer, sizeof buffer, 0);
    ended_ = n <= 0;
    if (!ended_) got_.append(buffer, static_cast<std::size_t>(n));
    return !ended_;
  }

  const int fd_;
  bool connected_{}, ended_{};
  std::string got_;
};

struct Fetched {
  int status{};
  std::string head{}, body{};
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

inline Fetched fetched(const std::string& text) {
  const auto blank = text.find("\r\n\r\n");
  if (text.size() < 12 || blank == text.npos) return {};
  return {std::atoi(text.c_str() + 9), text.substr(0, blank), text.substr(blank + 4)};
}

/// `headers`: each ends with "\r\n".
inline Fetched fetch(const std::string& address, const std::string& path, const std::string& method = "GET",
                     const std::string& headers = {}) {
  Client client(address);
  client.send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n");
  client.await_end();
  return fetched(client.got());
}

}  // namespace tenure::test
