// SPDX-License-Identifier: Apache-2.0
// The thread that runs the work of a LeaderTask.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include <tenure/error.hpp>
#include <tenure/hooks.hpp>
#include <tenure/leader_task.hpp>

namespace tenure {

/// The thread that runs a LeaderTask's work. It serves all tenures, and is made before the first one, so that an
/// election never lacks a thread.
class WorkThread {
 public:
  /// What its owner hears, on this thread.
  struct Owner {
    std::function<void()> runs_on{};  ///< Before the first work.
    std::function<void(Error)> report{};
    std::function<void()> resign{};  ///< The work returned early, and is to have a turn no more.
  };

  /// Throws std::invalid_argument if `work` is empty.
  WorkThread(LeaderTask::Work work, LeaderTask::OnReturn on_return, Owner owner);
  ~WorkThread();  ///< REQUIRES: the stop of the last tenure is requested.
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  void begin(const Elected& tenure);  ///< REQUIRES: the work of the last tenure has returned.
  void await_return();

 private:
  /// What the work gets. It is handed over without an allocation, which could fail and leave a tenure without its work.
  struct Tenure {
    std::stop_token stop;
    Token token;
  };

  void loop();
  void run(const Tenure& tenure);
  void work(const Tenure& tenure);

  const LeaderTask::Work work_;
  const LeaderTask::OnReturn on_return_;
  const Owner owner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Tenure> given_;  ///< The thread works for this tenure, until it has returned.
  bool quit_{};
  std::thread thread_;  ///< Last: it uses the rest.
};

}  // namespace tenure
