// SPDX-License-Identifier: Apache-2.0
// For the tests of Roles and NonExclusiveRoles: facts are handed to one machine at chosen moments of a clock that is
// only a number. The test plays the coordinator and core.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "record.hpp"
#include "role_machine.hpp"

namespace tenure::kafka {

inline constexpr int scene_units = 2;
inline const std::vector<int> all_partitions{0, 1, 2, 3, 4, 5};

/// A role of this unit.
inline std::string role(int unit, int number = 0) {
  for (int i = 0;; ++i) {
    auto name = "role" + std::to_string(i);
    if (unit_of(name, scene_units) == unit && number-- == 0) return name;
  }
}

/// One machine that takes part in two roles of each unit, and everything round it played by hand.
struct RoleScene {
  explicit RoleScene(std::unique_ptr<RoleMachine> machine) : roles(std::move(machine)) {
    for (int unit = 0; unit < scene_units; ++unit)
      for (int i = 0; i < 2; ++i) give(role_fact::Joined{role(unit, i)});
  }

  /// The time comes behind each fact, as on the serving thread.
  void give(const RoleFact& fact) {
    decide(fact);
    decide(role_fact::Elapsed{});
  }
  void decide(const RoleFact& fact) {
    for (auto& effect : roles->on(fact, now, 1'700'000'000'000 + (now - start) / std::chrono::milliseconds(1))) {
      if (auto* e = std::get_if<role_effect::SendCommit>(&effect)) sent = *e, ++commits;
      if (auto* e = std::get_if<role_effect::Open>(&effect)) handle = e->handle, rank = e->client_id, ++opened;
      if (std::holds_alternative<role_effect::Drop>(effect)) ++drops;
      if (std::holds_alternative<role_effect::Unassign>(effect)) ++unassigns;
      if (auto* e = std::get_if<role_effect::ReadMember>(&effect)) reading = e->id;
      if (auto* e = std::get_if<role_effect::Reply>(&effect)) answer = e->answer;
      if (std::holds_alternative<role_effect::FindOwners>(effect)) ++searches;
      if (auto* e = std::get_if<role_effect::Observe>(&effect)) creates = e->create, checks = e->check, ++observations;
      if (auto* e = std::get_if<role_effect::Tell>(&effect)) told += e->message;
    }
  }
  void pass(Clock::Duration by) { now += by, give(role_fact::Elapsed{}); }
  void call(RoleCall what) {
    answer.reset();
    give(role_fact::Called{++calls, std::move(what), now + std::chrono::seconds(2)});
  }

  // ---- the coordinator ----
  void observe() { give(role_fact::Observed{offsets}); }
  void accept(bool again = false) {
    ASSERT_TRUE(sent);
    for (const auto& [partition, commit] : sent->commits) offset(partition) = commit;
    answer_commit(Outcome::accepted, again);
  }
  /// `again`: the client library has sent it twice.
  void answer_commit(Outcome outcome, bool again = false) {
    const auto id = std::exchange(sent, std::nullopt).value().id;
    give(role_fact::Committed{id, outcome, outcome == Outcome::accepted ? Error{} : Error{Fault::timed_out, "no"},
                              again});
  }
  void read() {
    ASSERT_TRUE(reading);
    give(role_fact::MemberRead{*std::exchange(reading, std::nullopt), offsets});
  }
  void assign(std::vector<int> partitions, int generation = 2, const std::string& member = "one") {
    give(role_fact::Assigned{handle, std::move(partitions), generation, member});
  }
  void join(std::vector<int> partitions, int generation = 2) {
    open();
    assign(std::move(partitions), generation);
  }
  void rebalance(std::vector<int> partitions, int generation = 2) {
    revoked();
    assign(std::move(partitions), generation);
  }
  void do_commit(std::vector<std::string> claims = {}, std::vector<std::string> releases = {}) {
    commit(std::move(claims), std::move(releases));
    accept();
  }
  /// Its handle was dropped for the `times`th time, and the next one is opened so much later. Each time that it comes
  /// and goes, units move between the others.
  void expect_out_for(Clock::Duration pause, int times) {
    constexpr auto step = std::chrono::milliseconds(250);
    EXPECT_EQ(drops, times);
    stay(pause - step);
    EXPECT_EQ(opened, times);
    stay(step);
    EXPECT_EQ(opened, times + 1);
  }
  /// The nonce and its read.
  void prove() {
    accept();
    read();
  }
  /// A member of the group that owns these, and has proved it.
  void own(std::vector<int> partitions = all_partitions) { join(std::move(partitions)), prove(); }
  /// The next read of an owner that waits.
  void read_on() { pass(std::chrono::milliseconds(500)), read(); }
  void revoked(bool lost = false) { give(role_fact::Revoked{handle, lost}); }
  std::optional<Commit>& offset(int partition) { return offsets.at(static_cast<std::size_t>(partition)); }
  Record record(int unit) { return decode(offset(record_of(unit)).value().metadata).value(); }

  /// The coordinator's answer to the question who owns what.
  void found_owner(int partition, const std::string& client_id) {
    give(role_fact::OwnersFound{Owners{.partitions = {{partition, client_id, "/10.0.0.7"}}}});
  }

  // ---- what core does ----
  /// `new_group`: no broker knew the group before.
  void open(bool new_group = false) {
    observe();
    call(role_call::Open{SessionId{77}, {.record = {.who = "name=me"}}});
    give(role_fact::Observed{offsets, {}, new_group});  // From here on it may create the topic, so it looks again.
    pass({});
  }
  void commit(std::vector<std::string> claims = {}, std::vector<std::string> releases = {}) {
    tenure::Commit c{.session = SessionId{77}, .next = {.record = {.who = "name=me"}, .most = most}};
    std::sort(claims.begin(), claims.end());
    std::sort(releases.begin(), releases.end());
    const auto seen = look();
    for (const auto& name : claims) {
      const auto it = seen.leads.find(name);
      c.claims.push_back({name, it == seen.leads.end() ? std::nullopt : std::optional(it->second.token)});
    }
    for (const auto& name : releases) c.releases.push_back({name, seen.leads.at(name).token, std::nullopt});
    call(role_call::Write{c});
  }
  /// Time passes for a process that asks all the while, and whose observer reads.
  void stay(Clock::Duration by) {
    for (const auto until = now + by; now < until;) {
      observe();
      commit();
      pass(std::min<Clock::Duration>(std::chrono::milliseconds(250), until - now));
    }
  }
  Look look() {
    call(role_call::See{});
    return *std::get<Result<Look>>(answer.value());
  }
  const tenure::Committed& done() const { return *std::get<Result<tenure::Committed>>(answer.value()); }
  bool failed() const { return answer && !std::get<Result<tenure::Committed>>(*answer); }
  bool allotted(const std::string& name) { return look().allotted->contains(name); }
  bool leads(const std::string& name) {
    const auto seen = look().leads;
    const auto it = seen.find(name);
    return it != seen.end() && it->second.session == SessionId{77} && !it->second.released;
  }

  std::unique_ptr<RoleMachine> roles;
  static constexpr Clock::Time start{std::chrono::hours(1)};
  Clock::Time now{start};
  role_fact::Offsets offsets{static_cast<std::size_t>(partitions_of(scene_units))};
  std::optional<role_effect::SendCommit> sent;
  std::optional<std::uint64_t> reading;
  std::optional<RoleAnswer> answer;
  std::string told, rank;
  std::uint64_t handle{}, calls{};
  std::uint32_t most{UINT32_MAX};  ///< As core publishes it.
  bool creates{}, checks{};        ///< As the last look at the records may, or must.
  int commits{}, drops{}, unassigns{}, opened{}, searches{}, observations{};
};

}  // namespace tenure::kafka
