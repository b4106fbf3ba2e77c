// SPDX-License-Identifier: Apache-2.0
#include <tenure/prometheus.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace tenure::prometheus {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

/// The shortest text that reads back as the same number, whatever the locale.
std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}
std::string number(std::uint64_t value) { return std::to_string(value); }

/// "timed out" as a label's value is timed_out.
std::string word(std::string_view text) {
  std::string out(text);
  std::ranges::replace(out, ' ', '_');
  return out;
}

double seconds(std::chrono::nanoseconds d) { return std::chrono::duration<double>(d).count(); }

/// A family: its head, then its samples one after the other, as the format demands.
class Family {
 public:
  Family(std::string& out, std::string_view name, std::string_view type, std::string_view help)
      : out_(out), name_(name) {
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  }

  template <class Number>
  void sample(const Labels& labels, Number value, std::string_view suffix = {}) {
    out_.append(name_).append(suffix);
    char before = '{';
    for (const auto& [label, text] : labels) {
      out_.append(1, std::exchange(before, ',')).append(label).append("=\"");
      append_escaped(text);
      out_.append("\"");
    }
    out_.append("} ").append(number(value)).append("\n");
  }

  void sample(const Labels& labels, const Histogram& histogram) {
    std::uint64_t up_to = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      up_to += histogram.counts[i];
      const auto bound = i < Histogram::bounds_ms.size() ? number(seconds(Histogram::bounds_ms[i])) : "+Inf";
      auto with_bound = labels;
      with_bound.emplace_back("le", bound);
      sample(with_bound, up_to, "_bucket");
    }
    sample(labels, seconds(histogram.sum), "_sum");
    sample(labels, up_to, "_count");
  }

 private:
  void append_escaped(std::string_view text) {
    for (const char c : text) {
      if (c == '\\' || c == '"') out_ += '\\';
      if (c == '\n')
        out_ += "\\n";
      else
        out_ += c;
    }
  }

  std::string& out_;
  std::string_view name_;
};

/// An election, or a group of them, and the label that names it.
struct Row {
  std::pair<std::string_view, std::string_view> of;
  const Metrics& m;
};

std::vector<Row> rows_of(const std::vector<Metrics>& elections, const std::vector<GroupMetrics>& groups) {
  std::vector<Row> out;
  out.reserve(elections.size() + groups.size());
  for (const auto& m : elections) out.push_back({{"election", m.election}, m});
  for (const auto& g : groups) out.push_back({{"group", g.group}, g.session});
  return out;
}

void append_groups(std::string& out, const std::vector<GroupMetrics>& groups) {
  if (groups.empty()) return;
  Family joined(out, "tenure_elections_joined", "gauge", "In how many elections of the group this process takes part.");
  for (const auto& g : groups) joined.sample({{"group", g.group}}, g.joined);
  Family led(out, "tenure_elections_led", "gauge", "How many elections of the group this process leads.");
  for (const auto& g : groups) led.sample({{"group", g.group}}, g.led);
}

void append_leads(std::string& out, const std::vector<Metrics>& all) {
  Family status(out, "leader_election_master_status", "gauge", "Whether this process leads the election: 1 or 0.");
  for (const auto& m : all) status.sample({{"name", m.election}}, std::uint64_t{m.is_leader});
  Family token(out, "tenure_token", "gauge", "The fencing token of the present tenure, while this process leads.");
  for (const auto& m : all)
    if (m.token) token.sample({{"election", m.election}}, static_cast<std::uint64_t>(m.token->value));
}

void append_lease(std::string& out, const std::vector<Row>& all) {
  Family remaining(out, "tenure_lease_remaining_seconds", "gauge",
                   "How long this process leads if no renewal is granted any more.");
  for (const auto& [of, m] : all) remaining.sample({of}, seconds(m.remaining));
  Family outage(out, "tenure_outage_ridden_out_seconds", "gauge",
                "The longest outage of the store that would not end the tenure if it began now.");
  for (const auto& [of, m] : all) outage.sample({of}, seconds(m.rides_out));
  Family overdue(out, "tenure_overdue_seconds", "gauge",
                 "How long ago the manager should have acted last, and has not. Above some seconds it is stuck.");
  for (const auto& [of, m] : all) overdue.sample({of}, seconds(m.overdue));
  Family wedged(out, "tenure_call_wedged_seconds", "gauge",
                "By how long the present call of the store has outlasted its limit.");
  for (const auto& [of, m] : all) wedged.sample({of}, seconds(m.wedged));
  Family overrun(out, "tenure_hook_overrun_seconds", "gauge",
                 "By how long ousting() has outlasted its time: the work may run on without a lease.");
  for (const auto& [of, m] : all) overrun.sample({of}, seconds(m.overrun));
  Family since(out, "tenure_since_granted_seconds", "gauge",
               "The time since this process sent the acquire or the renewal that was granted last.");
  for (const auto& [of, m] : all)
    if (m.since_granted) since.sample({of}, seconds(*m.since_granted));
}

/// A group has no such watch.
void append_progress(std::string& out, const std::vector<Metrics>& all) {
  Family since(out, "tenure_since_progress_seconds", "gauge",
               "The time since the leader's work told of progress, if it is watched.");
  for (const auto& m : all)
    if (m.since_progress) since.sample({{"election", m.election}}, seconds(*m.since_progress));
  Family stalled(out, "tenure_stalled", "gauge",
                 "Whether the work stalled and has not gone on since: 1 or 0. Then this process does not contend.");
  for (const auto& m : all) stalled.sample({{"election", m.election}}, std::uint64_t{m.stalled});
}

void append_changes(std::string& out, const std::vector<Row>& all) {
  Family elected(out, "tenure_elected_total", "counter", "How many tenures of this process began.");
  for (const auto& [of, m] : all) elected.sample({of}, m.elected);
  Family ousted(out, "tenure_ousted_total", "counter", "How many tenures of this process ended, by the reason.");
  for (const auto& [of, m] : all)
    for (const auto& [reason, count] : m.ousted) ousted.sample({of, {"reason", word(to_string(reason))}}, count);
  Family errors(out, "tenure_errors_total", "counter", "What the error() hook was told of, by the fault.");
  for (const auto& [of, m] : all)
    for (const auto& [fault, count] : m.errors) errors.sample({of, {"fault", word(to_string(fault))}}, count);
}

void append_durations(std::string& out, const std::vector<Row>& all) {
  Family calls(out, "tenure_call_duration_seconds", "histogram", "How long the store took to answer, by the call.");
  for (const auto& [of, m] : all)
    for (const auto& [call, metrics] : m.calls) calls.sample({of, {"call", call}}, metrics.durations);
  Family errors(out, "tenure_call_errors_total", "counter", "Calls that the store did not answer, by the fault.");
  for (const auto& [of, m] : all)
    for (const auto& [call, metrics] : m.calls)
      for (const auto& [fault, count] : metrics.errors)
        errors.sample({of, {"call", call}, {"fault", word(to_string(fault))}}, count);
  Family hooks(out, "tenure_hook_duration_seconds", "histogram", "How long the program's hooks took.");
  for (const auto& [of, m] : all)
    for (const auto& [hook, histogram] : m.hooks) hooks.sample({of, {"hook", hook}}, histogram);
}

}  // namespace

std::string to_text(const std::vector<Metrics>& elections, const std::vector<GroupMetrics>& groups) {
  std::string out;
  const auto rows = rows_of(elections, groups);
  append_leads(out, elections);
  append_groups(out, groups);
  append_lease(out, rows);
  append_progress(out, elections);
  append_changes(out, rows);
  append_durations(out, rows);
  return out;
}

}  // namespace tenure::prometheus
