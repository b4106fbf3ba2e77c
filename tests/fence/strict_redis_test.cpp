// SPDX-License-Identifier: Apache-2.0
// Goal: strict.hpp's, over Redis: elections, groups and epochs, with one server and in a cluster; and a guarded command
// answers as it does alone. Method: strict.hpp's. A script takes the place of a transaction.
#include <tenure/fence.hpp>
#include <tenure/fence/redis.hpp>

#include <hiredis/hiredis.h>

#include <sstream>

#include <tenure/fake_leadership.hpp>
#include <tenure/redis.hpp>

#include "server.hpp"
#include "shared.hpp"
#include "strict.hpp"

/// examples/fencing_redis.cpp, which the page shows.
bool add_to_sum(const tenure::Leadership& leadership, redisContext* redis, int more);

namespace tenure::fence::strict {
namespace {

using redis::test::Cluster;
using redis::test::Server;
using testing::StartsWith;

/// Where a test's keys are: a server, or the node of a cluster that serves the tag.
class Place {
 public:
  virtual ~Place() = default;
  virtual Server& of(const std::string& key) = 0;
  virtual redis::Options options() = 0;
};

class Alone final : public Place {
 public:
  Server& of(const std::string&) override { return server(); }
  redis::Options options() override { return redis::from_url("redis://" + server().address()); }

 private:
  static Server& server() { return tenure::test::Shared<Server>::get(); }
};

class Clustered final : public Place {
 public:
  Server& of(const std::string& key) override { return cluster()[cluster().owner_of(key)]; }
  redis::Options options() override { return redis::from_url("redis://" + cluster()[0].address()); }

 private:
  static Cluster& cluster() { return tenure::test::Shared<Cluster>::get(); }
};

/// A set beside the record, to which the guarded commands add.
template <class At>
class Work {
 public:
  explicit Work(std::string tag) : key_("work:" + prefix_ + "{" + std::move(tag) + "}") {}

  redis::Options options() {
    auto out = at_.options();
    out.prefix = prefix_;
    out.first_claim = redis::FirstClaim::at_once;
    return out;
  }
  const std::string& prefix() const { return prefix_; }
  const std::string& key() const { return key_; }
  RedisWords adding(const std::string& value) const { return {"SADD", key_, value}; }
  std::string ask(const RedisWords& words) { return at_.of(key_).ask(words); }

  Fenced::Finish later(RedisWords words) {
    return [this, words = std::move(words)] {
      const auto answer = ask(words);
      EXPECT_TRUE(answer == "1" || answer.starts_with("FENCED ")) << answer;
      return answer == "1";
    };
  }
  Values written() {
    std::istringstream words(ask({"SMEMBERS", key_}));
    Values out;
    for (std::string word; words >> word;) out.insert(word);
    return out;
  }

 private:
  const std::string prefix_ = redis::test::unique_name("tenure") + ":", key_;
  At at_;
};

template <class At>
class Single final : public FencedRecord {
 public:
  Finish begin(Token token, const std::string& value) override {
    return work_.later(redis_guarded(redis_record("jobs", work_.prefix()), token, {work_.key()}, work_.adding(value)));
  }
  Values written() override { return work_.written(); }

 private:
  ConditionalStore& store() override { return *store_; }

  Work<At> work_{"jobs"};
  const std::shared_ptr<ConditionalStore> store_ = redis::store(work_.options(), "jobs");
};

template <class At>
class Group final : public FencedLead {
 public:
  Finish begin(Token token, const std::string& value) override {
    const auto lead = redis_lead("group", "jobs", work_.prefix());
    return work_.later(redis_guarded(lead, token, {work_.key()}, work_.adding(value)));
  }
  Values written() override { return work_.written(); }

 private:
  GroupStore& store() override { return *store_; }

  Work<At> work_{"group"};
  const std::shared_ptr<GroupStore> store_ = redis::open_group(work_.options(), "group");
};

/// The election is anywhere; a leader begins its epoch.
template <class At>
class Epoch final : public Fenced {
 public:
  Token claim() override {
    ++token_.value;
    return work_.ask(redis_in_epoch(epoch(), token_)) == "OK" ? token_ : Token{};
  }
  void renew() override {}
  void release() override {}
  Finish begin(Token token, const std::string& value) override {
    return work_.later(redis_in_epoch(epoch(), token, {work_.key()}, work_.adding(value)));
  }
  Values written() override { return work_.written(); }

 private:
  std::string epoch() const { return work_.prefix() + "epoch{program}"; }

  Work<At> work_{"program"};
  Token token_{};
};

template <class Inner>
Subject subject(const std::string& name) {
  return {name, [] { return std::make_unique<Inner>(); }, redis::test::missing_server()};
}

INSTANTIATE_TEST_SUITE_P(redis, StrictFence,
                         testing::Values(subject<Single<Alone>>("single"), subject<Group<Alone>>("group"),
                                         subject<Epoch<Alone>>("epoch"), subject<Single<Clustered>>("cluster_single"),
                                         subject<Group<Clustered>>("cluster_group"),
                                         subject<Epoch<Clustered>>("cluster_epoch")),
                         name_of);

class RedisStrictFence : public testing::Test {
 protected:
  void SetUp() override { TENURE_NEEDS_REDIS(); }
  Server& server() { return alone_.of({}); }
  std::string ask(const RedisWords& words) { return server().ask(words); }
  /// A record with this token, and a command that it guards.
  std::string guarded(Token token, const RedisWords& keys, const RedisWords& command) {
    return ask(redis_guarded({record_, "token"}, token, keys, command));
  }
  std::string in_epoch(Token token, const RedisWords& command = {}) {
    return ask(redis_in_epoch(epoch_, token, {}, command));
  }

  Alone alone_;
  const std::string record_ = redis::test::unique_name("record"), epoch_ = redis::test::unique_name("epoch");
};

TEST_F(RedisStrictFence, TokensAreComparedToTheLastDigit) {
  constexpr std::uint64_t beyond = 9'007'199'254'740'993;  // a double counts no further
  ask({"HSET", record_, "token", std::to_string(beyond)});
  for (const std::uint64_t other : {beyond - 1, beyond + 1, beyond / 10, beyond * 10, std::uint64_t{0}})
    EXPECT_THAT(guarded({other}, {}, {"PING"}), StartsWith("FENCED ")) << other;
  EXPECT_EQ(guarded({beyond}, {}, {"PING"}), "PONG");
  EXPECT_EQ(in_epoch({9}), "OK");
  EXPECT_EQ(in_epoch({10}), "OK") << "as numbers, not as words";
  EXPECT_EQ(in_epoch({beyond}), "OK");
  EXPECT_THAT(in_epoch({beyond - 1}), StartsWith("FENCED "));
  EXPECT_THAT(in_epoch({11}, {"PING"}), StartsWith("FENCED "));
  EXPECT_EQ(in_epoch({beyond}, {"PING"}), "PONG");
}

TEST_F(RedisStrictFence, ACommandAnswersAsItDoesAlone) {
  ask({"HSET", record_, "token", "7"});
  const auto list = record_ + ":list";
  EXPECT_EQ(guarded({7}, {list}, {"RPUSH", list, "a b", "", "c"}), "3");
  EXPECT_EQ(guarded({7}, {list}, {"LRANGE", list, "0", "-1"}), ask({"LRANGE", list, "0", "-1"}));
  EXPECT_EQ(guarded({7}, {list}, {"GET", list}), ask({"GET", list})) << "an error";
  EXPECT_EQ(guarded({7}, {}, {"GET", record_ + ":none"}), "(nil)");
  EXPECT_EQ(in_epoch({7}, {"GET", list}), ask({"GET", list})) << "an error";
}

TEST_F(RedisStrictFence, WithoutARecordNothingIsWritten) {
  EXPECT_THAT(guarded({0}, {}, {"SET", record_ + ":x", "1"}), StartsWith("FENCED "));
  EXPECT_THAT(guarded({1}, {}, {"SET", record_ + ":x", "1"}), StartsWith("FENCED "));
  EXPECT_EQ(ask({"EXISTS", record_ + ":x"}), "0");
}

/// The fence of fence.hpp, which needs a newer token in the hash that is written.
TEST_F(RedisStrictFence, AFenceByTokenLetsTheFirstWriteOfAFormerLeaderPass) {
  const auto fresh = record_ + ":fresh";
  ASSERT_EQ(in_epoch({2}), "OK") << "the successor has begun";
  EXPECT_EQ(ask({"EVAL", std::string(redis_hset), "1", fresh, "1", "by", "the former"}), "1");
}

TEST_F(RedisStrictFence, ClusterRefusesACommandWhoseKeyStandsElsewhere) {
  Clustered cluster;
  const auto record = redis_record("jobs", record_ + ":");
  auto& node = cluster.of(record.key);
  node.ask({"HSET", record.key, "token", "1"});
  const auto elsewhere = record_ + ":elsewhere{other}";
  EXPECT_THAT(node.ask(redis_guarded(record, {1}, {elsewhere}, {"SET", elsewhere, "1"})), StartsWith("CROSSSLOT"));
  const auto beside = "beside{jobs}" + record_;
  EXPECT_EQ(node.ask(redis_guarded(record, {1}, {beside}, {"SET", beside, "1"})), "OK");
}

#ifdef TENURE_WITH_EXAMPLE
TEST_F(RedisStrictFence, TheExampleOfThePageWritesForTheLeaderAndNotForAFormerOne) {
  Server alone;
  const auto elections = redis::store(redis::from_url("redis://" + alone.address()), "jobs");
  ASSERT_TRUE(tenure::test::swap(*elections, std::nullopt, tenure::test::record(1, 1)));
  const std::unique_ptr<redisContext, void (*)(redisContext*)> db(redisConnect("127.0.0.1", alone.port()), redisFree);
  FakeLeadership leadership;
  EXPECT_FALSE(add_to_sum(leadership.leadership(), db.get(), 1)) << "it does not lead";
  leadership.lead({1}, std::chrono::minutes(1));
  EXPECT_TRUE(add_to_sum(leadership.leadership(), db.get(), 10));
  ASSERT_TRUE(tenure::test::swap(*elections, Expected{{1}, {1}}, tenure::test::record(2, 1)));
  EXPECT_FALSE(add_to_sum(leadership.leadership(), db.get(), 100)) << "it believes that it leads";
  EXPECT_EQ(alone.ask({"GET", "sums{jobs}"}), "10");
}
#endif

}  // namespace
}  // namespace tenure::fence::strict
