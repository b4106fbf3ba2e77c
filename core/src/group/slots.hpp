// SPDX-License-Identifier: Apache-2.0
// The elections of a group by their names. Whether we lead one is asked without a lock; all else takes one.
//
// A reader counts itself in before it looks at the table, and out after its answer. Whatever the table names no more is
// kept until each of the counts was seen at zero since: who came later cannot find it. So no reader waits for anybody,
// and memory is given back by the next change.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "group/group_validity.hpp"

namespace tenure {

class Slots {
 public:
  using Slot = std::shared_ptr<GroupValidity>;
  using Make = std::function<Slot(const std::string& election)>;

  Slots(std::shared_ptr<const LeasePage> page, Make make);

  /// Whether we lead it. A forked child finds the lease's page empty.
  Validity::Now now(std::string_view election) const noexcept;

  /// It stays here as long as somebody has it, so that whoever kept it hears of the next tenure.
  Slot get(const std::string& election);

  /// The same, and it stays until it is let go.
  Slot hold(const std::string& election);
  void let_go(const std::string& election);

  std::vector<std::pair<std::string, Token>> led() const;
  std::size_t leads() const;
  std::size_t size() const;
  std::size_t retired() const;  ///< Of which a reader may still be in.

 private:
  struct Held {
    std::uint64_t hash{};
    Slot slot{};
    bool held{};
  };
  using All = std::map<std::string, Held, std::less<>>;
  /// The hash is written last, and never again. No entry: it was taken out.
  struct Cell {
    std::atomic<std::uint64_t> hash{0};
    std::atomic<const All::value_type*> entry{nullptr};
  };
  struct Table {
    explicit Table(std::size_t size) : cells(size) {}  // a power of two, at least half of it free
    std::vector<Cell> cells;
    std::size_t used{};
  };
  struct alignas(64) Readers {
    std::atomic<std::uint32_t> count{0};
  };
  class Reading;
  struct Retired {
    std::vector<All::node_type> entries{};
    std::vector<std::unique_ptr<Table>> tables{};
    bool empty() const { return entries.empty() && tables.empty(); }
  };

  static const All::value_type* find(const Table& table, std::uint64_t hash, std::string_view name) noexcept;
  static Cell& cell_of(Table& table, std::uint64_t hash, std::string_view name);
  Held& add(const std::string& election);
  void put(const All::value_type& entry);
  void rebuild();
  void prune();
  void take_out(All::iterator it);
  void give_back();

  const std::shared_ptr<const LeasePage> page_;
  const Make make_;
  std::atomic<Table*> table_;
  mutable std::array<Readers, 16> readers_{};

  mutable std::mutex mutex_;
  All all_;
  std::unique_ptr<Table> owned_;  ///< What table_ names.
  std::size_t prune_at_;
  Retired retired_, leaving_;  ///< leaving_: retired before the counts were looked at,
  std::array<bool, std::tuple_size_v<decltype(readers_)>> unseen_{};  ///< of which these were not seen at zero yet.
};

}  // namespace tenure
