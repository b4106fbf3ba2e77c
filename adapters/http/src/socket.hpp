// SPDX-License-Identifier: Apache-2.0
// The socket that a server listens at, and its address.
#pragma once
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace tenure::http {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

/// "127.0.0.1:80" as {"127.0.0.1", "80"}, "[::1]:80" as {"::1", "80"}. Throws std::invalid_argument.
std::pair<std::string, std::string> host_and_port(std::string_view address);

/// Listens at an address. Throws std::invalid_argument or std::system_error; both name the address.
int listen_at(const std::string& address);

/// Where a socket listens, as host_and_port() takes it.
std::string address_of(int fd);

}  // namespace tenure::http
