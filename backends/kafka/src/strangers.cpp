// SPDX-License-Identifier: Apache-2.0
// Finds processes that use the group in another way.
#include "strangers.hpp"

#include <algorithm>

#include <tenure/kit/logging.hpp>

#include "record.hpp"
#include "unit.hpp"

namespace tenure::kafka {
namespace {

std::string way(int units, Exclusive exclusive) {
  return std::to_string(units) + " units" + (exclusive == Exclusive::no ? " and Exclusive::no" : "");
}

/// Of a later version, only the state and the lease can be read.
std::string way(const Record& record) {
  if (record.who.incarnation.empty()) return "a later version of this library";
  return record.units == 0 ? "one election" : way(record.units, record.exclusive);
}

/// Whether the group may have the one number first, and then the other.
bool grows(int units, int others) { return is_multiple(units, others) || is_multiple(others, units); }

}  // namespace

std::vector<std::string> Strangers::saw(const role_fact::Offsets& read, Clock::Time now, bool may_be_old) {
  std::vector<std::string> news;
  for (int i = 0; i < units_; ++i) {
    const auto& commit = read.at(static_cast<std::size_t>(record_of(i)));
    const auto record = commit ? decode(commit->metadata) : std::nullopt;
    const bool same = record && record->exclusive == exclusive_ &&
                      (record->units == units_ || (exclusive_ == Exclusive::yes && grows(record->units, units_)));
    if (!record || record->released || same) {
      if (!may_be_old) records_.erase(i);
      continue;
    }
    const auto [it, added] = records_.try_emplace(i, Live{*commit, now});
    if (!added && it->second.commit != *commit) it->second = {*commit, now};
    if (added)
      news.push_back("\"" + printable(record->who.name, 80) + "\" uses this group and topic with " + way(*record) +
                     ", and this process with " + way(units_, exclusive_) +
                     ". Nothing is claimed while it leads; use the same version, number and mode");
    it->second.over = it->second.seen + std::max(record->lease, lease_);
  }
  until_ = Clock::Time::min();
  for (const auto& [unit, one] : records_) until_ = std::max(until_, one.over);
  return news;
}

}  // namespace tenure::kafka
