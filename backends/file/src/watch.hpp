// SPDX-License-Identifier: Apache-2.0
// Tells waiting threads that something happened in a directory. One inotify instance and one thread serve
// every store of the process: a user has 128 instances.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <tenure/clock.hpp>

#include "descriptor.hpp"

namespace tenure::file {

class Subscription;

class Watcher {
 public:
  /// Returns the process's one, and makes it if there is none. Returns nullptr if the user or the process may have no
  /// further one.
  static std::shared_ptr<Watcher> shared();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  friend class Subscription;
  Watcher(Descriptor inotify, Descriptor quit, Descriptor wake);
  ~Watcher();
  static void end(Watcher* watcher);
  void run();
  void dispatch(int watch, std::uint32_t mask);

  /// Whether the numbers still mean what we opened. An inotify instance of the program's would look like ours, because
  /// they share one inode. A pipe has an inode of its own.
  bool ours() const { return inotify_.ours() && quit_.ours() && wake_.ours(); }
  bool works() const { return !ended_ && ours(); }

  Descriptor inotify_, quit_, wake_;  ///< What is written to `wake_` ends the thread, which listens at `quit_`.
  unsigned life_{life()};
  std::atomic<bool> ended_{false};  ///< The program closed our descriptors: nothing is reported any more.
  std::mutex mutex_;
  std::multimap<int, Subscription*> subscriptions_;  ///< By inotify's number for a file.
  std::unique_ptr<std::thread> thread_;
};

/// What one store watches, and what happened there. REQUIRES: one thread at a time.
class Subscription {
 public:
  Subscription() = default;
  ~Subscription() { leave(); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  enum class State {
    standing,     ///< It has watched these since the last call.
    renewed,      ///< It watches them from now on: look again.
    unavailable,  ///< The process can have no inotify instance.
  };

  /// Watches the names in the directory, and the closing of one file in it, or of none if that is 0.
  State watch(FileId directory, int descriptor, std::uint64_t newest);

  /// Wakes this waker when something happens. With nullptr it wakes nobody.
  void wake(Waker* waker);

  /// Whether a process that could write has closed a file since this was last asked.
  bool took_close();

 private:
  friend class Watcher;
  int add(const std::string& path, std::uint32_t mask);
  void drop(int& watch);
  void leave();

  unsigned life_{life()};
  std::shared_ptr<Watcher> watcher_;
  FileId directory_;
  std::uint64_t newest_{};
  int on_directory_{-1}, on_newest_{-1};
  Waker* waker_{};  // from here on under the watcher's mutex
  bool closed_{};
  bool vanished_{};  ///< The kernel dropped a watch.
};

}  // namespace tenure::file
