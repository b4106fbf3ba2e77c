// SPDX-License-Identifier: Apache-2.0
// A process that has run out of file descriptors.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include <tenure/clock.hpp>

namespace tenure::test {

/// While it lives, this process can open no file descriptor but those that this object gives back.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    auto none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    if (next < 0 || ::setrlimit(RLIMIT_NOFILE, &none) != 0)
      throw std::system_error(errno, std::generic_category(), "lowering the limit of descriptors");
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// poll() refuses more descriptors than RLIMIT_NOFILE, also of those that are open. Whether this process then sleeps:
/// a thread that spins takes far more than a tenth of the time. REQUIRES: it is a child of fork.
inline bool rests_where_poll_is_refused() {
  using namespace std::chrono;
  const auto used = [] {
    rusage all{};
    ::getrusage(RUSAGE_SELF, &all);
    return seconds(all.ru_utime.tv_sec + all.ru_stime.tv_sec) +
           microseconds(all.ru_utime.tv_usec + all.ru_stime.tv_usec);
  };
  const rlimit none{};
  const auto waker = boot_clock().make_waker();
  if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return false;
  const auto before = used();
  for (const auto until = boot_clock().now() + 200ms; boot_clock().now() < until;) waker->wait_until(until);
  return used() - before < 20ms;
}

}  // namespace tenure::test

/// Skips the test under UndefinedBehaviorSanitizer, which inspects memory through a pipe. Without a descriptor for that
/// it takes sound objects for broken.
#ifdef __SANITIZE_ADDRESS__
#define TENURE_NEEDS_NO_DESCRIPTORS() GTEST_SKIP() << "a sanitizer of this build needs descriptors of its own"
#else
#define TENURE_NEEDS_NO_DESCRIPTORS() static_assert(true)
#endif
