// SPDX-License-Identifier: Apache-2.0
// Goal: a URL says where the servers are, what is wrong with it is told, and no secret is. Method: URLs and what
// becomes of them, with a canary where a secret may stand.
#include "options.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "refusal.hpp"
#include "scratch.hpp"
#include "support.hpp"

namespace tenure::redis {
namespace {

using tenure::test::canary;
using tenure::test::mentions;
using tenure::test::refusal_of;

std::string refusal(const std::string& url) {
  return refusal_of([&] { static_cast<void>(checked(from_url(url))); });
}

std::string refusal(const Options& options) {
  return refusal_of([&] { store(options, "jobs"); });
}

TEST(RedisOptions, AUrlNamesAServer) {
  const auto plain = from_url("redis://host");
  ASSERT_EQ(plain.servers.size(), 1u);
  EXPECT_EQ(plain.servers[0].host, "host");
  EXPECT_EQ(plain.servers[0].port, 6379);
  EXPECT_EQ(plain.db, 0);
  EXPECT_EQ(plain.replicas, 0);
  EXPECT_EQ(plain.prefix, "tenure:");
  EXPECT_FALSE(plain.tls);

  const auto full = from_url("redis://us%3Aer:p%40ss@[::1]:7000/5?replicas=2&prefix=app%7c");
  EXPECT_EQ(full.user, "us:er");
  EXPECT_EQ(full.password, "p@ss");
  EXPECT_EQ(full.servers[0].host, "::1");
  EXPECT_EQ(full.servers[0].port, 7000);
  EXPECT_EQ(full.db, 5);
  EXPECT_EQ(full.replicas, 2);
  EXPECT_EQ(full.prefix, "app|");

  EXPECT_EQ(from_url("redis://:pw@h").password, "pw");
  EXPECT_EQ(from_url("redis://h?db=7").db, 7);
  EXPECT_EQ(from_url("redis://h/").db, 0);
  EXPECT_TRUE(from_url("rediss://h?ca_file=/etc/ca.pem").tls);
  EXPECT_EQ(from_url("rediss://h?ca_file=/etc/ca.pem").ca_file, "/etc/ca.pem");
  EXPECT_EQ(from_url("redis://a:1,b:2,c").servers.size(), 3u) << "nodes of a cluster";
}

TEST(RedisOptions, AUrlNamesASocket) {
  const auto options = from_url("redis+unix://:pw@/run/a%20b/redis.sock?db=2");
  EXPECT_EQ(options.socket, "/run/a b/redis.sock");
  EXPECT_EQ(options.password, "pw");
  EXPECT_EQ(options.db, 2);
  EXPECT_TRUE(options.servers.empty());
}

TEST(RedisOptions, AUrlNamesSentinelsAndTheirMaster) {
  const auto options =
      from_url("redis+sentinel://u:p@s1,s2:26380,s3/my-master/4?sentinel_user=su&sentinel_password=sp");
  ASSERT_EQ(options.servers.size(), 3u);
  EXPECT_EQ(options.servers[0].port, 26379);
  EXPECT_EQ(options.servers[1].port, 26380);
  EXPECT_EQ(options.master, "my-master");
  EXPECT_EQ(options.db, 4);
  EXPECT_EQ(options.user, "u");
  EXPECT_EQ(options.sentinel_user, "su");
  EXPECT_EQ(options.sentinel_password, "sp");
}

TEST(RedisOptions, AMessageNamesWhatIsWrongInAUrlAndWhatIsRight) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"redis:///5", "names no host"},
      {"redis:host", "names no host"},
      {"redis://h/x", "db must be a number from 0 to"},
      {"redis://h/-1", "must be a number"},
      {"redis://h/99999999999999999999", "must be a number"},
      {"redis://h/1/2", "may hold one number, the database"},
      {"redis://h/1?db=1", "may hold one number, the database"},
      {"redis://h?replicas=some", "replicas must be a number from 0 to 100"},
      {"redis://h?replicas=101", "replicas must be a number from 0 to 100"},
      {"redis://h?replica=1", "did you mean \"replicas\"?"},
      {"redis://h?prefix=a%7Bb", "prefix must have at most 100 bytes and no braces"},
      {"redis://h?first_claim=now", "first_claim must be wait or at_once"},
      {"redis://:pa/ss@h", "in a password %2F for '/', %3F for '?'"},
      {"redis://:pa?ss@h", "in a password %2F for '/', %3F for '?'"},
      {"redis://user@h", "user is set without a password"},
      {"redis://h?ca_file=/x", "ca_file is set without TLS"},
      {"redis://h?sentinel_password=x", "set without master"},
      {"redis://h?sentinel_password_file=x", "set without master"},
      {"redis+sentinel://h/m?sentinel_password=x&sentinel_password_file=x", "set one of them"},
      {"redis+unix://host/path", "three slashes"},
      {"redis+unix:///", "names no socket"},
      {"redis+unix:///" + std::string(200, 'x'), "at most 107"},
      {"redis+sentinel://h", "names no master"},
      {"redis+sentinel://h/", "names no master"},
      {"redis+sentinel://h/m/0/1", "may hold one number, the database"},
      {"redis+sentinel:///m", "names no host"},
      {"valkey://h", "use redis, rediss, redis+unix or redis+sentinel"}};
  for (const auto& [url, words] : wrong) EXPECT_TRUE(mentions(refusal(url), words)) << url << ": " << refusal(url);
}

TEST(RedisOptions, FieldsThatCannotWorkAreRefused) {
  Options options;
  EXPECT_TRUE(mentions(refusal(options), "neither servers nor a socket"));
  options.servers = {{"h", 6379}};
  EXPECT_EQ(refusal(options), "accepted");
  auto wrong = options;
  wrong.socket = "/s";
  EXPECT_TRUE(mentions(refusal(wrong), "both servers and a socket"));
  wrong = options;
  wrong.servers.push_back({"", 6379});
  EXPECT_TRUE(mentions(refusal(wrong), "needs a host"));
  wrong = options;
  wrong.servers[0].port = 65536;
  EXPECT_TRUE(mentions(refusal(wrong), "a port from 1 to 65535"));
  wrong = options;
  wrong.db = -1;
  EXPECT_TRUE(mentions(refusal(wrong), "db"));
  wrong = options;
  wrong.replicas = -1;
  EXPECT_TRUE(mentions(refusal(wrong), "replicas"));
  wrong = options;
  wrong.prefix = std::string(101, 'p');
  EXPECT_TRUE(mentions(refusal(wrong), "at most 100 bytes"));
}

/// A server may have named it.
TEST(RedisOptions, AnAddressIsFitForAMessage) {
  EXPECT_EQ(to_string(Address{"host", 1}), "host:1");
  EXPECT_EQ(to_string(Address{"::1", 1}), "[::1]:1");
  EXPECT_EQ(to_string(Address{"a\x1b[31m\n", 1}), "a?[31m?:1");
  EXPECT_EQ(to_string(Address{"::\x1b[31m\n", 1}), "[::?[31m?]:1");
}

#ifndef TENURE_REDIS_TLS
TEST(RedisOptions, WithoutTlsAnEncryptedUrlIsRefusedWithTheRemedy) {
  const auto said = refusal("rediss://h");
  EXPECT_TRUE(mentions(said, "this build has no TLS")) << said;
  EXPECT_TRUE(mentions(said, "libhiredis_ssl")) << said;
}
#endif

TEST(RedisOptions, NoRefusalContainsASecret) {
  for (const std::string scheme : {"redis", "rediss", "redis+unix", "redis+sentinel", "redi"})
    for (const std::string tail :
         {"", "h", "h/x", "h:0/m", "h/m/x", "h?replicas=x", "h?replica=1", "/p?db=x", "h?prefix=%7b"})
      for (const auto& secret : {canary + ":" + canary, ":" + canary, canary})
        EXPECT_FALSE(mentions(refusal(scheme + "://" + secret + "@" + tail), canary)) << scheme << " " << tail;
  for (const std::string key : {"sentinel_password", "sentinel_passwort", "password", "db", "replicas"})
    EXPECT_FALSE(mentions(refusal("redis://h?" + key + "=" + canary), canary)) << key;
}

TEST(RedisOptions, PropertiesAndCredentialsBesideTheUrlAreTaken) {
  Opening opening;
  opening.url = "redis://127.0.0.1:1";
  opening.election = "jobs";
  opening.properties = {{"replicas", "x"}};
  const auto said = refusal_of([&] { open_url(opening); });
  EXPECT_TRUE(mentions(said, "replicas must be a number")) << said;
  opening.properties = {{"replicas", "1"}};
  opening.user = "u";
  opening.password = canary;
  const auto opened = open_url(opening);
  EXPECT_EQ(opened.backend->election(), "jobs");
  EXPECT_EQ(opened.presets, lock_table_presets());
}

TEST(RedisOptions, TheSentinelsPasswordIsReadFromItsFileAtEachLogin) {
  const tenure::test::Scratch scratch;
  const auto file = scratch / "password";
  const auto ask =
      from_url("redis+sentinel://h/m?sentinel_user=u&sentinel_password_file=" + file.string()).sentinel_credentials;
  for (const auto* now : {"first", "second"}) {
    std::ofstream(file) << now << "\n";
    EXPECT_EQ(ask().user, "u");
    EXPECT_EQ(ask().password, now);
  }
  std::filesystem::remove(file);
  try {
    ask();
    ADD_FAILURE() << "it told a password that is gone";
  } catch (const std::runtime_error& e) {
    EXPECT_TRUE(mentions(e.what(), "sentinel_password_file names " + file.string())) << e.what();
  }
}

TEST(RedisOptions, AServerThatIsReachedWithoutTlsIsWarnedOfUnlessItIsThisHosts) {
  const auto warnings = [](const std::string& url) {
    std::vector<std::string> out;
    open(from_url(url), "jobs", {}, [&](const LogLine& line) { out.push_back(line.message); });
    return out;
  };
  const auto said = warnings("redis+sentinel://127.0.0.1,db.example/main");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(mentions(said[0], "db.example:26379")) << said[0];
  EXPECT_TRUE(mentions(said[0], "TLS does not protect")) << said[0];
  EXPECT_TRUE(warnings("redis://localhost").empty());
  EXPECT_TRUE(warnings("redis+unix:///run/redis.sock").empty());
}

TEST(RedisOptions, DifferentElectionsHaveDifferentKeys) {
  std::set<std::string> keys;
  const std::vector<std::string> names{"a", "{a}", "a}", "{a", "}", "{", "{}", "a}b", "a}b}", "{a}{b}"};
  for (const auto& name : names) keys.insert(key_of(Options{}, name));
  EXPECT_EQ(keys.size(), names.size());
  EXPECT_EQ(key_of(Options{}, "jobs"), "tenure:{jobs}");
}

}  // namespace
}  // namespace tenure::redis
