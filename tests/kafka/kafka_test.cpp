// SPDX-License-Identifier: Apache-2.0
// Goal: on a real broker with default settings the backend does what its header says. Method: the test calls backends
// of one process verb by verb. Every wait is for a condition and has a deadline.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/kafka_group.hpp>
#include <tenure/leader_manager.hpp>

#include "broker.hpp"
#include "eventually.hpp"
#include "in_time.hpp"
#include "refusal.hpp"
#include "server.hpp"
#include "shared.hpp"
#include "support.hpp"

namespace tenure::kafka::test {
namespace {

class Kafka : public testing::Test {
 protected:
  void SetUp() override {
    if (brokers_.empty()) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
  }
  Options options(const std::string& name = "a") {
    Options o;
    o.brokers = brokers_;
    o.group = group_;
    o.candidate = {name, name + ":1"};
    o.create_topic = CreateTopic{};
    return o;
  }

  /// What this process remembers of the tokens is known by these very words.
  Options of_another_process(const std::string& name) {
    auto o = options(name);
    o.brokers += "," + brokers_;
    return o;
  }
  void await_empty_group() const {
    for (const auto until = within(patience); !members(brokers_, group_).empty() && !until.passed();)
      wait_out(within(50ms));
  }

  const std::string brokers_ = real_brokers();
  const std::string group_ = unique_name("tenure-test");
};

TEST_F(Kafka, TheFirstOfANewGroupLeadsWithItsAssignment) {
  Candidate a(options());
  // A broker's first group waits for the topic of its coordinator to be made.
  for (const auto until = within(patience);
       std::holds_alternative<Unknown>(a.backend->observe(within(3s))) && !until.passed();)
    wait_out(within(50ms));
  // The broker's initial delay is 3 s or less; whoever waited for a lease on top of it could not lead earlier than
  // this.
  EXPECT_TRUE(once([&, o = options()]() mutable {
    o.group += ".";
    o.topic = group_ + ".neli";
    Candidate first(o);
    const auto from = boot_clock().now();
    return first.campaign() && boot_clock().now() - from < presets().fast.term;
  }));
}

TEST_F(Kafka, AReleaseHandsOverWithoutWaitingForALease) {
  EXPECT_TRUE(once([&] {
    Candidate a(options("a")), b(options("b"));
    const auto token = a.campaign();
    if (!token) return false;
    std::optional<Token> next;
    std::jthread follower([&] { next = b.campaign(); });
    // Until the follower is in the group, and a while more: the leader stays.
    for (const auto until = within(patience); members(brokers_, group_).size() < 2 && !until.passed();)
      if (!a.renewed(*token)) return false;
    Clock::Time renewed{};
    for (int i = 0; i < 3; ++i) {
      renewed = boot_clock().now();
      if (!a.renewed(*token)) return false;
      wait_out(within(300ms));
    }
    EXPECT_EQ(a.released(), std::nullopt);
    follower.join();
    const auto led = boot_clock().now();
    if (!next || led > renewed + presets().fast.term) return false;
    EXPECT_GT(*next, *token) << TENURE_PROMISE;
    EXPECT_FALSE(a.renewed(*token));
    return b.renewed(*next);
  }));
}

TEST_F(Kafka, AfterAResetOfTheOffsetsTokensStillRise) {
  const auto first = Candidate(options("a")).campaign();
  ASSERT_TRUE(first);
  await_empty_group();
  write_offset(brokers_, group_, group_ + ".neli", 0, 0);
  const auto next = Candidate(of_another_process("b")).campaign();
  ASSERT_TRUE(next);
  EXPECT_GT(*next, *first) << TENURE_PROMISE;
}

TEST_F(Kafka, AnAbsentRecordOfAGroupThatWasThereIsATermAway) {
  const auto first = Candidate(options("a")).campaign();
  ASSERT_TRUE(first);
  await_empty_group();
  delete_offset(brokers_, group_, group_ + ".neli", 0);
  const auto began = boot_clock().now();
  const auto next = Candidate(of_another_process("b")).campaign();
  ASSERT_TRUE(next);
  EXPECT_GE(boot_clock().now() - began, presets().fast.term)
      << TENURE_PROMISE << "somebody may lead by what was deleted";
  EXPECT_GT(*next, *first) << TENURE_PROMISE;
}

TEST_F(Kafka, ANewGroupThatThisProcessKnowsFromBeforeIsATermAway) {
  const auto first = Candidate(options("a")).campaign();
  ASSERT_TRUE(first);
  await_empty_group();
  delete_group(brokers_, group_);
  const auto began = boot_clock().now();
  const auto next = Candidate(options("b")).campaign();
  ASSERT_TRUE(next);
  EXPECT_GE(boot_clock().now() - began, presets().fast.term) << TENURE_PROMISE;
  EXPECT_GT(*next, *first) << TENURE_PROMISE;
}

TEST_F(Kafka, AnObserverIsNoMember) {
  Candidate a(options("a")), watcher(options("watcher"));
  EXPECT_TRUE(std::holds_alternative<Vacant>(watcher.sees()));
  const auto token = a.campaign();
  ASSERT_TRUE(token);
  const auto sight = watcher.sees();
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).name, "a");
  EXPECT_EQ(std::get<Incumbent>(sight).token, *token);
  EXPECT_EQ(members(brokers_, group_).size(), 1u);
  EXPECT_EQ(a.released(), std::nullopt);
  EXPECT_TRUE(std::holds_alternative<Vacant>(watcher.sees()));
}

TEST_F(Kafka, ADestroyedBackendLeavesTheGroup) {
  const auto timing = presets().steady;
  std::optional<Candidate> a(std::in_place, options("a"), timing);
  ASSERT_TRUE(a->campaign());
  ASSERT_EQ(members(brokers_, group_).size(), 1u);
  a.reset();
  const auto until = within(timing.term / 2);  // its session ends later
  while (!members(brokers_, group_).empty() && !until.passed()) wait_out(within(50ms));
  EXPECT_TRUE(members(brokers_, group_).empty());
}

TEST_F(Kafka, AProcessEndsAsSoonAsItsHandlesAreClosed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, not a copy of this one
  create_topic(brokers_, group_ + ".neli", 2);
  const auto use_a_backend_and_end = [this] {
    static Clock::Time ends;
    // Runs after what open() adds, and the limit is the patience for handles that do not close.
    std::atexit([] { std::_Exit(boot_clock().now() - ends < 3s ? 0 : 1); });
    // It leads: else it may close while the broker awaits more members of a new group, which alone takes 3 s.
    if (!Candidate(options()).campaign()) std::_Exit(3);
    ends = boot_clock().now();
    std::exit(2);
  };
  EXPECT_EXIT(use_a_backend_and_end(), testing::ExitedWithCode(0), "");
}

// ---- a stranger in the group ----

TEST_F(Kafka, AConsumerInTheGroupTakesNothingFromTheLeader) {
  EXPECT_TRUE(once([&] {
    Candidate a(options("a"));
    const auto token = a.campaign();
    if (!token) return false;
    const Stranger stranger(brokers_, group_, group_ + ".neli", "aaa");
    for (const auto until = within(patience); !stranger.assigned() && !until.passed();)
      if (!a.renewed(*token)) return false;
    return stranger.assigned() && !stranger.owns(0) && a.renewed(*token);
  }));
}

TEST_F(Kafka, AStrangerThatKeepsEverybodyFromLeadingIsNamed) {
  create_topic(brokers_, group_ + ".neli", 2);
  const Stranger stranger(brokers_, group_, group_ + ".neli", "!a consumer");
  Lines lines;
  auto o = options("a");
  o.log = lines.log();
  Candidate a(o);
  for (const auto until = within(patience); !lines.mention("nobody can lead") && !until.passed();) a.campaign(1s);
  EXPECT_TRUE(lines.mention("nobody can lead or renew: partition 0 is owned by \"!a consumer\" at "))
      << testing::PrintToString(lines.all());
}

// ---- the topic ----

TEST_F(Kafka, AMissingTopicIsAnErrorThatSaysHowToCreateIt) {
  auto o = options();
  o.create_topic.reset();
  Candidate a(o);
  const auto error = a.trouble(Fault::misconfigured);
  ASSERT_TRUE(error);
  EXPECT_TRUE(mentions(error->message, "\"" + group_ + ".neli\"")) << error->message;
  EXPECT_TRUE(mentions(error->message, "kafka-topics --bootstrap-server " + brokers_ + " --create --topic "));
  EXPECT_TRUE(mentions(error->message, "Options::create_topic"));
  EXPECT_TRUE(std::holds_alternative<Unknown>(a.observe()));
  create_topic(brokers_, group_ + ".neli", 2);
  EXPECT_TRUE(a.campaign()) << "once it is there, all is well";
}

TEST_F(Kafka, AMissingTopicIsCreatedOnRequest) {
  Lines lines;
  auto o = options();
  o.create_topic = CreateTopic{3, 1};
  o.log = lines.log();
  Candidate a(o);
  const auto answer = a.answered();
  ASSERT_TRUE(std::holds_alternative<Denied>(answer)) << testing::PrintToString(lines.all());
  EXPECT_EQ(partitions(brokers_, group_ + ".neli"), 3);
  EXPECT_FALSE(lines.mention("CONFWARN")) << "the handle that creates it is told what only a consumer knows";
}

TEST_F(Kafka, WhoOnlyLooksCreatesNoTopic) {
  Candidate a(options());
  EXPECT_TRUE(std::holds_alternative<Vacant>(a.sees()));
  create_topic(brokers_, group_ + ".neli", 2);  // It throws if the look has made one.
}

TEST_F(Kafka, WhoLookedFirstCreatesTheTopicAsACandidate) {
  Candidate a(options());
  EXPECT_TRUE(std::holds_alternative<Vacant>(a.sees()));
  EXPECT_TRUE(a.campaign());
}

TEST_F(Kafka, ATopicThatCannotBeCreatedSaysWhy) {
  auto o = options();
  o.create_topic = CreateTopic{2, 100};
  Candidate a(o);
  const auto error = a.trouble(Fault::misconfigured);
  ASSERT_TRUE(error);
  EXPECT_TRUE(mentions(error->message, "replication factor")) << error->message;
}

TEST_F(Kafka, ATopicWithOnePartitionIsRefusedWithTheRemedy) {
  create_topic(brokers_, group_ + ".neli", 1);
  Candidate a(options());
  const auto error = a.trouble(Fault::misconfigured);
  ASSERT_TRUE(error);
  EXPECT_TRUE(mentions(error->message, "--alter --topic " + group_ + ".neli --partitions 2")) << error->message;
  EXPECT_EQ(members(brokers_, group_).size(), 0u);
}

// ---- trouble ----

TEST_F(Kafka, ASessionThatTheBrokerRefusesNamesItsProperty) {
  auto o = options();
  o.session = 31min;
  Candidate a(o, {.term = 32min, .renew = 1min, .retry = 50ms, .margin = 100ms, .call = 1s, .drain = 1s});
  const auto error = a.trouble(Fault::misconfigured);
  ASSERT_TRUE(error);
  EXPECT_TRUE(mentions(error->message, "group.min.session.timeout.ms")) << error->message;
}

TEST_F(Kafka, AnExpelledLeaderHearsOfItAndComesBackWithItsTokenOrAHigherOne) {
  Candidate a(options("a"));
  const auto token = a.campaign();
  ASSERT_TRUE(token);
  ASSERT_TRUE(a.renewed(*token));
  const auto in_group = members(brokers_, group_);
  ASSERT_EQ(in_group.size(), 1u);
  EXPECT_TRUE(mentions(in_group[0].client_id, "tenure.")) << in_group[0].client_id;
  ASSERT_EQ(expel(brokers_, group_, in_group[0].id), 0);
  const auto answer = a.renew(*token);
  ASSERT_TRUE(std::holds_alternative<Unknown>(answer)) << "the broker takes no commit of one who is not a member";
  EXPECT_EQ(std::get<Unknown>(answer).error.fault, Fault::fenced);
  // It joins again: before its lease ends with the same token, else with a greater one.
  bool back = false;
  for (const auto until = within(presets().fast.term); !back && !until.passed(); wait_out(within(100ms)))
    back = a.renewed(*token);
  if (!back) {
    const auto next = a.campaign();
    ASSERT_TRUE(next);
    EXPECT_GT(*next, *token) << TENURE_PROMISE;
  }
}

TEST_F(Kafka, AnExpelledFollowerRanksAnew) {
  Candidate a(options("a"), presets().balanced), b(options("b"));  // a busy machine costs the leader no lease
  const auto token = a.campaign();
  ASSERT_TRUE(token);
  const auto of_a = members(brokers_, group_).at(0).client_id;
  std::optional<Member> follower;
  const auto until = within(patience);
  const auto find_follower = [&] {
    ASSERT_TRUE(a.renewed(*token));
    b.campaign(300ms);
    for (const auto& member : members(brokers_, group_))
      if (member.client_id != of_a) follower = member;
  };
  while (!follower && !until.passed()) find_follower();
  ASSERT_TRUE(follower);
  const auto before = *follower;
  std::string expelled;
  for (const auto all = within(patience); follower->client_id == before.client_id && !all.passed(); find_follower()) {
    if (follower->id == expelled) continue;
    for (const auto joined = within(2s); !joined.passed();) find_follower();  // and has its assignment; else once more
    expelled = follower->id;
    ASSERT_EQ(expel(brokers_, group_, expelled), 0);
  }
  EXPECT_NE(follower->client_id, before.client_id) << "with the old rank it would take the lead from a successor";
}

TEST_F(Kafka, AnExpelledLeadersLeaseIsWaitedFor) {
  Candidate a(options("a")), b(options("b"));
  const auto token = a.campaign();
  ASSERT_TRUE(token);
  std::optional<Token> next;
  std::jthread follower([&] { next = b.campaign(); });
  for (const auto until = within(patience); members(brokers_, group_).size() < 2 && !until.passed();)
    ASSERT_TRUE(a.renewed(*token));
  const auto asked = boot_clock().now();
  ASSERT_TRUE(a.renewed(*token));
  for (const auto& member : members(brokers_, group_)) {
    const bool joined_before_any_token = mentions(member.client_id, ".00000000000000000000.");
    if (joined_before_any_token) {
      ASSERT_EQ(expel(brokers_, group_, member.id), 0);
    }
  }
  a.backend.reset();
  follower.join();
  ASSERT_TRUE(next);
  EXPECT_GE(boot_clock().now() - asked, presets().fast.term) << TENURE_PROMISE;
  EXPECT_GT(*next, *token) << TENURE_PROMISE;
}

TEST_F(Kafka, AnUnreachableBrokerIsUnknownInTime) {
  auto o = options();
  o.brokers = "127.0.0.1:1";
  Candidate a(o);
  Answer answer;
  EXPECT_TRUE(once([&] {
    const auto from = boot_clock().now();
    answer = a.acquire();
    return boot_clock().now() - from <= presets().fast.call + 50ms;
  }));
  ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
  const auto another = open(o);
  tenure::test::expect_in_time("request_step_down", 300ms, [&](const Limit& limit) {
    EXPECT_TRUE(another->request_step_down("ops", "a test", limit));
  });
  const auto& error = std::get<Unknown>(answer).error;
  EXPECT_TRUE(error.fault == Fault::unreachable || error.fault == Fault::timed_out) << to_string(error.fault);
  EXPECT_TRUE(mentions(error.message, "127.0.0.1:1")) << error.message;
  EXPECT_TRUE(std::holds_alternative<Unknown>(a.observe()));
  a.release();
}

TEST_F(Kafka, NoSecretIsEverLogged) {
  using tenure::test::canary;
  Lines lines;
  auto o = options();
  o.log = lines.log();
  o.properties = {{"security.protocol", "sasl_plaintext"},
                  {"sasl.mechanisms", "PLAIN"},
                  {"sasl.username", "somebody"},
                  {"sasl.password", canary},
                  {"ssl.key.password", canary},
                  {"debug", "all"}};
  Candidate a(o);
  std::string told;
  for (int i = 0; i < 2; ++i) {
    const auto answer = a.acquire();
    ASSERT_TRUE(std::holds_alternative<Unknown>(answer)) << "this broker knows no SASL";
    told += std::get<Unknown>(answer).error.message;
  }
  o.properties["ssl.key.pem"] = canary;  // no key: refused when a handle is made
  o.properties["security.protocol"] = "ssl";
  const auto refused = tenure::test::refusal_of([&] { open(o); });
  EXPECT_NE(refused, "accepted");
  told += refused;
  EXPECT_FALSE(mentions(told, canary)) << told;
  EXPECT_FALSE(lines.all().empty());
  EXPECT_FALSE(lines.mention(canary));
}

// ---- what goes over the wire ----

TEST_F(Kafka, NothingIsFetchedOrProduced) {
  Lines lines;
  auto o = options();
  o.log = lines.log();
  o.properties["debug"] = "protocol";
  Candidate a(o), b(options("b"));
  const auto token = a.campaign();
  ASSERT_TRUE(token);
  b.acquire();
  for (int i = 0; i < 10; ++i) {
    a.renewed(*token);  // a rebalance among them
    wait_out(within(200ms));
  }
  EXPECT_TRUE(lines.mention("Sent OffsetCommitRequest"));
  EXPECT_FALSE(lines.mention("Sent FetchRequest"));
  EXPECT_FALSE(lines.mention("Sent ProduceRequest"));
  EXPECT_FALSE(lines.mention("Sent ListOffsetsRequest"));
}

TEST_F(Kafka, TheReadThatDecidesAClaimIsMadeAsAMember) {
  Lines lines;
  auto o = options();
  o.log = lines.log();
  o.properties["debug"] = "protocol";
  ASSERT_TRUE(Candidate(o).campaign());
  const auto all = lines.all();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto& line) {
    return mentions(line, "librdkafka (member)") && mentions(line, "Sent OffsetFetchRequest");
  }));
}

TEST_F(Kafka, HeartbeatsComeAsOftenAsTheTimingDemands) {
  std::mutex mutex;
  std::vector<Clock::Time> sent;
  auto o = options();
  o.log = [&](const LogLine& line) {
    const std::lock_guard lock(mutex);
    if (mentions(line.message, "Sent HeartbeatRequest")) sent.push_back(boot_clock().now());
  };
  o.properties["debug"] = "protocol";
  auto timing = presets().fast;
  timing.term = 70s;  // Nobody calls while we count, and a member that nobody calls for a lease would leave the group.
  Candidate a(o, timing);
  ASSERT_TRUE(a.campaign());
  const auto in_time = [&] {
    const std::lock_guard lock(mutex);
    auto count = 0;
    for (std::size_t i = 1; i < sent.size(); ++i) count += sent[i] - sent[i - 1] < 400ms;
    return count;
  };
  // One every 250 ms; of itself librdkafka sends one every 500 ms, and 10 s cannot hold 20 of those in time. Without a
  // renewal, which would wake it as well. A busy machine is late with some, so only those in time count.
  EXPECT_TRUE(once([&] {
    const auto before = in_time();
    for (const auto until = within(10s); in_time() < before + 20 && !until.passed();) wait_out(within(50ms));
    return in_time() >= before + 20;
  }));
}

// ---- asked from outside ----

TEST_F(Kafka, ARequestToStepDownReachesTheLeader) {
  auto o = options();
  o.remote_step_down = true;
  Candidate a(o);
  EXPECT_EQ(open(o)->request_step_down("ops", "nobody leads", within(patience))->fault, Fault::misconfigured)
      << "there is not even a topic yet";
  const auto steps_down = [&] {
    const auto token = a.campaign();
    if (!token || !a.renewed(*token)) return false;
    if (const auto error = open(o)->request_step_down("ops", "upgrade; 50%", within(patience))) {
      std::cout << error->message << '\n';
      return false;
    }
    for (const auto until = within(patience); !until.passed(); wait_out(within(200ms))) {
      const auto answer = a.renew(*token);
      if (std::holds_alternative<Denied>(answer)) return false;
      const auto* found = std::get_if<StepDownRequested>(&answer);
      if (!found) continue;
      EXPECT_EQ(found->token, *token);
      EXPECT_EQ(found->by, "ops");
      EXPECT_EQ(found->why, "upgrade; 50%");
      EXPECT_EQ(a.released(), std::nullopt);
      EXPECT_EQ(open(o)->request_step_down("ops", "nobody leads", within(patience)), std::nullopt);
      return true;
    }
    return false;
  };
  EXPECT_TRUE(once(steps_down));
  EXPECT_TRUE(once(steps_down)) << "the next tenure";
  EXPECT_TRUE(once([&] {
    const auto token = a.campaign();
    return token && a.renewed(*token);
  })) << "the next tenure was not asked to step down";
}

// ---- with a manager ----

/// It does not hold up a group's first rebalance: one is under way when the first candidate has joined.
const Server& prompt_server() { return tenure::test::Shared<Server>::get(); }

TEST_F(Kafka, OfCandidatesThatStartTogetherOneLeadsWithoutALeasesWait) {
  if (!available()) GTEST_SKIP() << "needs a real broker of its own: set TENURE_KAFKA_VERSION";
  for (int round = 0; round < 3; ++round) {
    auto o = options();
    o.brokers = prompt_server().brokers();
    o.group += "-" + std::to_string(round);
    o.topic = group_ + ".neli";
    std::vector<std::unique_ptr<LeaderManager>> all;
    for (const char* name : {"a", "b", "c"}) {
      o.candidate.name = name;
      all.push_back(std::make_unique<LeaderManager>(open(o), presets().balanced, Hooks{.log = no_log}));
    }
    const tenure::test::Lateness since;
    for (auto& one : all) one->start();
    const bool led = tenure::test::eventually(
        [&] { return std::any_of(all.begin(), all.end(), [](auto& one) { return one->leadership().is_leader(); }); },
        presets().balanced.term);
    if (!led) since.starved(presets().balanced.term);
    EXPECT_TRUE(led) << round;
  }
}

TEST_F(Kafka, ProcessesOfRolesThatStartTogetherLeadAllWithoutALeasesWait) {
  if (!available()) GTEST_SKIP() << "needs a real broker of its own: set TENURE_KAFKA_VERSION";
  constexpr int units = 6;
  for (int round = 0; round < 3; ++round) {
    auto o = options();
    o.brokers = prompt_server().brokers();
    o.group += "-roles-" + std::to_string(round);
    o.topic = group_ + ".roles";
    o.log = no_log;
    std::vector<std::unique_ptr<Elections>> all;
    for (const char* name : {"a", "b", "c"}) {
      all.push_back(std::make_unique<Elections>(open_group(o, units), tenure::Candidate{name, ""}, presets().steady,
                                                Hooks{.log = no_log}));
      for (int i = 0; i < units; ++i) all.back()->join(std::to_string(i));
    }
    const tenure::test::Lateness since;
    for (auto& one : all) one->start();
    const auto led = [&all] {
      std::set<std::string> out;
      for (auto& one : all)
        for (const auto& [election, token] : one->led()) out.insert(election);
      return out.size();
    };
    const bool all_led = tenure::test::eventually([&] { return led() == units; }, presets().steady.term);
    if (!all_led) since.starved(presets().steady.term);
    EXPECT_TRUE(all_led) << led() << " in round " << round;
  }
}

}  // namespace
}  // namespace tenure::kafka::test
