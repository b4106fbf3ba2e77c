// SPDX-License-Identifier: Apache-2.0
// The thread of an observer: it looks, tells and waits, until it is ended.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <tenure/export.hpp>
#include <tenure/kit/repeats.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

#include "election/waiters.hpp"

namespace tenure {

/// What has it destroys it by end(). It may outlive that: a store's call that ignores its limit is left behind with it.
/// Where stopping() is true, nothing of the caller's is touched any more: the clock may be gone.
class TENURE_NO_EXPORT Watching : public std::enable_shared_from_this<Watching> {
 public:
  /// `field` and `name`: of whom its log lines tell.
  Watching(const Timing& timing, Clock& clock, Log log, const char* field, std::function<std::string()> name);
  virtual ~Watching() = default;
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  void start(const char* thread);
  /// Aborts with a message if what it tells calls it. In a forked child it leaves all as it is.
  static void end(std::shared_ptr<Watching> self, const char* who);

  std::uint64_t await_change(std::uint64_t seen, Clock::Duration within, const std::stop_token& stop);
  std::uint64_t changes() const noexcept { return waiters_.changes(); }
  /// For how long what is the user's has run by now. 0: it does not.
  Clock::Duration telling() const noexcept;
  bool forked() const;  ///< Then a lock may have been held: touch none.

 protected:
  /// Asks once, and tells what changed. False: there was no answer.
  virtual bool look() = 0;
  /// Waits until it makes sense to look again.
  virtual void await_news() = 0;
  /// Tells that leases ended meanwhile, where the store does not answer. After an answer the next look tells that: a
  /// callee may take longer than a lease, which was renewed since.
  virtual void judge_ends() = 0;

  /// Calls what is the user's. end() waits for it. What it throws goes to the log.
  void call(const std::function<void()>& users);
  void changed() noexcept { waiters_.changed(); }
  void pause(Clock::Duration time);
  bool stopping() const { return stop_.stop_requested(); }
  std::stop_token stop_token() const { return stop_.get_token(); }
  /// Tells the log, each reason once a minute. Its own thread's.
  void report(const Error& error);

  const Timing timing_;
  Clock& clock_;

 private:
  void loop();
  void look_once();
  void stop();

  static constexpr int prompt_looks = 8;

  const Log log_;
  const char* const field_;
  const std::function<std::string()> name_;
  const pid_t made_by_;
  std::stop_source stop_;
  Waiters waiters_{clock_};
  Waiters pauses_{clock_};  ///< Of its own thread.
  Waiters ends_{clock_};    ///< Of end().
  std::mutex telling_mutex_;
  bool telling_{};
  std::atomic<Clock::rep> told_from_{};  ///< When the user's began. 0: it does not run.
  std::condition_variable told_;
  Clock::Time pause_from_{};
  int looks_{};
  Repeats repeats_;
  std::atomic<bool> ended_{};
  std::thread thread_;
};

}  // namespace tenure
