// SPDX-License-Identifier: Apache-2.0
// Goal: many elections run on a real Redis: they are led, handed over, and led again after a loss. Method: two
// Elections on a server of the test's own.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include <tenure/elections.hpp>

#include "server.hpp"
#include "support.hpp"

namespace tenure::redis::test {
namespace {

const Timing timing{.term = 1500ms, .renew = 300ms, .retry = 30ms, .margin = 150ms, .call = 400ms, .drain = 1s};
constexpr std::size_t count = 1200;  // several commits of 500

class RedisElections : public ::testing::Test {
 protected:
  void SetUp() override {
    TENURE_NEEDS_REDIS();
    server_.emplace();
  }
  std::unique_ptr<Elections> process(const std::string& name, Hooks hooks = {}) {
    auto made = std::make_unique<Elections>(open_group(from_url("redis://" + server_->address()), "shards", no_log),
                                            Candidate{name, {}}, timing, std::move(hooks));
    for (std::size_t i = 0; i < count; ++i) made->join("shard " + std::to_string(i));
    made->start();
    return made;
  }
  static bool leads_all(const Elections& one) {
    return eventually([&] { return one.led().size() == count; });
  }
  static std::map<std::string, Token> tokens(const Elections& one) {
    const auto led = one.led();
    return {led.begin(), led.end()};
  }
  static void expect_greater(const std::map<std::string, Token>& now, const std::map<std::string, Token>& before) {
    for (const auto& [name, token] : now) EXPECT_GT(token, before.at(name)) << name << TENURE_PROMISE;
  }
  std::optional<Server> server_;
};

TEST_F(RedisElections, WhoStopsHandsAllOver) {
  const auto a = process("a");
  ASSERT_TRUE(leads_all(*a));
  const auto before = tokens(*a);
  const auto b = process("b");
  std::optional<Incumbent> incumbent;
  ASSERT_TRUE(eventually([&] { return (incumbent = b->leadership("shard 7").incumbent()).has_value(); }));
  EXPECT_EQ(incumbent->name, "a");
  a->resign("shard 7", 1h);
  EXPECT_TRUE(eventually([&] { return b->leadership("shard 7").is_leader(); }));
  a->stop();
  ASSERT_TRUE(leads_all(*b));
  expect_greater(tokens(*b), before);
}

TEST_F(RedisElections, AfterALossAllAreLedAgainATermLater) {
  const auto a = process("a");
  ASSERT_TRUE(leads_all(*a));
  const auto before = tokens(*a);
  const auto lost = boot_clock().now();  // at the earliest
  server_->ask({"FLUSHALL"});
  ASSERT_TRUE(eventually([&] { return a->led().empty(); }));
  ASSERT_TRUE(leads_all(*a));
  EXPECT_GE(boot_clock().now() - lost, timing.term) << TENURE_PROMISE;
  expect_greater(tokens(*a), before);
}

}  // namespace
}  // namespace tenure::redis::test
