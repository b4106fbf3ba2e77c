// SPDX-License-Identifier: Apache-2.0
// Goal: through every store at most one candidate leads, however they are stopped, killed, restarted and cut off.
// Method: real processes and real servers; a nemesis, or a relay that lets nothing of the leader's through. The judge
// reads the journal. Other tests show that the judge notices a broken rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

#include <tenure/kit/wait.hpp>

#include "expect_sound.hpp"
#include "nemesis.hpp"
#include "relay.hpp"
#include "scratch.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

struct Store {
  std::string variable;             ///< What must be set, with the server's address; empty: no server.
  std::string before, after;        ///< Of the address, to make a URL of it. {} in it: the test's own name.
  std::vector<std::string> timing;  ///< The candidates' arguments for it.
  Clock::Duration term;
  std::size_t seconds_per_tenure;  ///< At most, under the nemesis; or nothing was shown.
};

/// A launcher's env names the variable of a server's URL after the store, unless it is named here.
Store store(const std::string& name) {
  static const std::vector<std::string> half_a_second{"--term-ms", "500"};
  static const std::map<std::string, Store> stores{
      {"file", {"", "file://{}/store", "", half_a_second, 500ms, 2}},
      {"kafka",
       {"TENURE_KAFKA_BROKERS",
        "kafka://",
        "/tenure-chaos?create_topic=true&min_session_ms=100&group={}",
        {"--preset", "steady"},
        1500ms,
        4}},
      // Its test server is a program in Python, which many tests side by side keep waiting.
      {"object", {"TENURE_OBJECT", "", "", {"--term-ms", "2000", "--call-ms", "500"}, 2s, 8}},
      {"postgres", {"TENURE_POSTGRES_URL", "", "", half_a_second, 500ms, 4}},
  };
  if (const auto special = stores.find(name); special != stores.end()) return special->second;
  auto variable = "TENURE_" + name;
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return {variable, "", "", half_a_second, 500ms, 4};
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

class Soak : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto s = store(GetParam());
    const auto* address = s.variable.empty() ? "" : std::getenv(s.variable.c_str());
    if (address == nullptr) GTEST_SKIP() << "needs a real server: set " << s.variable << " to its address";
    const auto own = s.variable.empty() ? scratch_.path().string() : scratch_.path().filename().string();
    url_ = std::regex_replace(s.before + address + s.after, std::regex("\\{\\}"), own);
  }
  Fleet fleet(const std::string& url, const std::vector<std::string>& timing) const {
    std::vector<std::string> arguments{"--store", url, "--election", scratch_.path().filename(), "--note-ms", "5"};
    arguments.insert(arguments.end(), timing.begin(), timing.end());
    return {TENURE_CANDIDATE, arguments, scratch_ / "journal"};
  }

  std::string url_;
  const Scratch scratch_;
};

/// What was done too seldom in this time, so that nothing was shown.
std::string too_little(const Store& s, const Verdict& verdict, Clock::Duration duration) {
  const auto seconds = static_cast<std::size_t>(duration / 1s);
  const auto at_least = [](std::size_t least, std::size_t often) { return std::max(least, often); };
  if (verdict.tenures < at_least(3, seconds / s.seconds_per_tenure)) return "tenures";
  if (verdict.to_leaders < at_least(2, seconds / s.seconds_per_tenure / 2)) return "faults of leaders";
  for (const auto* what : {done_to::stopped, done_to::killed, done_to::asked}) {
    const auto found = verdict.faults.find(what);
    const auto count = found == verdict.faults.end() ? 0 : found->second;
    if (count < at_least(1, seconds / 5 / static_cast<std::size_t>(s.term / 500ms))) return what;
  }
  return "";
}

TEST_P(Soak, NeverTwoLeadersWhateverTheNemesisDoes) {
  const auto s = store(GetParam());
  auto candidates = fleet(url_, s.timing);
  auto plan = Plan::from_environment(s.term);
  plan.enough = [&] { return too_little(s, judge(candidates.events()), plan.duration).empty(); };
  Nemesis nemesis(candidates, plan);
  EXPECT_TRUE(nemesis.run(std::cout));
  EXPECT_EQ(too_little(s, expect_sound(judge(candidates.events())), plan.duration), "");
}

INSTANTIATE_TEST_SUITE_P(Stores, Soak, testing::ValuesIn(words(TENURE_SHARED_STORES)),
                         [](const auto& that) { return that.param; });

/// Where the URL's one server listens, and the URL with that replaced.
int port_of(const std::string& url) {
  std::smatch m;
  if (!std::regex_search(url, m, std::regex("127\\.0\\.0\\.1:([0-9]+)"))) throw std::runtime_error("no loopback port");
  return std::stoi(m[1]);
}
std::string with_port(const std::string& url, int port) {
  return std::regex_replace(url, std::regex("127\\.0\\.0\\.1:[0-9]+"), "127.0.0.1:" + std::to_string(port));
}

/// The leader's connections stay open, but nothing passes them any more. Only its own lease can tell it.
class CutOff : public Soak {
 protected:
  void cut_off_the_leader_for(Clock::Duration time, const std::vector<std::string>& timing);
};

void CutOff::cut_off_the_leader_for(Clock::Duration time, const std::vector<std::string>& timing) {
  Relay relay(port_of(url_));
  auto candidates = fleet(with_port(url_, relay.port()), timing);
  for (const auto* name : {"c0", "c1", "c2"}) candidates.start(name);
  const auto led = candidates.await(0, is("lead"), 20s);
  if (led == Fleet::npos) excuse_if_busy();  // An object store in Python was kept waiting for all of that time.
  ASSERT_NE(led, Fleet::npos) << "nobody leads";
  const auto cut_off = candidates.events()[led].pid;
  const auto watched = candidates.await(0, is_of_another("sees", cut_off), 20s);
  ASSERT_NE(watched, Fleet::npos) << "nobody watches";

  const auto until = boot_clock().now() + time;
  const auto before = candidates.events().size();
  relay.mute(true, cut_off);
  const auto next = candidates.await(before, is_of_another("lead", cut_off), 40s);
  ASSERT_NE(next, Fleet::npos) << "nobody followed";
  wait_out({boot_clock(), until, {}});
  relay.mute(false);

  candidates.end_all(10s);
  const auto verdict = expect_sound(judge(candidates.events()));
  EXPECT_GE(verdict.tenures, 2u);
}

TEST_P(CutOff, ALeaderThatIsAloneIsReplacedAndNeverLeadsBesideItsSuccessor) {
  const auto s = store(GetParam());
  cut_off_the_leader_for(4s, s.term > 1s ? s.timing : std::vector<std::string>{"--term-ms", "1000"});
}

TEST_P(CutOff, NorDoesOneThatIsAloneFor40Seconds) { cut_off_the_leader_for(40s, {"--preset", "fast"}); }

INSTANTIATE_TEST_SUITE_P(Stores, CutOff, testing::ValuesIn(words(TENURE_CUT_OFF_STORES)),
                         [](const auto& that) { return that.param; });

}  // namespace
}  // namespace tenure::test
