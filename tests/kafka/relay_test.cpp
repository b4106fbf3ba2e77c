// SPDX-License-Identifier: Apache-2.0
// Goal: roles keep their promise under faults of the wire between a process and its coordinator, and cost one
// OffsetCommit per renewal; to the check-up an answer that comes too late is an error. Method: a real broker behind a
// relay that holds messages, cuts all connections, or counts. Rules 10, 11 and 13 of backends/kafka/README.md, and of
// its roles R2, R7 and R8.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/kafka.hpp>
#include <tenure/kafka_group.hpp>
#include <tenure/leader_manager.hpp>

#include "broker.hpp"
#include "checks.hpp"
#include "eventually.hpp"
#include "kafka_wire.hpp"
#include "relay.hpp"
#include "support.hpp"
#include "within.hpp"

namespace tenure::kafka::test {
namespace {

using tenure::test::eventually;
using tenure::test::KafkaMessage;
using tenure::test::Relay;
using tenure::test::text_of;
using tenure::test::within;

/// The broker's answer to an OffsetCommit or a SyncGroup.
struct Answered {
  std::string client_id;
  int api{}, error{};
};

/// It can hold a commit, with all that follows on its connection, and let it go later. Any thread.
class CommitGate final : public tenure::test::Gate {
 public:
  void hold_next() {
    const std::lock_guard lock(mutex_);
    armed_ = true;
  }
  bool holds_one() const {
    const std::lock_guard lock(mutex_);
    return held_ != 0;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    late_ = std::exchange(held_, 0);
  }
  /// What the broker answered to the commit that was held.
  std::optional<int> late_answer() const {
    const std::lock_guard lock(mutex_);
    return late_answer_;
  }
  std::vector<Answered> answered() const {
    const std::lock_guard lock(mutex_);
    return answered_;
  }

  void sent(const KafkaMessage&) override {}
  bool passes(const KafkaMessage& m) override {
    const std::lock_guard lock(mutex_);
    const bool commits = m.api == tenure::test::offset_commit;
    if (m.request && commits && std::exchange(armed_, false)) held_ = m.connection;
    if (m.request && m.connection == held_) return false;
    if (!m.request && commits && m.connection == late_ && !late_answer_) late_answer_ = m.error;
    if (!m.request && (commits || m.api == tenure::test::sync_group))
      answered_.push_back({m.client_id, m.api, m.error});
    return true;
  }

 private:
  mutable std::mutex mutex_;
  bool armed_{};
  std::uint64_t held_{}, late_{};  ///< Connections. They count from 1.
  std::optional<int> late_answer_;
  std::vector<Answered> answered_;
};

struct KafkaRelay : testing::Test {
  void SetUp() override {
    if (brokers.empty()) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
  }
  /// One whose leases last a second and a half.
  Options options(const std::string& bootstrap) const {
    Options o;
    o.brokers = bootstrap;
    o.group = group;
    o.create_topic = CreateTopic{};
    o.min_session = 100ms;
    o.log = no_log;
    return o;
  }
  std::unique_ptr<Elections> process(const std::string& name, const std::string& bootstrap,
                                     const std::vector<std::string>& roles, int units = 1,
                                     const Timing& timing = own_broker_presets().steady, Hooks hooks = {}) const {
    hooks.log = no_log;
    auto out = std::make_unique<Elections>(open_group(options(bootstrap), units), tenure::Candidate{name, name + ":1"},
                                           timing, std::move(hooks));
    out->join(roles);
    out->start();
    return out;
  }
  /// The member of the group that owns this partition. "": there is none, or more than one.
  std::string owner_of(int partition) const {
    std::string out;
    for (const auto& member : tenure::test::KafkaWire(brokers).members_of(group)) {
      if (std::find(member.partitions.begin(), member.partitions.end(), partition) == member.partitions.end()) continue;
      if (!out.empty()) return "";
      out = member.id;
    }
    return out;
  }

  const std::string brokers = real_brokers();
  const std::string group = unique_name("tenure-relay");
};

std::uint64_t commits_done(const Elections& elections) {
  return elections.metrics().session.calls.at("commit").durations.count();
}
std::uint64_t commits_failed(const Elections& elections) {
  std::uint64_t out = 0;
  const auto metrics = elections.metrics();
  for (const auto& [fault, times] : metrics.session.calls.at("commit").errors) out += times;
  return out;
}

/// The token by which it leads what it leads first. On a busy machine it may lose a short lease, and leads again.
std::uint64_t token_of(const Elections& elections) {
  std::uint64_t out = 0;
  EXPECT_TRUE(eventually(
      [&] {
        const auto led = elections.led();
        if (!led.empty()) out = led.front().second.value;
        return !led.empty();
      },
      patience));
  return out;
}

/// Until it has led for that many commits more.
bool goes_on(const Elections& elections, std::uint64_t commits) {
  const auto from = commits_done(elections);
  return eventually([&] { return commits_done(elections) >= from + commits; }, patience);
}

// ---- R2 ----

TEST_F(KafkaRelay, R2OneRequestRenewsAllUnits) {
  const Relay relay(port_of(brokers), tenure::test::Speaks::kafka);
  std::vector<std::string> roles;
  for (int i = 0; i < 24; ++i) roles.push_back(std::to_string(i));
  auto timing = presets().balanced;  // Its lease is not lost on a busy machine.
  timing.renew = 50ms;
  const auto a = process("a", relay.address(), roles, 8, timing);
  ASSERT_TRUE(eventually([&] { return a->led().size() == roles.size(); }, patience));
  const auto requests = [&relay] { return relay.requests(0, tenure::test::offset_commit); };
  const auto done = commits_done(*a);
  const auto sent = requests();
  ASSERT_TRUE(goes_on(*a, 20));
  const auto sent_since = requests() - sent;
  const auto done_since = commits_done(*a) - done;
  EXPECT_GE(sent_since, 19u) << "each renewal is a request";
  EXPECT_LE(sent_since, done_since + 1) << "one may be under way";
  EXPECT_EQ(a->metrics().session.elected, roles.size()) << "they were renewals";
}

// ---- R7: rule 10 ----

TEST_F(KafkaRelay, R7AReleaseThatComesAfterANewerClaimIsRefused) {
  CommitGate gate;
  const Relay relay(port_of(brokers), gate);
  const Hooks hold_the_release{.ousting = [&gate](const Ousting& o) {
    if (o.reason == Reason::resigned) gate.hold_next();
  }};
  const auto a = process("a", relay.address(), {"e"}, 1, own_broker_presets().steady, hold_the_release);
  const auto first = token_of(*a);
  a->leave("e");
  ASSERT_TRUE(eventually([&] { return gate.holds_one(); }, patience));
  a->join("e");
  ASSERT_TRUE(eventually([&] { return a->is_leader("e"); }, patience)) << "by another handle";
  gate.let_go();
  ASSERT_TRUE(eventually([&] { return gate.late_answer().has_value(); }, patience));
  EXPECT_NE(gate.late_answer(), 0) << "the broker took it " << TENURE_PROMISE;
  ASSERT_TRUE(goes_on(*a, 2));
  EXPECT_GT(token_of(*a), first) << TENURE_PROMISE;
}

TEST_F(KafkaRelay, InTheSingleFormAReleaseThatComesAfterANewerClaimIsRefused) {
  CommitGate gate;
  const Relay relay(port_of(brokers), gate);
  auto o = options(relay.address());
  o.candidate = {"a", "a:1"};
  LeaderManager a(open(o), own_broker_presets().steady,
                  {.ousting =
                       [&gate](const Ousting& ousting) {
                         if (ousting.reason == Reason::resigned) gate.hold_next();
                       },
                   .log = no_log});
  a.start();
  const auto first = a.await_leadership(patience);
  ASSERT_TRUE(first);
  a.resign();
  ASSERT_TRUE(eventually([&] { return gate.holds_one(); }, patience));
  auto second = first;
  ASSERT_TRUE(eventually([&] { return (second = a.await_leadership(patience)) > first; }, patience))
      << "by another handle";
  gate.let_go();
  ASSERT_TRUE(eventually([&] { return gate.late_answer().has_value(); }, patience));
  EXPECT_NE(gate.late_answer(), 0) << "the broker took it " << TENURE_PROMISE;
  const auto renewed = [&a] { return a.metrics().calls.at("renew").durations.count(); };
  const auto from = renewed();
  ASSERT_TRUE(eventually([&] { return renewed() >= from + 2; }, patience));
  EXPECT_GE(a.await_leadership(patience), second) << TENURE_PROMISE;
}

// ---- R8: rules 11 and 13 ----

TEST_F(KafkaRelay, R8WhatWasQueuedWhileTheCoordinatorWasAwayIsRefusedAfterARevocation) {
  CommitGate gate;
  Relay relay(port_of(brokers), gate);
  const auto a = process("a", relay.address(), {"e"});
  const auto token = token_of(*a);
  std::unique_ptr<Elections> b;
  std::string handle;
  const auto is_of_a = [&gate](const std::string& member) {
    const auto all = gate.answered();  // those of `b` do not pass here
    return std::any_of(all.begin(), all.end(), [&](const Answered& to) { return member.starts_with(to.client_id); });
  };
  const auto stands_by = [&] {
    b.reset();
    if (!eventually([&] { return a->is_leader("e"); }, patience)) return false;
    b = process("b", brokers, {"e"});
    const auto both = [&] { return members(brokers, group).size() == 2 && !(handle = owner_of(0)).empty(); };
    return eventually(both, patience) && is_of_a(handle) && a->is_leader("e");
  };
  ASSERT_TRUE(once(stands_by)) << "a busy machine may cost `a` its short lease: then `b` leads, and has to go";

  const auto failed = commits_failed(*a);
  relay.cut(true);
  expel(brokers, group, handle);
  EXPECT_TRUE(eventually([&] { return commits_failed(*a) > failed; }, patience)) << "a renewal waits for a coordinator";
  EXPECT_TRUE(eventually(
      [&] {
        const auto owner = owner_of(0);
        return !owner.empty() && owner != handle;
      },
      patience));
  const auto before = gate.answered().size();
  relay.cut(false);
  ASSERT_TRUE(eventually([&] { return members(brokers, group).size() == 2; }, patience)) << "it joins again";
  ASSERT_TRUE(eventually([&] { return a->is_leader("e") || b->is_leader("e"); }, patience));
  for (const auto* process : {a.get(), b.get()})
    for (const auto& [role, led_by] : process->led()) EXPECT_GE(led_by.value, token) << TENURE_PROMISE;
  const auto answered = gate.answered();
  for (auto i = before; i < answered.size(); ++i) {
    if (!handle.starts_with(answered[i].client_id)) continue;
    if (answered[i].api == tenure::test::sync_group) break;  // From its next assignment on it may commit.
    EXPECT_NE(answered[i].error, 0) << "the broker took it " << TENURE_PROMISE;
  }
}

// ---- rule 16 ----

/// The broker moves: what is connected is dead, and new connections are served after a while.
void move(Relay& relay) {
  relay.mute(true);
  relay.lose_connections();
  wait_out(within(2500ms));
  relay.mute(false);
}

/// Its leave would go down the dead connection, and the old member would hold up the rebalance for its session.
TEST_F(KafkaRelay, ABrokerThatMovesEndsNoTenure) {
  Relay relay(port_of(brokers), tenure::test::Speaks::kafka);
  auto o = options(relay.address());
  o.min_session = Options{}.min_session;
  LeaderManager single(open(o), presets().balanced, {.log = no_log});
  single.start();
  o.group += "-roles";
  Elections roles(open_group(o, 1), {"a", ""}, presets().balanced, {.log = no_log});
  roles.join("e");
  roles.start();
  const auto token = single.await_leadership(patience);
  ASSERT_TRUE(token);
  const auto role_token = token_of(roles);
  const auto renewed = [&] {
    const auto calls = single.metrics().calls;
    auto out = calls.contains("renew") ? calls.at("renew").durations.count() : 0;
    if (out > 0)
      for (const auto& [fault, times] : calls.at("renew").errors) out -= times;
    return out;
  };
  ASSERT_TRUE(eventually([&] { return renewed() > 0; }, patience));
  move(relay);
  const auto from = renewed();
  EXPECT_TRUE(eventually([&] { return renewed() > from + 1; }, presets().balanced.term));
  EXPECT_TRUE(goes_on(roles, 8));
  EXPECT_EQ(single.await_leadership(patience), token);
  EXPECT_EQ(token_of(roles), role_token);
}

TEST_F(KafkaRelay, AFollowerWhoseBrokerMovedLeavesByANewConnection) {
  Relay relay(port_of(brokers), tenure::test::Speaks::kafka);
  auto o = options(brokers);
  o.min_session = Options{}.min_session;
  LeaderManager a(open(o), presets().steady, {.log = no_log});
  a.start();
  ASSERT_TRUE(a.await_leadership(patience));
  o.brokers = relay.address();
  LeaderManager b(open(o), presets().steady, {.log = no_log});
  b.start();
  ASSERT_TRUE(eventually([&] { return members(brokers, group).size() == 2 && b.leadership().incumbent(); }, patience));
  relay.lose_connections();
  const auto expires =
      boot_clock().now() + presets().steady.term - presets().steady.margin - 2 * presets().steady.renew;
  b.stop();
  EXPECT_TRUE(eventually([&] { return members(brokers, group).size() == 1; }, expires - boot_clock().now()));
}

// ---- check-up ----

/// Lets no question about settings pass.
class SettingsGate final : public tenure::test::Gate {
 public:
  void sent(const KafkaMessage&) override {}
  bool passes(const KafkaMessage& m) override {
    constexpr int describe_configs = 32;
    const bool held = m.request && m.api == describe_configs;
    if (held) holds_one_ = true;
    return !held;
  }
  bool holds_one() const { return holds_one_; }

 private:
  std::atomic<bool> holds_one_{false};
};

/// As a finding it would not be asked for again.
TEST_F(KafkaRelay, AnAnswerTooLateForTheCheckUpIsAnError) {
  SettingsGate gate;
  const Relay relay(port_of(brokers), gate);
  const Opening opening{.url = "kafka://" + relay.address() + "/" + group, .election = group, .log = no_log};
  Result<Checks> checks = Checks{};
  ASSERT_TRUE(eventually([&] { return checks = check_url(opening, within(10s)), gate.holds_one(); }, patience))
      << "nobody asked for the settings";
  ASSERT_FALSE(checks) << text_of(*checks);
  EXPECT_EQ(checks.error().fault, Fault::timed_out) << checks.error().message;
}

}  // namespace
}  // namespace tenure::kafka::test
