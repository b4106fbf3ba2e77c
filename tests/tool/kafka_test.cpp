// SPDX-License-Identifier: Apache-2.0
// Goal: over a real Kafka `tenure drill` measures fail-overs, and `tenure doctor` tells of the cluster. Method: one
// round with the shortest preset.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#include <tenure/clock.hpp>

#include "drilled.hpp"
#include "messages.hpp"
#include "process.hpp"

namespace tenure::test {
namespace {

/// Of the children that have ended, and of theirs.
Clock::Duration processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto of = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

TEST(DrillOnKafka, MeasuresEachFault) {
  const auto* brokers = std::getenv("TENURE_KAFKA_BROKERS");
  if (brokers == nullptr) GTEST_SKIP() << "needs a broker: set TENURE_KAFKA_BROKERS to its address";
  const auto began = boot_clock().now();
  const auto used = processor_time();
  const auto drill = drilled({"drill", "--store", "kafka://" + std::string(brokers) + "/tenure-drill?create_topic=true",
                              "--timing", "fast", "--rounds", "1"});
  expect_each_fault(*drill);
  EXPECT_TRUE(mentions(drill->out(), "at most 8.25 s")) << drill->out();
  EXPECT_LT((processor_time() - used) * 8, boot_clock().now() - began)
      << "a member that is cut off waits, it never spins";
}

TEST(DoctorOnKafka, TellsOfTheCluster) {
  const auto* brokers = std::getenv("TENURE_KAFKA_BROKERS");
  if (brokers == nullptr) GTEST_SKIP() << "needs a broker: set TENURE_KAFKA_BROKERS to its address";
  Process doctor(tool({"doctor", "--store", "kafka://" + std::string(brokers) + "/tenure-drill?create_topic=true"}));
  EXPECT_GE(doctor.ended(), 0);  // a busy machine may find its answers slow, which is 1
  for (const auto* line : {"the cluster has ", "the topic tenure-drill has 2 partition(s)", "__consumer_offsets ",
                           "group.min.session.timeout.ms is "})
    EXPECT_TRUE(mentions(doctor.out(), line)) << doctor.out() << doctor.err();
}

}  // namespace
}  // namespace tenure::test
