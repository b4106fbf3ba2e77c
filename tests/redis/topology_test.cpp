// SPDX-License-Identifier: Apache-2.0
// Goal: the server in charge is found and followed: through Sentinels, through a fail-over, through a cluster whose
// slots move. Method: real servers, Sentinels and clusters of each test's own; one liar.
#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>

#include <tenure/kit/wait.hpp>

#include "server.hpp"
#include "shared.hpp"
#include "support.hpp"
#include "watched.hpp"

namespace tenure::redis::test {
namespace {

const std::string key = "tenure:{jobs}";

class RedisTopology : public ::testing::Test {
 protected:
  void SetUp() override { TENURE_NEEDS_REDIS(); }

  static std::shared_ptr<ConditionalStore> open_at(const std::string& url) { return store(from_url(url), "jobs"); }
};

// ---- Sentinels ----

TEST_F(RedisTopology, AFailOverIsFollowed) {
  Watched watched(3);
  const auto leader = open(from_url(watched.url()), "jobs", {"leader", ""});
  const auto follower = open(from_url(watched.url()), "jobs", {"follower", ""});
  const Timing timing{.term = 1000ms, .renew = 100ms, .retry = 50ms, .margin = 50ms, .call = 400ms, .drain = 1000ms};
  for (const auto& backend : {leader, follower}) ASSERT_EQ(backend->accepts(timing), std::nullopt);
  std::optional<Token> token;
  const auto campaign = [&](Backend& backend) {
    const auto answer = backend.acquire(within(400ms));
    const auto* granted = std::get_if<Granted>(&answer);
    if (granted) token = granted->token;
    return granted != nullptr;
  };
  ASSERT_TRUE(eventually([&] { return campaign(*leader); })) << watched.first.log();
  const auto first = *token;
  follower->acquire(within(400ms));
  ASSERT_TRUE(eventually([&] { return watched.in_step() && watched.second.ask({"EXISTS", key}) == "1"; }));

  watched.first.kill();
  ASSERT_TRUE(eventually([&] { return campaign(*follower); })) << watched.sentinels[0]->log();
  EXPECT_GT(*token, first) << TENURE_PROMISE;
  EXPECT_TRUE(watched.second.ask({"HGET", key, "who"}).starts_with("name=follower;")) << "the promoted server has it";
}

TEST_F(RedisTopology, SentinelsAreAskedInTurnAndWhatTheyDoNotKnowIsReported) {
  Watched watched(1);
  EXPECT_FALSE(read(*open_at(watched.url())).record) << "the first one named is down, the second one answers";
  expect_error(refused_read(*open_at(watched.url("other"))), Fault::misconfigured, {"knows no master named \"other\""});

  auto options = from_url(watched.url());
  options.sentinel_password.clear();
  expect_error(refused_read(*store(options, "jobs")), Fault::forbidden, {"for a Sentinel sentinel_password"});
  options.sentinel_password = "wrong" + canary;
  expect_error(refused_read(*store(options, "jobs")), Fault::forbidden);
  watched.sentinels[0]->kill();
  EXPECT_EQ(refused_read(*open_at(watched.url())).fault, Fault::unreachable);
}

/// As where tokens live for minutes: the Sentinels' password is another one when a connection to them is made anew.
TEST_F(RedisTopology, ASentinelsPasswordIsAskedForBeforeEachLogin) {
  Watched watched(1);
  auto& sentinel = *watched.sentinels[0];
  std::mutex mutex;
  std::string now;
  const auto change = [&](const std::string& password) {
    const std::lock_guard lock(mutex);
    now = password + canary;
    return sentinel.ask({"ACL", "SETUSER", "tenure", "reset", "on", "&*", "+@all", ">" + now});
  };
  if (const auto said = change("first"); said != "OK") GTEST_SKIP() << "this Sentinel knows no users: " << said;
  auto options = from_url(watched.url());
  options.sentinel_password.clear();
  options.sentinel_credentials = [&] {
    const std::lock_guard lock(mutex);
    if (now.empty()) throw std::runtime_error("the vault is away");
    return Credentials{"tenure", now};
  };
  const auto candidate = store(options, "jobs");
  ASSERT_TRUE(swap(*candidate, std::nullopt, record(1, 11)));
  ASSERT_TRUE(eventually([&] { return watched.in_step() && watched.second.ask({"EXISTS", key}) == "1"; }));

  change("second");
  sentinel.ask({"CLIENT", "KILL", "USER", "tenure"});
  watched.first.kill();
  EXPECT_TRUE(eventually([&] {
    const auto found = candidate->read(within(400ms));
    return found && found->record;
  })) << "the new master is found";
  {
    const std::lock_guard lock(mutex);
    now.clear();
  }
  expect_error(refused_read(*store(options, "jobs")), Fault::forbidden, {"the vault is away"});
  options.sentinel_password = canary;
  EXPECT_THROW(store(options, "jobs"), std::invalid_argument);
}

/// As a Sentinel that has not heard of a fail-over yet.
TEST_F(RedisTopology, ASentinelThatNamesAReplicaIsNotBelieved) {
  Server master;
  Server replica({"replicaof 127.0.0.1 " + std::to_string(master.port())});
  const FakeSentinel liar(replica.port());
  expect_error(refused_read(*open_at("redis+sentinel://" + liar.address() + "/main")), Fault::unreachable,
               {"is not a master"});
}

TEST_F(RedisTopology, AServerIsNotTakenForASentinel) {
  Server server;
  expect_error(refused_read(*open_at("redis+sentinel://" + server.address() + "/main")), Fault::misconfigured,
               {"is not a Sentinel but a Redis server"});
}

TEST_F(RedisTopology, AClaimIsMadeWhereMostSentinelsSayJustThen) {
  Server a, b;
  FakeSentinel one(a.port()), two(a.port()), three(a.port());
  const auto backend =
      open_at("redis+sentinel://" + one.address() + "," + two.address() + "," + three.address() + "/main");
  ASSERT_TRUE(swap(*backend, std::nullopt, record(1, 11)));
  ASSERT_EQ(a.ask({"HGET", key, "token"}), "1");
  one.name(b.port());
  EXPECT_FALSE(swap(*backend, std::nullopt, record(2, 12))) << "one of three is not believed";
  EXPECT_TRUE(swap(*backend, Expected{{1}, {11}}, record(1, 12)));
  two.name(b.port());
  EXPECT_TRUE(swap(*backend, std::nullopt, record(2, 13))) << "nothing stands on the new master";
  EXPECT_EQ(a.ask({"HGET", key, "token"}), "1");
  EXPECT_EQ(b.ask({"HGET", key, "token"}), "2");
  EXPECT_EQ(read(*backend).record->token, Token{2}) << "and nothing is asked of the old one any more";
}

/// As behind a cut: on the other side they may have failed over. Who leads goes on, and nobody claims.
TEST_F(RedisTopology, FewerThanHalfOfTheSentinelsAreNotBelievedInAClaim) {
  Server a;
  FakeSentinel one(a.port()), two(a.port());
  std::optional<FakeSentinel> three(a.port()), four(a.port());
  const auto backend = open_at("redis+sentinel://" + one.address() + "," + two.address() + "," + three->address() +
                               "," + four->address() + "/main");
  four.reset();
  three.reset();
  EXPECT_TRUE(eventually([&] {
    const auto claimed = backend->compare_and_set(std::nullopt, record(1, 11), within(2s));
    return claimed && claimed->applied;
  })) << "half of them answer";
  std::optional<FakeSentinel> alone(a.port());
  const auto other = open_at("redis+sentinel://" + alone->address() + ",127.0.0.1:1,127.0.0.1:2/main");
  const auto claimed = other->compare_and_set(Expected{{1}, {11}}, record(2, 12), within(2s));
  ASSERT_FALSE(claimed);
  EXPECT_TRUE(tenure::test::mentions(claimed.error().message, "fewer than half")) << claimed.error().message;
  EXPECT_TRUE(swap(*other, Expected{{1}, {11}}, record(1, 12))) << "a renewal";
}

/// As where the URL names one address for all of them.
TEST_F(RedisTopology, SentinelsThatTheUrlDoesNotNameCountInAClaim) {
  Server a;
  const FakeSentinel one(a.port(), "127.0.0.1", FakeSentinel::knows(2));
  const auto backend = open_at("redis+sentinel://" + one.address() + "/main");
  EXPECT_FALSE(read(*backend).record);
  expect_error(refused_swap(*backend, std::nullopt, record(1, 11)), Fault::misconfigured,
               {"fewer than half", "they know 3", "name all"});
  ASSERT_TRUE(swap(*open_at("redis://" + a.address()), std::nullopt, record(1, 11)));
  EXPECT_TRUE(swap(*backend, Expected{{1}, {11}}, record(1, 12))) << "a renewal";
  const auto checks = check_url({.url = "redis+sentinel://" + one.address() + "/main"}, within(2s));
  ASSERT_TRUE(checks) << checks.error().message;
  EXPECT_EQ(std::ranges::count_if(*checks, [](const Check& check) { return check.is == Check::Is::wrong; }), 1);
  EXPECT_TRUE(tenure::test::mentions((*checks)[0].what, "nobody can be elected")) << (*checks)[0].what;
  const FakeSentinel two(a.port());
  const auto both = open_at("redis+sentinel://" + one.address() + "," + two.address() + "/main");
  EXPECT_TRUE(swap(*both, Expected{{1}, {12}}, record(2, 13))) << "two of three";
}

/// As of Sentinels that have just begun, that become more, and that forget some by SENTINEL RESET.
TEST_F(RedisTopology, HowManySentinelsThereAreIsAskedBeforeEachClaim) {
  Server a;
  FakeSentinel one(a.port(), "127.0.0.1", FakeSentinel::knows(0));
  std::optional<FakeSentinel> two(std::in_place, a.port(), "127.0.0.1", FakeSentinel::knows(0));
  const auto backend = open_at("redis+sentinel://" + one.address() + "," + two->address() + "/main");
  ASSERT_TRUE(swap(*backend, std::nullopt, record(1, 11)));
  one.tell(FakeSentinel::knows(4));
  expect_error(refused_swap(*backend, Expected{{1}, {11}}, record(2, 12)), Fault::misconfigured, {"they know 5"});
  one.tell(FakeSentinel::knows(1));
  EXPECT_TRUE(swap(*backend, Expected{{1}, {11}}, record(2, 12))) << "by the same connection";
  two->tell(FakeSentinel::knows(6));
  expect_error(refused_swap(*backend, Expected{{2}, {12}}, record(3, 13)), Fault::misconfigured, {"they know 7"});
  two.reset();
  EXPECT_TRUE(swap(*backend, Expected{{2}, {12}}, record(3, 13))) << "who is away says nothing";
}

TEST_F(RedisTopology, OfSentinelsThatMayNotTellHowManyTheyAreOneWarningTells) {
  Server a;
  const std::string refused = "-NOPERM this user has no permissions to run the 'sentinel|master' command\r\n";
  const FakeSentinel one(a.port(), "127.0.0.1", refused), two(a.port(), "127.0.0.1", refused);
  tenure::test::Lines lines;
  const auto backend =
      store(from_url("redis+sentinel://" + one.address() + "," + two.address() + "/main"), "jobs", lines.log());
  for (std::uint64_t token = 1; token < 4; ++token)
    EXPECT_TRUE(
        swap(*backend, token > 1 ? std::optional(Expected{{token - 1}, {11}}) : std::nullopt, record(token, 11)));
  const auto all = lines.all();
  EXPECT_EQ(std::ranges::count_if(all, [](const auto& line) { return line.find("+sentinel|master") != line.npos; }), 1);
}

/// What the user's function holds is not kept by a thread that nobody waited for: that one ends by itself.
TEST_F(RedisTopology, NothingIsLeftOfAStoreWithSentinels) {
  Server a;
  FakeSentinel one(a.port()), two(a.port()), three(a.port());
  const auto held = std::make_shared<int>();
  {
    auto options =
        from_url("redis+sentinel://" + one.address() + "," + two.address() + "," + three.address() + "/main");
    options.sentinel_credentials = [held] { return Credentials{}; };
    const auto backend = store(options, "jobs");
    ASSERT_TRUE(swap(*backend, std::nullopt, record(1, 11)));
  }
  EXPECT_TRUE(eventually([&] { return held.use_count() == 1; }));
}

/// A master without its replicas may have been replaced. A renewal needs no Sentinel's word otherwise.
TEST_F(RedisTopology, AWriteThatNoReplicaAcknowledgedMakesTheNextCallAskTheSentinels) {
  Server a, b;
  FakeSentinel only(a.port());
  const auto backend = open_at("redis+sentinel://" + only.address() + "/main?replicas=1");
  ASSERT_FALSE(read(*backend).record) << "connected";
  ASSERT_FALSE(backend->compare_and_set(std::nullopt, record(1, 11), within(2s))) << "there is no replica";
  ASSERT_EQ(a.ask({"HGET", key, "beat"}), "11") << "it was written";
  only.name(b.port());
  EXPECT_FALSE(swap(*backend, Expected{{1}, {11}}, record(1, 12))) << "nothing stands on the new master";
  EXPECT_EQ(a.ask({"HGET", key, "beat"}), "11") << "the old one was asked again";
}

TEST_F(RedisTopology, SentinelsThatAreAwayEndNoTenure) {
  Server a;
  std::optional<FakeSentinel> only(std::in_place, a.port());
  const auto backend = open_at("redis+sentinel://" + only->address() + "/main");
  ASSERT_TRUE(swap(*backend, std::nullopt, record(1, 11)));
  only.reset();
  EXPECT_TRUE(swap(*backend, Expected{{1}, {11}}, record(1, 12))) << "a renewal";
  EXPECT_EQ(refused_swap(*backend, Expected{{1}, {12}}, record(2, 13)).fault, Fault::unreachable) << "a claim";
  EXPECT_EQ(a.ask({"HGET", key, "token"}), "1");
}

/// A process that was stopped between its read and its claim, say.
TEST_F(RedisTopology, AClaimLongAfterItsReadAsksTheSentinelsAnew) {
  Server a;
  std::optional<FakeSentinel> only(std::in_place, a.port());
  const auto backend = open_at("redis+sentinel://" + only->address() + "/main");
  ASSERT_FALSE(read(*backend).record);
  only.reset();
  wait_out(within(1001ms));
  EXPECT_EQ(refused_swap(*backend, std::nullopt, record(1, 11)).fault, Fault::unreachable);
  EXPECT_EQ(a.ask({"EXISTS", key}), "0");
}

TEST_F(RedisTopology, ConnectionsBearTheElectionsAndTheCandidatesNames) {
  Server server;
  const auto backend = open(from_url("redis://" + server.address()), "nightly jobs", {"b\nöx", ""});
  backend->observe(within(2s));
  backend->await_change(Vacant{}, within(2s));  // subscribes
  const auto list = server.ask({"CLIENT", "LIST"});
  const auto first = list.find(" name=tenure:nightly_jobs:b___x ");
  ASSERT_NE(first, list.npos) << list;
  EXPECT_NE(list.find(" name=tenure:nightly_jobs:b___x ", first + 1), list.npos) << list;
}

// ---- clusters ----

/// One cluster for all of them, since it takes two seconds to form. Each finds it whole and empty.
class RedisCluster : public RedisTopology {
 protected:
  void SetUp() override {
    RedisTopology::SetUp();
    if (IsSkipped()) return;
    shared_ = &tenure::test::Shared<Cluster>::get();
    shared_->await_ok();
    for (std::size_t i = 0; i < shared_->size(); ++i) ASSERT_EQ((*shared_)[i].ask({"FLUSHALL"}), "OK");
  }

  /// The slot of the election's key goes from one node to another; `between` is called while it is on its way.
  void migrate(Cluster& cluster, const std::function<void()>& between) {
    const auto from = cluster.owner_of(key), to = (from + 1) % cluster.size();
    const auto slot = cluster[0].ask({"CLUSTER", "KEYSLOT", key});
    ASSERT_EQ(cluster[to].ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.id_of(from)}), "OK");
    ASSERT_EQ(cluster[from].ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.id_of(to)}), "OK");
    between();
    const auto moved =
        cluster[from].ask({"MIGRATE", "127.0.0.1", std::to_string(cluster[to].port()), key, "0", "5000"});
    ASSERT_TRUE(moved == "OK" || moved == "NOKEY") << moved;
    between();
    for (const auto node : {to, from})
      ASSERT_EQ(cluster[node].ask({"CLUSTER", "SETSLOT", slot, "NODE", cluster.id_of(to)}), "OK");
  }

  Cluster* shared_{};
};

TEST_F(RedisCluster, EveryNodeLeadsToTheOneThatServes) {
  auto& cluster = *shared_;
  ASSERT_TRUE(swap(*open_at("redis://" + cluster[0].address()), std::nullopt, record(1, 11)));
  for (std::size_t i = 0; i < cluster.size(); ++i)
    EXPECT_EQ(read(*open_at("redis://" + cluster[i].address())).record->beat, 11u);
  EXPECT_TRUE(read(*open_at("redis+unix://" + cluster[0].socket())).record) << "also from a Unix socket";
  EXPECT_TRUE(read(*open_at("redis://127.0.0.1:1," + cluster[1].address())).record) << "one of the seeds is down";

  expect_error(refused_read(*open_at("redis://" + cluster[0].address() + "/1")), Fault::misconfigured);
}

TEST_F(RedisCluster, ASlotThatMovesIsFollowed) {
  auto& cluster = *shared_;
  const auto a = open_at("redis://" + cluster[0].address()), b = open_at("redis://" + cluster[1].address());
  std::uint64_t beat = 10;
  const auto renew = [&](ConditionalStore& store) {
    const auto expected = beat > 10 ? std::optional(Expected{{1}, {beat}}) : std::nullopt;
    EXPECT_TRUE(swap(store, expected, record(1, beat + 1))) << beat;
    EXPECT_EQ(read(store).record->beat, ++beat);
  };
  renew(*a);
  renew(*b);
  for (int round = 0; round < 2; ++round) {
    migrate(cluster, [&] {
      for (int i = 0; i < 2; ++i) {
        renew(*a);
        renew(*b);
        renew(*open_at("redis://" + cluster[2].address()));
      }
    });
    renew(*a);
    renew(*b);
  }
}

TEST_F(RedisCluster, ANewElectionBeginsWhileItsSlotMoves) {
  auto& cluster = *shared_;
  migrate(cluster, [&] {
    const auto a = open_at("redis://" + cluster[0].address());
    const auto found = read(*a);
    const auto beat = found.record ? found.record->beat : 10;
    const auto expected = found.record ? std::optional(Expected{{1}, {beat}}) : std::nullopt;
    EXPECT_TRUE(swap(*a, expected, record(1, beat + 1)));
  });
  EXPECT_EQ(read(*open_at("redis://" + cluster[0].address())).record->beat, 12u);
}

TEST_F(RedisCluster, ANodeThatIsDownIsWaitedFor) {
  auto& cluster = *shared_;
  const auto seeds = "redis://" + cluster[0].address() + "," + cluster[1].address() + "," + cluster[2].address();
  const auto a = open_at(seeds);
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  const auto owner = cluster.owner_of(key);
  cluster[owner].kill();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(refused_read(*a).fault, Fault::unreachable);
  cluster[owner].start();
  EXPECT_TRUE(eventually([&] { return bool(a->read(within(300ms))); }));
  EXPECT_EQ(read(*a).record->beat, 11u);
}

TEST_F(RedisCluster, ServersThatAreNoClusterAreNotTakenForOne) {
  Server one, two;
  expect_error(refused_read(*open_at("redis://" + one.address() + "," + two.address())), Fault::misconfigured,
               {"is not a node of a cluster"});
}

/// A push is told at most once: a node whose link to another is just renewed tells it nothing. So one of many.
TEST_F(RedisCluster, PushesCrossItsNodes) {
  auto& cluster = *shared_;
  const auto a = open_at("redis://" + cluster[0].address());
  std::uint64_t token = 1;
  ASSERT_TRUE(swap(*a, std::nullopt, record(token, 11)));
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    const auto b = open_at("redis://" + cluster[i].address());
    b->await_change(Version{{token}, 11}, within(5s));  // subscribes
    const auto told = [&] {
      const Version seen{{token}, 11};
      if (!swap(*a, Expected{{token}, {11}}, record(token + 1, 11))) return false;
      ++token;
      const auto limit = within(300ms);
      b->await_change(seen, limit);
      return boot_clock().now() < limit.by;
    };
    EXPECT_TRUE(eventually(told)) << "node " << i;
  }
}

}  // namespace
}  // namespace tenure::redis::test
