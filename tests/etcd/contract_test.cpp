// SPDX-License-Identifier: Apache-2.0
// Goal: etcd keeps the contract that all stores share. Method: the suite, against a real server that the tests of this
// process share, each below a prefix of its own.
#include <tenure/etcd.hpp>

#include <string>

#include "contract_suite.hpp"
#include "server.hpp"
#include "shared.hpp"

namespace tenure::contract {
namespace {

/// The server of this process, whatever the test before has left, below a prefix that no other test uses.
etcd::Options part_of(etcd::test::Server& server) {
  static int count = 0;
  server.mend();
  auto out = server.options();
  out.prefix = "test " + std::to_string(++count) + "/";
  return out;
}

//! [subject]
class Etcd final : public StoreUnderTest {
 public:
  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    return etcd::open(options_, election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override {
    return etcd::store(options_, election);
  }
  bool restart() override {
    server_.kill();
    server_.start();
    return true;
  }
  bool hang(bool on) override {
    server_.freeze(on);
    return true;
  }
  Timing short_timing() const override { return short_terms_of(seconds(1)); }
  int contended_tenures() const override { return 25; }

 private:
  etcd::test::Server& server_ = tenure::test::Shared<etcd::test::Server>::get();
  const etcd::Options options_ = part_of(server_);
};
//! [subject]

std::vector<Subject> subjects() {
  return {{"alone", [] { return std::make_unique<Etcd>(); }, etcd::test::missing_server()}};
}

INSTANTIATE_TEST_SUITE_P(real, BackendContract, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(real, StoreContract, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace tenure::contract
