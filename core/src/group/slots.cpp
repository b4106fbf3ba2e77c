// SPDX-License-Identifier: Apache-2.0
// The table of the elections that this process leads or was asked about.
#include "group/slots.hpp"

#include <algorithm>

namespace tenure {

Validity::Now Slots::now(std::string_view election) const noexcept {
  if (page_->forked()) return {};
  const std::shared_lock lock(mutex_);
  const auto it = all_.find(election);
  return it == all_.end() ? Validity::Now{} : it->second.slot->now();
}

Slots::Slot Slots::get(const std::string& election) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto it = all_.find(election); it != all_.end()) return it->second.slot;
  }
  const std::lock_guard lock(mutex_);
  return add(election).slot;
}

Slots::Slot Slots::hold(const std::string& election) {
  const std::lock_guard lock(mutex_);
  auto& entry = add(election);
  entry.held = true;
  return entry.slot;
}

void Slots::let_go(const std::string& election) {
  const std::lock_guard lock(mutex_);
  const auto it = all_.find(election);
  if (it == all_.end()) return;
  it->second.held = false;
  if (it->second.slot.use_count() == 1) all_.erase(it);
}

/// Drops handles that nobody holds. It does so when the table has doubled since the last time.
Slots::Held& Slots::add(const std::string& election) {
  if (const auto it = all_.find(election); it != all_.end()) return it->second;
  if (all_.size() >= prune_at_) {
    std::erase_if(all_, [](const auto& entry) { return !entry.second.held && entry.second.slot.use_count() == 1; });
    prune_at_ = std::max(std::size_t{64}, 2 * all_.size());
  }
  return all_.emplace(election, Held{make_(election)}).first->second;
}

std::vector<std::pair<std::string, Token>> Slots::led() const {
  std::vector<std::pair<std::string, Token>> out;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [election, entry] : all_)
      if (const auto now = entry.slot->now()) out.emplace_back(election, now.token);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::size_t Slots::leads() const {
  const std::shared_lock lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(all_.begin(), all_.end(), [](const auto& entry) { return bool(entry.second.slot->now()); }));
}

std::size_t Slots::size() const {
  const std::shared_lock lock(mutex_);
  return all_.size();
}

}  // namespace tenure
