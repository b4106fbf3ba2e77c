// SPDX-License-Identifier: Apache-2.0
// Goal: nothing that a former leader commits takes effect after its successor's claim, over each store that has a
// strict fence. Method: a user's transactions as the page says, beside claims and renewals of the real store, in real
// servers; also in a process that is frozen in the midst of one. A program includes this once, and names its Subjects.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>

#include <tenure/conditional_store.hpp>
#include <tenure/group_store.hpp>

#include "store_calls.hpp"
#include "within.hpp"

namespace tenure::fence::strict {

using Values = std::set<std::string>;

/// An election in a store, and a user's transactions that its fence guards.
class Fenced {
 public:
  virtual ~Fenced() = default;
  /// The next leader claims the election. Returns its token; 0: the store refused that.
  virtual Token claim() = 0;
  virtual void renew() = 0;    ///< The present leader does.
  virtual void release() = 0;  ///< It does.

  using Finish = std::function<bool()>;  ///< Asks the fence, writes and commits. False: it was refused.
  /// Begins a transaction as the leader with this token would, and does all that may come before the fence is asked.
  /// The value is a word.
  virtual Finish begin(Token token, const std::string& value) = 0;
  virtual Values written() = 0;
};

/// Over one record.
class FencedRecord : public Fenced {
 public:
  Token claim() override { return swap({token_.value + 1}, 1, false) ? token_ : Token{}; }
  void renew() override { EXPECT_TRUE(swap(token_, beat_ + 1, false)); }
  void release() override { EXPECT_TRUE(swap(token_, beat_ + 1, true)); }

 protected:
  virtual ConditionalStore& store() = 0;

 private:
  bool swap(Token token, std::uint64_t beat, bool released) {
    auto next = tenure::test::record(token.value, beat);
    next.released = released;
    const auto expected =
        token_.value ? std::optional(Expected{.token = token_, .beats = {beat_}}) : std::optional<Expected>();
    if (!tenure::test::swap(store(), expected, next)) return false;
    token_ = token, beat_ = beat;
    return true;
  }

  Token token_{};
  std::uint64_t beat_{};
};

/// Over one lead of a group, of which each leader has a session of its own.
class FencedLead : public Fenced {
 public:
  Token claim() override {
    const auto former = session_;
    if (former.value) {
      EXPECT_TRUE(tenure::test::value(store().end(former, {beat_}, beat_ + 1, limit())));
    }
    session_ = {former.value + 1}, beat_ = 1;
    marker_ = tenure::test::value(store().open(session_, session(), limit())).look.marker;
    auto commit = renewal();
    commit.claims = {{"jobs", token_.value ? std::optional(token_) : std::nullopt}};
    commit.ended = {former};
    commit.at_least = {token_.value + 1};
    const auto done = tenure::test::value(store().commit(commit, limit()));
    return token_ = done.claimed.empty() ? Token{} : done.token;
  }
  void renew() override { EXPECT_TRUE(tenure::test::value(store().commit(renewal(), limit())).granted); }
  void release() override {
    auto commit = renewal();
    commit.releases = {{"jobs", token_}};
    EXPECT_EQ(tenure::test::value(store().commit(commit, limit())).released.size(), 1u);
  }

 protected:
  virtual GroupStore& store() = 0;

 private:
  static Limit limit() { return tenure::test::within(std::chrono::seconds(20)); }
  Session session() const { return {.record = tenure::test::record(0, beat_), .joined = 1}; }
  Commit renewal() {
    const auto stands = beat_++;
    return {.session = session_, .beats = {stands}, .next = session(), .marker = marker_};
  }

  Token token_{};
  SessionId session_{};
  std::uint64_t beat_{}, marker_{};
};

struct Subject {
  std::string name;
  std::function<std::unique_ptr<Fenced>()> make;
  std::string missing{};  ///< Why the store is not there in this run; its tests are then skipped.
  friend std::ostream& operator<<(std::ostream& out, const Subject& subject) { return out << subject.name; }
};

inline std::string name_of(const testing::TestParamInfo<Subject>& info) { return info.param.name; }

/// A process that is stopped by itself in the midst of a transaction.
class Frozen {
 public:
  Frozen(Fenced& fenced, Token token, const std::string& value) : pid_(::fork()) {
    if (pid_ == 0) {
      ::alarm(60);
      const auto finish = fenced.begin(token, value);
      ::raise(SIGSTOP);
      ::_exit(finish() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status)) << status;
  }
  /// Whether its transaction was committed.
  bool thaw() const {
    int status = 0;
    ::kill(pid_, SIGCONT);
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return WEXITSTATUS(status) == 0;
  }

 private:
  const pid_t pid_;
};

class StrictFence : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
    fenced_ = GetParam().make();
    leader_ = fenced_->claim();
    ASSERT_NE(leader_, Token{});
  }
  bool write(Token token, const std::string& value) { return fenced_->begin(token, value)(); }

  std::unique_ptr<Fenced> fenced_;
  Token leader_;
};

using testing::ElementsAre;
using testing::IsEmpty;

TEST_P(StrictFence, TheLeadersTransactionsCommit) {
  EXPECT_TRUE(write(leader_, "a"));
  EXPECT_TRUE(write(leader_, "b"));
  EXPECT_THAT(fenced_->written(), ElementsAre("a", "b"));
}

TEST_P(StrictFence, ARenewalInTheMidstOfATransactionDoesNotRefuseIt) {
  const auto finish = fenced_->begin(leader_, "a");
  fenced_->renew();
  EXPECT_TRUE(finish());
  fenced_->renew();
  EXPECT_TRUE(write(leader_, "b"));
  EXPECT_THAT(fenced_->written(), ElementsAre("a", "b"));
}

TEST_P(StrictFence, AFormerLeadersTransactionDoesNotCommit) {
  const auto successor = fenced_->claim();
  EXPECT_GT(successor, leader_);
  EXPECT_FALSE(write(leader_, "first"));
  EXPECT_TRUE(write(successor, "s"));
  EXPECT_FALSE(write(leader_, "second"));
  EXPECT_THAT(fenced_->written(), ElementsAre("s"));
}

TEST_P(StrictFence, ATransactionThatBeganBeforeTheClaimDoesNotCommitAfterIt) {
  const auto finish = fenced_->begin(leader_, "late");
  ASSERT_NE(fenced_->claim(), Token{});
  EXPECT_FALSE(finish());
  EXPECT_THAT(fenced_->written(), IsEmpty());
}

TEST_P(StrictFence, AfterAReleaseAndAnothersClaimNothingOfTheFormerLeaderCommits) {
  const auto finish = fenced_->begin(leader_, "late");
  fenced_->release();
  const auto successor = fenced_->claim();
  EXPECT_FALSE(finish());
  EXPECT_FALSE(write(leader_, "later"));
  EXPECT_TRUE(write(successor, "s"));
  EXPECT_THAT(fenced_->written(), ElementsAre("s"));
}

TEST_P(StrictFence, AProcessThatWasFrozenInItsTransactionDoesNotCommitIt) {
  const Frozen frozen(*fenced_, leader_, "frozen");
  const auto successor = fenced_->claim();
  EXPECT_TRUE(write(successor, "s"));
  fenced_->renew();
  EXPECT_FALSE(frozen.thaw());
  EXPECT_THAT(fenced_->written(), ElementsAre("s"));
}

TEST_P(StrictFence, AProcessThatWasFrozenCommitsIfItStillLeads) {
  const Frozen frozen(*fenced_, leader_, "frozen");
  fenced_->renew();
  EXPECT_TRUE(frozen.thaw());
  EXPECT_THAT(fenced_->written(), ElementsAre("frozen"));
}

TEST_P(StrictFence, ATokenThatIsTheLeadersButForItsLastDigitIsRefused) {
  EXPECT_FALSE(write({leader_.value / 10}, "other"));
  EXPECT_THAT(fenced_->written(), IsEmpty());
}

}  // namespace tenure::fence::strict
