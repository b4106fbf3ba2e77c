// SPDX-License-Identifier: Apache-2.0
// For those who write a backend.
#pragma once
#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace tenure {

/// A thread of ours: named (at most 15 bytes), and with every signal blocked, so that the program's handlers run on its
/// own threads. Throws std::system_error if there can be no thread more.
template <class F>
std::thread start_thread(const char* name, F body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    sigset_t* mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
  } restore{&before};
  return std::thread([name, run = std::move(body)]() mutable {
    pthread_setname_np(pthread_self(), name);
    run();
  });
}

}  // namespace tenure
