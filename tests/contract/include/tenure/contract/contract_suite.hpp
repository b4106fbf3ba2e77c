// SPDX-License-Identifier: Apache-2.0
// What the tests of contract_suite.cpp start from: a store, candidates of it, and its short or long terms. Each store's
// own contract_test.cpp includes this, and instantiates the tests.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tenure/faulty.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/lock_table.hpp>

#include <tenure/contract/player.hpp>
#include <tenure/contract/store_under_test.hpp>
#include <tenure/contract/waiting.hpp>

namespace tenure::contract {

inline std::string name_of(const testing::TestParamInfo<Subject>& info) { return info.param.name; }

class ContractTest : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (const auto& missing = GetParam().missing; !missing.empty()) GTEST_SKIP() << missing;
    store_ = GetParam().make();
    timing_ = store_->timing();
  }

  static constexpr auto patience = seconds(30);  ///< When a test gives up.

  /// REQUIRES: a test that waits for a term's end calls this first.
  void terms_are_short() { timing_ = store_->short_timing(), terms_are_short_ = true; }

  Player player(const std::string& name, const std::string& election = "jobs") {
    return player(Candidate{name, name + ":1"}, election);
  }
  Player player(const Candidate& candidate, const std::string& election = "jobs") {
    return player(store_->backend(election, candidate), election);
  }
  Player player(std::shared_ptr<Backend> backend, const std::string& election) {
    if (!terms_are_short_ && !store_->absence_certain() && !leave_a_released_record(*store_->store(election)))
      throw std::runtime_error("the store did not answer");
    return {std::move(backend), timing_, store_->pushes() ? timing_.term : timing_.retry};
  }
  Sight sight_of(Player& p) { return p.observe(patience); }
  Sight sight_of(Player&& p) { return p.observe(patience); }
  /// Elected as the first one. The token.
  Token lead(Player& p) {
    const auto token = p.campaign(store_->first_election());
    return token ? *token : throw std::runtime_error("nobody was elected");
  }
  Clock::Time now() const { return boot_clock().now(); }

  std::unique_ptr<StoreUnderTest> store_;
  Timing timing_{};

 private:
  bool terms_are_short_{};
};

/// The rules that every Backend keeps.
class BackendContract : public ContractTest {};

/// Further rules that every ConditionalStore keeps, and those of the lock-table protocol over it.
class StoreContract : public ContractTest {
 protected:
  /// Connected: on a busy machine that may take several attempts, and what a test asks is to be answered at once.
  std::shared_ptr<ConditionalStore> open(const std::string& election = "jobs") {
    auto store = store_->store(election);
    const auto patient = Player::within(patience);
    auto answer = store->read(call());
    while (!answer && !patient.passed()) answer = store->read(call());
    return answer ? store : throw std::runtime_error("the store did not answer: " + answer.error().message);
  }

  /// A candidate whose writes can be lost or late.
  struct Faulty {
    std::shared_ptr<FaultyStore> store;
    Player player;
  };
  Faulty faulty(const std::string& name) {
    auto store = std::make_shared<FaultyStore>(open());
    return {store, player(lock_table(store, "jobs", {name, ""}), "jobs")};
  }

  Limit call() const { return Player::within(timing_.call); }

  Record record(std::uint64_t token, std::uint64_t beat, const std::string& holder = "a") const {
    return {.token = {token},
            .beat = beat,
            .who = who_text({holder, holder + ":1"}, std::string(32, '0')),
            .term = timing_.term,
            .asked = now().time_since_epoch()};
  }

  Record released(std::uint64_t token, std::uint64_t beat) const {
    auto made = record(token, beat);
    made.released = true;
    return made;
  }
  /// Somebody led, and has released.
  void leave_it_free() {
    auto owner = player("owner");
    lead(owner);
    if (const auto error = owner.release()) throw std::runtime_error(error->message);
  }

  static bool applied(const Result<Swap>& result) { return result && result->applied; }
  static bool refused(const Result<Swap>& result) { return result && !result->applied; }
  std::optional<Record> standing(ConditionalStore& store) const {
    const auto result = store.read(call());
    return result ? result->record : std::nullopt;
  }
};

}  // namespace tenure::contract
