// SPDX-License-Identifier: Apache-2.0
// The record of one election, read and replaced on condition.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tenure/conditional_store.hpp>

#include "connection.hpp"
#include "options.hpp"

namespace tenure::etcd {

/// REQUIRES: used by one CallThread's calls.
class Cell {
 public:
  Cell(std::shared_ptr<Connection> connection, Keys keys)
      : connection_(std::move(connection)), keys_(std::move(keys)) {}

  Result<Read> read(const Until& until);

  /// `pushed`: a record's value of which a push told. It may be late or forged.
  Result<Swap> replace(const std::optional<Expected>& expected, const Record& next,
                       const std::optional<std::string>& pushed, const Until& until);

  std::optional<Error> request_step_down(const StepDown& request, const Until& until);

 private:
  /// What stands there, byte for byte, and what it means.
  struct Standing {
    std::optional<std::string> value;
    Read read;
  };
  Result<Standing> standing_of(const std::optional<std::string>& record,
                               const std::optional<std::string>& step_down) const;
  Result<Standing> look(const Until& until);
  Result<Done> transact(const Json& question, std::size_t of_success, std::size_t of_failure, const Until& until);

  const std::shared_ptr<Connection> connection_;
  const Keys keys_;
  std::optional<Standing> seen_;  ///< Last. The next write demands it.
};

}  // namespace tenure::etcd
