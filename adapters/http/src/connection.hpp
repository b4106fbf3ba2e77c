// SPDX-License-Identifier: Apache-2.0
// One client's socket.
#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/clock.hpp>
#include <tenure/kit/descriptor.hpp>

#include "head.hpp"

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

/// One thread uses it, but cut() may be called by any.
class Connection {
 public:
  /// Takes the socket, which does not block.
  Connection(int fd, Clock::Duration patience)
      : fd_(fd), patience_(patience), read_by_(boot_clock().now() + patience) {}

  /// It sends its request yet, or has its answer, or does not take it.
  bool may_be_cut() const { return !answering_ || blocked_; }

  /// Ends what is under way. REQUIRES: it lives.
  void cut() { ::shutdown(fd_.get(), SHUT_RDWR); }

  /// Up to the first end_of_head. Another text is no head: it is too long, or its lines have no CR. Nothing: none came
  /// in time.
  std::optional<std::string> read_head() {
    std::string text;
    while (ready(fd_.get(), POLLIN, read_by_)) {
      const auto n = ::recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) break;
      text.append(buffer_.data(), static_cast<std::size_t>(n));
      if (const auto end = text.find(end_of_head); end != text.npos) {
        answering_ = true;
        return text.substr(0, end + end_of_head.size());
      }
      if (text.size() >= max_request_bytes || text.find("\n\n") != text.npos) {
        answering_ = true;
        return text;
      }
    }
    return std::nullopt;
  }

  /// False: the client did not take it in time.
  bool write(std::string_view text) {
    const auto until = boot_clock().now() + patience_;
    while (!text.empty()) {
      const auto n = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
      if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
      blocked_ = n < 0;
      if (blocked_ && !ready(fd_.get(), POLLOUT, until)) return false;
    }
    return true;
  }

  /// Says that nothing more comes, and lets the client read the answer: unread bytes would make the kernel take it
  /// back.
  void finish() {
    answering_ = false;
    ::shutdown(fd_.get(), SHUT_WR);
    const auto until = boot_clock().now() + patience_;
    for (std::size_t drained = 0; drained < 64 * buffer_.size() && ready(fd_.get(), POLLIN, until);) {
      const auto n = ::recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
      if (n <= 0) return;
      drained += static_cast<std::size_t>(n);
    }
  }

 private:
  const Descriptor fd_;
  const Clock::Duration patience_;
  const Clock::Time read_by_;
  std::atomic<bool> answering_{}, blocked_{};
  std::array<char, 1024> buffer_{};
};

}  // namespace tenure::http
