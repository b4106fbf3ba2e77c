// SPDX-License-Identifier: Apache-2.0
#include "group/slots.hpp"

#include <algorithm>
#include <functional>

namespace tenure {
namespace {

constexpr std::size_t least_cells = 128;

/// Zero is a free cell.
std::uint64_t table_hash(std::string_view election) noexcept { return std::hash<std::string_view>{}(election) | 1; }

/// Threads share counts only if there are many.
std::size_t own_count() noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

class Slots::Reading {
 public:
  explicit Reading(std::atomic<std::uint32_t>& count) noexcept : count_(count) { count_.fetch_add(1); }
  ~Reading() { count_.fetch_sub(1); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  std::atomic<std::uint32_t>& count_;
};

Slots::Slots(std::shared_ptr<const LeasePage> page, Make make)
    : page_(std::move(page)),
      make_(std::move(make)),
      owned_(std::make_unique<Table>(least_cells)),
      prune_at_(least_cells / 2) {
  table_ = owned_.get();
}

Validity::Now Slots::now(std::string_view election) const noexcept {
  if (page_->forked()) return {};
  const Reading reading(readers_[own_count() % readers_.size()].count);
  const auto* entry = find(*table_.load(), table_hash(election), election);
  return entry ? entry->second.slot->now() : Validity::Now{};
}

/// Nothing: no cell names it. The answer is the entry whose name was compared, and not what its cell has later: another
/// name may come into a cell that was free.
const Slots::All::value_type* Slots::find(const Table& table, std::uint64_t hash, std::string_view name) noexcept {
  const auto mask = table.cells.size() - 1;
  for (auto at = (hash >> 1) & mask;; at = (at + 1) & mask) {
    const auto& cell = table.cells[at];
    const auto found = cell.hash.load(std::memory_order_acquire);
    if (found == 0) return nullptr;
    if (found != hash) continue;
    const auto* entry = cell.entry.load();
    if (entry && entry->first == name) return entry;
  }
}

/// For the writer: the cell that names it, or the free one where the search ends.
Slots::Cell& Slots::cell_of(Table& table, std::uint64_t hash, std::string_view name) {
  const auto mask = table.cells.size() - 1;
  for (auto at = (hash >> 1) & mask;; at = (at + 1) & mask) {
    auto& cell = table.cells[at];
    const auto found = cell.hash.load(std::memory_order_acquire);
    if (found == 0) return cell;
    if (found != hash) continue;
    const auto* entry = cell.entry.load();
    if (entry && entry->first == name) return cell;
  }
}

// ---- under the mutex ----

Slots::Slot Slots::get(const std::string& election) {
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
  if (const auto it = all_.find(election); it != all_.end()) {
    it->second.held = false;
    if (it->second.slot.use_count() == 1) take_out(it);
  }
  give_back();
}

Slots::Held& Slots::add(const std::string& election) {
  if (const auto it = all_.find(election); it != all_.end()) return it->second;
  if (all_.size() >= prune_at_) prune();
  const auto it = all_.emplace(election, Held{table_hash(election), make_(election)}).first;
  if (2 * (owned_->used + 1) > owned_->cells.size())
    rebuild();
  else
    put(*it);
  return it->second;
}

void Slots::put(const All::value_type& entry) {
  auto& cell = cell_of(*owned_, entry.second.hash, entry.first);
  cell.entry.store(&entry);
  cell.hash.store(entry.second.hash, std::memory_order_release);
  ++owned_->used;
}

void Slots::rebuild() {
  auto size = least_cells;
  while (size < 4 * all_.size()) size *= 2;
  retired_.tables.push_back(std::exchange(owned_, std::make_unique<Table>(size)));
  for (const auto& entry : all_) put(entry);
  table_ = owned_.get();
  give_back();
}

/// Takes out what was only asked for once, when as much has come as stayed the last time.
void Slots::prune() {
  for (auto it = all_.begin(); it != all_.end();) {
    const auto next = std::next(it);
    if (!it->second.held && it->second.slot.use_count() == 1) take_out(it);
    it = next;
  }
  prune_at_ = std::max(least_cells / 2, 2 * all_.size());
  give_back();
}

void Slots::take_out(All::iterator it) {
  cell_of(*owned_, it->second.hash, it->first).entry.store(nullptr);
  retired_.entries.push_back(all_.extract(it));
}

/// What was retired goes once each count was seen at zero. Twice, since mostly all of them are.
void Slots::give_back() {
  for (int i = 0; i < 2; ++i) {
    if (leaving_.empty()) {
      std::swap(leaving_, retired_);
      unseen_.fill(true);
    }
    for (std::size_t n = 0; n < readers_.size(); ++n)
      if (unseen_[n] && readers_[n].count.load() == 0) unseen_[n] = false;
    if (std::any_of(unseen_.begin(), unseen_.end(), [](bool unseen) { return unseen; })) return;
    leaving_ = {};
  }
}

std::vector<std::pair<std::string, Token>> Slots::led() const {
  std::vector<std::pair<std::string, Token>> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [election, entry] : all_)
    if (const auto now = entry.slot->now()) out.emplace_back(election, now.token);
  return out;
}

std::size_t Slots::leads() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(all_.begin(), all_.end(), [](const auto& entry) { return bool(entry.second.slot->now()); }));
}

std::size_t Slots::size() const {
  const std::lock_guard lock(mutex_);
  return all_.size();
}

std::size_t Slots::retired() const {
  const std::lock_guard lock(mutex_);
  return retired_.entries.size() + retired_.tables.size() + leaving_.entries.size() + leaving_.tables.size();
}

}  // namespace tenure
