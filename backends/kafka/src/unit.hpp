// SPDX-License-Identifier: Apache-2.0
// How the roles of a group lie on the partitions of its topic. A unit is what one member owns: three partitions that
// stand side by side, so that the range assignor spreads units evenly. And how many units a group has, as its records
// say.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "role_facts.hpp"

namespace tenure::kafka {

inline constexpr int max_units = 256;

/// Whether a name has digits only. Leading zeros do not matter.
constexpr bool is_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
}

/// Which of `units` an election's name belongs to. That of a number, however large, is its remainder. That of another
/// name is its hash, by FNV-1a of 64 bits. It never changes: two processes that differed here would both lead.
constexpr int unit_of(std::string_view election, int units) {
  if (is_number(election)) {
    int remainder = 0;
    for (const char digit : election) remainder = (remainder * 10 + (digit - '0')) % units;
    return remainder;
  }
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : election) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<int>(hash % static_cast<std::uint64_t>(units));
}

constexpr int partitions_of(int units) { return 3 * units; }
constexpr int record_of(int unit) { return 3 * unit; }     ///< Who leads the unit's roles. Its owner alone writes it.
constexpr int nonce_of(int unit) { return 3 * unit + 1; }  ///< Written by an owner whose lowest unit this is.
constexpr int farewell_of(int unit) { return 3 * unit + 2; }  ///< By an earlier owner: the tenure that it gave up.

// ---- how many units a group has, as its records tell (R15) ----

/// Whether a group of one number can grow to the other. Then a unit's roles stay together, or come into new units.
constexpr bool is_multiple(int units, int of) { return of > 0 && units > of && units % of == 0; }

/// A value. What a record tells never falls. So whatever an old read shows has happened.
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
