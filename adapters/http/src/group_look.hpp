// SPDX-License-Identifier: Apache-2.0
// What the documents about many elections are made of. It knows no HTTP.
#pragma once
#include <string>
#include <string_view>

#include <tenure/http.hpp>
#include <tenure/metrics.hpp>

namespace tenure::http {

/// So many elections are told of in one answer.
inline constexpr std::size_t leads_at_once = 100;

/// `after`: what is told of begins after this name. Empty: with the first one.
std::string group_status_document(const Elections& elections, const SiteOptions& options, const std::string& after);

/// The same of a group that is only watched.
std::string observed_document(const GroupObserver& observer, const SiteOptions& options, const std::string& after);

/// The election that a request names. Throws std::invalid_argument.
std::string election_in(const Request& request);

/// Why /readyz fails; empty if it does not.
std::string group_lacks(const GroupMetrics& metrics, Clock::Duration stuck_after);

/// The value of one parameter of a query. '+' is a blank, as forms write it. Nothing if it is not there. Throws
/// std::invalid_argument if it is there twice, or a '%' is not followed by two digits.
std::optional<std::string> parameter(std::string_view query, std::string_view name);

}  // namespace tenure::http
