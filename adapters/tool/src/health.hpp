// SPDX-License-Identifier: Apache-2.0
// The HTTP pages of `tenure run --http`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenure/leader_manager.hpp>

namespace tenure::tool {

/// What `run` tells by HTTP: that of tenure::http, if the tool was built with it.
class Health {
 public:
  /// Serves at `address`, HOST:PORT, also by the names `hosts`. `step_down_token` may be empty. Throws Failed.
  /// REQUIRES: the manager outlives this.
  Health(LeaderManager& manager, const Candidate& self, const std::string& address,
         const std::vector<std::string>& hosts, const std::string& step_down_token);
  ~Health();
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  std::string address() const;  ///< With the port that was chosen.

 private:
  struct Pages;
  std::unique_ptr<Pages> pages_;
};

/// Asks a process that serves so at `address`. Throws Failed.
bool says_that_it_leads(const std::string& address, Clock::Duration patience);

}  // namespace tenure::tool
