// SPDX-License-Identifier: Apache-2.0
// Processes that use the same group and topic in another way: with a number of units from which a group cannot grow to
// ours, nor from ours to theirs, so that they find other roles in the same places; or in the other mode. A value.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <tenure/exclusive.hpp>

#include "role_facts.hpp"

namespace tenure::kafka {

class Strangers {
 public:
  Strangers(int units, Exclusive exclusive, Clock::Duration lease)
      : units_(units), exclusive_(exclusive), lease_(lease) {}

  /// What is to be told to the user of those that were not seen before. A read that `may_be_old` can show one, but not
  /// that one is gone.
  std::vector<std::string> saw(const role_fact::Offsets& read, Clock::Time now, bool may_be_old);

  /// There are more units now.
  void grow(int units) { units_ = units; }

  /// Nothing is claimed before: one of them may lead.
  Clock::Time until() const { return until_; }

 private:
  int units_;
  Exclusive exclusive_;
  Clock::Duration lease_;
  struct Live {
    Commit commit;
    Clock::Time seen{}, over{};  ///< When it was seen first; a lease later.
  };
  std::map<int, Live> records_;  ///< By unit.
  Clock::Time until_{Clock::Time::min()};
};

}  // namespace tenure::kafka
