// SPDX-License-Identifier: Apache-2.0
// Turns a snapshot into families of samples, and these into text.
#include <tenure/prometheus.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <tenure/kit/text.hpp>

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

double seconds(std::chrono::nanoseconds d) { return std::chrono::duration<double>(d).count(); }

/// A family that is being told. Others may be begun meanwhile.
class Telling {
 public:
  Telling(std::vector<Family>& all, const char* name, Family::Type type, const char* help)
      : all_(all), index_(all.size()) {
    all_.push_back({.name = name, .help = help, .type = type, .samples = {}});
  }

  template <class Value>
  void sample(const Labels& labels, const Value& value) {
    auto& sample = all_[index_].samples.emplace_back(Sample{.labels = {}, .value = value});
    // Prometheus refuses a page for one byte that is not UTF-8, and an election's name may have any.
    for (const auto& [name, text] : labels) sample.labels.emplace_back(name, utf8(text));
  }

 private:
  std::vector<Family>& all_;
  const std::size_t index_;
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

void tell_groups(std::vector<Family>& out, const std::vector<GroupMetrics>& groups) {
  if (groups.empty()) return;
  Telling joined(out, "tenure_elections_joined", Family::Type::gauge,
                 "In how many elections of the group this process takes part.");
  for (const auto& g : groups) joined.sample({{"group", g.group}}, g.joined);
  Telling led(out, "tenure_elections_led", Family::Type::gauge, "How many elections of the group this process leads.");
  for (const auto& g : groups) led.sample({{"group", g.group}}, g.led);
  Telling stalled(out, "tenure_elections_stalled", Family::Type::gauge,
                  "Of how many elections the work stalled and has not gone on since. This process contends for none of "
                  "them.");
  for (const auto& g : groups) stalled.sample({{"group", g.group}}, g.stalled);
}

void tell_leads(std::vector<Family>& out, const std::vector<Metrics>& all) {
  Telling status(out, "leader_election_master_status", Family::Type::gauge,
                 "Whether this process leads the election: 1 or 0.");
  for (const auto& m : all) status.sample({{"name", m.election}}, std::uint64_t{m.is_leader});
  Telling token(out, "tenure_token", Family::Type::gauge,
                "The fencing token of the present tenure, while this process leads.");
  for (const auto& m : all)
    if (m.token) token.sample({{"election", m.election}}, static_cast<std::uint64_t>(m.token->value));
}

void tell_lease(std::vector<Family>& out, const std::vector<Row>& all) {
  Telling remaining(out, "tenure_lease_remaining_seconds", Family::Type::gauge,
                    "How long this process leads if no renewal is granted any more.");
  for (const auto& [of, m] : all) remaining.sample({of}, seconds(m.remaining));
  Telling outage(out, "tenure_outage_ridden_out_seconds", Family::Type::gauge,
                 "The longest outage of the store that would not end the tenure if it began now.");
  for (const auto& [of, m] : all) outage.sample({of}, seconds(m.rides_out));
  Telling overdue(out, "tenure_overdue_seconds", Family::Type::gauge,
                  "How long ago the manager should have acted last, and has not. Above some seconds it is stuck.");
  for (const auto& [of, m] : all) overdue.sample({of}, seconds(m.overdue));
  Telling wedged(out, "tenure_call_wedged_seconds", Family::Type::gauge,
                 "By how long the present call of the store has outlasted its limit.");
  for (const auto& [of, m] : all) wedged.sample({of}, seconds(m.wedged));
  Telling overrun(out, "tenure_hook_overrun_seconds", Family::Type::gauge,
                  "By how long ousting() has outlasted its time: the work may run on without a lease.");
  for (const auto& [of, m] : all) overrun.sample({of}, seconds(m.overrun));
  Telling since(out, "tenure_since_granted_seconds", Family::Type::gauge,
                "The time since this process sent the acquire or the renewal that was granted last.");
  for (const auto& [of, m] : all)
    if (m.since_granted) since.sample({of}, seconds(*m.since_granted));
}

/// A group counts how many have stalled.
void tell_progress(std::vector<Family>& out, const std::vector<Metrics>& all) {
  Telling since(out, "tenure_since_progress_seconds", Family::Type::gauge,
                "The time since the leader's work reported progress, if it is watched.");
  for (const auto& m : all)
    if (m.since_progress) since.sample({{"election", m.election}}, seconds(*m.since_progress));
  Telling stalled(out, "tenure_stalled", Family::Type::gauge,
                  "Whether the work stalled and has not gone on since: 1 or 0. Then this process does not contend.");
  for (const auto& m : all) stalled.sample({{"election", m.election}}, std::uint64_t{m.stalled});
}

void tell_changes(std::vector<Family>& out, const std::vector<Row>& all) {
  Telling elected(out, "tenure_elected_total", Family::Type::counter, "How many tenures of this process began.");
  for (const auto& [of, m] : all) elected.sample({of}, m.elected);
  Telling ousted(out, "tenure_ousted_total", Family::Type::counter,
                 "How many tenures of this process ended, by the reason.");
  for (const auto& [of, m] : all)
    for (const auto& [reason, count] : m.ousted) ousted.sample({of, {"reason", underscored(to_string(reason))}}, count);
  Telling errors(out, "tenure_errors_total", Family::Type::counter,
                 "The errors that the error() hook heard of, by the fault.");
  for (const auto& [of, m] : all)
    for (const auto& [fault, count] : m.errors) errors.sample({of, {"fault", underscored(to_string(fault))}}, count);
}

void tell_durations(std::vector<Family>& out, const std::vector<Row>& all) {
  Telling calls(out, "tenure_call_duration_seconds", Family::Type::histogram,
                "How long the store took to answer, by the call.");
  for (const auto& [of, m] : all)
    for (const auto& [call, metrics] : m.calls) calls.sample({of, {"call", call}}, metrics.durations);
  Telling errors(out, "tenure_call_errors_total", Family::Type::counter,
                 "Calls that the store did not answer, by the fault.");
  for (const auto& [of, m] : all)
    for (const auto& [call, metrics] : m.calls)
      for (const auto& [fault, count] : metrics.errors)
        errors.sample({of, {"call", call}, {"fault", underscored(to_string(fault))}}, count);
  Telling hooks(out, "tenure_hook_duration_seconds", Family::Type::histogram, "How long the program's hooks took.");
  for (const auto& [of, m] : all)
    for (const auto& [hook, histogram] : m.hooks) hooks.sample({of, {"hook", hook}}, histogram);
}

// ---- text ----

const char* name_of(Family::Type type) {
  return type == Family::Type::gauge ? "gauge" : type == Family::Type::counter ? "counter" : "histogram";
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
}

/// One line. `bound`: of a bucket, if it is one.
void append_line(std::string& out, const std::string& name, const char* suffix, const Sample& sample,
                 const std::string& value, std::string_view bound = {}) {
  out.append(name).append(suffix);
  char before = '{';
  for (const auto& [label, text] : sample.labels) {
    out.append(1, std::exchange(before, ',')).append(label).append("=\"");
    append_escaped(out, text);
    out.append("\"");
  }
  if (!bound.empty()) out.append(1, std::exchange(before, ',')).append("le=\"").append(bound).append("\"");
  out.append("} ").append(value).append("\n");
}

void append_histogram(std::string& out, const std::string& name, const Sample& sample, const Histogram& histogram) {
  std::uint64_t up_to = 0;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    up_to += histogram.counts[i];
    const auto bound = i < Histogram::bounds_ms.size() ? number(seconds(Histogram::bounds_ms[i])) : "+Inf";
    append_line(out, name, "_bucket", sample, number(up_to), bound);
  }
  append_line(out, name, "_sum", sample, number(seconds(histogram.sum)));
  append_line(out, name, "_count", sample, number(up_to));
}

/// Its head, then its samples one after the other, as the format demands.
void append_family(std::string& out, const Family& family) {
  out.append("# HELP ").append(family.name).append(" ").append(family.help).append("\n");
  out.append("# TYPE ").append(family.name).append(" ").append(name_of(family.type)).append("\n");
  for (const auto& sample : family.samples) {
    if (const auto* histogram = std::get_if<Histogram>(&sample.value))
      append_histogram(out, family.name, sample, *histogram);
    else if (const auto* whole = std::get_if<std::uint64_t>(&sample.value))
      append_line(out, family.name, "", sample, number(*whole));
    else
      append_line(out, family.name, "", sample, number(std::get<double>(sample.value)));
  }
}

}  // namespace

std::vector<Family> families(const std::vector<Metrics>& elections, const std::vector<GroupMetrics>& groups) {
  std::vector<Family> out;
  const auto rows = rows_of(elections, groups);
  tell_leads(out, elections);
  tell_groups(out, groups);
  tell_lease(out, rows);
  tell_progress(out, elections);
  tell_changes(out, rows);
  tell_durations(out, rows);
  return out;
}

std::string to_text(const std::vector<Metrics>& elections, const std::vector<GroupMetrics>& groups) {
  std::string out;
  for (const auto& family : families(elections, groups)) append_family(out, family);
  return out;
}

}  // namespace tenure::prometheus
