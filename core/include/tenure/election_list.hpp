// SPDX-License-Identifier: Apache-2.0
// Which elections a store has, and who leads them: for operators. <tenure/stores.hpp> opens a list by URL.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/clock.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/export.hpp>
#include <tenure/limit.hpp>
#include <tenure/result.hpp>

namespace tenure {

/// One election of a list.
struct ListedElection {
  std::string election{};
  /// Unknown if its record cannot be read. The `remaining` of an Incumbent is counted by the store's clock. An
  /// observer's is longer, because it trusts its own clock alone.
  Sight sight{};
  Clock::Duration age{};  ///< The time since its record was written. It is an estimate by the store's clock.
};

/// A part of a list.
struct ElectionPage {
  std::vector<ListedElection> elections{};  ///< Some hundreds at most; perhaps none, although more will follow.
  bool last{};                              ///< No page follows.
};

/// Asks for the next page of the elections of a store, in an order of the store's. It only asks, and changes nothing.
/// After an Error the same page may be asked for again. REQUIRES: the last page has not come yet.
///
/// It does not see the store at one moment: an election that is made meanwhile may be missing, and one may come twice.
/// The elections of groups (`Elections`) are not in it. One thread at a time uses it.
using ElectionList = std::function<Result<ElectionPage>(const Limit&)>;

/// For those who write a store: makes a row of a record that was read. `now` is boot_clock()'s after the answer.
TENURE_EXPORT ListedElection listed(std::string election, const Result<Read>& found, Clock::Time now);

}  // namespace tenure
