// SPDX-License-Identifier: Apache-2.0
// A group of elections on a server.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kit/joined_names.hpp>
#include <tenure/log.hpp>

#include "group_text.hpp"
#include "link.hpp"
#include "script.hpp"

namespace tenure::redis {

/// What was pushed since the last look. Whoever waits anew and has not looked is told it again, also if the wait in
/// which it came was ended before it could say so. Any thread.
class News {
 public:
  void heard(const std::string& message);

  /// A look that is asked now tells all that was heard until now, or shows that it was forged.
  std::uint64_t begin_look() const;
  void looked(std::uint64_t begun);

  /// Of what was not looked at: the last message, if it is news to whoever has this cursor.
  std::optional<std::string> since(const std::string& cursor) const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t count_{};
  std::optional<std::string> last_;
};

/// The connections for questions and for pushes have Sentinels of their own, because two threads use them.
class Group final : public GroupStore {
 public:
  Group(const Options& options, const std::string& group, Log log);

  std::string group() const override { return group_; }
  void joined(const std::string& election) override { joined_.join(election); }
  void left(const std::string& election) override { joined_.leave(election); }
  Result<Look> look(const std::string& cursor, const Limit& limit) override;
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override;
  Result<Committed> commit(const Commit& commit, const Limit& limit) override;
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override;
  Result<int> sweep(const Limit& limit) override;
  Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit& limit) override;
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override;
  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override;

 private:
  /// All leads, as far as they have been read.
  struct Scan {
    Page seen{};
    std::uint64_t connection{};
  };

  Result<Look> looked(const std::string& cursor, const Names& joined, const Limit& limit);
  Result<Look> everything(const Limit& limit);
  Result<Reply> run(const Script& script, std::vector<std::string> arguments, const Limit& limit, int replicas);
  void take(Look& look, std::uint64_t begun);
  bool may_claim(const Commit& commit, const Limit& limit);

  const std::string group_, key_;
  const int replicas_;
  const bool loses_nothing_;
  const Warn warn_;
  Link commands_, notices_;
  const std::shared_ptr<News> news_{std::make_shared<News>()};  ///< Shared with what still runs when we are gone.
  std::string last_warning_;                                    ///< Why it claims nothing.
  JoinedNames joined_;
  SweepPass pass_;  ///< Of the last sweep.
  Scan scan_;
};

}  // namespace tenure::redis
