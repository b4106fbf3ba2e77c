// SPDX-License-Identifier: Apache-2.0
// What the tests of group_suite.cpp and its neighbours start from: a group, and processes of it.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <tenure/contract/group_under_test.hpp>
#include <tenure/contract/member.hpp>
#include <tenure/contract/odd_names.hpp>
#include <tenure/contract/waiting.hpp>

namespace tenure::contract {

inline std::string name_of_group(const testing::TestParamInfo<GroupSubject>& info) { return info.param.name; }

/// The rules that every GroupStore keeps.
class GroupContract : public testing::TestWithParam<GroupSubject> {
 protected:
  void SetUp() override {
    if (const auto& missing = GetParam().missing; !missing.empty()) GTEST_SKIP() << missing;
    group_ = GetParam().make();
  }

  static constexpr auto patience = seconds(30);  ///< When a test gives up.

  Limit call() const { return Player::within(group_->call()); }

  /// Connected: on a busy machine that may take several attempts, and what a test asks is to be answered at once.
  std::shared_ptr<GroupStore> connect(const std::string& group = "orders") {
    auto store = group_->connect(group);
    const auto patient = Player::within(patience);
    auto answer = store->look({}, call());
    while (!answer && !patient.passed()) answer = store->look({}, call());
    return answer ? store : throw std::runtime_error("the store did not answer: " + answer.error().message);
  }

  /// A process with a session.
  Member member(const std::string& name, const std::string& group = "orders") {
    auto m = stranger(name, group);
    return m.open() ? std::move(m) : throw std::runtime_error("a new session was refused");
  }
  /// A process without one.
  Member stranger(const std::string& name, const std::string& group = "orders") {
    return {connect(group), name, group_->call()};
  }

  /// Everything that stands, by a connection of its own.
  struct Standing {
    std::uint64_t marker{};
    std::map<SessionId, Session> sessions{};
    Leads leads{};
    friend bool operator==(const Standing&, const Standing&) = default;
  };
  Standing standing(const std::string& group = "orders") {
    const auto look = connect(group)->look({}, call());
    if (!look) throw std::runtime_error("look: " + look.error().message);
    EXPECT_TRUE(look->whole) << "without a cursor everything is told";
    return {look->marker, look->sessions, look->leads};
  }
  Session standing_session(SessionId id) {
    const auto all = standing().sessions;
    const auto it = all.find(id);
    return it == all.end() ? throw std::runtime_error("the session is gone") : it->second;
  }

  std::unique_ptr<GroupUnderTest> group_;
};

/// What guards a commit. `a_` leads "mine", and other elections may be claimed.
class GuardOfACommit : public GroupContract {
 protected:
  void SetUp() override;

  /// With changes that are all possible.
  Commit busy();
  /// Does nothing, and tells what stands.
  void refused(const Commit& commit);

  std::optional<Member> a_;
  SessionId dead_{};
};

}  // namespace tenure::contract
