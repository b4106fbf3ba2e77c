// SPDX-License-Identifier: Apache-2.0
// What the contract suite needs to know of Redis, whichever way it is reached.
#pragma once
#include <tenure/redis.hpp>

#include "contract_suite.hpp"
#include "server.hpp"

namespace tenure::contract {

class Redis : public StoreUnderTest {
 public:
  std::shared_ptr<Backend> seat(const std::string& election, const Candidate& candidate) override {
    auto opened = redis::open(options(), election, candidate);
    if (!first_in_life(election)) static_cast<void>(leave_a_released_record(election));
    return opened;
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override {
    return redis::store(options(), election);
  }
  Timing timing() const override {
    return {.term = milliseconds(600),
            .renew = milliseconds(60),
            .retry = milliseconds(20),
            .margin = milliseconds(30),
            .call = milliseconds(300),
            .drain = milliseconds(600)};
  }
  /// A claim on nothing counts once it stood for a term.
  Clock::Duration first_election() const override { return 4 * timing().term; }

 protected:
  virtual redis::Options options() const = 0;

  /// That term is waited for by some tests; to the elections of others it was long ago.
  virtual bool first_in_life(const std::string& election) const {
    (void)election;
    return false;
  }

  /// Whether the store answered.
  bool leave_a_released_record(const std::string& election) {
    Record released;
    released.token = {1};
    released.released = true;
    released.term = timing().term;
    return std::holds_alternative<Swap>(
        store(election)->compare_and_set(std::nullopt, released, Player::within(seconds(5))));
  }
};

}  // namespace tenure::contract
