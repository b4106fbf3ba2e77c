// SPDX-License-Identifier: Apache-2.0
// Goal: memory's groups keep the contract in each of their guises. Method: the suite that all stores share.
#include <tenure/memory.hpp>

#include "group_suite.hpp"

namespace tenure::contract {
namespace {

class MemoryGroup final : public GroupUnderTest {
 public:
  explicit MemoryGroup(memory::Traits traits) : traits_(traits), hub_(traits) {}

  std::shared_ptr<GroupStore> connect(const std::string& group) override { return hub_.group(group); }
  Timing timing() const override {
    auto timing = GroupUnderTest::timing();
    timing.renew = milliseconds(100), timing.retry = milliseconds(20);
    return timing;
  }
  bool can_lose() const override { return !traits_.absence_certain; }
  bool pushes() const override { return traits_.push; }
  int rounds() const override { return 200; }  // its calls are short, and seldom overlap
  bool lose_everything() override {
    if (can_lose()) hub_.flush();
    return can_lose();
  }
  bool lose_session(const std::string& group, SessionId id) override {
    hub_.lose_session(group, id);
    return true;
  }
  bool spoil_lead(const std::string& group, const std::string& election) override {
    hub_.spoil_lead(group, election);
    return true;
  }
  bool mend_lead(const std::string& group, const std::string& election) override {
    hub_.mend_lead(group, election);
    return true;
  }
  bool step_clock(Clock::Duration by) override {
    hub_.step_clock(by);
    return true;
  }
  bool hang(bool on) override {
    hub_.hang(on);
    return true;
  }

 private:
  memory::Traits traits_;
  memory::Hub hub_;
};

GroupSubject group_with(std::string name, memory::Traits traits) {
  return {std::move(name), [traits] { return std::make_unique<MemoryGroup>(traits); }};
}

const auto guises = testing::Values(group_with("at_its_best", {}), group_with("as_a_cache", {.absence_certain = false}),
                                    group_with("without_push", {.push = false}));

INSTANTIATE_TEST_SUITE_P(memory, GroupContract, guises, name_of_group);
INSTANTIATE_TEST_SUITE_P(memory, GuardOfACommit, guises, name_of_group);

}  // namespace
}  // namespace tenure::contract
