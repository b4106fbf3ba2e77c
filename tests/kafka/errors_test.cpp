// SPDX-License-Identifier: Apache-2.0
// Goal: a user and a candidate learn what an error of librdkafka means. Method: by value; no broker.
#include "errors.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tenure::kafka {
namespace {

TEST(KafkaErrors, ABrokerThatHangsIsNotCalledTooOld) {
  const auto said = explain(RD_KAFKA_RESP_ERR__TRANSPORT,
                            "b:1/1: ApiVersionRequest failed: Local: Timed out: probably due to broker version < 0.10 "
                            "(see api.version.request configuration)",
                            Target{"b:1", "jobs", "jobs.neli"}, Redactor({}))
                        .message;
  EXPECT_EQ(said.find("0.10"), std::string::npos) << said;
  EXPECT_NE(said.find("it may hang"), std::string::npos) << said;
}

TEST(KafkaErrors, AHostNameThatOnlyABrokerGaveIsExplained) {
  const auto said = explain(RD_KAFKA_RESP_ERR__RESOLVE, "inside:9092/1: Failed to resolve 'inside:9092'",
                            Target{"b:1", "jobs", "jobs.neli"}, Redactor({}));
  EXPECT_EQ(said.fault, Fault::unreachable);
  EXPECT_NE(said.message.find("inside:9092"), std::string::npos) << said.message;
  EXPECT_NE(said.message.find("advertised.listeners"), std::string::npos) << said.message;
}

TEST(KafkaErrors, AQuotaIsNamedWithItsRemedy) {
  const auto said = throttled("b:9092", 990);
  EXPECT_NE(said.find("b:9092"), std::string::npos) << said;
  EXPECT_NE(said.find("990 ms"), std::string::npos) << said;
  EXPECT_NE(said.find("request_percentage"), std::string::npos) << said;
}

TEST(KafkaErrors, WantOfDescriptorsNeedsTheUser) {
  EXPECT_TRUE(needs_the_user(RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/1: Failed to create socket: Too many open files"));
  EXPECT_FALSE(needs_the_user(RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/1: Connect to b failed: Connection refused"));
}

TEST(KafkaErrors, BeingTurnedAwayIsKnown) {
  EXPECT_EQ(
      meant_by(RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/1: Receive failed: alert certificate unknown: SSL alert number 46"),
      RD_KAFKA_RESP_ERR__SSL);
  EXPECT_EQ(meant_by(RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/1: SSL handshake failed: Disconnected"),
            RD_KAFKA_RESP_ERR__TRANSPORT);
  EXPECT_TRUE(turned_away(RD_KAFKA_RESP_ERR__SSL, ""));
  EXPECT_TRUE(turned_away(RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/1: SSL handshake failed: Disconnected"));
  EXPECT_TRUE(turned_away(RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/1: Disconnected while requesting ApiVersion: might be"));
  EXPECT_FALSE(turned_away(RD_KAFKA_RESP_ERR__TRANSPORT, "b:1/1: Connect to b failed: Connection refused"));
  EXPECT_FALSE(turned_away(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, ""));
}

TEST(KafkaErrors, WithoutACoordinatorTheErrorNamesTheCommonestReason) {
  const std::string property = "offsets.topic.replication.factor";
  for (const auto code :
       {RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE})
    EXPECT_NE(reading_failed(code).find(property), std::string::npos);
  EXPECT_EQ(reading_failed(RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED).find(property), std::string::npos);
}

TEST(KafkaErrors, ACommitIsAcceptedFencedWithoutATopicOrFailed) {
  for (int code = -200; code < 200; ++code) {
    const auto expected = code == 0                                ? Outcome::accepted
                          : code == 22 || code == 25 || code == 82 ? Outcome::fenced  // generation, member, instance
                          : code == 3                              ? Outcome::unknown_topic
                                                                   : Outcome::failed;
    EXPECT_EQ(outcome_of(static_cast<rd_kafka_resp_err_t>(code)), expected) << code;
  }
}

}  // namespace
}  // namespace tenure::kafka
