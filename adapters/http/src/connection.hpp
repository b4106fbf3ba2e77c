// SPDX-License-Identifier: Apache-2.0
// One client's socket, as httplib reads and writes it.
#pragma once
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string>

#include <tenure/clock.hpp>

namespace tenure::http {

inline constexpr std::size_t max_request_bytes = 16'384;

/// Waits until the socket is ready, at most until then. False: it is not.
inline bool ready(int fd, short events, Clock::Time until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - boot_clock().now()).count();
    pollfd waits{fd, events, 0};
    const int n = ::poll(&waits, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (n > 0) return true;
    if (n == 0 && left <= 0) return false;
    if (n < 0 && errno != EINTR) return false;
  }
}

/// One thread uses it, but cut() may be called by any. Its functions are virtual in some versions of httplib and absent
/// in others, so none says override.
// NOLINTBEGIN(modernize-use-override)
class Connection final : public httplib::Stream {
 public:
  /// Takes the socket, which does not block.
  Connection(int fd, Clock::Duration patience)
      : fd_(fd), patience_(patience), read_by_(boot_clock().now() + patience) {}
  virtual ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// It sends its request yet, or has its answer, or does not take it.
  bool may_be_cut() const { return !answering_ || blocked_; }
  void answers() { answering_ = true; }

  /// Ends what is under way. REQUIRES: it lives.
  void cut() { ::shutdown(fd_, SHUT_RDWR); }

  /// Says that nothing more comes, and lets the client read the answer: unread bytes would make the kernel take it
  /// back.
  void finish() {
    answering_ = false;
    ::shutdown(fd_, SHUT_WR);
    const auto until = boot_clock().now() + patience_;
    for (std::size_t drained = 0; drained < 64 * buffer_.size() && ready(fd_, POLLIN, until);) {
      const auto n = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
      if (n <= 0) return;
      drained += static_cast<std::size_t>(n);
    }
  }

  const std::string& read_so_far() const {
    return read_;
  }  ///< What httplib has read: the head, since it reads no body.

  virtual bool is_readable() const { return used_ < filled_ || ready(fd_, POLLIN, read_by_); }
  virtual bool is_writable() const { return ready(fd_, POLLOUT, boot_clock().now() + patience_); }
  virtual bool wait_readable() const { return is_readable(); }
  virtual bool wait_writable() const { return is_writable(); }
  virtual time_t duration() const { return 0; }
  virtual void set_read_timeout(time_t, time_t) {}

  virtual ssize_t read(char* to, std::size_t size) {
    if (used_ == filled_ && !fill()) return -1;
    const auto n = std::min(size, filled_ - used_);
    std::copy_n(buffer_.data() + used_, n, to);
    used_ += n;
    read_.append(to, n);
    return static_cast<ssize_t>(n);
  }

  virtual ssize_t write(const char* from, std::size_t size) {
    const auto until = boot_clock().now() + patience_;
    for (;;) {
      const auto n = ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) return n;
      if (errno != EINTR && errno != EAGAIN) return -1;
      blocked_ = true;
      const bool taken = ready(fd_, POLLOUT, until);
      blocked_ = false;
      if (!taken) return -1;
    }
  }

  virtual void get_remote_ip_and_port(std::string&, int&) const {}
  virtual void get_local_ip_and_port(std::string&, int&) const {}
  virtual socket_t socket() const { return 0; }  ///< httplib compares it with FD_SETSIZE alone, for its own select().

 private:
  bool fill() {
    if (all_ >= max_request_bytes) return false;
    while (ready(fd_, POLLIN, read_by_)) {
      const auto n = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return false;
      used_ = 0;
      filled_ = static_cast<std::size_t>(n);
      all_ += filled_;
      return true;
    }
    return false;
  }

  const int fd_;
  const Clock::Duration patience_;
  const Clock::Time read_by_;
  std::atomic<bool> answering_{}, blocked_{};
  std::array<char, 1024> buffer_{};
  std::size_t used_{}, filled_{}, all_{};
  std::string read_;
};
// NOLINTEND(modernize-use-override)

}  // namespace tenure::http
