// SPDX-License-Identifier: Apache-2.0
// The model of a group, as a store.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>

#include "group_model.hpp"

namespace tenure::test {

/// The model, for threads.
class ModelStore : public GroupStore {
 public:
  explicit ModelStore(bool can_lose = true) : model_{.can_lose = can_lose} {}

  std::string group() const override { return "model"; }
  Result<Look> look(const std::string& cursor, const Limit&) override {
    const std::lock_guard lock(mutex_);
    return model_.look(cursor);
  }
  Result<Committed> open(SessionId id, const Session& session, const Limit&) override {
    const std::lock_guard lock(mutex_);
    return model_.open(id, session, 1);
  }
  Result<Committed> commit(const Commit& commit, const Limit&) override {
    const std::lock_guard lock(mutex_);
    return model_.commit(commit);
  }
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t beat, const Limit&) override {
    const std::lock_guard lock(mutex_);
    return model_.end(id, beats, beat);
  }
  Result<int> sweep(const Limit&) override { return 0; }
  std::optional<Error> request_step_down(const std::string&, const StepDown&, const Limit&) override { return {}; }

 private:
  std::mutex mutex_;
  GroupModel model_;
};

}  // namespace tenure::test
