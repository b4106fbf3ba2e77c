// SPDX-License-Identifier: Apache-2.0
// Goal: a URL opens the store that it names. A refusal names the remedy, and tells no secret.
// Method: backends of one URL contend. A canary stands in every place where a secret may stand. tests/package has the
// builds that leave stores out.
#include <tenure/stores.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tenure/file.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/memory.hpp>

#include "messages.hpp"
#include "refusal.hpp"
#include "scratch.hpp"
#include "within.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::canary;
using test::mentions;
using test::Scratch;
using test::within;

std::string refusal(const Opening& opening) {
  return test::refusal_of([&] { open(opening); });
}

Opening at(const std::string& url) {
  Opening opening;
  opening.url = url;
  opening.election = "jobs";
  return opening;
}

std::string refusal(const std::string& url) { return refusal(at(url)); }

std::optional<Token> acquire(const Opened& opened) {
  EXPECT_EQ(opened.backend->accepts(opened.presets.balanced), std::nullopt);
  const auto answer = opened.backend->acquire(within(2s));
  const auto* granted = std::get_if<Granted>(&answer);
  return granted ? std::optional(granted->token) : std::nullopt;
}

void expect_one_leader(const std::string& url) {
  const auto a = open(url, "jobs", {"a", ""}), b = open(std::string_view(url), std::string_view("jobs"), {"b", ""});
  const auto other = open({.url = url, .election = "other"});
  ASSERT_TRUE(acquire(a)) << url;
  EXPECT_FALSE(acquire(b)) << url;
  EXPECT_TRUE(acquire(other)) << url;
  EXPECT_EQ(a.backend->release(within(2s)), std::nullopt);
  EXPECT_TRUE(acquire(b)) << url;
  EXPECT_EQ(a.backend->election(), "jobs");
  EXPECT_EQ(a.presets, lock_table_presets());
}

TEST(Stores, MemoryIsOneHubPerName) {
  expect_one_leader("memory:");
  expect_one_leader("memory:stores-test");
  EXPECT_TRUE(acquire(open("memory:stores-test-2", "jobs"))) << "another hub";
  memory::hub("stores-test-3").unreachable(true);
  EXPECT_FALSE(acquire(open("memory:stores-test-3", "jobs"))) << "a test reaches the hub that a URL names";
}

TEST(Stores, AGroupOfElectionsIsOpenedByTheSameUrl) {
  const auto group = open_many("memory:stores-test", "jobs");
  EXPECT_EQ(group.store->group(), "jobs");
  EXPECT_EQ(group.presets, lock_table_presets());
  EXPECT_TRUE(group.store->look("", within(2s)));
  memory::hub("stores-test-4").unreachable(true);
  EXPECT_FALSE(open_many("memory:stores-test-4", "jobs").store->look("", within(2s)));
  EXPECT_THROW(open_many("memory:", ""), std::invalid_argument);
}

TEST(Stores, AStoreWithoutGroupsSaysWhichHaveThem) {
  const auto message = test::refusal_of([] { open_many("file:///tmp", "jobs"); });
  EXPECT_TRUE(mentions(message, "the store \"file\" keeps no groups")) << message;
  EXPECT_TRUE(mentions(message, "elect each by open()")) << message;
  EXPECT_TRUE(mentions(message, "memory")) << message;
  EXPECT_FALSE(mentions(message.substr(message.find("these do")), "file")) << message;
}

TEST(Stores, FileIsADirectory) {
  const Scratch scratch;
  expect_one_leader("file://" + scratch.path().string());
  expect_one_leader("FILE://" + scratch.path().string() + "/a%20b");
  EXPECT_TRUE(std::filesystem::is_directory(scratch / "a b"));
  const auto leader = open("file://" + scratch.path().string(), "jobs");
  ASSERT_TRUE(acquire(leader));
  const auto answer = file::open(scratch, "jobs")->acquire(within(2s));
  EXPECT_TRUE(std::holds_alternative<Denied>(answer)) << "the URL and the path name one store";
}

#if __has_include(<tenure/kafka.hpp>)
TEST(Stores, KafkaIsACluster) {
  const auto opened = open("kafka://127.0.0.1:1,127.0.0.1:2/topic?group=g", "jobs");
  EXPECT_EQ(opened.backend->election(), "g");
  EXPECT_EQ(opened.backend->accepts(opened.presets.fast), std::nullopt);
  EXPECT_EQ(open("kafka://127.0.0.1:1", "jobs").backend->election(), "jobs");
}
#endif

TEST(Stores, AUrlThatAStoreCannotUseIsRefused) {
  for (const std::string url :
       {"memory://name", "memory:?a=1", "memory:x?size=1", "file:", "file:relative", "file://h/d", "file:///",
        "file:////", "file://u:p@/d", "file:///d?mode=1", "memory://u:p@"})
    EXPECT_NE(refusal(url), "accepted") << url;
  auto opening = at("memory:");
  opening.user = "u";
  EXPECT_TRUE(mentions(refusal(opening), "without host, user, password and credentials"));
  opening = at("memory:");
  opening.properties["size"] = canary;
  EXPECT_TRUE(mentions(refusal(opening), "has no setting \"size\"")) << refusal(opening);
  opening = at("memory:");
  opening.election = "";
  EXPECT_TRUE(mentions(refusal(opening), "election has 0 bytes"));
}

/// A store that left them out would go on with what it was told at first.
TEST(Stores, CredentialsReachEachStoreThatHasLogins) {
  for (const std::string url : {
#ifdef TENURE_WITH_POSTGRES
           "postgres://u@127.0.0.1:1/db",
#endif
#ifdef TENURE_WITH_REDIS
           "redis://u@127.0.0.1:1",
#endif
#ifdef TENURE_WITH_ETCD
           "etcd://u@127.0.0.1:1",
#endif
#ifdef TENURE_WITH_OBJECT
           "s3://bucket?endpoint=http://127.0.0.1:1", "gs://bucket?endpoint=http://127.0.0.1:1",
           "az://account/container?endpoint=http://127.0.0.1:1",
#endif
#ifdef TENURE_WITH_KAFKA
           "kafka://127.0.0.1:1?security.protocol=sasl_plaintext&sasl.mechanism=PLAIN",
#endif
           "memory:", "file:///tmp"}) {
    const bool logs_in = url != "memory:" && url != "file:///tmp";
    for (const bool group : {false, true}) {
      if (group && !logs_in) continue;
      if (group && (url.starts_with("etcd") || mentions(url, "?endpoint="))) continue;
      auto opening = at(url);
      std::atomic<int> asked{0};
      opening.credentials = [&asked]() -> Credentials {
        ++asked;
        throw std::runtime_error("the vault is away");
      };
      const auto told = test::refusal_of([&] {
        if (group)
          EXPECT_FALSE(open_many(opening).store->look({}, within(10s)));
        else
          EXPECT_TRUE(std::holds_alternative<Unknown>(open(opening).backend->observe(within(10s))));
      });
      EXPECT_EQ(asked > 0, logs_in) << url << group;
      EXPECT_EQ(mentions(told, "without host, user, password and credentials"), !logs_in) << told;
    }
  }
}

TEST(Stores, AnUnknownSchemeIsRefusedWithTheNearestAndAll) {
  const std::string begins =
      "tenure::open: there is no store \"memroy\", did you mean \"memory\"? This build has: "
      "memory, file";
  EXPECT_EQ(refusal("memroy://x").substr(0, begins.size()), begins);
  EXPECT_TRUE(mentions(refusal("memroy:x"), "the URL's scheme is unknown, did you mean \"memory\"?"));
  EXPECT_TRUE(mentions(refusal("zookeeper://h"), "no store \"zookeeper\". This build has: "));
}

TEST(Stores, ATextThatIsNoUrlIsNotRepeated) {
  for (const std::string text : {"", "canary", "host=h password=canary", "canary:pw@host", "3canary/x:y", ":canary",
                                 "user:canary@host/db", "ca nary://x", "canary"}) {
    EXPECT_TRUE(mentions(refusal(text), "tenure::open: ")) << text;
    EXPECT_FALSE(mentions(refusal(text), "canary")) << refusal(text);
  }
}

/// The schemes of this build, as a refusal tells them.
std::vector<std::string> schemes_and_nonsense() {
  const std::string before = "This build has: ";
  const auto said = refusal("nonsense:");
  std::istringstream names(said.substr(said.find(before) + before.size()));
  std::vector<std::string> out{"nonsense"};
  for (std::string name; std::getline(names >> std::ws, name, ',');) out.push_back(name);
  EXPECT_GE(out.size(), 3u) << said;
  return out;
}

/// Every scheme is handed URLs that are wrong in every way, with a canary where a user, a password or a value stands.
TEST(Stores, NoMessageOfAStoreHoldsASecret) {
  for (const auto& scheme : schemes_and_nonsense())
    for (const std::string middle : {"", "/", "?", "#", "%", "%zz", " ", "\n", "@", "[", ":", "\xff"})
      for (const std::string tail : {"@localhost:1/x", "@localhost:1/x?unknown=1", "@localhost:no/", "@/", "@", "@a,,b",
                                     "@h/0/1/2", "@h?a=1&a=2"}) {
        auto opening = at(scheme + "://" + canary + ":" + canary + middle + canary + tail);
        EXPECT_FALSE(mentions(refusal(opening), canary)) << refusal(opening);
        opening.url = scheme + "://" + tail.substr(1);
        opening.user = opening.password = canary + middle;
        EXPECT_FALSE(mentions(refusal(opening), canary)) << refusal(opening);
        opening.properties = {{"password", canary}, {"sasl.password", canary + middle}, {"nonsense", canary}};
        EXPECT_FALSE(mentions(refusal(opening), canary)) << refusal(opening);
      }
}

}  // namespace
}  // namespace tenure
