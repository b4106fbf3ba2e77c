// SPDX-License-Identifier: Apache-2.0
// Goal: one program elects through every store, of which only a string differs, and the examples of many elections
// share them. Method: two processes of each, at the servers that tests/run has started. When the first one leaves, the
// second one leads with a greater token, or leads all.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <tenure/clock.hpp>

#include "example.hpp"
#include "scratch.hpp"
#ifdef TENURE_WITH_REDIS
#include "server.hpp"
#endif

namespace tenure::test {
namespace {

/// Of what tests/run has started; empty: nothing.
std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

#define TENURE_NEEDS_SERVER(variable)        \
  const auto server = environment(variable); \
  if (server.empty()) GTEST_SKIP() << variable << " is not set (tests/run sets it)"

// ---- one election ----

struct AnyStore : testing::Test {
  void SetUp() override {
    if (!Example::is_built("any_store")) GTEST_SKIP() << "this build reads no JSON (nlohmann-json3-dev)";
  }
  std::string document(const std::string& url) const {
    return scratch.file("configuration.json",
                        R"({"store": ")" + url + R"(", "election": "any-store", "timing": "fast"})");
  }

  /// The token by which it leads; 0 if it does not.
  static std::uint64_t token_of(const Example& program) {
    const std::string before = "leads ";
    if (!program.says(before)) return 0;
    return std::stoull(program.out().substr(program.out().find(before) + before.size()));
  }

  void expect_hand_over(const std::string& url) const {
    Example by_url({"any_store", url});
    const auto first = token_of(by_url);
    ASSERT_NE(first, 0U) << by_url.told();
    Example by_document({"any_store", document(url)});
    EXPECT_FALSE(eventually([&] { return !by_document.out().empty(); }, std::chrono::milliseconds(500)))
        << "while the first leads: " << by_document.told();
    by_url.stop();
    EXPECT_TRUE(by_url.out().ends_with("\nends stopped\n")) << by_url.told();
    EXPECT_GT(token_of(by_document), first) << TENURE_PROMISE << by_document.told();
    by_document.stop();
  }

  Scratch scratch;
};

TEST_F(AnyStore, Memory) {
  for (const auto& argument : {std::string("memory:"), document("memory:x")}) {
    Example program({"any_store", argument});
    EXPECT_NE(token_of(program), 0U) << "alone in its process: " << program.told();
    program.stop();
  }
}

TEST_F(AnyStore, File) { expect_hand_over("file://" + (scratch / "store").string()); }

TEST_F(AnyStore, Kafka) {
  TENURE_NEEDS_SERVER("TENURE_KAFKA_BROKERS");
  const auto name = "any-store-" + std::to_string(boot_clock().unix_ms()) + "-" + std::to_string(::getpid());
  expect_hand_over("kafka://" + server + "/" + name + "?create_topic=true&group=" + name);
}

TEST_F(AnyStore, Postgres) {
  TENURE_NEEDS_SERVER("TENURE_POSTGRES_URL");
  expect_hand_over(server);
}

#ifdef TENURE_WITH_REDIS
TEST_F(AnyStore, Redis) {
  TENURE_NEEDS_REDIS();
  const redis::test::Server server;
  expect_hand_over("redis://" + server.address());
  expect_hand_over("redis+unix://" + server.socket());
}
#endif

TEST_F(AnyStore, WhatCannotBeOpenedIsRefused) {
  for (const std::string argument : {"nonsense://x", "/nonexistent.json", ""}) {
    Example program({"any_store", argument});
    EXPECT_EQ(program.ended(), 1) << argument << program.told();
    EXPECT_EQ(program.out(), "") << argument;
  }
}

// ---- many ----

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
  TENURE_NEEDS_SERVER("TENURE_POSTGRES_URL");
  expect_shards_are_shared(server);
}

TEST(ExamplesOfGroups, ShardsAreSharedThroughRedis) {
  TENURE_NEEDS_SERVER("TENURE_REDIS");
  expect_shards_are_shared(server);
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
  TENURE_NEEDS_SERVER("TENURE_KAFKA_BROKERS");
  const auto url = "kafka://" + server + "?exclusive=no&create_topic=true";
  Example north({"continuous", url, "north"});
  Example south({"continuous", url, "south"});
  for (const auto* side : {&north, &south})
    EXPECT_TRUE(eventually([&] { return side->count("doing task ") >= 6; })) << side->told();
  north.stop();
  south.stop();
}

}  // namespace
}  // namespace tenure::test
