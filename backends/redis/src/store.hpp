// SPDX-License-Identifier: Apache-2.0
// One election's record on a server.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/log.hpp>

#include "link.hpp"
#include "script.hpp"

namespace tenure::redis {

class Store final : public ConditionalStore {
 public:
  /// `candidate` is for CLIENT LIST. It may be empty.
  Store(const Options& options, const std::string& election, const std::string& candidate, Log log);

  Result<Read> read(const Limit& limit) override;
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override;
  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override;
  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override;

 private:
  Call call(const Script& script, std::vector<std::string> arguments) const;

  const Options options_;
  const std::string key_, client_;
  const Warn warn_;
  const std::shared_ptr<Sentinels> sentinels_;  ///< Nothing: there are none.
  Link commands_, notices_;
  std::optional<Clock::Time> attempt_;  ///< Since when the Sentinels are asked, of a read that a claim may follow.
};

}  // namespace tenure::redis
