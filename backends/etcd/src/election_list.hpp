// SPDX-License-Identifier: Apache-2.0
// The records of a cluster, in the order of their keys.
#pragma once
#include <memory>
#include <string>

#include <tenure/election_list.hpp>
#include <tenure/kit/call_thread.hpp>

#include "connection.hpp"
#include "options.hpp"

namespace tenure::etcd {

class List final : public ElectionList {
 public:
  explicit List(const Options& options);

  Result<ElectionPage> next(const Limit& limit) override;

 private:
  const Options options_;
  std::string next_;  ///< Where the next page begins.
  const std::shared_ptr<Connection> connection_;
  CallThread commands_;
};

}  // namespace tenure::etcd
