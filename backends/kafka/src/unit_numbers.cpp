// SPDX-License-Identifier: Apache-2.0
// Reads from records how many units a group has.
#include "unit.hpp"

#include <algorithm>

#include "record.hpp"

namespace tenure::kafka {

UnitNumbers::UnitNumbers(const role_fact::Offsets& read) {
  for (int unit = 0; partitions_of(unit) < static_cast<int>(read.size()); ++unit) {
    const auto& commit = read[static_cast<std::size_t>(record_of(unit))];
    const auto record = commit && commit->offset > 0 ? decode(commit->metadata) : std::nullopt;
    if (record && record->exclusive == Exclusive::yes) wrote(unit, record->units, record->grown_from);
  }
}

void UnitNumbers::wrote(int unit, int units, int grown_from) {
  const auto index = static_cast<std::size_t>(unit);
  if (told_.size() <= index) told_.resize(index + 1);
  told_[index] = units;
  if (unit == 0) grown_from_ = grown_from;
}

int UnitNumbers::of(int unit) const {
  const auto index = static_cast<std::size_t>(unit);
  return index < told_.size() ? told_[index] : 0;
}

/// The roles of a new unit were in the one whose number is the remainder. It tells the new number only if nobody leads
/// them there. What stays in its unit was led there, and nowhere else.
bool UnitNumbers::exclude_older(int unit, int units) const {
  if (this->units() != units) return false;
  return grown_from_ == 0 || unit < grown_from_ || of(unit % grown_from_) == units;
}

bool UnitNumbers::complete() const {
  for (int unit = 0; grown_from_ && unit < units(); ++unit)
    if (of(unit) != units()) return false;
  return true;
}

}  // namespace tenure::kafka
