// SPDX-License-Identifier: Apache-2.0
// What `tenure doctor` says of a server's INFO.
#include "checkup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace tenure::redis {
namespace {

using testing::HasSubstr;
using Fields = std::initializer_list<std::pair<const char*, const char*>>;

/// The check at this place, of a sound master whose INFO has these `fields` instead.
Check check(std::size_t at, Fields fields, const Options& options = {}) {
  std::string info = "# Server\r\n";
  for (const auto& [name, value] : fields) info += std::string(name) + ":" + value + "\r\n";
  info +=
      "redis_version:7.0.15\r\nrole:master\r\nconnected_slaves:0\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
      "aof_enabled:1\r\n";
  const auto all = checks_of(info, options);
  EXPECT_EQ(all.size(), 4u);
  for (const auto& [is, what, remedy] : all) EXPECT_EQ(remedy.empty(), is == Check::Is::fine) << what;
  return all.at(at);
}

enum Place { of_version, of_replicas, of_memory, of_disk };

void expect(Check::Is is, const char* words, const Check& found) {
  EXPECT_EQ(found.is, is) << found.what;
  EXPECT_THAT(found.what, HasSubstr(words));
}

/// As of who may not run INFO, and of a proxy that leaves some of it out.
TEST(RedisCheckup, WhatTheServerDoesNotAnswerIsDoubtful) {
  for (const std::string info : {"", "# Server\r\nredis_version:7.0.15\r\nrole:master\r\n"}) {
    const auto all = checks_of(info, {});
    ASSERT_EQ(all.size(), 1u);
    expect(Check::Is::doubtful, "does not say what it may lose", all[0]);
  }
}

TEST(RedisCheckup, ReportsTheVersion) { expect(Check::Is::fine, "7.0.15", check(of_version, {})); }

TEST(RedisCheckup, OnlyAPolicyThatEvictsRecordsIsWrongAndOnlyWithALimit) {
  expect(Check::Is::fine, "not set", check(of_memory, {}));
  expect(Check::Is::fine, "not set", check(of_memory, {{"maxmemory_policy", "allkeys-lru"}}));
  expect(Check::Is::fine, "noeviction", check(of_memory, {{"maxmemory", "1"}}));
  expect(Check::Is::fine, "volatile-ttl", check(of_memory, {{"maxmemory", "1"}, {"maxmemory_policy", "volatile-ttl"}}));
  for (const auto* policy : {"allkeys-lru", "allkeys-lfu", "allkeys-random"})
    expect(Check::Is::wrong, policy, check(of_memory, {{"maxmemory", "1"}, {"maxmemory_policy", policy}}));
}

TEST(RedisCheckup, WithoutAnAppendOnlyFileAFirstClaimAtOnceIsWrong) {
  Options at_once;
  at_once.first_claim = FirstClaim::at_once;
  expect(Check::Is::fine, "appendonly is on", check(of_disk, {}));
  const auto last_second = check(of_disk, {}, at_once);
  expect(Check::Is::doubtful, "appendonly is on", last_second);
  EXPECT_THAT(last_second.remedy, HasSubstr("appendfsync always"));
  expect(Check::Is::doubtful, "a term later", check(of_disk, {{"aof_enabled", "0"}}));
  expect(Check::Is::wrong, "two may lead", check(of_disk, {{"aof_enabled", "0"}}, at_once));
}

TEST(RedisCheckup, ReplicasMustBeAsManyAsAreAskedFor) {
  Options one;
  one.replicas = 1;
  expect(Check::Is::fine, "0 replica(s)", check(of_replicas, {}));
  expect(Check::Is::doubtful, "waits for none", check(of_replicas, {{"connected_slaves", "1"}}));
  expect(Check::Is::fine, "1 replica(s)", check(of_replicas, {{"connected_slaves", "1"}}, one));
  expect(Check::Is::fine, "2 replica(s)", check(of_replicas, {{"connected_slaves", "2"}}, one));
  expect(Check::Is::wrong, "nobody can lead", check(of_replicas, {}, one));
  expect(Check::Is::wrong, "takes no writes", check(of_replicas, {{"role", "slave"}}));
}

}  // namespace
}  // namespace tenure::redis
