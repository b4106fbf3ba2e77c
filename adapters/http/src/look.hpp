// SPDX-License-Identifier: Apache-2.0
// What the documents are made of. It knows neither threads nor HTTP.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <tenure/candidate.hpp>
#include <tenure/http.hpp>
#include <tenure/metrics.hpp>

namespace tenure::http {

/// One change, as /events and the history tell it.
struct Change {
  enum class What { elected, ousted, incumbent, vacant, ended };
  std::uint64_t id{};
  What what{};
  std::optional<Token> token{};
  std::optional<Reason> reason{};  ///< Of ousted.
  std::string name{}, address{};   ///< Of incumbent.
  std::int64_t unix_ms{};          ///< When we saw it, for people.
};

/// The manager at one moment.
struct Look {
  Metrics metrics{};
  std::optional<Incumbent> incumbent{};
  bool ended{};
  std::optional<Error> error{};  ///< Why we do not know who leads, if nobody is known to.
};

/// What must have happened from one look to the next, in an order that is possible.
std::vector<Change> changes_between(const Look& before, const Look& now);

/// Why /healthz fails; empty if it does not.
std::string ailment(const Metrics& metrics, Clock::Duration stuck_after);

std::string status_document(const Look& look, const SiteOptions& options, const std::deque<Change>& history,
                            bool with_history);
std::string leader_document(const Look& look, const SiteOptions& options);
std::string change_document(const Change& change);

}  // namespace tenure::http
