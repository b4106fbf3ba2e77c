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

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;

/// The next event of a kind.
std::optional<Client::Event> await(Client& client, Waker& waker, Client::Event::Kind kind) {
  const auto until = boot_clock().now() + 40s;
  while (boot_clock().now() < until) {
    while (auto event = client.next_event())
      if (event->kind == kind) return event;
    waker.wait_until(until);
  }
  return std::nullopt;
}

TEST(KafkaClientMock, AnAssignmentThatAnEvictionTookIsLost) {
  static test::Cluster cluster("jobs.neli");
  Options o;
  o.log = no_log;
  o.brokers = cluster.brokers();
  o.group = "jobs";
  o.topic = "jobs.neli";
  const auto pace = *pace_of(presets().fast, o);
  Client client(member_properties(o, pace, "a"), Target{o.brokers, o.group, o.topic}, std::make_shared<ClosableLog>(o));
  const std::shared_ptr<Waker> waker = boot_clock().make_waker();
  client.on_events(waker);
  ASSERT_FALSE(client.subscribe());
  using Kind = Client::Event::Kind;
  const auto assigned = await(client, *waker, Kind::assigned);
  ASSERT_TRUE(assigned);
  EXPECT_TRUE(assigned->owner);
  EXPECT_FALSE(assigned->lost);
  client.assign_nothing();

  cluster.next_heartbeat(RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS);
  const auto revoked = await(client, *waker, Kind::revoked);
  ASSERT_TRUE(revoked);
  EXPECT_FALSE(revoked->lost);
  client.unassign();
  ASSERT_TRUE(await(client, *waker, Kind::assigned));
  client.assign_nothing();

  cluster.next_heartbeat(RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
  const auto evicted = await(client, *waker, Kind::revoked);
  ASSERT_TRUE(evicted);
  EXPECT_TRUE(evicted->lost);
  client.unassign();
}

}  // namespace
}  // namespace tenure::kafka
