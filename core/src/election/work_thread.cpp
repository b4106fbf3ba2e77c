// SPDX-License-Identifier: Apache-2.0
// The loop of the thread that runs the work of a LeaderTask.
#include "election/work_thread.hpp"

#include <stdexcept>
#include <utility>

#include <tenure/kit/start_thread.hpp>

#include "kit/thrown.hpp"

namespace tenure {

WorkThread::WorkThread(LeaderTask::Work work, LeaderTask::OnReturn on_return, Owner owner)
    : work_(work ? std::move(work) : throw std::invalid_argument("LeaderTask: work is empty")),
      on_return_(on_return),
      owner_(std::move(owner)),
      thread_(start_thread("tenure-task", [this] { loop(); })) {}

WorkThread::~WorkThread() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkThread::begin(const Elected& tenure) {
  {
    const std::lock_guard lock(mutex_);
    given_ = {tenure.stop, tenure.token};
  }
  changed_.notify_all();
}

void WorkThread::await_return() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !given_; });
}

void WorkThread::loop() {
  if (owner_.runs_on) owner_.runs_on();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return given_ || quit_; });
    if (!given_) return;
    const auto tenure = *given_;
    lock.unlock();
    run(tenure);
    lock.lock();
    given_.reset();
    changed_.notify_all();
  }
}

void WorkThread::run(const Tenure& tenure) {
  using Then = LeaderTask::OnReturn::Then;
  do work(tenure);
  while (on_return_.then == Then::again && sleep_for(on_return_.pause, tenure.stop));
  if (on_return_.then == Then::resign && !tenure.stop.stop_requested()) owner_.resign();
}

void WorkThread::work(const Tenure& tenure) {
  try {
    work_(tenure.stop, tenure.token);
  } catch (...) {
    owner_.report({Fault::hook_threw, "the task threw: " + what_was_thrown()});
  }
}

}  // namespace tenure
