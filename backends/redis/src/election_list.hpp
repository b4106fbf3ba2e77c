// SPDX-License-Identifier: Apache-2.0
// The records of a server, in the order of its SCAN.
#pragma once
#include <string>

#include <tenure/election_list.hpp>
#include <tenure/log.hpp>

#include "link.hpp"

namespace tenure::redis {

class List final : public ElectionList {
 public:
  List(const Options& options, Log log);

  Result<ElectionPage> next(const Limit& limit) override;

 private:
  const Options options_;
  Link commands_;
  std::string cursor_{"0"};
};

}  // namespace tenure::redis
