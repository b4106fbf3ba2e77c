// SPDX-License-Identifier: Apache-2.0
// Goal: over Kafka no transaction of a former leader commits after its successor's claim. Method: a real broker behind
// a relay that holds messages; and a producer without rule 25, of which a late copy of a request commits what nobody
// committed.
#include <tenure/kafka_transactions.hpp>

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <future>
#include <mutex>
#include <utility>

#include <tenure/kit/c_handle.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/memory.hpp>

#include "broker.hpp"
#include "eventually.hpp"
#include "in_child.hpp"
#include "lateness.hpp"
#include "relay.hpp"
#include "support.hpp"

/// examples/kafka_transactions.cpp, which the page of fences shows.
bool publish(const tenure::Leadership& leadership, tenure::kafka::Transactions& transactions, const std::string& topic,
             std::string total);

namespace tenure::kafka::test {
namespace {

using tenure::test::eventually;
using tenure::test::KafkaMessage;
using tenure::test::Relay;
using Outcome = Transactions::Outcome;

constexpr auto limit = 20s;

/// Nobody renews here but where a test does so.
Timing timing() {
  auto out = own_broker_presets().steady;
  out.term *= 2;
  return out;
}

constexpr int end_txn = 26, txn_offset_commit = 28;  // Kafka's api keys

/// Any thread.
class TransactionGate final : public tenure::test::Gate {
 public:
  /// What a connection sends from its next request of this kind on. What is sent again by another one passes.
  void hold_next(int api) {
    const std::lock_guard lock(mutex_);
    api_ = api, armed_ = true;
  }
  void hold_all(int api) {
    const std::lock_guard lock(mutex_);
    api_ = api, armed_ = all_ = true;
  }
  /// From the next request of this kind on nothing passes at all.
  void hush_from(int api) {
    const std::lock_guard lock(mutex_);
    api_ = api, hushes_ = true;
  }
  bool holds_one() const {
    const std::lock_guard lock(mutex_);
    return held_ != 0;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    late_ = std::exchange(held_, 0);
    all_ = hushes_ = hushed_ = false;
  }
  bool late_one_answered() const {
    const std::lock_guard lock(mutex_);
    return answered_;
  }
  /// The member hears nothing from its coordinator any more.
  void deafen() {
    const std::lock_guard lock(mutex_);
    deaf_ = true;
  }

  void sent(const KafkaMessage&) override {}
  bool passes(const KafkaMessage& m) override {
    const std::lock_guard lock(mutex_);
    const bool ours = m.api == api_;
    hushed_ = hushed_ || (hushes_ && m.request && ours);
    if (hushed_) return false;
    if (m.request && ours && std::exchange(armed_, false)) held_ = m.connection;
    if (m.request && (m.connection == held_ || (all_ && ours))) return false;
    if (!m.request && ours && m.connection == late_) answered_ = true;
    return m.request || !deaf_ || !m.client_id.starts_with("!tenure");
  }

 private:
  mutable std::mutex mutex_;
  int api_{-1};
  bool armed_{}, all_{}, deaf_{}, answered_{}, hushes_{}, hushed_{};
  std::uint64_t held_{}, late_{};  ///< Connections. They count from 1.
};

class KafkaTransactions : public ::testing::Test {
 protected:
  void SetUp() override {
    if (brokers_.empty()) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
    relay_.emplace(port_of(brokers_), gate_);
    create_topic(brokers_, work_, 1);
  }

  Options options(const std::string& brokers) const {
    Options o;
    o.brokers = brokers;
    o.group = group_;
    o.create_topic = CreateTopic{};
    o.min_session = 100ms;
    o.log = no_log;
    return o;
  }
  Candidate candidate(const Timing& its = timing()) const { return Candidate(options(relay_->address()), its); }
  Candidate rival() const { return Candidate(options(brokers_), timing()); }

  void produce(rd_kafka_t* by, const std::string& text) const {
    auto* value = const_cast<char*>(text.data());
    const auto topic = owned<rd_kafka_topic_destroy>(rd_kafka_topic_new(by, work_.c_str(), nullptr));
    ASSERT_EQ(rd_kafka_produce(topic.get(), 0, RD_KAFKA_MSG_F_COPY, value, text.size(), nullptr, 0, nullptr), 0);
    ASSERT_EQ(rd_kafka_flush(by, 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  Outcome written(Transactions& transactions, Token token, const std::string& text) const {
    produce(transactions.begin(limit), text);
    return transactions.commit(token, limit);
  }
  std::string committed() const;

  /// One that leads.
  struct Leader : Candidate {
    explicit Leader(const KafkaTransactions& test, const Timing& its = timing(),
                    const std::map<std::string, std::string>& properties = {})
        : Candidate(test.candidate(its)), transactions(backend, test.id_, properties) {
      transactions.begin(limit);  // the first one of a broker takes seconds, which a lease does not last
      transactions.abort(limit);
      token = campaign().value();
    }
    Transactions transactions;
    Token token;
  };
  /// Its transaction stands before this request of its end. It hears nothing more, and is put out of its group.
  std::future<Outcome> held(Leader& leader, int before) {
    produce(leader.transactions.begin(limit), "held");
    EXPECT_TRUE(leader.renewed(leader.token));
    gate_.hold_all(before);
    gate_.deafen();
    auto outcome = std::async(std::launch::async, [&] { return leader.transactions.commit(leader.token, limit); });
    EXPECT_TRUE(eventually([&] { return gate_.holds_one(); }, patience));
    expel_the_leader();
    return outcome;
  }

  void expel_the_leader() const {
    const auto all = members(brokers_, group_);
    if (all.size() != 1) lateness_.starved(timing().term);
    ASSERT_EQ(all.size(), 1u) << "it lost its lease";
    expel(brokers_, group_, all.front().id);
  }

  const tenure::test::Lateness lateness_{};
  const std::string brokers_ = real_brokers();
  const std::string group_ = unique_name("tenure-transactions");
  const std::string work_ = group_ + ".work", id_ = group_ + ".id";
  TransactionGate gate_;
  std::optional<Relay> relay_;
};

CHandle<rd_kafka_t, rd_kafka_destroy> handle(rd_kafka_type_t type, const Options& o,
                                             const std::map<std::string, std::string>& properties) {
  char why[512] = "";
  auto* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", o.brokers.c_str(), why, sizeof why);
  for (const auto& [name, value] : properties)
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why, sizeof why) != RD_KAFKA_CONF_OK)
      throw std::runtime_error(why);
  CHandle<rd_kafka_t, rd_kafka_destroy> out(rd_kafka_new(type, conf, why, sizeof why));
  if (!out) throw std::runtime_error(why);
  return out;
}

/// What a consumer reads that leaves out what was not committed: all values, each with a space before it.
std::string KafkaTransactions::committed() const {
  const auto reader = handle(RD_KAFKA_CONSUMER, options(brokers_),
                             {{"group.id", group_ + ".readers"}, {"enable.partition.eof", "true"}});
  const auto all = owned<rd_kafka_topic_partition_list_destroy>(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(all.get(), work_.c_str(), 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
  rd_kafka_assign(reader.get(), all.get());
  std::string out;
  for (const auto by = within(limit); !by.passed();) {
    const auto message = owned<rd_kafka_message_destroy>(rd_kafka_consumer_poll(reader.get(), 100));
    if (!message) continue;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) break;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
      out.append(" ").append(static_cast<const char*>(message->payload), message->len);
  }
  rd_kafka_consumer_close(reader.get());
  return out;
}

TEST_F(KafkaTransactions, WhatALeaderProducesIsCommittedByOneProducer) {
  auto leader = candidate();
  Transactions transactions(leader.backend, id_);
  const auto* first = transactions.begin(limit);
  transactions.abort(limit);
  const auto token = leader.campaign();
  ASSERT_TRUE(token);
  for (const auto* text : {"one", "two", "three"}) {
    ASSERT_TRUE(leader.renewed(*token));
    auto* producer = transactions.begin(limit);
    EXPECT_EQ(producer, first) << "it is made anew without need";
    produce(producer, text);
    EXPECT_EQ(transactions.commit(*token, limit), Outcome::committed);
  }
  EXPECT_EQ(committed(), " one two three");
  EXPECT_EQ(written(transactions, Token{token->value + 1}, "four"), Outcome::refused) << "nobody leads by this token";
  EXPECT_EQ(committed(), " one two three");
}

#ifdef TENURE_WITH_EXAMPLE
TEST_F(KafkaTransactions, TheExampleWritesWhileItLeads) {
  const auto backend = open(options(brokers_));
  Transactions transactions(backend, id_);
  LeaderManager manager(backend, presets().fast, {.log = no_log});
  EXPECT_FALSE(publish(manager.leadership(), transactions, work_, "nobody"));
  manager.start();
  ASSERT_TRUE(manager.await_leadership(patience));
  EXPECT_TRUE(publish(manager.leadership(), transactions, work_, "leader"));
  manager.stop();
  EXPECT_FALSE(publish(manager.leadership(), transactions, work_, "former"));
  EXPECT_EQ(committed(), " leader");
}
#endif

TEST_F(KafkaTransactions, WhoLeadsNoMoreInItsGroupCommitsNothing) {
  Leader leader(*this);
  auto outcome = held(leader, txn_offset_commit);  // so that it is the coordinator who refuses
  auto next = rival();
  ASSERT_TRUE(next.campaign());
  gate_.let_go();
  EXPECT_EQ(outcome.get(), Outcome::refused) << TENURE_PROMISE;
  EXPECT_EQ(committed(), "") << TENURE_PROMISE;
}

/// Its member stays in the group, so that it is its generation that is refused.
TEST_F(KafkaTransactions, WhoLeadsOnInALaterGenerationCommitsNothingOfTheOneBefore) {
  Leader leader(*this);
  produce(leader.transactions.begin(limit), "late");
  ASSERT_TRUE(leader.renewed(leader.token));
  gate_.hold_all(txn_offset_commit);
  auto outcome = std::async(std::launch::async, [&] { return leader.transactions.commit(leader.token, limit); });
  ASSERT_TRUE(eventually([&] { return gate_.holds_one(); }, patience));
  const Stranger another(brokers_, group_, group_ + ".neli", "stranger");
  ASSERT_TRUE(eventually([&] { return leader.renewed(leader.token) && another.assigned(); }, patience));
  gate_.let_go();
  EXPECT_EQ(outcome.get(), Outcome::refused) << TENURE_PROMISE;
  EXPECT_EQ(committed(), "") << TENURE_PROMISE;
}

/// librdkafka itself would wait for its coordinator without a limit.
TEST_F(KafkaTransactions, ACommitEndsInItsTimeThoughNoBrokerAnswers) {
  Leader leader(*this);
  produce(leader.transactions.begin(limit), "one");
  ASSERT_TRUE(leader.renewed(leader.token));
  gate_.hush_from(txn_offset_commit);
  const tenure::test::Lateness since;
  EXPECT_EQ(leader.transactions.commit(leader.token, 4s), Outcome::refused);
  EXPECT_TRUE(tenure::test::in_time(since, 5s));
  gate_.let_go();
  leader.transactions.begin(limit);  // which ends the other one
  leader.transactions.abort(limit);
  leader.release();
  auto next = rival();
  ASSERT_TRUE(next.campaign());
  EXPECT_EQ(committed(), "") << TENURE_PROMISE;
}

TEST_F(KafkaTransactions, AfterAReleaseAndAnothersClaimNothingOfTheFormerLeaderCommits) {
  Leader leader(*this);
  produce(leader.transactions.begin(limit), "late");
  ASSERT_EQ(leader.released(), std::nullopt);
  auto next = rival();
  ASSERT_TRUE(next.campaign());
  EXPECT_EQ(leader.transactions.commit(leader.token, limit), Outcome::refused) << TENURE_PROMISE;
  EXPECT_EQ(committed(), "") << TENURE_PROMISE;
}

TEST_F(KafkaTransactions, TheSuccessorWaitsForTheEndOfATransaction) {
  Leader leader(*this);
  auto outcome = held(leader, end_txn);
  auto next = rival();
  EXPECT_FALSE(next.campaign(2 * timing().term)) << TENURE_PROMISE;
  EXPECT_TRUE(eventually(
      [&] {
        const auto answer = next.acquire();
        const auto* unknown = std::get_if<Unknown>(&answer);
        return unknown && unknown->error.message.find("has a transaction open") != std::string::npos;
      },
      patience))
      << "nobody says what it waits for";
  EXPECT_EQ(outcome.wait_for(0s), std::future_status::timeout) << "the test holds nothing";
  gate_.let_go();
  EXPECT_EQ(outcome.get(), Outcome::committed);
  ASSERT_TRUE(next.campaign());
  EXPECT_EQ(committed(), " held");
}

TEST_F(KafkaTransactions, ALeaderThatHangsInItsTransactionIsSucceeded) {
  Leader leader(*this, timing(), {{"transaction.timeout.ms", "2000"}});
  auto outcome = held(leader, end_txn);
  auto next = rival();
  ASSERT_TRUE(next.campaign());
  gate_.let_go();
  EXPECT_NE(outcome.get(), Outcome::committed) << TENURE_PROMISE;
  EXPECT_EQ(committed(), "") << TENURE_PROMISE;
}

// ---- rule 25 ----

TEST_F(KafkaTransactions, ALateCopyOfWhatHoldsTheTransactionHoldsUpNobody) {
  Leader leader(*this, presets().fast);  // The second copy comes after two seconds.
  produce(leader.transactions.begin(limit), "one");
  gate_.hold_next(txn_offset_commit);
  ASSERT_EQ(leader.transactions.commit(leader.token, limit), Outcome::committed) << "by a second copy";
  gate_.let_go();
  ASSERT_TRUE(eventually([&] { return gate_.late_one_answered(); }, patience));
  leader.release();
  auto next = rival();
  EXPECT_TRUE(next.campaign());
}

TEST_F(KafkaTransactions, ALateCopyOfACommitCommitsNothingOfTheNextTransaction) {
  Leader leader(*this);
  produce(leader.transactions.begin(limit), "one");
  gate_.hold_next(end_txn);
  ASSERT_EQ(leader.transactions.commit(leader.token, limit), Outcome::committed) << "by a second copy";
  produce(leader.transactions.begin(limit), "two");
  gate_.let_go();
  ASSERT_TRUE(eventually([&] { return gate_.late_one_answered(); }, patience));
  EXPECT_EQ(committed(), " one") << TENURE_PROMISE;
  leader.transactions.abort(limit);
  EXPECT_EQ(committed(), " one") << TENURE_PROMISE;
}

TEST_F(KafkaTransactions, WithoutTheRuleALateCopyCommitsTheNextTransaction) {
  const auto ok = [](rd_kafka_error_t* error) {
    const auto owner = owned<rd_kafka_error_destroy>(error);
    return error == nullptr;
  };
  const auto producer =
      handle(RD_KAFKA_PRODUCER, options(relay_->address()), {{"transactional.id", id_}, {"socket.timeout.ms", "2000"}});
  ASSERT_TRUE(ok(rd_kafka_init_transactions(producer.get(), 20'000)));
  ASSERT_TRUE(ok(rd_kafka_begin_transaction(producer.get())));
  produce(producer.get(), "one");
  gate_.hold_next(end_txn);
  ASSERT_TRUE(ok(rd_kafka_commit_transaction(producer.get(), 20'000)));
  ASSERT_TRUE(ok(rd_kafka_begin_transaction(producer.get())));
  produce(producer.get(), "two");
  gate_.let_go();
  ASSERT_TRUE(eventually([&] { return gate_.late_one_answered(); }, patience));
  EXPECT_EQ(committed(), " one two") << "librdkafka or the broker is better now; then the rule may go";
}

// ---- what is refused ----

TEST(KafkaTransactionsRefuse, WhatTheyCannotServe) {
  EXPECT_THROW(Transactions(memory::open(memory::Hub(), "e"), "id"), std::invalid_argument);
  const auto election = open({.brokers = "127.0.0.1:1", .group = "g"});
  EXPECT_THROW(Transactions(election, ""), std::invalid_argument);
  for (const auto* name : {"socket.max.fails", "bootstrap.servers", "metadata.broker.list"})
    EXPECT_THROW(Transactions(election, "id", {{name, "0"}}), std::invalid_argument) << name;
  Transactions unreachable(election, "id");
  EXPECT_THROW(unreachable.begin(100ms), std::runtime_error);
  EXPECT_EQ(unreachable.commit(Token{1}, 100ms), Outcome::refused) << "none is open";
  // Its place is its parent's, and no change of that would reach the child.
  tenure::test::in_child([&] {
    try {
      const Transactions inherited(election, "id");
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  });
  Transactions refused(election, "id", {{"no.such.property", "1"}});
  for (int i = 0; i < 2; ++i) EXPECT_THROW(refused.begin(100ms), std::runtime_error) << "also if it is asked again";
}

TEST(KafkaTransactionsRefuse, WithoutTellingASecretOfTheirs) {
  using tenure::test::canary;
  const auto election = open({.brokers = "127.0.0.1:1", .group = "g", .log = no_log});
  Transactions refused(election, "id", {{"sasl.password", canary}, {"security.protocol", canary}});
  std::string said;
  try {
    refused.begin(100ms);
  } catch (const std::runtime_error& e) {
    said = e.what();
  }
  EXPECT_TRUE(mentions(said, "security.protocol")) << said;
  EXPECT_FALSE(mentions(said, canary)) << "librdkafka quotes it: " << said;
}

}  // namespace
}  // namespace tenure::kafka::test
