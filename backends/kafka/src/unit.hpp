// SPDX-License-Identifier: Apache-2.0
// How the roles of a group lie on the partitions of its topic. A unit is what one member owns: three partitions that
// stand side by side, so that the range assignor spreads units evenly.
#pragma once
#include <cstdint>
#include <string_view>

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

}  // namespace tenure::kafka
