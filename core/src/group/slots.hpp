// SPDX-License-Identifier: Apache-2.0
// The elections of a group by their names: where each one's Leadership reads whether we lead it.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "group/group_validity.hpp"

namespace tenure {

/// Any thread may call any method. The lock is shared, but by what adds a name or takes one out.
class Slots {
 public:
  using Slot = std::shared_ptr<GroupValidity>;
  using Make = std::function<Slot(const std::string& election)>;

  Slots(std::shared_ptr<const LeasePage> page, Make make) : page_(std::move(page)), make_(std::move(make)) {}

  /// Whether we lead it. A forked child takes no lock: it may have been held when we were forked.
  Validity::Now now(std::string_view election) const noexcept;

  /// It stays here as long as somebody has it, so that whoever kept it hears of the next tenure.
  Slot get(const std::string& election);

  /// The same, and it stays until it is let go.
  Slot hold(const std::string& election);
  void let_go(const std::string& election);

  std::vector<std::pair<std::string, Token>> led() const;  ///< Sorted by name.
  std::size_t leads() const;
  std::size_t size() const;

 private:
  struct Held {
    Slot slot{};
    bool held{};
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };

  Held& add(const std::string& election);

  const std::shared_ptr<const LeasePage> page_;
  const Make make_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, Held, Hash, std::equal_to<>> all_;
  std::size_t prune_at_{64};
};

}  // namespace tenure
