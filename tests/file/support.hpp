// SPDX-License-Identifier: Apache-2.0
// What the tests of files share with those of other stores, and processes to misbehave.
#pragma once
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <tenure/conditional_store.hpp>
#include <tenure/manual_clock.hpp>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "scratch.hpp"
#include "store_calls.hpp"
#include "within.hpp"

namespace tenure::file {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::error_of;
using test::eventually;
using test::read;
using test::record;
using test::Scratch;
using test::swap;
using test::value;
using test::within;

inline Expected version(std::uint64_t token, std::vector<std::uint64_t> beats) { return {{token}, std::move(beats)}; }

/// As an earlier claim has made it.
inline fs::path made(fs::path directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) throw std::runtime_error("mkdir");
  return directory;
}

inline std::set<std::string> names(const fs::path& directory) {
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(directory)) found.insert(entry.path().filename());
  return found;
}

/// As a program does that daemonises.
inline void close_all_from(int first) {
  for (int fd = first; fd < 256; ++fd) ::close(fd);
}

/// A forked process. Its `body` runs to the end, or until somebody kills it; it ends with this object.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("pipe");
    ready_ = ready[0];
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");  // signals to -1 would reach everybody
    if (pid_ != 0) {
      ::close(ready[1]);
      return;
    }
    ::close(ready[0]);
    tell_ = ready[1];
    try {
      body();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  ~Child() {
    if (pid_ > 0) kill();
    ::close(ready_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  /// In the child: lets await_ready() return.
  static void ready() { [[maybe_unused]] const auto wrote = ::write(tell_, "!", 1); }

  /// In the child: says so and does nothing more.
  [[noreturn]] static void ready_and_sleep() {
    ready();
    for (;;) ::pause();
  }

  /// False if it ended before.
  bool await_ready() const {
    char byte = 0;
    return ::read(ready_, &byte, 1) == 1;
  }

  int kill(int signal = SIGKILL) {
    ::kill(pid_, signal);
    return end();
  }

  /// Waits until it ended: its exit status, 0 if all was well.
  int end() {
    int status = -1;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  static inline int tell_ = -1;
  int ready_{-1};
  pid_t pid_{-1};
};

/// The child's status if what it needs is not here.
inline constexpr int cannot = 77;

/// In a child, which must end well. Without what it needs it ends with `cannot`, and the test is skipped: `needs`.
inline void in_child(const std::function<void()>& body, const char* needs = nullptr) {
  const int status = Child(body).end();
  if (needs != nullptr && WEXITSTATUS(status) == cannot) GTEST_SKIP() << needs;
  EXPECT_EQ(status, 0);
}

}  // namespace tenure::file
