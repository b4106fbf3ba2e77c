// SPDX-License-Identifier: Apache-2.0
// Work on a thread of its own, which runs while we lead.
#pragma once
#include <functional>
#include <memory>
#include <stop_token>

#include <tenure/leader_manager.hpp>

namespace tenure {

/// Runs your work on a thread of its own while we lead, and asks it to stop in time. Each tenure calls it anew.
class TENURE_EXPORT LeaderTask {
 public:
  /// Your work. What it throws becomes an error(), and counts as a return.
  /// REQUIRES: it returns soon after `stop` is requested. In a hand-over the successor leads only after that.
  using Work = std::function<void(std::stop_token stop, Token token)>;

  /// What happens when your work returns although we still lead.
  struct OnReturn {
    static const OnReturn stay;    ///< We go on leading, with nothing to do, until the tenure ends.
    static const OnReturn resign;  ///< We resign, and leave a term to the other candidates.
    /// The work is called anew after the pause, as long as the tenure lasts. The pause is of real time.
    static constexpr OnReturn again(Clock::Duration pause) { return {Then::again, pause}; }

    enum class Then { stay, resign, again } then{};
    Clock::Duration pause{};
  };

  /// Campaigns at once. Throws as the constructor of LeaderManager and its start() do. You may give hooks too:
  /// elected() is called once the work was told to begin, ousting() after the work has ended.
  LeaderTask(std::shared_ptr<Backend> backend, Timing timing, Work work, OnReturn on_return = OnReturn::stay,
             Hooks hooks = {}, Clock& clock = boot_clock());
  ~LeaderTask();  ///< manager().stop(). Aborts with a message if called from the work or a hook of its own.

  LeaderManager& manager() noexcept;  ///< For resign(), stop() and questions. It is started already.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr LeaderTask::OnReturn LeaderTask::OnReturn::stay{LeaderTask::OnReturn::Then::stay};
inline constexpr LeaderTask::OnReturn LeaderTask::OnReturn::resign{LeaderTask::OnReturn::Then::resign};

}  // namespace tenure
