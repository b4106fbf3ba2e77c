// SPDX-License-Identifier: Apache-2.0
// A group of elections in one consumer group. Each method but request_step_down() is one call to the serving thread. It
// knows one call at a time: nobody may call while another thread is in await_change().
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kafka_group.hpp>

#include "role_threads.hpp"

namespace tenure::kafka {

class RoleStore final : public GroupStore {
 public:
  explicit RoleStore(const std::shared_ptr<RoleThreads>& threads)
      : threads_(threads, group_presets(threads->exclusive()).balanced) {}

  std::string group() const override { return threads_->options().group; }
  Exclusive exclusive() const override { return threads_->exclusive(); }
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
  std::optional<Error> accepts(const Timing& timing) override { return threads_.accepts(timing); }

 private:
  template <class T>
  Result<T> ask(RoleCall what, const Limit& limit);

  ThreadsInUse<RoleThreads> threads_;
};

}  // namespace tenure::kafka
