// SPDX-License-Identifier: Apache-2.0
// No name of an election adds a line or a label to the metrics, and a reader finds it again.
#include <algorithm>

#include <tenure/prometheus.hpp>

#include "fuzz.hpp"

namespace tenure::fuzz {
namespace {

/// The value of the label, as Prometheus reads it.
std::string label(std::string_view text, std::string_view name) {
  std::string out;
  for (auto at = text.find(name) + name.size(); text.at(at) != '"'; ++at)
    out += text.at(at) != '\\' ? text.at(at) : text.at(++at) == 'n' ? '\n' : text.at(at);
  return out;
}

void text(const std::string& name) {
  Metrics metrics;
  metrics.election = name;
  Metrics harmless;
  harmless.election = "x";
  const auto written = prometheus::to_text({metrics}), other = prometheus::to_text({harmless});
  require(std::count(written.begin(), written.end(), '\n') == std::count(other.begin(), other.end(), '\n'),
          "a name adds no line");
  require(label(written, "leader_election_master_status{name=\"") == utf8(name), "a name is found again");
  require(utf8(written) == written, "it is UTF-8");
}

}  // namespace

const std::vector<Target> targets{{"prometheus_text", text}};

}  // namespace tenure::fuzz
