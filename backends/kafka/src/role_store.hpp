// SPDX-License-Identifier: Apache-2.0
// A group of elections in one consumer group. Each method but request_step_down() is one call to the serving thread. It
// knows one call at a time: nobody may call while another thread is in await_change().
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kafka.hpp>

#include "role_carrier.hpp"

namespace tenure::kafka {

class RoleStore final : public GroupStore {
 public:
  explicit RoleStore(std::shared_ptr<RoleCarrier> carrier);
  ~RoleStore() override;

  std::string group() const override;
  Exclusive exclusive() const override { return carrier_->exclusive(); }
  bool allots() const override { return true; }
  void joined(const std::string& election) override;
  void left(const std::string& election) override;
  Result<Look> look(const std::string& cursor, const Limit& limit) override;
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override;
  Result<Committed> commit(const tenure::Commit& commit, const Limit& limit) override;
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override;
  Result<int> sweep(const Limit& limit) override;
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override;
  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override;
  std::optional<Error> accepts(const Timing& timing) override;

 private:
  Result<Pace> pace(const Timing& timing) const { return group_pace_of(timing, carrier_->options(), exclusive()); }
  bool forked() const;
  std::optional<RoleAnswer> call(RoleCall what, const Limit& limit);
  template <class T>
  Result<T> ask(RoleCall what, const Limit& limit);

  std::shared_ptr<RoleCarrier> carrier_;
  const pid_t made_by_;
  Timing timing_;
  bool started_{};
};

}  // namespace tenure::kafka
