// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: starts a thread that takes none of the program's signals.
#pragma once
#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// Starts a thread with this name (at most 15 bytes). It blocks every signal, so that the program's signal handlers run
/// on the program's own threads. Throws std::system_error if no thread can be started.
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
