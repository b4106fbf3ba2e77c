// SPDX-License-Identifier: Apache-2.0
// The search for a consumer that keeps partitions from all candidates, and for partitions that nobody has: where nobody
// has led for a lease, the coordinator is asked who owns them. A value. Both protocols of this room use it: rule 21 of
// its README.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/result.hpp>

#include "group.hpp"

namespace tenure::kafka {

// What the client ids of our members begin with. '!' sorts before letters and digits, so a consumer that is in the
// group by mistake ranks behind them.
inline constexpr std::string_view candidate_prefix = "!tenure.";   ///< Of a single election.
inline constexpr std::string_view role_prefix = "!tenure.roles.";  ///< Of a group of roles.

class OwnerSearch {
 public:
  enum class Form { single, roles };
  explicit OwnerSearch(Form form) : form_(form) {}

  /// Nothing that concerns us is without a leader.
  void all_led() { since_.reset(), told_ = named_owner_ = false; }

  /// When the coordinator is to be asked. Nothing while an answer is awaited, or after a stranger was named. `since`:
  /// when the lead became free. Only its first value since all_led() counts.
  std::optional<Clock::Time> ask_at(Clock::Time since, Clock::Duration lease);
  void asked(Clock::Time now) { since_ = now, asking_ = true; }
  void lost() { asking_ = false; }  ///< No answer may come.

  /// A stranger that owns one was named since all_led().
  bool named_owner() const { return named_owner_; }

  /// What the user is to be told. `unled`: the partitions on which nobody leads.
  std::optional<std::string> answered(const Result<Owners>& found, const std::vector<int>& unled);

 private:
  friend class NeliState;  ///< tests/kafka/neli_explore_test.cpp: what counts as the same state

  bool ours(const std::string& client_id) const;

  Form form_;
  std::optional<Clock::Time> since_;
  bool asking_{}, told_{}, named_owner_{};
};

}  // namespace tenure::kafka
