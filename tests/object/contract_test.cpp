// SPDX-License-Identifier: Apache-2.0
// Goal: a bucket keeps the contract that all stores share. Method: the suite, against real servers of each dialect,
// each shared by the tests of this process, each of which has a prefix of its own.
#include <tenure/object.hpp>

#include <string>

#include "contract_suite.hpp"
#include "server.hpp"
#include "shared.hpp"

namespace tenure::contract {
namespace {

using object::test::Server;

struct Moto {};
struct Versitygw {};
struct FakeGcs {};
struct Azurite {};

class Bucket final : public StoreUnderTest {
 public:
  explicit Bucket(Server& server) : server_(server) { server_.freeze(false); }

  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    return object::open(options_, election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override {
    return object::store(options_, election);
  }
  bool pushes() const override { return false; }
  bool restart() override {
    if (!server_.restart()) return false;
    const auto url = object::from_url(server_.url());
    return url.endpoint == options_.endpoint;
  }
  bool hang(bool on) override {
    server_.freeze(on);
    return true;
  }
  int contended_tenures() const override { return 5; }

 private:
  Server& server_;
  const object::Options options_ = server_.options();
};

template <class Tag>
Subject subject_of(const std::string& kind) {
  return {kind, [kind] { return std::make_unique<Bucket>(tenure::test::Shared<Server, Tag>::get(kind)); },
          object::test::missing_server(kind)};
}

std::vector<Subject> subjects() {
  return {subject_of<Moto>("moto"), subject_of<Versitygw>("versitygw"), subject_of<FakeGcs>("fakegcs"),
          subject_of<Azurite>("azurite")};
}

INSTANTIATE_TEST_SUITE_P(real, BackendContract, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(real, StoreContract, testing::ValuesIn(subjects()), name_of);

}  // namespace
}  // namespace tenure::contract
