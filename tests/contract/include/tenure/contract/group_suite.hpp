// SPDX-License-Identifier: Apache-2.0
// The tools by which the tests of group_suite.cpp and group_history.cpp drive a group.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tenure/kit/names.hpp>
#include <tenure/kit/text.hpp>
#include <utility>
#include <vector>

#include <tenure/contract/contract_suite.hpp>
#include <tenure/contract/group_under_test.hpp>

namespace tenure::contract {

inline std::string name_of_group(const testing::TestParamInfo<GroupSubject>& info) { return info.param.name; }

/// Its highest bit is set: a store that takes it for a signed number, or for a double, is found.
inline std::uint64_t draw_beat() {
  return *number<std::uint64_t>(draw_incarnation().substr(0, 16), 16) | std::uint64_t{1} << 63;
}

inline SessionId draw_id() { return {draw_beat() >> 1}; }

using Names = std::vector<std::string>;
using Leads = std::map<std::string, Lead>;

inline Names sorted(Names names) {
  std::sort(names.begin(), names.end());
  return names;
}

/// Keeps up with a group by what it is told.
class Mirror {
 public:
  void take(const Look& look) {
    if (look.whole) leads_.clear();
    for (const auto& [election, lead] : look.leads) leads_[election] = lead;
    sessions_ = look.sessions;
    cursor_ = look.cursor;
    marker_ = look.marker;
  }
  const Leads& leads() const { return leads_; }
  const std::map<SessionId, Session>& sessions() const { return sessions_; }
  const std::string& cursor() const { return cursor_; }
  std::uint64_t marker() const { return marker_; }

  std::optional<Token> token(const std::string& election) const {
    const auto it = leads_.find(election);
    return it == leads_.end() ? std::nullopt : std::optional(it->second.token);
  }
  Token highest() const {
    Token highest{};
    for (const auto& entry : leads_) highest = std::max(highest, entry.second.token);
    return highest;
  }

 private:
  Leads leads_;
  std::map<SessionId, Session> sessions_;
  std::string cursor_;
  std::uint64_t marker_{};
};

/// One process: a connection, a session, and what it was told of the group.
class Member {
 public:
  Member(std::shared_ptr<GroupStore> store, std::string name, Clock::Duration call)
      : store_(std::move(store)), name_(std::move(name)), call_(call) {}

  GroupStore& store() { return *store_; }
  SessionId id() const { return id_; }
  std::uint64_t beat() const { return beat_; }
  const Mirror& seen() const { return seen_; }
  Limit limit() const { return Player::within(call_); }

  Session session(std::uint64_t beat) const {
    return {.record = {.token = {1},
                       .beat = beat,
                       .holder = name_,
                       .incarnation = {},
                       .address = name_ + ":1",
                       .released = false,
                       .term = seconds(10),
                       .asked = boot_clock().now().time_since_epoch()},
            .joined = 3,
            .names = std::uint64_t{7} << 61};
  }

  /// A new session.
  bool open() {
    const auto id = draw_id();
    const auto beat = draw_beat();
    const auto done = answered("open", store_->open(id, session(beat), limit()));
    if (done.granted) id_ = id, beat_ = beat;
    return done.granted;
  }

  /// A renewal, for commit() as it is or with changes.
  Commit renewal() const {
    return {.session = id_,
            .beats = {beat_},
            .next = session(draw_beat()),
            .marker = seen_.marker(),
            .claims = {},
            .releases = {},
            .ended = {},
            .at_least = {},
            .cursor = seen_.cursor()};
  }
  Committed commit(const Commit& commit) {
    auto done = answered("commit", store_->commit(commit, limit()));
    if (done.granted) beat_ = commit.next.record.beat;
    return done;
  }
  bool renew() { return commit(renewal()).granted; }

  /// Claims them, as they were seen. By default with a greater token than any that was seen.
  Committed claim(const Names& elections, std::vector<SessionId> ended = {}, std::optional<Token> at_least = {}) {
    auto claims = renewal();
    for (const auto& election : sorted(elections)) claims.claims.push_back({election, seen_.token(election)});
    claims.ended = std::move(ended);
    claims.at_least = at_least.value_or(Token{seen_.highest().value + 1});
    return commit(claims);
  }
  Committed release(const Names& elections, std::optional<SessionId> heir = {}) {
    auto releases = renewal();
    for (const auto& election : sorted(elections))
      releases.releases.push_back({election, seen_.token(election).value_or(Token{}), heir});
    return commit(releases);
  }
  /// Whether it leads it now, alone.
  bool claims(const std::string& election, std::vector<SessionId> ended = {}) {
    return claim({election}, std::move(ended)).claimed == Names{election};
  }
  bool releases(const std::string& election) { return release({election}).released == Names{election}; }

  bool end() { return end(*this); }
  bool end(const Member& other) { return end(other.id_, {other.beat_}); }
  bool end(SessionId id, const std::vector<std::uint64_t>& beats) {
    auto ended = store_->end(id, beats, draw_beat(), limit());
    if (!ended) ADD_FAILURE() << "end: " << ended.error().message;
    return ended && *ended;
  }
  int sweep() {
    const auto swept = store_->sweep(limit());
    if (!swept) ADD_FAILURE() << "sweep: " << swept.error().message;
    return swept ? *swept : -1;
  }

  /// What changed since this member was told anything.
  Look look() { return look(seen_.cursor()); }
  Look look(const std::string& cursor) {
    auto look = store_->look(cursor, limit());
    if (!look) ADD_FAILURE() << "look: " << look.error().message;
    if (!look) return {};
    seen_.take(*look);
    return *std::move(look);
  }

 private:
  Committed answered(const char* verb, Result<Committed> result) {
    if (!result) ADD_FAILURE() << verb << ": " << result.error().message;
    if (!result) return {};
    seen_.take(result->look);
    return *std::move(result);
  }

  std::shared_ptr<GroupStore> store_;
  std::string name_;
  Clock::Duration call_;
  SessionId id_{};
  std::uint64_t beat_{};
  Mirror seen_;
};

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
