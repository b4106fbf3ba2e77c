// SPDX-License-Identifier: Apache-2.0
// Goal: etcd keeps the contract that all stores share. Method: the suite, against a real server of each test's own.
#include <tenure/etcd.hpp>

#include "contract_suite.hpp"
#include "server.hpp"

namespace tenure::contract {
namespace {

//! [subject]
class Etcd final : public StoreUnderTest {
 public:
  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    return etcd::open(server_.options(), election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override {
    return etcd::store(server_.options(), election);
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

 private:
  etcd::test::Server server_;
};
//! [subject]

std::vector<Subject> subjects() {
  return {{"alone", [] { return std::make_unique<Etcd>(); }, etcd::test::missing_server()}};
}

INSTANTIATE_TEST_SUITE_P(real, BackendContract, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(real, StoreContract, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace tenure::contract
