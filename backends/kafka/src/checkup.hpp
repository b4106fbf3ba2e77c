// SPDX-License-Identifier: Apache-2.0
// What a cluster's settings mean for elections.
#pragma once
#include <map>
#include <optional>
#include <string>

#include <tenure/check.hpp>
#include <tenure/kafka.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

namespace tenure::kafka {

using Settings = std::map<std::string, std::string>;

struct TopicFacts {
  int partitions{};  ///< 0: there is no such topic.
  int replicas{};    ///< Of the partition that has the fewest.
};

struct ClusterFacts {
  int brokers{};
  TopicFacts topic{}, offsets{};        ///< Of the election, and of all committed offsets.
  Result<Settings> broker{Settings{}};  ///< Of one broker. An error: it does not tell them.
  Settings offsets_topic{};             ///< Empty: not told, or there is none yet.
};

/// Pure. REQUIRES: the options are completed().
Checks checks_of(const ClusterFacts& facts, const Options& options);

/// It changes nothing. REQUIRES: the options are completed().
Result<Checks> check_up(const Options& options, const Limit& limit);

}  // namespace tenure::kafka
