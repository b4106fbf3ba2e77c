// SPDX-License-Identifier: Apache-2.0
// Goal: elections that were left cost no memory. Method: thousands of names that come and go, over a model of a store;
// then the shell's maps are counted.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <tenure/elections.hpp>

#include "eventually.hpp"
#include "group/group_shell.hpp"
#include "model_store.hpp"

namespace tenure {

class ElectionsInside {
 public:
  static std::size_t kept(const Elections& elections) { return elections.shell_->kept(); }
};

namespace {

using namespace std::chrono_literals;

/// In a store that can lose its data nobody leads before a term has passed.
const Timing brief{.term = 1s, .renew = 50ms, .retry = 10ms, .margin = 100ms, .call = 300ms, .drain = 200ms};

TEST(ElectionsMemory, OfElectionsThatWereLeftIsGivenBack) {
  Elections elections(std::make_shared<test::ModelStore>(), {"a", ""}, brief, {.log = no_log});
  const auto hooks = std::make_shared<const Hooks>(Hooks{.log = no_log});
  elections.start();
  elections.join("stays");
  ASSERT_TRUE(test::eventually([&] { return elections.led().size() == 1; }));
  std::vector<Leadership> handles;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 500; ++i) elections.join(std::to_string(round) + "-" + std::to_string(i), hooks);
    ASSERT_TRUE(test::eventually([&] { return elections.led().size() == 501; }));
    handles.push_back(elections.leadership(std::to_string(round) + "-7"));
    for (int i = 0; i < 500; ++i) elections.leave(std::to_string(round) + "-" + std::to_string(i));
    ASSERT_TRUE(test::eventually([&] { return elections.led().size() == 1; }));
  }
  ASSERT_TRUE(test::eventually([&] { return hooks.use_count() == 1; }));
  for (const auto& handle : handles) EXPECT_FALSE(handle.is_leader());
  elections.join("0-7");
  EXPECT_TRUE(test::eventually([&] { return handles[0].is_leader(); })) << "the user kept the handle";
  elections.stop();
  EXPECT_LE(ElectionsInside::kept(elections), 100u);
}

TEST(ElectionsMemory, OfHandlesOfWhatNobodyJoinedIsGivenBack) {
  Elections elections(std::make_shared<test::ModelStore>(), {"a", ""}, brief);
  for (int i = 0; i < 10'000; ++i) EXPECT_FALSE(elections.leadership(std::to_string(i)).is_leader());
  EXPECT_LE(ElectionsInside::kept(elections), 100u);
}

}  // namespace
}  // namespace tenure
