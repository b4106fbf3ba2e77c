// SPDX-License-Identifier: Apache-2.0
// A store that one string names, so that changing the store is a matter of configuration.
#pragma once
#include <map>
#include <memory>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/credentials.hpp>
#include <tenure/group_store.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

namespace tenure {

/// What to open. Secrets may stand in the URL or in the fields beside it. None is ever printed.
struct Opening {
  std::string url{};       ///< "kafka://b1:9092,b2:9092/topic", "postgres://...", "file:///dir", "memory:", ...
  std::string election{};  ///< Its name, or a group's: candidates that give the same one contend with each other.
  Candidate candidate{};
  std::string user{}, password{};  ///< If not empty, they replace those of the URL.
  /// Asked for before each login, so that a password may change while we run. A user or a password that it
  /// returns replaces that of above, unless it is empty. Kafka asks when it makes a client handle. Files and memory,
  /// which know no login, refuse it.
  AskCredentials credentials{};
  std::map<std::string, std::string> properties{};  ///< Further settings of the store. Its header names them.
  Log log{};
};

/// An election in a store, for one LeaderManager or one Observer.
struct Opened {
  std::shared_ptr<Backend> backend{};
  Presets presets{};  ///< Timings that suit the store that was opened.
};

/// A group of elections, for Elections.
struct OpenedGroup {
  std::shared_ptr<GroupStore> store{};
  Presets presets{};  ///< Timings that suit the store that was opened.
};

}  // namespace tenure
