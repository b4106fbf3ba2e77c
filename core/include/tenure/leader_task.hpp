// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <stop_token>

#include <tenure/leader_manager.hpp>

namespace tenure {

/// Runs your work on a thread of its own whenever we lead, and asks it to stop in time. Called anew at each election.
class TENURE_EXPORT LeaderTask {
 public:
  /// Runs while leading. REQUIRES: returns soon after `stop` is requested: until then nobody whom we let in leads.
  /// What it throws becomes an error(), and counts as returning.
  using Work = std::function<void(std::stop_token stop, Token token)>;

  /// What returning early, while we lead, means.
  enum class OnReturn {
    stay,    ///< We go on leading, with nothing to do, until the tenure ends.
    resign,  ///< We resign, so that another candidate has its turn.
  };

  /// Campaigns at once: nothing is left to start. Throws as LeaderManager and its start() do. Hooks may be given beside
  /// the work: elected() once it was told to begin, ousting() after it ended.
  LeaderTask(std::shared_ptr<Backend> backend, Timing timing, Work work, OnReturn on_return = OnReturn::stay,
             Hooks hooks = {}, Clock& clock = boot_clock());
  ~LeaderTask();  ///< manager().stop(). Aborts with a message if called from the work or a hook of its own.

  LeaderManager& manager() noexcept;  ///< To resign(), stop() and ask; it is started already.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenure
