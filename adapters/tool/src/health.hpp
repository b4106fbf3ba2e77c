// SPDX-License-Identifier: Apache-2.0
// The HTTP pages of `tenure run --http`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenure/leader_manager.hpp>

namespace tenure::tool {

/// What `run` tells by HTTP, as long as this lives.
struct Health {
  std::shared_ptr<void> site, server;
  std::string address;  ///< With the port that was chosen.
};

/// Serves at `address`, HOST:PORT, also by the names `hosts`. `step_down_token` may be empty. Throws Failed, also if
/// the tool was built without tenure::http. REQUIRES: the manager outlives what is returned.
Health serve(LeaderManager& manager, const Candidate& self, const std::string& address,
             const std::vector<std::string>& hosts, const std::string& step_down_token);

/// Asks a process that serves so at `address`. Throws Failed.
bool says_that_it_leads(const std::string& address, Clock::Duration patience);

}  // namespace tenure::tool
