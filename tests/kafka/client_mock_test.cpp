// SPDX-License-Identifier: Apache-2.0
// Goal: what librdkafka tells of an assignment is passed on. Method: one handle at librdkafka's mock cluster in this
// process, which is told what to answer.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <variant>

#include <tenure/kafka.hpp>
#include <tenure/kit/wait.hpp>

#include "client.hpp"
#include "mock_cluster.hpp"
#include "settings.hpp"

extern "C" __attribute__((weak)) void __asan_init();  // It is there where AddressSanitizer is, by either compiler.

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;

/// The next event of a kind. `other`: told of each before.
template <class Other>
std::optional<Client::Event> await(Client& client, Waker& waker, Client::Event::Kind kind, Other other) {
  const auto until = boot_clock().now() + 40s;
  while (boot_clock().now() < until) {
    while (auto event = client.next_event()) {
      if (event->kind == kind) return event;
      other(*event);
    }
    waker.wait_until(until);
  }
  return std::nullopt;
}

/// A member of a group at a mock cluster, which has subscribed.
struct Joined {
  Joined() {
    options.log = no_log;
    options.brokers = cluster.brokers();
    options.group = "jobs";
    options.topic = "jobs.neli";
    client.emplace(member_properties(options, *pace_of(presets().fast, options), "a"),
                   Target{options.brokers, options.group, options.topic}, std::make_shared<ClosableLog>(options));
    client->on_events(waker);
    EXPECT_FALSE(client->subscribe());
  }
  std::optional<Client::Event> next(Client::Event::Kind kind) {
    return await(*client, *waker, kind, [](const Client::Event&) {});
  }

  test::Cluster cluster{"jobs.neli"};
  const std::shared_ptr<Waker> waker = boot_clock().make_waker();
  Options options;
  std::optional<Client> client;
};

using Kind = Client::Event::Kind;

TEST(KafkaClientMock, AnAssignmentThatAnEvictionTookIsLost) {
  Joined member;
  auto& client = *member.client;
  const auto assigned = member.next(Kind::assigned);
  ASSERT_TRUE(assigned);
  EXPECT_EQ(assigned->partitions, (std::vector{0, 1}));
  EXPECT_FALSE(assigned->lost);
  client.assign_nothing();

  member.cluster.next_heartbeat(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS);
  const auto revoked = member.next(Kind::revoked);
  ASSERT_TRUE(revoked);
  EXPECT_FALSE(revoked->lost);
  client.unassign();
  ASSERT_TRUE(member.next(Kind::assigned));
  client.assign_nothing();

  member.cluster.next_heartbeat(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
  const auto evicted = member.next(Kind::revoked);
  ASSERT_TRUE(evicted);
  EXPECT_TRUE(evicted->lost);
  client.unassign();
}

// Rule 15. No revoke tells of an eviction while a member joins.
TEST(KafkaClientMock, AnEvictionWhileItJoinsIsToldByItsNextMemberIdAlone) {
  Joined member;
  auto& client = *member.client;
  ASSERT_TRUE(member.next(Kind::assigned));
  const auto first = client.standing().member;
  EXPECT_NE(first, "");
  client.assign_nothing();
  for (const auto answer : {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID}) {
    member.cluster.next_heartbeat(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS);
    ASSERT_TRUE(member.next(Kind::revoked));
    if (answer) member.cluster.next_join(answer);
    client.unassign();
    bool revoked = false;
    const auto assigned = await(client, *member.waker, Kind::assigned,
                                [&revoked](const Client::Event& event) { revoked |= event.kind == Kind::revoked; });
    ASSERT_TRUE(assigned);
    EXPECT_FALSE(revoked);
    EXPECT_EQ(client.standing().member == first, answer == RD_KAFKA_RESP_ERR_NO_ERROR);
    client.assign_nothing();
  }
}

// R7. Where one partition's commit fails, the others' are written, and all have failed.
TEST(KafkaClientMock, ACommitThatFailsForOnePartitionHasFailed) {
  Joined member;
  auto& client = *member.client;
  ASSERT_TRUE(member.next(Kind::assigned));
  client.assign_nothing();
  const Commit commit{5, "x"};
  constexpr int unknown = 9;
  ASSERT_FALSE(client.commit(7, {{0, commit}, {unknown, commit}}));
  const auto answer = member.next(Kind::committed);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->id, 7u);
  EXPECT_EQ(answer->code, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  const auto stands = client.committed(1, 10s);
  ASSERT_TRUE(stands);
  EXPECT_EQ(stands->front(), commit) << "or this is not the case that is meant";
  client.unassign();
}

// Whoever may read the group can commit this. librdkafka before 2.6.1 would hand out memory of this process behind it.
TEST(KafkaClientMock, MetadataEndsAtItsFirstByteOfZero) {
  if (__asan_init && rd_kafka_version() < 0x020601ff)
    GTEST_SKIP() << "AddressSanitizer finds what this librdkafka reads too far";
  Joined member;
  auto& client = *member.client;
  ASSERT_TRUE(member.next(Kind::assigned));
  client.assign_nothing();
  const auto metadata = std::string("A\0", 2) + std::string(4000, 'B');
  ASSERT_FALSE(client.commit(7, 0, {5, metadata}));
  ASSERT_TRUE(member.next(Kind::committed));
  const auto stands = client.committed(1, 10s);
  ASSERT_TRUE(stands);
  EXPECT_EQ(stands->front(), (Commit{5, std::string("A\0", 2)}));
  client.unassign();
}

}  // namespace
}  // namespace tenure::kafka
