// SPDX-License-Identifier: Apache-2.0
// What the contract suite needs to know of Redis, whichever way it is reached.
#pragma once
#include <tenure/redis.hpp>

#include "contract_suite.hpp"
#include "server.hpp"

namespace tenure::contract {

class Redis : public StoreUnderTest {
 public:
  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    return redis::open(options(), election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override {
    return redis::store(options(), election);
  }
  Timing short_timing() const override { return short_terms_of(seconds(1)); }
  bool absence_certain() const override { return false; }

 protected:
  virtual redis::Options options() const = 0;
};

}  // namespace tenure::contract
