// SPDX-License-Identifier: Apache-2.0
// Goal: prometheus-cpp serves what our own text says, name by name and number by number. Method: both write the same
// metrics; and the example is run and scraped.
#include <tenure/prometheuscpp.hpp>

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <csignal>
#include <map>
#include <sstream>

#include <tenure/leader_manager.hpp>
#include <tenure/memory.hpp>

#include "client.hpp"
#include "eventually.hpp"
#include "leading.hpp"
#include "messages.hpp"
#include "process.hpp"

namespace tenure::prometheus {
namespace {

using namespace std::chrono_literals;

/// Lines of heads as they are; samples with their number. A bound is a number too: "0.10" is "0.1".
struct Read {
  std::vector<std::string> heads{};
  std::map<std::string, double> samples{};
};

Read read(const std::string& text) {
  Read out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) {
      out.heads.push_back(line);
      continue;
    }
    const auto end = line.rfind(' ');
    auto name = line.substr(0, end);
    if (const auto bound = name.find("le=\""); bound != name.npos) {
      const auto number = name.substr(bound + 4, name.find('"', bound + 4) - bound - 4);
      name = name.substr(0, bound) + std::to_string(std::stod(number));
    }
    EXPECT_TRUE(out.samples.emplace(name, std::stod(line.substr(end))).second) << line;
  }
  return out;
}

std::string written_by_prometheuscpp(const std::vector<Family>& all) {
  return ::prometheus::TextSerializer().Serialize(Collectable([all] { return all; }).Collect());
}

void expect_the_same(const std::vector<Metrics>& elections, const std::vector<GroupMetrics>& groups) {
  const auto ours = read(to_text(elections, groups));
  const auto theirs = read(written_by_prometheuscpp(families(elections, groups)));
  EXPECT_FALSE(ours.samples.empty());
  EXPECT_EQ(ours.heads, theirs.heads);
  EXPECT_EQ(ours.samples, theirs.samples);
}

TEST(PrometheusCpp, SaysWhatOurTextSays) {
  const GroupMetrics tenants{.group = "tenants", .joined = 10000, .led = 3333, .session = leading("tenants")};
  expect_the_same({leading("jobs"), leading("other")}, {tenants});
  expect_the_same({Metrics{.election = "\"quoted\" back\\slash and\nline"}}, {});
  expect_the_same({Metrics{.election = "not UTF-8: \xff"}}, {});
}

TEST(PrometheusCpp, ExportsTheFiguresOfARunningManager) {
  const auto hub = memory::hub();
  LeaderManager manager(memory::open(hub, "jobs"), memory::presets().fast, {.log = no_log});
  manager.start();
  ASSERT_TRUE(manager.await_leadership(1min));
  const auto m = manager.metrics();  // one snapshot for both
  expect_the_same({m}, {});
}

TEST(PrometheusCpp, NeedsAFunction) { EXPECT_THROW(Collectable({}), std::invalid_argument); }

TEST(PrometheusCpp, TheExampleIsScraped) {
  test::Process example({TENURE_EXAMPLE, "127.0.0.1:0"});
  ASSERT_TRUE(test::eventually([&] { return example.out().ends_with("/metrics\n"); })) << example.err();
  const auto url = example.out();  // http://127.0.0.1:PORT/metrics
  const auto page = test::fetch(url.substr(7, url.rfind('/') - 7), "/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(test::mentions(page.body, "leader_election_master_status{name=\"reports\"} ")) << page.body;
  example.signal(SIGTERM);
  EXPECT_EQ(example.ended(), 0);
}

}  // namespace
}  // namespace tenure::prometheus
