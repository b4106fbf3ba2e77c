// SPDX-License-Identifier: Apache-2.0
// Metrics as Prometheus reads them. It needs no library: answer GET /metrics with this text.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/metrics.hpp>
#include <tenure/prometheus_export.hpp>

namespace tenure::prometheus {

/// The Content-Type of to_text().
inline constexpr auto content_type = "text/plain; version=0.0.4; charset=utf-8";

/// All of them in the text exposition format, version 0.0.4. Each has the label `election`, or `group` for what the
/// elections of a group have in common. A byte of a name that is not UTF-8 becomes U+FFFD. Durations are in seconds.
/// Any thread may call it.
///
///   leader_election_master_status{name="jobs"} 1          as Kubernetes' components tell it: 1 leads, 0 does not
///   tenure_token{election="jobs"} 1754560000123           only while it leads
///   tenure_lease_remaining_seconds, tenure_outage_ridden_out_seconds, tenure_since_granted_seconds
///   tenure_overdue_seconds, tenure_call_wedged_seconds, tenure_hook_overrun_seconds    zero while all is well
///   tenure_stalled, and tenure_since_progress_seconds while it leads, if Hooks::stall_after is set
///   tenure_elected_total, tenure_ousted_total{reason="lapsed"}, tenure_errors_total{fault="unreachable"}
///   tenure_call_duration_seconds{call="renew"}            a histogram; also tenure_call_errors_total{call=, fault=}
///   tenure_hook_duration_seconds{hook="ousting"}          a histogram
///   tenure_elections_joined{group="tenants"} 10000         also tenure_elections_led, tenure_elections_stalled
///
/// REQUIRES: no two have the same election, or the same group, as it is told here.
TENURE_PROMETHEUS_EXPORT std::string to_text(const std::vector<Metrics>& elections,
                                             const std::vector<GroupMetrics>& groups = {});

/// The same for a program that writes them by a library of its own. <tenure/prometheuscpp.hpp> does so by
/// prometheus-cpp.
struct Sample {
  std::vector<std::pair<std::string, std::string>> labels{};  ///< Names and values, not escaped.
  std::variant<std::uint64_t, double, Histogram> value{};
};
/// The samples of one name.
struct Family {
  enum class Type { gauge, counter, histogram };
  std::string name{}, help{};
  Type type{};
  std::vector<Sample> samples{};
};
/// Every name with its samples, in the order of to_text().
TENURE_PROMETHEUS_EXPORT std::vector<Family> families(const std::vector<Metrics>& elections,
                                                      const std::vector<GroupMetrics>& groups = {});

}  // namespace tenure::prometheus
