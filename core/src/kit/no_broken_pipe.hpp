// SPDX-License-Identifier: Apache-2.0
// Keeps SIGPIPE from a thread that writes to a socket or a pipe.
#pragma once
#include <cerrno>
#include <csignal>
#include <ctime>

namespace tenure {

/// As long as it lives, a write to a closed stream is an error on this thread and no SIGPIPE.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec at_once{};  // None was pending before: it would have been delivered.
    while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

}  // namespace tenure
