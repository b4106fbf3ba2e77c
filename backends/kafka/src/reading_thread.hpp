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
#include <utility>

#include <tenure/clock.hpp>
#include <tenure/kit/start_thread.hpp>
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
  ReadingThread() : reaper_(Reaper::instance()), wakes_(boot_clock().make_waker()) {}

  /// `owner`, which this is a part of, lives until the thread has ended. Throws std::system_error.
  void start(const char* name, std::shared_ptr<void> owner) {
    thread_ = start_thread(name, [this, kept = std::move(owner), over = over_]() mutable {
      run();
      kept.reset();  // This may free the observer, which may be slow: the join must not wait for it.
      *over = true;
    });
  }

  /// No job begins from here on. Waits for none: the reaper joins the thread.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    wakes_->wake();
    if (thread_.joinable()) reaper_.join(std::move(thread_), over_);
  }

  /// `first`: before all others, as a read that decides a claim.
  void add(Job job, bool first = false) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.insert(first ? jobs_.begin() : jobs_.end(), std::move(job));
    }
    wakes_->wake();
  }

  /// For a job that must wait. Nobody else does while one runs.
  Waker& waker() { return *wakes_; }

 private:
  void run() {
    for (Job job;;) {
      {
        const std::lock_guard lock(mutex_);
        if (quit_) return;
        if (!job && !jobs_.empty()) {
          job = std::move(jobs_.front());
          jobs_.pop_front();
        }
      }
      if (!job)
        wakes_->wait_until(Clock::Time::max());
      else if (done(job))
        job = nullptr;
      else
        wakes_->wait_until(boot_clock().now() + std::chrono::milliseconds(100));
    }
  }

  static bool done(const Job& job) {
    try {
      job();
      return true;
    } catch (const std::exception&) {  // no memory: somebody waits for what it tells
      return false;
    }
  }

  Reaper& reaper_;
  const std::unique_ptr<Waker> wakes_;
  std::mutex mutex_;
  std::deque<Job> jobs_;
  bool quit_{};
  std::thread thread_;
  const std::shared_ptr<std::atomic<bool>> over_{std::make_shared<std::atomic<bool>>(false)};
};

}  // namespace tenure::kafka
