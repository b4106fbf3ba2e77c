// SPDX-License-Identifier: Apache-2.0
// Goal: Redis keeps the contract that all stores share. Method: the suite, against real servers of each test's own: by
// TCP, by a Unix socket, and with a replica that must acknowledge.
#include "redis_under_test.hpp"

namespace tenure::contract {
namespace {

/// One server of its own, by TCP from the first election of its life on.
class Alone : public Redis {
 public:
  explicit Alone(bool by_socket) : by_socket_(by_socket) {}
  bool restart() override {
    server_.kill();
    server_.start();
    return true;
  }
  bool hang(bool on) override {
    server_.freeze(on);
    return true;
  }
  bool step_clock(Clock::Duration by) override {
    server_.step_clock(by);
    return true;
  }

 protected:
  redis::Options options() const override {
    return redis::from_url(by_socket_ ? "redis+unix://" + server_.socket() : "redis://" + server_.address() + "/3");
  }
  redis::test::Server server_;

 private:
  const bool by_socket_;
};

class Replicated final : public Alone {
 public:
  Replicated() : Alone(false) {
    // It is in step only once it has acknowledged something that was written since it came on line.
    const auto online = [&] { return server_.ask({"INFO", "replication"}).find("state=online") != std::string::npos; };
    if (!redis::test::eventually(online) || !leave_a_released_record(*store("another")))
      throw std::runtime_error("the replica acknowledges nothing");
  }
  bool restart() override {
    Alone::restart();
    replica_.ask({"REPLICAOF", "127.0.0.1", std::to_string(server_.port())});  // by itself it tries once a second
    return true;
  }

 protected:
  redis::Options options() const override { return redis::from_url("redis://" + server_.address() + "?replicas=1"); }

 private:
  redis::test::Server replica_{{"replicaof 127.0.0.1 " + std::to_string(server_.port())}};
};

std::vector<Subject> subjects() {
  const auto missing = redis::test::missing_server();
  return {{"tcp", [] { return std::make_unique<Alone>(false); }, missing},
          {"unix_socket", [] { return std::make_unique<Alone>(true); }, missing},
          {"replicated", [] { return std::make_unique<Replicated>(); }, missing}};
}

INSTANTIATE_TEST_SUITE_P(real, BackendContract, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(real, StoreContract, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace tenure::contract
