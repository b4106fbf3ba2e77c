// SPDX-License-Identifier: Apache-2.0
// A process that has run out of file descriptors.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

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

}  // namespace tenure::test

/// Skips the test under UndefinedBehaviorSanitizer, which inspects memory through a pipe. Without a descriptor for that
/// it takes sound objects for broken.
#ifdef __SANITIZE_ADDRESS__
#define TENURE_NEEDS_NO_DESCRIPTORS() GTEST_SKIP() << "a sanitizer of this build needs descriptors of its own"
#else
#define TENURE_NEEDS_NO_DESCRIPTORS() static_assert(true)
#endif
