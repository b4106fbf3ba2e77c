// SPDX-License-Identifier: Apache-2.0
// How many units a group has, as its records tell (R15): a value.
#pragma once
#include <vector>

#include "role_facts.hpp"

namespace tenure::kafka {

/// Whether a group of one number can grow to the other. Then a unit's roles stay together, or come into new units.
constexpr bool is_multiple(int units, int of) { return of > 0 && units > of && units % of == 0; }

/// What a record tells never falls. So whatever an old read shows has happened.
class UnitNumbers {
 public:
  UnitNumbers() = default;
  explicit UnitNumbers(const role_fact::Offsets& read);

  /// We have written there.
  void wrote(int unit, int units, int grown_from);

  /// As unit 0 tells it for all. 0: it tells nothing.
  int units() const { return of(0); }
  int grown_from() const { return grown_from_; }  ///< The number before. 0: there was none.
  /// As the unit tells it for itself.
  int of(int unit) const;

  /// Whether nobody can lead a role of this unit of `units` by the number before, and in another unit.
  bool exclude_older(int unit, int units) const;
  /// Whether each unit tells what unit 0 does, as far as that matters: a group that never grew has no other number.
  bool complete() const;

 private:
  std::vector<int> told_;  ///< By unit.
  int grown_from_{};
};

}  // namespace tenure::kafka
