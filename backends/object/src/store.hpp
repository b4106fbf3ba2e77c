// SPDX-License-Identifier: Apache-2.0
// One election's object in a bucket.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/call_thread.hpp>

#include "cell.hpp"

namespace tenure::object {

class Store final : public ConditionalStore {
 public:
  /// REQUIRES: the options are checked.
  Store(const Options& options, const std::string& election);

  Result<Read> read(const Limit& limit) override;
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override;
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override;

 private:
  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<Cell> cell_;
  CallThread commands_;
};

}  // namespace tenure::object
