// SPDX-License-Identifier: Apache-2.0
// Goal: Redis keeps the contract of groups that all stores share. Method: the suite, against real servers that the
// tests of this process share, each below a prefix of its own: by TCP, by a Unix socket, and with a replica that must
// acknowledge.
#include "group_suite.hpp"
#include "redis_group_under_test.hpp"
#include "replicated.hpp"
#include "turn.hpp"

namespace tenure::contract {
namespace {

class OneServer : public RedisGroup {
 public:
  explicit OneServer(bool by_socket = false,
                     redis::test::Server& server = tenure::test::Shared<redis::test::Server>::get())
      : turn_(server), by_socket_(by_socket) {}
  bool step_clock(Clock::Duration by) override {
    turn_.step_clock(by);
    return true;
  }
  bool hang(bool on) override {
    turn_.hang(on);
    return true;
  }

 protected:
  redis::Options options() const override {
    auto out =
        redis::from_url(by_socket_ ? "redis+unix://" + turn_.server().socket() : "redis://" + turn_.server().address());
    out.prefix = turn_.prefix();
    return out;
  }
  redis::test::Server& server(std::size_t) override { return turn_.server(); }

 private:
  redis::test::Turn turn_;
  const bool by_socket_;
};

class WithAReplica final : public OneServer {
 public:
  WithAReplica() : OneServer(false, shared().master) {
    std::uint64_t id = 0;
    shared().await([&] {
      const auto opened = connect("another")->open({++id}, {}, Player::within(seconds(1)));
      return opened && opened->granted;
    });
  }

 protected:
  redis::Options options() const override {
    auto out = OneServer::options();
    out.replicas = 1;
    return out;
  }

 private:
  static redis::test::Replicated& shared() { return tenure::test::Shared<redis::test::Replicated>::get(); }
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
