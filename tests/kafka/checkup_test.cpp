// SPDX-License-Identifier: Apache-2.0
// Goal: what breaks a promise at a Kafka cluster, or nearly does, is told with its remedy, and asking creates no topic.
// Method: facts as a cluster tells them; then a real broker.
#include <gtest/gtest.h>

#include "broker.hpp"
#include "checks.hpp"
#include "checkup.hpp"
#include "fake_server.hpp"
#include "messages.hpp"
#include "mock_cluster.hpp"
#include "settings.hpp"
#include "store_calls.hpp"
#include "within.hpp"

namespace tenure::kafka::test {
namespace {

using namespace std::chrono_literals;
using tenure::test::mentions;
using tenure::test::text_of;
using tenure::test::value;
using tenure::test::within;

Options plain() { return completed({.brokers = "localhost:1", .group = "jobs", .topic = "jobs.neli", .log = no_log}); }

ClusterFacts well() {
  ClusterFacts out{.brokers = 3, .topic = {2, 3}, .offsets = {50, 3}};
  out.broker = Settings{{"group.min.session.timeout.ms", "6000"}, {"offsets.topic.replication.factor", "3"}};
  out.offsets_topic = {{"min.insync.replicas", "2"}};
  return out;
}

std::string told(const ClusterFacts& facts, const Options& options = plain()) {
  return text_of(checks_of(facts, options));
}

TEST(KafkaCheckup, AHealthyClusterPasses) {
  const auto text = told(well());
  EXPECT_EQ(text.find("note"), text.npos) << text;
  EXPECT_EQ(text.find("WRONG"), text.npos) << text;
  EXPECT_TOLD(text, "fine: the topic jobs.neli has 2 partition(s) and 3 replica(s)\n");
  EXPECT_TOLD(text, "fine: __consumer_offsets has 3 replica(s), of which 2 must acknowledge\n");
  EXPECT_TOLD(text, "fine: group.min.session.timeout.ms is 6000, and our sessions last 6000 ms or longer\n");
}

TEST(KafkaCheckup, ATopicThatIsMissingOrTooSmallIsWrong) {
  auto facts = well();
  facts.topic = {1, 3};
  EXPECT_TOLD(told(facts), "WRONG: the topic jobs.neli has 1 partition(s) and 3 replica(s) | give it two partitions");
  facts.topic = {};
  EXPECT_TOLD(told(facts),
              "WRONG: the topic jobs.neli does not exist | kafka-topics --create --partitions 2 --topic jobs");
  auto creates = plain();
  creates.create_topic.emplace();
  EXPECT_TOLD(told(facts, creates), "fine: the topic jobs.neli does not exist; the first candidate creates it\n");
}

TEST(KafkaCheckup, OffsetsThatMayBeLostAreAFinding) {
  auto facts = well();
  facts.offsets.replicas = 1;
  EXPECT_TOLD(told(facts), "note: __consumer_offsets has 1 replica(s): without that broker nobody can lead");
  facts = well();
  facts.offsets_topic["min.insync.replicas"] = "1";
  EXPECT_TOLD(told(facts), "note: __consumer_offsets has 3 replica(s), and min.insync.replicas is 1: a fail-over may");
  facts = well();
  facts.offsets = {};
  facts.offsets_topic = {};
  EXPECT_TOLD(told(facts), "fine: __consumer_offsets will have 3 replica(s)\n");
  facts.broker = Settings{};
  EXPECT_TOLD(told(facts), "note: the cluster does not tell how many replicas");
  facts = well();
  (*facts.broker)["offsets.commit.required.acks"] = "1";
  EXPECT_TOLD(told(facts), "WRONG: offsets.commit.required.acks is 1: ");
  (*facts.broker)["offsets.commit.required.acks"] = "-1";
  EXPECT_FALSE(mentions(told(facts), "WRONG")) << told(facts);
}

TEST(KafkaCheckup, ASessionThatTheBrokerRefusesIsWrong) {
  auto facts = well();
  (*facts.broker)["group.min.session.timeout.ms"] = "6001";
  EXPECT_TOLD(told(facts), "WRONG: group.min.session.timeout.ms is 6001, and our sessions may last 6000 ms only");
  EXPECT_TOLD(told(facts), "min_session_ms=6001");
  facts.broker->erase("group.min.session.timeout.ms");
  EXPECT_TOLD(told(facts), "note: the broker does not tell group.min.session.timeout.ms");
}

TEST(KafkaCheckup, ABrokerThatAnswersNothingIsDoubtful) {
  auto facts = well();
  facts.broker = Error{Fault::forbidden, "Cluster authorization failed"};
  EXPECT_TOLD(told(facts),
              "note: the broker does not tell its settings: Cluster authorization failed | grant DESCRIBE_");
  facts.broker = Error{Fault::unreachable, "Unsupported version"};
  EXPECT_TOLD(told(facts), "note: the broker does not tell its settings: Unsupported version | ask an administrator");
}

/// The end of the handle counts too.
void expect_an_error_in_time(const Options& options) {
  const auto limit = within(2s);
  const auto checks = check_up(options, limit);
  EXPECT_LT(boot_clock().now(), limit.by + 5s);
  ASSERT_FALSE(checks);
  EXPECT_EQ(checks.error().fault, Fault::unreachable) << checks.error().message;
}

TEST(KafkaCheckup, ABrokerOutOfReachIsAnErrorInTime) { expect_an_error_in_time(plain()); }

TEST(KafkaCheckup, ABrokerThatHangsIsAnErrorInTime) {
  const tenure::test::FakeServer server([](const std::string&) { return tenure::test::FakeServer::Answer{}; });
  auto options = plain();
  options.brokers = server.address();
  expect_an_error_in_time(options);
  EXPECT_GT(server.accepted(), 0);
}

/// librdkafka's mock cluster is such a broker.
TEST(KafkaCheckup, ABrokerThatCannotReportItsSettingsIsAFinding) {
  const Cluster cluster("jobs.neli");
  auto options = plain();
  options.brokers = cluster.brokers();
  const auto checks = text_of(value(check_up(options, within(20s))));
  EXPECT_TOLD(checks, "fine: the topic jobs.neli has 2 partition(s)");
  EXPECT_TOLD(checks, "note: the broker does not tell its settings");
  EXPECT_FALSE(mentions(checks, "DESCRIBE_CONFIGS")) << "no right is missing: " << checks;
}

TEST(KafkaCheckupOfABroker, ReportsTheBrokerAndCreatesNoTopic) {
  const auto brokers = real_brokers();
  if (brokers.empty()) GTEST_SKIP() << "needs a broker: set TENURE_KAFKA_BROKERS to its address";
  const auto name = unique_name("checkup");
  const auto options = completed({.brokers = brokers, .group = name, .topic = name, .log = no_log});
  const auto before = text_of(value(check_up(options, within(20s))));
  EXPECT_TOLD(before, "fine: the cluster has ");
  EXPECT_TOLD(before, "WRONG: the topic " + name + " does not exist");
  EXPECT_TOLD(before, "__consumer_offsets ");
  EXPECT_TOLD(before, "group.min.session.timeout.ms is ");
  create_topic(brokers, name, 2);  // It throws if the question has made one.
  EXPECT_TOLD(text_of(value(check_up(options, within(20s)))), "fine: the topic " + name + " has 2 partition(s)");
}

}  // namespace
}  // namespace tenure::kafka::test
