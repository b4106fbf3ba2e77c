// SPDX-License-Identifier: Apache-2.0
// Makes the reads that block, one after the other, so that the serving thread never waits for one.
#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <tenure/clock.hpp>
#include <tenure/result.hpp>

#include "reaper.hpp"

namespace tenure::kafka {

/// What it throws is an error.
template <class Read>
auto tried(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::exception& e) {
    return Error{Fault::unreachable, e.what()};
  }
}

class ReadingThread {
 public:
  using Job = std::function<void()>;  ///< If it throws, for want of memory, it is done again.

  /// Makes all that its end needs. Throws std::system_error if threads or descriptors have run out.
  ReadingThread();

  /// `owner`, which this is a part of, lives until the thread has ended. Throws std::system_error.
  void start(const char* name, std::shared_ptr<void> owner);

  /// No job begins from here on. Waits for none: the reaper joins the thread.
  void stop();

  void add(Job job);
  void add_first(Job job);  ///< A read that decides a claim.

  /// For a job that must wait. Nobody else does while one runs.
  Waker& waker() { return *wakes_; }

 private:
  void run();

  Reaper& reaper_;
  const std::unique_ptr<Waker> wakes_;
  std::mutex mutex_;
  std::deque<Job> jobs_;
  bool quit_{};
  std::thread thread_;
  const std::shared_ptr<std::atomic<bool>> over_{std::make_shared<std::atomic<bool>>(false)};
};

}  // namespace tenure::kafka
