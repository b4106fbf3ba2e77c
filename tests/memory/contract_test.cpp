// SPDX-License-Identifier: Apache-2.0
// Goal: memory keeps the contract in each of its guises. Method: the suite that all stores share.
#include <tenure/memory.hpp>

#include "contract_suite.hpp"

namespace tenure::contract {
namespace {

class Memory final : public StoreUnderTest {
 public:
  explicit Memory(memory::Traits traits) : traits_(traits), hub_(traits) {}

  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    return memory::open(hub_, election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override { return hub_.store(election); }
  Timing timing() const override {
    auto timing = StoreUnderTest::timing();
    timing.retry = milliseconds(5);
    return timing;
  }
  Timing short_timing() const override { return short_terms_of(milliseconds(200)); }
  bool absence_certain() const override { return traits_.absence_certain; }
  bool one_clock() const override { return traits_.same_clock; }
  bool pushes() const override { return traits_.push; }
  bool restart() override {
    hub_.unreachable(true);
    hub_.unreachable(false);
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

Subject memory_with(std::string name, memory::Traits traits) {
  return {std::move(name), [traits] { return std::make_unique<Memory>(traits); }};
}

const auto guises =
    testing::Values(memory_with("at_its_best", {}),
                    memory_with("as_a_server", {.push = true, .absence_certain = true, .same_clock = false}),
                    memory_with("as_a_cache", {.push = false, .absence_certain = false, .same_clock = false}));

INSTANTIATE_TEST_SUITE_P(memory, BackendContract, guises, name_of);
INSTANTIATE_TEST_SUITE_P(memory, StoreContract, guises, name_of);

}  // namespace
}  // namespace tenure::contract
