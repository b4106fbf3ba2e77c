// SPDX-License-Identifier: Apache-2.0
// Goal: a Redis cluster keeps the contract that all stores share. Method: the suite, against three masters. They need
// two seconds to form, so that one process runs all tests on the same cluster, each below a prefix of its own.
#include "group_suite.hpp"
#include "redis_group_under_test.hpp"
#include "redis_under_test.hpp"
#include "shared.hpp"

namespace tenure::contract {
namespace {

redis::test::Cluster& cluster() { return tenure::test::Shared<redis::test::Cluster>::get(); }

/// The cluster runs, whatever the test before has left.
class Whole {
 public:
  Whole() {
    for (std::size_t i = 0; i < cluster().size(); ++i) cluster()[i].mend();
    cluster().await_ok();
  }
};

redis::Options options_below(const std::string& prefix) {
  auto out = redis::from_url("redis://" + cluster()[0].address() + "," + cluster()[1].address());
  out.prefix = prefix;
  return out;
}

class Clustered final : public Redis {
 public:
  bool restart() override {
    for (std::size_t i = 0; i < cluster().size(); ++i) cluster()[i].kill();
    for (std::size_t i = 0; i < cluster().size(); ++i) cluster()[i].start();
    cluster().await_ok();
    return true;
  }
  bool hang(bool on) override {
    for (std::size_t i = 0; i < cluster().size(); ++i) cluster()[i].freeze(on);
    return true;
  }
  bool step_clock(Clock::Duration by) override {
    for (std::size_t i = 0; i < cluster().size(); ++i) cluster()[i].step_clock(by);
    return true;
  }

 protected:
  redis::Options options() const override { return options_below(prefix_); }

 private:
  const Whole whole_;
  const std::string prefix_ = redis::test::unique_name("tenure") + ":";
};

class ClusteredGroup final : public RedisGroup {
 public:
  redis::Options options() const override { return options_below(prefix_); }
  std::size_t servers() const override { return cluster().size(); }
  redis::test::Server& server(std::size_t i) override { return cluster()[i]; }

 private:
  const Whole whole_;
  const std::string prefix_ = redis::test::unique_name("tenure") + ":";
};

std::vector<Subject> subjects() {
  return {{"cluster", [] { return std::make_unique<Clustered>(); }, redis::test::missing_server()}};
}

std::vector<GroupSubject> groups() {
  return {{"cluster", [] { return std::make_unique<ClusteredGroup>(); }, redis::test::missing_server()}};
}

INSTANTIATE_TEST_SUITE_P(real, BackendContract, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(real, StoreContract, testing::ValuesIn(subjects()), name_of);
INSTANTIATE_TEST_SUITE_P(real, GroupContract, testing::ValuesIn(groups()), name_of_group);
INSTANTIATE_TEST_SUITE_P(real, GuardOfACommit, testing::ValuesIn(groups()), name_of_group);

}  // namespace
}  // namespace tenure::contract
