// SPDX-License-Identifier: Apache-2.0
// A store named by one string, so that swapping it is configuration.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// What to open. Secrets may stand in the URL or beside it; none is ever printed.
struct Opening {
  std::string url{};       ///< "kafka://b1:9092,b2:9092/topic?group=g", "postgres://...", "file:///dir", "memory:", ...
  std::string election{};  ///< What is contended for.
  Candidate candidate{};
  std::string user{}, password{};                   ///< Instead of those in the URL, if not empty.
  std::map<std::string, std::string> properties{};  ///< Further settings of that store, by the names it documents.
  Log log{};
};

struct Opened {
  std::shared_ptr<Backend> backend{};
  Presets presets{};  ///< Of the store that was opened.
  /// Fields of Timing that this store cannot change while a manager runs (LeaderManager::retime), by their names.
  std::vector<std::string> kept{};
};

}  // namespace tenure
