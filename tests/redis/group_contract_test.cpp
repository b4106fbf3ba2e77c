// SPDX-License-Identifier: Apache-2.0
// Goal: Redis keeps the contract of groups that all stores share. Method: the suite, against real servers of each
// test's own: by TCP, by a Unix socket, and with a replica that must acknowledge.
#include "group_suite.hpp"
#include "redis_group_under_test.hpp"

namespace tenure::contract {
namespace {

class OneServer : public RedisGroup {
 public:
  explicit OneServer(bool by_socket = false) : by_socket_(by_socket) {}

 protected:
  redis::Options options() const override {
    return redis::from_url(by_socket_ ? "redis+unix://" + server_.socket() : "redis://" + server_.address());
  }
  redis::test::Server& server(std::size_t) override { return server_; }

  redis::test::Server server_;

 private:
  const bool by_socket_;
};

class WithAReplica final : public OneServer {
 public:
  WithAReplica() {
    std::uint64_t id = 0;
    const auto acknowledges = [&] {
      const auto opened = connect("another")->open({++id}, {}, Player::within(seconds(1)));
      return opened && opened->granted;
    };
    if (!redis::test::eventually(acknowledges)) throw std::runtime_error("the replica acknowledges nothing");
  }

 protected:
  redis::Options options() const override { return redis::from_url("redis://" + server_.address() + "?replicas=1"); }

 private:
  redis::test::Server replica_{{"replicaof 127.0.0.1 " + std::to_string(server_.port())}};
};

std::vector<GroupSubject> subjects() {
  const auto missing = redis::test::missing_server();
  return {{"tcp", [] { return std::make_unique<OneServer>(); }, missing},
          {"unix_socket", [] { return std::make_unique<OneServer>(true); }, missing},
          {"replicated", [] { return std::make_unique<WithAReplica>(); }, missing}};
}

INSTANTIATE_TEST_SUITE_P(real, GroupContract, testing::ValuesIn(subjects()), name_of_group);
INSTANTIATE_TEST_SUITE_P(real, GuardOfACommit, testing::ValuesIn(subjects()), name_of_group);

}  // namespace
}  // namespace tenure::contract
