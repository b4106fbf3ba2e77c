// SPDX-License-Identifier: Apache-2.0
// The rows of the table, in the order of their names.
#pragma once
#include <string>

#include <tenure/election_list.hpp>

#include "client.hpp"
#include "settings.hpp"

namespace tenure::postgres {

class List final : public ElectionList {
 public:
  explicit List(const Settings& settings);

  Result<ElectionPage> next(const Limit& limit) override;

 private:
  Client client_;
  std::string after_;  ///< The last name of the last page.
};

}  // namespace tenure::postgres
