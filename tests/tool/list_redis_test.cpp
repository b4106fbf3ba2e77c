// SPDX-License-Identifier: Apache-2.0
// Goal: `status --all` tells of every election of a Redis server, of nothing else there, and says where it cannot;
// `doctor` tells of its settings.
// Method: leaders that live, that have gone and that died, and a page's worth of other keys, in a server of the test's
// own.
#include <gtest/gtest.h>

#include <tenure/elections.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/stores.hpp>

#include "eventually.hpp"
#include "messages.hpp"
#include "process.hpp"
#include "rows.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

std::string url_of(const redis::test::Server& server) { return "redis://" + server.address() + "?first_claim=at_once"; }

TEST(ListOnRedis, ShowsEachElection) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  EXPECT_EQ(Process(tool({"status", "--all", "--store", url_of(server)})).ended(), 0) << "there is none";
  server.ask({"EVAL", "for i = 1, 2500 do redis.call('SET', 'tenure:{' .. i .. '}', i) end", "0"});
  server.ask({"HSET", "tenure:{g}:s", "token", "1"});
  server.ask({"HSET", "tenure:{foreign}", "a", "b"});
  const auto run = [&](const std::string& election, const std::string& command) {
    return tool({"run", "-e", election, "--id", "ann", "--store", url_of(server), "--", "sh", "-c", command});
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Process(run("gone " + std::to_string(i), "true")).ended(), 0);
  Process leads(run("kept}", "echo led; while :; do sleep 0.01; done"));
  ASSERT_TRUE(eventually([&] { return leads.out() == "led\n"; })) << leads.err();
  server.ask({"HSET", "tenure:{lapsed}", "format", "1", "token", "7", "beat", "1", "released", "0", "term_ms", "3000",
              "asked_ns", "1", "who", "name=bob", "written_ms", "1700000000000"});

  Process all(tool({"status", "--all", "--json", "--store", url_of(server)}));
  EXPECT_EQ(all.ended(), 4) << "one record is not ours";
  auto rows = rows_of(all.out());
  ASSERT_EQ(rows.size(), 6U) << all.out();
  EXPECT_EQ(rows["kept}"].at("state"), "led");
  EXPECT_EQ(rows["kept}"].at("leader").at("name"), "ann");
  EXPECT_GT(rows["kept}"].at("leader").at("remaining_ms"), 0);
  EXPECT_EQ(rows["gone 2"].at("state"), "vacant");
  EXPECT_EQ(rows["lapsed"].at("state"), "vacant");
  EXPECT_GT(rows["lapsed"].at("age_ms"), 1'000'000'000);
  EXPECT_EQ(rows["foreign"].at("state"), "unknown");
}

TEST(ListOnRedis, ShowsTheElectionsOfAGroup) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  const std::vector<std::string> line{"status", "--group", "shards", "--store", url_of(server)};
  Process none(tool(line));
  EXPECT_EQ(none.ended(), 3) << none.out();
  EXPECT_TRUE(mentions(none.err(), "nobody ever led an election of the group \"shards\"")) << none.err();
  const auto opened = open_many(url_of(server), "shards", no_log);
  Elections elections(opened.store, {"ann", "10.0.0.7:80"}, opened.presets.fast, {.log = no_log});
  elections.join(std::vector<std::string>{"a", "b", "c"});
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.led().size() == 3; }));
  Process all(tool(line));
  EXPECT_EQ(all.ended(), 0) << all.err();
  EXPECT_TRUE(all.out().starts_with("a  ann leads at 10.0.0.7:80, tenure ")) << all.out();
  EXPECT_FALSE(mentions(all.out(), "not seen to renew"));
  elections.resign("c", std::chrono::hours(1));
  ASSERT_TRUE(eventually([&] { return elections.led().size() == 2; }));
  auto json = line;
  json.insert(json.end(), {"--json", "--limit", "2"});
  Process some(tool(json));
  EXPECT_EQ(some.ended(), 3) << some.err();
  EXPECT_TRUE(mentions(some.err(), "more than 2 elections")) << some.err();
  auto rows = rows_of(some.out());
  ASSERT_EQ(rows.size(), 2U) << some.out();
  EXPECT_EQ(rows["c"].at("state"), "vacant") << "those without a leader come first";
  EXPECT_EQ(rows["a"].at("leader").at("name"), "ann");
  EXPECT_EQ(rows["a"].at("renewed"), true);
  elections.stop();
  EXPECT_EQ(server.ask({"HLEN", "tenure:{shards}:s"}), "2") << "a look opens no session";
}

/// A server says who leads, and not since when.
TEST(ListOnRedis, SaysWhatOfAGroupIsNotProven) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  {
    const auto opened = open_many(url_of(server), "shards", no_log);
    const auto bob = who_text({"bob", ""}, "i");
    ASSERT_TRUE(opened.store->open({7}, {.record = {.beat = 1, .who = bob, .term = std::chrono::minutes(1)}},
                                   {boot_clock(), boot_clock().now() + std::chrono::seconds(10), {}}));
    Commit claim{.session = {7}, .beats = {1}, .next = {.record = {.beat = 2, .who = bob}}, .claims = {{"a", {}}}};
    claim.next.record.term = std::chrono::minutes(1);
    ASSERT_TRUE(
        opened.store->commit(claim, {boot_clock(), boot_clock().now() + std::chrono::seconds(10), {}})->granted);
  }
  Process dead(tool({"status", "--group", "shards", "--store", url_of(server), "--timing", "fast", "--timeout", "1s"}));
  EXPECT_EQ(dead.ended(), 0) << dead.err();
  EXPECT_TRUE(mentions(dead.out(), "a  bob leads, tenure ")) << dead.out();
  EXPECT_TRUE(mentions(dead.out(), "not seen to renew")) << dead.out();
}

TEST(ListOnRedis, ANodeOfAClusterIsRefused) {
  TENURE_NEEDS_REDIS();
  redis::test::Cluster cluster;
  Process all(tool({"status", "--all", "--store", "redis://" + cluster[0].address()}));
  EXPECT_EQ(all.ended(), 78) << all.out();
  EXPECT_TRUE(mentions(all.err(), "ask for each election by its name")) << all.err();
}

TEST(ListOnRedis, NeedsARightMore) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  server.ask(
      {"ACL", "SETUSER", "u", "on", ">" + canary, "~tenure:*", "+evalsha", "+eval", "+info", "+time", "+hgetall"});
  const auto url = "redis://u:" + canary + "@" + server.address();
  Process without(tool({"status", "--all", "--store", url}));
  EXPECT_EQ(without.ended(), 4) << without.out();
  EXPECT_TRUE(mentions(without.err(), "may not run ")) << without.err();
  EXPECT_TRUE(mentions(without.err(), "; permit it")) << without.err();
  EXPECT_FALSE(mentions(without.err(), canary));
  server.ask({"ACL", "SETUSER", "u", "+scan", "+type"});
  Process with(tool({"status", "--all", "--store", url}));
  EXPECT_EQ(with.ended(), 0) << with.err();
}

TEST(DoctorOnRedis, ReportsTheServersSettings) {
  TENURE_NEEDS_REDIS();
  redis::test::Server sound, evicts({"maxmemory 100mb", "maxmemory-policy allkeys-lru"});
  Process good(tool({"doctor", "--store", url_of(sound)}));
  EXPECT_GE(good.ended(), 0);  // a busy machine may find its answers slow, which is 1
  for (const auto* line :
       {"the server is Redis or Valkey ", "a master with 0 replica(s)", "maxmemory is not set", "appendonly is on"})
    EXPECT_TRUE(mentions(good.out(), line)) << good.out();
  Process bad(tool({"doctor", "--store", url_of(evicts) + "&replicas=1"}));
  EXPECT_EQ(bad.ended(), 1) << bad.err();
  EXPECT_TRUE(mentions(bad.out(), "WRONG  maxmemory-policy is allkeys-lru")) << bad.out();
  EXPECT_TRUE(mentions(bad.out(), "start replicas, or ask for fewer")) << bad.out();
  EXPECT_FALSE(mentions(bad.out(), "Sentinel")) << bad.out();
}

}  // namespace
}  // namespace tenure::test
