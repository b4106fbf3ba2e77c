// SPDX-License-Identifier: Apache-2.0
// The loop of the thread that makes blocking reads.
#include "reading_thread.hpp"

#include <utility>

#include <tenure/kit/start_thread.hpp>

namespace tenure::kafka {
namespace {

bool done(const ReadingThread::Job& job) {
  try {
    job();
    return true;
  } catch (const std::exception&) {  // no memory: somebody waits for what it tells
    return false;
  }
}

}  // namespace

ReadingThread::ReadingThread() : reaper_(Reaper::instance()), wakes_(boot_clock().make_waker()) {}

void ReadingThread::start(const char* name, std::shared_ptr<void> owner) {
  thread_ = start_thread(name, [this, kept = std::move(owner), over = over_]() mutable {
    run();
    kept.reset();  // This may free the observer, which may be slow: the join must not wait for it.
    *over = true;
  });
}

void ReadingThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  wakes_->wake();
  if (thread_.joinable()) reaper_.join(std::move(thread_), over_);
}

void ReadingThread::add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wakes_->wake();
}

void ReadingThread::add_first(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_front(std::move(job));
  }
  wakes_->wake();
}

void ReadingThread::run() {
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

}  // namespace tenure::kafka
