// SPDX-License-Identifier: Apache-2.0
// Goal: after a commit whose outcome is unknown its handle claims no more in that generation. A coordinator may handle
// the old connection's request after the new one's, and the next leader would then read an old token. Method: a real
// broker behind a relay that keeps the answers to one commit. Rule 10 of backends/kafka/README.md, rule 7 of its roles.
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/kafka_group.hpp>

#include "broker.hpp"
#include "eventually.hpp"
#include "relay.hpp"
#include "support.hpp"

namespace tenure::kafka::test {
namespace {

using tenure::test::KafkaMessage;

/// librdkafka sends a commit that was not answered again, so often at most.
constexpr std::size_t repeats = 2;

/// Keeps the answers to the first claim and to its repetitions, and all that comes behind them on their connections.
class KeptAnswers final : public tenure::test::Gate {
 public:
  explicit KeptAnswers(std::size_t copies = 1 + repeats) : copies_(copies) {}

  void sent(const KafkaMessage& m) override {
    const std::lock_guard lock(mutex_);
    if (m.api == tenure::test::offset_commit) commits_.push_back(m.client_id);
    if (m.api == tenure::test::leave_group) left_.insert(m.client_id);
  }
  bool passes(const KafkaMessage& m) override {
    const std::lock_guard lock(mutex_);
    if (m.request) return true;
    if (kept_.contains(m.connection)) return false;
    if (!m.claims || kept_.size() == copies_) return true;
    if (claimed_by_.empty()) claimed_by_ = m.client_id;
    if (m.client_id != claimed_by_) return true;
    kept_.insert(m.connection);
    return false;
  }

  std::size_t kept() const {
    const std::lock_guard lock(mutex_);
    return kept_.size();
  }
  /// The handle that was the first to claim.
  std::string claimed_by() const {
    const std::lock_guard lock(mutex_);
    return claimed_by_;
  }
  bool left() const {  ///< That one has left the group.
    const std::lock_guard lock(mutex_);
    return left_.contains(claimed_by_);
  }
  /// The handles that committed, in order.
  std::vector<std::string> commits() const {
    const std::lock_guard lock(mutex_);
    return commits_;
  }

 private:
  const std::size_t copies_;
  mutable std::mutex mutex_;
  std::vector<std::string> commits_;
  std::string claimed_by_;
  std::set<std::string> left_;    ///< Handles.
  std::set<std::uint64_t> kept_;  ///< Connections.
};

struct KafkaUnknownCommit : testing::Test {
  void SetUp() override {
    if (brokers.empty()) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
  }
  /// It hears within two seconds that nobody answers: before its lease is over, and its session.
  Options options(const tenure::test::Relay& relay) const {
    Options o;
    o.brokers = relay.address();
    o.group = unique_name("tenure-unknown");
    o.candidate = {"a", "a:1"};
    o.create_topic = CreateTopic{};
    o.min_session = 100ms;
    o.properties["socket.timeout.ms"] = "600";
    return o;
  }
  const std::string brokers = real_brokers();
};

/// Whether the tenure outlived the change of the handle. A broker that was starved does not answer in time either.
bool outlived(bool still_leads, const tenure::test::Lateness& since) {
  if (!still_leads) since.starved(600ms);
  return still_leads;
}

/// Three times as long as the client library tries.
constexpr Timing timing{.term = 6s, .renew = 500ms, .retry = 100ms, .margin = 100ms, .call = 2s, .drain = 6s};

TEST_F(KafkaUnknownCommit, AClaimIsNotRepeatedByThatHandle) {
  KeptAnswers answers;
  const tenure::test::Relay relay(port_of(brokers), answers);
  Candidate a(options(relay), timing);
  ASSERT_TRUE(a.campaign());
  ASSERT_GE(answers.kept(), 1u);
  EXPECT_NE(answers.commits().back(), answers.claimed_by())
      << "another handle, in another generation, claims anew " << TENURE_PROMISE;
}

// Rule 23. The client library sends the claim again, and that one is answered.

TEST_F(KafkaUnknownCommit, AClaimThatWasSentTwiceLeadsAndCostsTheHandle) {
  KeptAnswers answers(1);
  const tenure::test::Relay relay(port_of(brokers), answers);
  Candidate a(options(relay), timing);
  const auto token = a.campaign();
  ASSERT_TRUE(token);
  ASSERT_EQ(answers.kept(), 1u);
  const tenure::test::Lateness since;
  EXPECT_TRUE(tenure::test::eventually([&] { return a.renewed(*token) && answers.left(); }, patience));
  const auto commits = answers.commits().size();
  EXPECT_TRUE(outlived(a.renewed(*token), since)) << "by the next handle";
  EXPECT_GT(answers.commits().size(), commits);
}

TEST_F(KafkaUnknownCommit, AClaimOfARoleThatWasSentTwiceLeadsAndCostsTheHandle) {
  KeptAnswers answers(1);
  const tenure::test::Relay relay(port_of(brokers), answers);
  Elections elections(open_group(options(relay), 1), {"a", "a:1"}, timing, {.log = no_log});
  elections.join("e");
  elections.start();
  ASSERT_TRUE(tenure::test::eventually([&] { return elections.is_leader("e"); }, patience));
  const auto led = elections.led();
  const tenure::test::Lateness since;
  EXPECT_TRUE(tenure::test::eventually([&] { return answers.left(); }, patience));
  const auto commits = answers.commits().size();
  EXPECT_TRUE(tenure::test::eventually([&] { return answers.commits().size() > commits + 2; }, patience));
  EXPECT_TRUE(outlived(elections.led() == led, since));
}

TEST_F(KafkaUnknownCommit, AClaimOfARoleIsNotRepeatedByThatHandle) {
  KeptAnswers answers;
  const tenure::test::Relay relay(port_of(brokers), answers);
  Elections elections(open_group(options(relay), 1), {"a", "a:1"}, timing, {.log = no_log});
  elections.join("e");
  elections.start();
  ASSERT_TRUE(tenure::test::eventually([&] { return elections.is_leader("e"); }, patience));
  ASSERT_GE(answers.kept(), 1u);
  EXPECT_NE(answers.commits().back(), answers.claimed_by())
      << "another handle, in another generation, claims anew " << TENURE_PROMISE;
}

}  // namespace
}  // namespace tenure::kafka::test
