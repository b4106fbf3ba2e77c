// SPDX-License-Identifier: Apache-2.0
// One group's sessions and leads: looked at, changed in one statement or two, announced.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kit/joined_names.hpp>

#include "client.hpp"
#include "group_statements.hpp"

namespace tenure::postgres {

class Group final : public GroupStore {
 public:
  Group(const Settings& settings, const std::string& group, const Log& log);

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
  const std::string group_;
  const std::shared_ptr<const GroupStatements> statements_;  ///< Shared with calls that outlive us.
  const std::shared_ptr<Notes> notes_;
  JoinedNames joined_;
  /// Where our session stands, see Place, and since how many renewals.
  struct Seat {
    SessionId session{};
    std::uint64_t place{};
    int renewals{};
  } seat_;
  SweepPass pass_;  ///< Of the last sweep.
  Client client_;
  Client listener_;  ///< Of its own, since one may wait while another asks.
  struct Told {
    std::string cursor{};
    Connection::News news{};
  } told_;  ///< By the last await_change().
};

}  // namespace tenure::postgres
