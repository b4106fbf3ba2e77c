// SPDX-License-Identifier: Apache-2.0
#include <tenure/leader_task.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <tenure/kit/start_thread.hpp>

#include "election/shell.hpp"
#include "kit/thrown.hpp"

namespace tenure {

/// One thread serves all tenures. It is made with the task, so that an election never lacks a thread.
class LeaderTask::Impl {
 public:
  Impl(std::shared_ptr<Backend> backend, const Timing& timing, Work work, OnReturn on_return, Hooks hooks, Clock& clock)
      : work_(std::move(work)),
        on_return_(on_return),
        elected_(std::move(hooks.elected)),
        ousting_(std::move(hooks.ousting)),
        manager(std::move(backend), timing, with_worker(std::move(hooks)), clock),
        worker_(start_thread("tenure-task", [this] { loop(); })) {}

  ~Impl() {
    manager.stop();
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool forked() const { return manager.shell_->forked(); }
  bool on_own_thread() const { return manager.shell_->on_own_thread(); }

 private:
  Hooks with_worker(Hooks hooks) {
    if (!work_) throw std::invalid_argument("LeaderTask: work is empty");
    hooks.elected = [this](const Elected& e) { begin(e); };
    hooks.ousting = [this](const Ousting& o) { end(o); };
    return hooks;
  }

  void begin(const Elected& e) {
    {
      const std::lock_guard lock(mutex_);
      given_ = e;
    }
    changed_.notify_all();
    if (elected_) elected_(e);
  }

  void end(const Ousting& o) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !given_; });
    }
    if (ousting_) ousting_(o);
  }

  void loop() {
    manager.shell_->own_thread(std::this_thread::get_id());
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

  void run(const Elected& tenure) {
    try {
      work_(tenure.stop, tenure.token);
    } catch (...) {
      manager.shell_->report({Fault::hook_threw, "the task threw: " + what_was_thrown()});
    }
    if (!tenure.stop.stop_requested() && on_return_ == OnReturn::resign) manager.resign();
  }

  const Work work_;
  const OnReturn on_return_;
  const std::function<void(const Elected&)> elected_;
  const std::function<void(const Ousting&)> ousting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Elected> given_;  ///< The thread works for this tenure, until it has returned.
  bool quit_{};

 public:
  LeaderManager manager;

 private:
  std::thread worker_;  ///< Last: it uses the rest.
};

LeaderTask::LeaderTask(std::shared_ptr<Backend> backend, Timing timing, Work work, OnReturn on_return, Hooks hooks,
                       Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(backend), timing, std::move(work), on_return, std::move(hooks), clock)) {
  impl_->manager.start();
}

LeaderTask::~LeaderTask() {
  if (impl_->forked()) {  // its threads are the parent's
    [[maybe_unused]] const auto* const left_behind = impl_.release();
  } else if (impl_->on_own_thread()) {
    std::fputs("tenure: a LeaderTask was destroyed inside its own work or hook; call manager().stop() there instead\n",
               stderr);
    std::abort();
  }
}

LeaderManager& LeaderTask::manager() noexcept { return impl_->manager; }

}  // namespace tenure
