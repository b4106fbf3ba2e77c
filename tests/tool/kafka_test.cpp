// SPDX-License-Identifier: Apache-2.0
// Goal: over a real Kafka the tool says what a person must know of it. Method: runs it against a broker.
#include <gtest/gtest.h>

#include <cstdlib>

#include "messages.hpp"
#include "process.hpp"

namespace tenure::test {
namespace {

TEST(DoctorOnKafka, TellsOfTheCluster) {
  const auto* brokers = std::getenv("TENURE_KAFKA_BROKERS");
  if (brokers == nullptr) GTEST_SKIP() << "needs a broker: set TENURE_KAFKA_BROKERS to its address";
  Process doctor(tool({"doctor", "--store", "kafka://" + std::string(brokers) + "/tenure-tool?create_topic=true"}));
  EXPECT_GE(doctor.ended(), 0);  // a busy machine may find its answers slow, which is 1
  for (const auto* line : {"the cluster has ", "the topic tenure-tool has 2 partition(s)", "__consumer_offsets ",
                           "group.min.session.timeout.ms is "})
    EXPECT_TRUE(mentions(doctor.out(), line)) << doctor.out() << doctor.err();
}

}  // namespace
}  // namespace tenure::test
