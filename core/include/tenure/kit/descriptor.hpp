// SPDX-License-Identifier: Apache-2.0
// For those who write a backend or an adapter: the owner of a file descriptor.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// Closes its descriptor at the end. One thread at a time changes it.
class Descriptor {
 public:
  Descriptor() noexcept = default;  ///< It has none: -1.
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  /// Of what a call returned. If that is -1, throws std::system_error, by errno and with `what`.
  Descriptor(int fd, const char* what) : fd_(fd) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), what);
  }
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const noexcept { return fd_; }  ///< Below zero: none.
  explicit operator bool() const noexcept { return fd_ >= 0; }
  /// Closes it now.
  void reset() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_{-1};
};

}  // namespace tenure
