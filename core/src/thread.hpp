// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace tenure {

/// A thread of ours: named, and with every signal blocked, so that the program's handlers run on its own threads.
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
