// SPDX-License-Identifier: Apache-2.0
#include <tenure/leader_task.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <tenure/kit/start_thread.hpp>

#include "shell.hpp"

namespace tenure {

/// The worker is started and joined by hooks, so it is never touched by two at a time.
class LeaderTask::Impl {
 public:
  Impl(std::shared_ptr<Backend> backend, const Timing& timing, Work work, OnReturn on_return, Hooks hooks, Clock& clock)
      : work_(std::move(work)),
        on_return_(on_return),
        elected_(std::move(hooks.elected)),
        ousting_(std::move(hooks.ousting)),
        manager(std::move(backend), timing, with_worker(std::move(hooks)), clock) {}

 private:
  Hooks with_worker(Hooks hooks) {
    if (!work_) throw std::invalid_argument("LeaderTask: work is empty");
    hooks.elected = [this](const Elected& e) { begin(e); };
    hooks.ousting = [this](const Ousting& o) { end(o); };
    return hooks;
  }

  void begin(const Elected& e) {
    worker_ = start_thread("tenure-task", [this, stop = e.stop, token = e.token] { run(stop, token); });
    if (elected_) elected_(e);
  }

  void end(const Ousting& o) {
    if (worker_.joinable()) worker_.join();
    if (ousting_) ousting_(o);
  }

  void run(const std::stop_token& stop, Token token) {
    const auto failed = [this](const std::string& what) {
      manager.shell_->report({Fault::hook_threw, "the task threw: " + what});
    };
    try {
      work_(stop, token);
    } catch (const std::exception& e) {
      failed(e.what());
    } catch (...) {
      failed("something that is no std::exception");
    }
    if (!stop.stop_requested() && on_return_ == OnReturn::resign) manager.resign();
  }

  const Work work_;
  const OnReturn on_return_;
  const std::function<void(const Elected&)> elected_;
  const std::function<void(const Ousting&)> ousting_;
  std::thread worker_;

 public:
  LeaderManager manager;  ///< Last: its destructor ends the worker, which uses the rest.
};

LeaderTask::LeaderTask(std::shared_ptr<Backend> backend, Timing timing, Work work, OnReturn on_return, Hooks hooks,
                       Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(backend), timing, std::move(work), on_return, std::move(hooks), clock)) {}

LeaderTask::~LeaderTask() = default;

LeaderManager& LeaderTask::manager() noexcept { return impl_->manager; }

}  // namespace tenure
