// SPDX-License-Identifier: Apache-2.0
// Goal: the examples of many elections share them through real servers. Method: two processes of each, at the servers
// that tests/run has started. Both lead some; who is left alone leads all.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "example.hpp"

namespace tenure::test {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

void expect_all_shards(const Example& process) {
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(process.says("leading shard " + std::to_string(i) + ",")) << process.told();
}

void expect_shards_are_shared(const std::string& url) {
  Example first({"shards", url});
  expect_all_shards(first);
  Example second({"shards", url});
  EXPECT_TRUE(second.says("leading shard ")) << second.told();
  EXPECT_TRUE(first.says("no longer leading shard ")) << first.told();
  first.stop();
  expect_all_shards(second);
  second.stop();
}

TEST(ExamplesOfGroups, ShardsAreSharedThroughPostgres) {
  const auto url = environment("TENURE_POSTGRES_URL");
  if (url.empty()) GTEST_SKIP() << "no PostgreSQL: TENURE_POSTGRES_URL is not set (tests/run sets it)";
  expect_shards_are_shared(url);
}

TEST(ExamplesOfGroups, ShardsAreSharedThroughRedis) {
  const auto url = environment("TENURE_REDIS");
  if (url.empty()) GTEST_SKIP() << "no Redis: TENURE_REDIS is not set (tests/run sets it)";
  expect_shards_are_shared(url);
}

/// One seat each, and the third process waits for one.
void expect_two_hold_at_once(const std::string& url) {
  Example first({"holders", url, "2"});
  EXPECT_TRUE(first.says("holding seat ")) << first.told();
  Example second({"holders", url, "2"}), third({"holders", url, "2"});
  EXPECT_TRUE(eventually([&] { return second.count("holding seat ") + third.count("holding seat ") == 1; }))
      << second.told() << third.told();
  EXPECT_EQ(first.count("holding seat "), 1) << first.told();
  first.stop();
  for (const auto* process : {&second, &third}) {
    EXPECT_TRUE(process->says("holding seat ")) << process->told();
    EXPECT_EQ(process->count("holding seat "), 1) << process->told();
  }
  second.stop();
  third.stop();
}

TEST(ExamplesOfGroups, TwoProcessesHoldSeatsAndTheThirdOneWaitsInPostgres) {
  const auto url = environment("TENURE_POSTGRES_URL");
  if (url.empty()) GTEST_SKIP() << "no PostgreSQL: TENURE_POSTGRES_URL is not set (tests/run sets it)";
  expect_two_hold_at_once(url);
}

TEST(ExamplesOfGroups, TwoProcessesHoldSeatsAndTheThirdOneWaitsInRedis) {
  const auto url = environment("TENURE_REDIS");
  if (url.empty()) GTEST_SKIP() << "no Redis: TENURE_REDIS is not set (tests/run sets it)";
  expect_two_hold_at_once(url);
}

TEST(ExamplesOfGroups, TasksGoOnInTwoGroupsOfKafka) {
  const auto brokers = environment("TENURE_KAFKA_BROKERS");
  if (brokers.empty()) GTEST_SKIP() << "no Kafka broker: TENURE_KAFKA_BROKERS is not set (tests/run sets it)";
  const auto url = "kafka://" + brokers + "?exclusive=no&create_topic=true";
  Example north({"continuous", url, "north"});
  Example south({"continuous", url, "south"});
  for (const auto* side : {&north, &south})
    EXPECT_TRUE(eventually([&] { return side->count("doing task ") >= 6; })) << side->told();
  north.stop();
  south.stop();
}

}  // namespace
}  // namespace tenure::test
