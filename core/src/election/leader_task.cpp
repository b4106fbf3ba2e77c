// SPDX-License-Identifier: Apache-2.0
// Joins a manager and a WorkThread: hooks of its own begin and end the work.
#include <tenure/leader_task.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "election/shell.hpp"
#include "election/work_thread.hpp"

namespace tenure {

class TENURE_NO_EXPORT LeaderTask::Impl {
 public:
  Impl(std::shared_ptr<Backend> backend, const Timing& timing, Work work, OnReturn on_return, Hooks hooks, Clock& clock)
      : elected_(std::move(hooks.elected)),
        ousting_(std::move(hooks.ousting)),
        manager(std::move(backend), timing, with_worker(std::move(hooks)), clock),
        worker_(std::move(work), on_return,
                {.runs_on = [this] { manager.shell_->adopt_this_thread(); },
                 .report = [this](Error error) { manager.shell_->report(std::move(error)); },
                 .resign = [this] { manager.resign(); }}) {}

  ~Impl() { manager.stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool forked() const { return manager.shell_->forked(); }
  bool on_own_thread() const { return manager.shell_->on_own_thread(); }

 private:
  Hooks with_worker(Hooks hooks) {
    hooks.elected = [this](const Elected& e) {
      worker_.begin(e);
      if (elected_) elected_(e);
    };
    hooks.ousting = [this](const Ousting& o) {
      worker_.await_return();
      if (ousting_) ousting_(o);
    };
    return hooks;
  }

  const std::function<void(const Elected&)> elected_;
  const std::function<void(const Ousting&)> ousting_;

 public:
  LeaderManager manager;

 private:
  WorkThread worker_;  ///< Last: it uses the rest.
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
    std::fputs(
        "tenure: a LeaderTask was destroyed inside its own work or hook, or exit() was called there and destroyed it; "
        "call manager().stop() there, and let main() return\n",
        stderr);
    std::abort();
  }
}

LeaderManager& LeaderTask::manager() noexcept { return impl_->manager; }

}  // namespace tenure
