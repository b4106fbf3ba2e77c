// SPDX-License-Identifier: Apache-2.0
// One election's row: read, replaced on condition, announced.
#pragma once
#include <optional>
#include <string>

#include <tenure/conditional_store.hpp>

#include "client.hpp"
#include "settings.hpp"

namespace tenure::postgres {

class Store final : public ConditionalStore {
 public:
  Store(const Settings& settings, const std::string& election, const Log& log = no_log);

  Result<Read> read(const Limit& limit) override;
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override;
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override;

 private:
  const std::string election_;  ///< As a bytea literal.
  Client client_;
};

}  // namespace tenure::postgres
