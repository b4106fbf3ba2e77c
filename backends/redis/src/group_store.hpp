// SPDX-License-Identifier: Apache-2.0
// A group of elections on a server.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/log.hpp>

#include "link.hpp"
#include "script.hpp"

namespace tenure::redis {

/// The connections for questions and for pushes have Sentinels of their own, because two threads use them.
class Group final : public GroupStore {
 public:
  Group(const Options& options, const std::string& group, Log log);

  std::string group() const override { return group_; }
  Result<Look> look(const std::string& cursor, const Limit& limit) override;
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override;
  Result<Committed> commit(const Commit& commit, const Limit& limit) override;
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override;
  Result<int> sweep(const Limit& limit) override;
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override;
  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override;

 private:
  Result<Reply> run(const Script& script, std::vector<std::string> arguments, const Limit& limit, int replicas);
  void hide_marker(Look& look) const;
  bool may_claim(const Commit& commit, const Limit& limit);

  const std::string group_, key_;
  const int replicas_;
  const bool loses_nothing_;
  const Warn warn_;
  Link commands_, notices_;
  std::string last_warning_;  ///< Why it claims nothing.
};

}  // namespace tenure::redis
