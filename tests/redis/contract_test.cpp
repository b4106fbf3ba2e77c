// SPDX-License-Identifier: Apache-2.0
// Goal: Redis keeps the contract that all stores share. Method: the suite, against real servers that the tests of this
// process share, each below a prefix of its own: by TCP, by a Unix socket, and with a replica that must acknowledge.
#include "redis_under_test.hpp"
#include "replicated.hpp"
#include "turn.hpp"

namespace tenure::contract {
namespace {

class Alone : public Redis {
 public:
  explicit Alone(bool by_socket, redis::test::Server& server = tenure::test::Shared<redis::test::Server>::get())
      : turn_(server), by_socket_(by_socket) {}
  bool restart() override {
    server().kill();
    server().start();
    return true;
  }
  bool hang(bool on) override {
    turn_.hang(on);
    return true;
  }
  bool step_clock(Clock::Duration by) override {
    turn_.step_clock(by);
    return true;
  }

 protected:
  redis::Options options() const override {
    auto out =
        redis::from_url(by_socket_ ? "redis+unix://" + server().socket() : "redis://" + server().address() + "/3");
    out.prefix = turn_.prefix();
    return out;
  }
  redis::test::Server& server() const { return turn_.server(); }

 private:
  redis::test::Turn turn_;
  const bool by_socket_;
};

class Replicated final : public Alone {
 public:
  Replicated() : Alone(false, shared().master) {
    shared().await([this] { return leave_a_released_record(*store("another")); });
  }
  bool restart() override {
    Alone::restart();
    shared().replica.ask({"REPLICAOF", "127.0.0.1", std::to_string(server().port())});  // by itself once a second
    return true;
  }

 protected:
  redis::Options options() const override {
    auto out = Alone::options();
    out.db = 0;
    out.replicas = 1;
    return out;
  }

 private:
  static redis::test::Replicated& shared() { return tenure::test::Shared<redis::test::Replicated>::get(); }
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
