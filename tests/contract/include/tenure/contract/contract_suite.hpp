// SPDX-License-Identifier: Apache-2.0
// The tools by which the tests of contract_suite.cpp drive a store. Each store's own contract_test.cpp includes this,
// and instantiates the tests.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <tenure/faulty.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/lock_table.hpp>
#include <thread>
#include <utility>

#include <tenure/contract/store_under_test.hpp>

namespace tenure::contract {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

inline std::string name_of(const testing::TestParamInfo<Subject>& info) { return info.param.name; }

/// A candidate under test: a backend, called as a manager calls it.
class Player {
 public:
  Player(std::shared_ptr<Backend> backend, const Timing& timing, Clock::Duration look_again)
      : backend_(std::move(backend)), timing_(timing), look_again_(look_again) {
    if (const auto error = backend_->accepts(timing_)) throw std::invalid_argument(error->message);
  }

  static Limit within(Clock::Duration d, std::stop_token stop = {}) {
    return {boot_clock(), boot_clock().now() + d, std::move(stop)};
  }
  Limit call() const { return within(timing_.call); }

  Answer acquire() { return backend_->acquire(call()); }
  Answer renew(Token token) { return backend_->renew(token, call()); }
  std::optional<Error> release() { return backend_->release(call()); }

  /// Asks until the store says who leads.
  Sight observe(Clock::Duration patience) {
    for (const auto all = within(patience);; wait_out(within(timing_.retry))) {
      auto sight = backend_->observe(call());
      if (const auto* unknown = std::get_if<Unknown>(&sight); !unknown || all.passed()) {
        if (unknown) ADD_FAILURE() << "nobody could say who leads: " << unknown->error.message;
        return sight;
      }
    }
  }
  Backend& backend() { return *backend_; }
  std::shared_ptr<Backend> give_up_backend() { return std::move(backend_); }

  bool renewed(Token token) {
    const auto answer = renew(token);
    return std::holds_alternative<Granted>(answer) && std::get<Granted>(answer).token == token;
  }

  /// Campaigns as a manager does. None if it does not lead within that time.
  std::optional<Token> campaign(Clock::Duration patience, std::stop_token stop = {}) {
    const auto all = within(patience, std::move(stop));
    while (!all.passed()) {
      const auto answer = acquire();
      if (const auto* granted = std::get_if<Granted>(&answer)) return granted->token;
      if (const auto* denied = std::get_if<Denied>(&answer)) {
        const auto seen = denied->holder ? Sight(*denied->holder) : Sight(Vacant{});
        backend_->await_change(seen, {all.clock, std::min(all.by, all.clock.now() + look_again_), all.stop});
      } else {
        wait_out({all.clock, std::min(all.by, all.clock.now() + timing_.retry), all.stop});
      }
    }
    return std::nullopt;
  }

 private:
  std::shared_ptr<Backend> backend_;
  Timing timing_;
  Clock::Duration look_again_;
};

/// Writes a released record, so that no candidate of this election has to wait for a term on an absent record. Returns
/// whether the store answered.
inline bool leave_a_released_record(ConditionalStore& store) {
  Record released;
  released.token = {1};
  released.released = true;
  released.term = milliseconds(1);
  return bool(store.compare_and_set(std::nullopt, released, Player::within(seconds(30))));
}

/// Measures how late this machine wakes a sleeping thread. A bound on the time of a call must allow for that.
class Lateness {
 public:
  Clock::Duration most() const { return Clock::Duration(most_.load()); }

 private:
  std::atomic<Clock::Duration::rep> most_{0};
  std::jthread sleeper_{[this](std::stop_token stop) {
    while (!stop.stop_requested()) {
      const auto limit = Player::within(milliseconds(5));
      wait_out(limit);
      most_ = std::max(most_.load(), (boot_clock().now() - limit.by).count());
    }
  }};
};

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
  std::optional<Token> first_tenure(Player& p) { return p.campaign(store_->first_election()); }
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
            .holder = holder,
            .incarnation = std::string(32, '0'),
            .address = holder + ":1",
            .term = timing_.term,
            .asked = now().time_since_epoch()};
  }

  static bool applied(const Result<Swap>& result) { return result && result->applied; }
  static bool refused(const Result<Swap>& result) { return result && !result->applied; }
  std::optional<Record> standing(ConditionalStore& store) const {
    const auto result = store.read(call());
    return result ? result->record : std::nullopt;
  }
};

}  // namespace tenure::contract
