// SPDX-License-Identifier: Apache-2.0
// What operators ask: what the state of a cluster, and our rights there, mean for elections.
#pragma once
#include <string>
#include <vector>

#include <tenure/check.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

#include "gateway.hpp"
#include "options.hpp"

namespace tenure::etcd {

/// What one of Options::servers said of itself. An error: why it said nothing.
struct MemberSaid {
  std::string name;
  Result<Json> status;
  Result<std::string> metrics;  ///< In Prometheus' format.
};

/// What the cluster said.
struct ClusterSaid {
  std::vector<MemberSaid> members;
  Result<Json> list, alarms;
  bool logged_in{};
  Result<Json> read, write;  ///< They try the keys of one election. The write has no effect.
};

/// Pure.
Checks checks_of(const ClusterSaid& said, const Options& options);

/// It changes nothing. Throws as keys_of().
Result<Checks> check_up(const Options& options, const std::string& election, const Limit& limit);

}  // namespace tenure::etcd
