// SPDX-License-Identifier: Apache-2.0
// Goal: Prometheus reads what we write, and reads in it what happened. Method: texts that are known, and Prometheus'
// own Python client as the reader.
#include <tenure/prometheus.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <tenure/leader_manager.hpp>
#include <tenure/memory.hpp>
#include <utility>

#include "leading.hpp"
#include "scratch.hpp"

namespace tenure::prometheus {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(Prometheus, GaugesAndCountersSayWhatHappened) {
  const auto lines = lines_of(to_text({leading("jobs")}));
  for (const auto* line :
       {R"(leader_election_master_status{name="jobs"} 1)", R"(tenure_token{election="jobs"} 1754560000123)",
        R"(tenure_lease_remaining_seconds{election="jobs"} 9.5)",
        R"(tenure_outage_ridden_out_seconds{election="jobs"} 7.3)",
        R"(tenure_since_granted_seconds{election="jobs"} 0.001)", R"(tenure_overdue_seconds{election="jobs"} 1.5)",
        R"(tenure_call_wedged_seconds{election="jobs"} 2)", R"(tenure_hook_overrun_seconds{election="jobs"} 0.25)",
        R"(tenure_since_progress_seconds{election="jobs"} 4)", R"(tenure_stalled{election="jobs"} 1)",
        R"(tenure_elected_total{election="jobs"} 2)", R"(tenure_ousted_total{election="jobs",reason="lapsed"} 1)",
        R"(tenure_ousted_total{election="jobs",reason="resigned"} 0)",
        R"(tenure_errors_total{election="jobs",fault="timed_out"} 1)",
        R"(tenure_call_errors_total{election="jobs",call="renew",fault="timed_out"} 1)"})
    EXPECT_THAT(lines, testing::Contains(line));
}

TEST(Prometheus, WhoDoesNotLeadHasNoTokenAndNobodyWhoWasNeverGrantedHasATimeSince) {
  Metrics m;
  m.election = "jobs";
  const auto text = to_text({m});
  EXPECT_THAT(text, HasSubstr(R"(leader_election_master_status{name="jobs"} 0)"));
  EXPECT_THAT(text, Not(HasSubstr("tenure_token{")));
  EXPECT_THAT(text, Not(HasSubstr("tenure_since_granted_seconds{")));
}

TEST(Prometheus, BucketsAreCumulative) {
  const auto lines = lines_of(to_text({leading("jobs")}));
  const std::string of = R"(tenure_call_duration_seconds_)", with = R"({election="jobs",call="renew")";
  for (const auto& line :
       {of + "bucket" + with + R"(,le="0.001"} 1)", of + "bucket" + with + R"(,le="0.002"} 1)",
        of + "bucket" + with + R"(,le="0.005"} 2)", of + "bucket" + with + R"(,le="5"} 2)",
        of + "bucket" + with + R"(,le="+Inf"} 3)", of + "sum" + with + "} 6.004", of + "count" + with + "} 3"})
    EXPECT_THAT(lines, testing::Contains(line));
}

/// The sessions of two processes' groups: what one election has, and how many it stands for.
TEST(Prometheus, AGroupHasALabelOfItsOwnAndSaysHowManyItLeads) {
  GroupMetrics tenants{.group = "tenants", .joined = 10000, .led = 3333, .stalled = 7, .session = leading("tenants")};
  const auto lines = lines_of(to_text({leading("jobs")}, {tenants}));
  for (const auto* line :
       {R"(tenure_elections_joined{group="tenants"} 10000)", R"(tenure_elections_led{group="tenants"} 3333)",
        R"(tenure_elections_stalled{group="tenants"} 7)", R"(tenure_lease_remaining_seconds{group="tenants"} 9.5)",
        R"(tenure_elected_total{group="tenants"} 2)",
        R"(tenure_call_duration_seconds_count{group="tenants",call="renew"} 3)",
        R"(tenure_lease_remaining_seconds{election="jobs"} 9.5)"})
    EXPECT_THAT(lines, testing::Contains(line));
  for (const auto& line : lines) {
    EXPECT_THAT(line, Not(HasSubstr(R"(election="tenants")")));
    EXPECT_THAT(line, Not(HasSubstr(R"(name="tenants")"))) << "a group is no election that is led";
  }
}

/// A family's head comes once, and its samples follow it without another family between.
TEST(Prometheus, EachFamilyStandsTogetherAlsoForManyElections) {
  std::set<std::string> begun;
  std::string family;
  for (const auto& line : lines_of(to_text({leading("a"), leading("b")}, {{.group = "g", .session = leading("g")}}))) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(begun.insert(family).second) << family;
    } else if (!line.starts_with('#')) {
      EXPECT_TRUE(line.starts_with(family)) << line << " below " << family;
    }
  }
  EXPECT_GE(begun.size(), 10u);
}

std::set<std::string> names_of_samples(const std::string& text) {
  std::set<std::string> out;
  for (const auto& line : lines_of(text))
    if (!line.starts_with('#')) out.insert(line.substr(0, line.find('{')));
  return out;
}

TEST(Prometheus, AlertsAndDashboardAskForWhatWeWrite) {
  const auto written = names_of_samples(
      to_text({leading("jobs")}, {{.group = "tenants", .joined = 1, .led = 1, .session = leading("tenants")}}));
  const std::regex name("tenure_[a-z_]+");
  for (const auto* file : {"alerts.yml", "dashboard.json"}) {
    std::ifstream in(std::string(TENURE_MONITORING "/") + file);
    int asked = 0;
    for (std::string line; std::getline(in, line);) {
      if (line.find("expr") == line.npos) continue;
      for (std::sregex_iterator it(line.begin(), line.end(), name), end; it != end; ++it, ++asked)
        EXPECT_TRUE(written.contains(it->str())) << file << ": " << it->str();
    }
    EXPECT_GE(asked, 6) << file;
  }
}

/// Nothing: the client is not there.
std::optional<std::vector<std::string>> as_prometheus_reads(const std::string& text) {
  const tenure::test::Scratch scratch;
  const auto file = scratch / "metrics.txt";
  std::ofstream(file) << text;
  const auto command = std::string(TENURE_PYTHON) + " " TENURE_PARSER " '" + file.string() + "'";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) return std::nullopt;
  std::string out;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  const int status = ::pclose(pipe);
  if (WEXITSTATUS(status) == 77) return std::nullopt;
  EXPECT_EQ(status, 0) << out;
  return lines_of(out);
}

TEST(Prometheus, ItsOwnClientReadsEverySampleAndOddNames) {
  const std::string odd = "a \"quoted\" back\\slash\nand {braces},=";
  const auto samples = as_prometheus_reads(to_text({leading("jobs"), leading("caf\xc3\xa9")}));
  if (!samples) GTEST_SKIP() << "no prometheus_client for Python; Debian: python3-prometheus-client";
  EXPECT_THAT(*samples, testing::Contains("leader_election_master_status gauge {name=jobs} 1.0"));
  EXPECT_THAT(*samples, testing::Contains("tenure_elected_total counter {election=caf\xc3\xa9} 2.0"));
  EXPECT_THAT(*samples,
              testing::Contains("tenure_call_duration_seconds_count histogram {call=renew,election=jobs} 3.0"));
  EXPECT_THAT(*samples, testing::Contains("tenure_hook_duration_seconds_sum histogram {election=jobs,hook=ousting} "
                                          "0.25"));
  Metrics quoted;
  quoted.election = odd;
  const auto read = as_prometheus_reads(to_text({quoted}));
  ASSERT_TRUE(read);
  const auto text = [&] {
    std::string all;
    for (const auto& line : *read) all += line + "\n";
    return all;
  }();
  EXPECT_THAT(text, HasSubstr("{name=" + odd + "} 0.0"));
}

/// A name may have any bytes, and Prometheus reads nothing of a page that is not UTF-8.
TEST(Prometheus, ANameThatIsNotUtf8SpoilsNoPage) {
  const auto text = to_text({leading("caf\xe9"), leading("jobs")}, {{.group = "\xff", .session = leading("\xff")}});
  const auto lines = lines_of(text);
  EXPECT_THAT(lines, testing::Contains("leader_election_master_status{name=\"caf\xef\xbf\xbd\"} 1"));
  EXPECT_THAT(lines, testing::Contains("tenure_elections_joined{group=\"\xef\xbf\xbd\"} 0"));
  const auto samples = as_prometheus_reads(text);
  if (!samples) GTEST_SKIP() << "no prometheus_client for Python; Debian: python3-prometheus-client";
  EXPECT_THAT(*samples, testing::Contains("leader_election_master_status gauge {name=jobs} 1.0"));
}

TEST(Prometheus, AManagerOfTodayIsReadWhole) {
  LeaderManager manager(memory::open(memory::Hub(), "jobs", {"a"}), memory::presets().fast, {.log = no_log});
  manager.start();
  ASSERT_TRUE(manager.await_leadership(30s));
  const auto samples = as_prometheus_reads(to_text({manager.metrics()}));
  if (!samples) GTEST_SKIP() << "no prometheus_client for Python; Debian: python3-prometheus-client";
  EXPECT_THAT(*samples, testing::Contains("leader_election_master_status gauge {name=jobs} 1.0"));
  EXPECT_THAT(*samples, testing::Contains("tenure_call_errors_total counter {call=renew,election=jobs,fault=wedged} "
                                          "0.0"));
}

}  // namespace
}  // namespace tenure::prometheus
