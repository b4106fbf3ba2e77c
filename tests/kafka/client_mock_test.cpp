// SPDX-License-Identifier: Apache-2.0
// Goal: what librdkafka tells of assignments and commits is passed on. Method: one handle at librdkafka's mock cluster
// in this process, which is told what to answer.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

/// Commits on partition 0 what no client of librdkafka would. Whether the broker has answered.
bool commit_raw(const Options& o, std::int64_t offset) {
  std::string request;
  const auto put = [&request](std::int64_t value, int bytes) {
    for (int i = bytes; i-- > 0;) request += static_cast<char>(value >> 8 * i);
  };
  const auto put_text = [&](const std::string& text) {
    put(static_cast<std::int64_t>(text.size()), 2);
    request += text;
  };
  put(8, 2), put(2, 2), put(1, 4), put_text("test");         // OffsetCommit of version 2
  put_text(o.group), put(-1, 4), put_text(""), put(-1, 8);   // By no member.
  put(1, 4), put_text(o.topic);                              // Of one topic
  put(1, 4), put(0, 4), put(offset, 8), put_text("theirs");  // one partition.
  const auto body = std::exchange(request, {});
  put(static_cast<std::int64_t>(body.size()), 4);
  request += body;

  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(o.brokers.substr(o.brokers.rfind(':') + 1))));
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  char answer[4];
  const bool done = ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
                    ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0 &&
                    ::recv(fd, answer, sizeof answer, MSG_WAITALL) == sizeof answer;
  ::close(fd);
  return done;
}

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

// Rule 5 reckons with that.
TEST(KafkaClientMock, AForeignCommitOfMinusOneReadsAsNone) {
  const test::Cluster cluster("jobs.neli");
  Options o;
  o.log = no_log;
  o.brokers = cluster.brokers();
  o.group = "jobs";
  o.topic = "jobs.neli";
  const auto client = make_observer(o, o.group, std::make_shared<ClosableLog>(o));
  for (const auto& stands : {std::optional(Commit{5, "theirs"}), std::optional<Commit>()}) {
    ASSERT_TRUE(commit_raw(o, stands ? stands->offset : -1));
    const auto read = client->committed(1, 10s);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->front(), stands);
  }
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
