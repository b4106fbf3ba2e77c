// SPDX-License-Identifier: Apache-2.0
// Processes that use the same group and topic in another way: with another number of units, so that they find other
// roles in the same places, or in the other mode. A value.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tenure/exclusive.hpp>

#include "role_facts.hpp"

namespace tenure::kafka {

class Strangers {
 public:
  Strangers(int units, Exclusive exclusive, Clock::Duration lease)
      : units_(units), exclusive_(exclusive), lease_(lease) {}

  /// What is to be told to the user of those that were not seen before.
  std::vector<std::string> saw(const role_fact::Offsets& read, Clock::Time now);

  /// Nothing is claimed before: one of them may lead.
  Clock::Time until() const { return until_; }

 private:
  int units_;
  Exclusive exclusive_;
  Clock::Duration lease_;
  std::map<int, std::pair<Commit, Clock::Time>> records_;  ///< Live ones, by unit, and when they were first seen.
  Clock::Time until_{Clock::Time::min()};
};

}  // namespace tenure::kafka
