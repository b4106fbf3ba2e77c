// SPDX-License-Identifier: Apache-2.0
// The record of one election, read and replaced on condition.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tenure/conditional_store.hpp>

#include "connection.hpp"

namespace tenure::object {

/// REQUIRES: used by one CallThread's calls.
class Cell {
 public:
  Cell(std::shared_ptr<Connection> connection, std::string object)
      : connection_(std::move(connection)), object_(std::move(object)) {}

  Result<Read> read(const Until& until);
  Result<Swap> replace(const std::optional<Expected>& expected, const Record& next, const Until& until);
  std::optional<Error> request_step_down(const StepDown& request, const Until& until);

 private:
  /// What stands there, and what it means.
  struct Standing {
    std::optional<std::string> version;
    Read read;
  };
  std::optional<Error> look(const Until& until);
  /// Writes it in place of what was seen. False: something else stands there, which is seen now.
  Result<bool> write(const Record& record, const std::optional<StepDown>& request, const Until& until);

  const std::shared_ptr<Connection> connection_;
  const std::string object_;
  std::optional<Standing> seen_;  ///< Last. The next write demands it.
};

}  // namespace tenure::object
