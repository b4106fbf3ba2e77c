// SPDX-License-Identifier: Apache-2.0
// The tool's end of `tenure run`: it takes part in the election, and hands each deadline on to the supervisor.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/log.hpp>

#include "notify.hpp"
#include "place.hpp"
#include "supervisor.hpp"

namespace tenure::tool {

struct RunOptions {
  std::optional<Clock::Duration> wait{};  ///< For the lead, at first and after each loss.
  Clock::Duration grace{};
  bool once{};                                                          ///< A loss ends us.
  bool kill_on_loss{};                                                  ///< SIGKILL without SIGTERM.
  Clock::Duration stall_after{}, stall_pause{std::chrono::minutes(1)};  ///< As in Hooks.
  std::string http{}, step_down_token{};                                ///< Where to tell by HTTP; empty: nowhere.
  std::vector<std::string> http_hosts{};                                ///< As ServerOptions::hosts.
  Log log{};
};

/// What is made before the first thread.
struct RunParts {
  Supervisor& supervisor;
  ServiceManager& service;
  Progress* progress;  ///< None: the command is not watched.
};

/// Returns the exit code, once nothing of the command runs and the lead is given back. REQUIRES: every signal that we
/// hand on is blocked.
int run_while_leading(const Opened& opened, const RunParts& parts, const RunOptions& options);

}  // namespace tenure::tool
