// SPDX-License-Identifier: Apache-2.0
// Goal: over a real Kafka the tool says what a person must know of it. Method: runs it against a broker.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "messages.hpp"
#include "process.hpp"

namespace tenure::test {
namespace {

TEST(StepDownOnKafka, NamesTheOptionWithoutWhichNobodyHears) {
  const auto ask = [](const std::string& query) {
    Process asks(tool({"step-down", "-e", "e", "--store", "kafka://127.0.0.1:1/t" + query, "--wait", "100ms"}));
    EXPECT_EQ(asks.ended(), 69) << asks.err();
    return asks.err();
  };
  EXPECT_TRUE(mentions(ask(""), "remote_step_down=true"));
  EXPECT_FALSE(mentions(ask("?remote_step_down=true"), "remote_step_down"));
}

TEST(DoctorOnKafka, ReportsTheClusterAndMakesNoTopic) {
  const auto* brokers = std::getenv("TENURE_KAFKA_BROKERS");
  if (brokers == nullptr) GTEST_SKIP() << "needs a broker: set TENURE_KAFKA_BROKERS to its address";
  const auto topic = "tenure-tool-" + std::to_string(::getpid());
  const auto store = "kafka://" + std::string(brokers) + "/" + topic + "?create_topic=true";
  for (int i = 0; i < 2; ++i) {
    Process observe(tool({"observe", "-e", topic, "--store", store}));
    EXPECT_TRUE(eventually([&] { return mentions(observe.out(), "unknown: "); })) << observe.out();
    Process before(tool({"doctor", "-e", topic, "--store", store}));
    EXPECT_NE(before.ended(), 0) << before.out();
    EXPECT_FALSE(mentions(before.out(), "the topic " + topic + " has")) << before.out();
  }
  EXPECT_EQ(Process(tool({"run", "-e", topic, "--store", store, "--timing", "fast", "--", "true"})).ended(), 0);
  EXPECT_EQ(Process(tool({"doctor", "--store", store})).ended(), 64) << "which election?";
  Process doctor(tool({"doctor", "-e", topic, "--store", store, "--timing", "fast"}));
  EXPECT_FALSE(mentions(doctor.out(), "refuses the timing")) << doctor.out();
  EXPECT_GE(doctor.ended(), 0);  // a busy machine may find its answers slow, which is 1
  for (const std::string& line :
       std::vector<std::string>{"the cluster has ", "the topic " + topic + " has 2 partition(s)", "__consumer_offsets ",
                                "group.min.session.timeout.ms is "})
    EXPECT_TRUE(mentions(doctor.out(), line)) << doctor.out() << doctor.err();
}

}  // namespace
}  // namespace tenure::test
