// SPDX-License-Identifier: Apache-2.0
// Goal: of many elections of one group each has at most one leader, and a token that rises, however the processes are
// stopped, killed, restarted and cut off, and their server crashes or hangs. Afterwards all are led again, in equal
// shares. Method: real processes, a server of the test's own behind a relay, and a nemesis. The judge reads the
// journal, each election for itself. Built once per store. many_chaos_test.cpp shows that it notices a broken rule.
//
// TENURE_CHAOS_ELECTIONS and TENURE_CHAOS_SECONDS make it longer: 10000 and 600 are what the library promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "nemesis.hpp"
#include "relay.hpp"
#include "scratch.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

#ifdef TENURE_SOAK_REDIS
class Server {
 public:
  int port() const { return server_.port(); }
  std::string url(int port) const { return "redis://127.0.0.1:" + std::to_string(port); }
  void crash() {
    server_.kill();
    server_.start();
  }
  void freeze(bool on) { server_.freeze(on); }

 private:
  redis::test::Server server_{{"auto-aof-rewrite-min-size 1mb"}};  // else it reads all of its past after each crash
};
bool available() { return !redis::test::server_program().empty(); }
constexpr auto needs = "needs redis-server (Debian: apt install redis-tools)";
#else
class Server {
 public:
  int port() const { return server_.port(); }
  std::string url(int port) const {
    return "postgresql://postgres:" + server_.password() + "@127.0.0.1:" + std::to_string(port) + "/postgres";
  }
  void crash() {
    server_.crash();
    server_.restart();
  }
  void freeze(bool on) { on ? server_.freeze() : server_.thaw(); }

 private:
  postgres::test::Server server_;
};
bool available() { return !postgres::test::shared().empty(); }
constexpr auto needs = "needs a real server: set TENURE_POSTGRES";
#endif

std::size_t elections() {
  const auto* number = std::getenv("TENURE_CHAOS_ELECTIONS");
  return number == nullptr ? 300 : std::strtoul(number, nullptr, 10);
}

/// All leads of ten thousand elections are megabytes, which a busy machine does not tell in a moment.
struct Pace {
  Clock::Duration term, call, sample;
};
Pace pace() { return elections() > 1000 ? Pace{10s, 1s, 50ms} : Pace{1s, 100ms, 5ms}; }

class ManySoak : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << needs;
    server_.emplace();
    relay_.emplace(server_->port());
    fleet_.emplace(TENURE_CANDIDATE,
                   std::vector<std::string>{
                       "--store", server_->url(relay_->port()), "--election", "soak", "--elections",
                       std::to_string(elections()), "--term-ms", std::to_string(pace().term / 1ms), "--call-ms",
                       std::to_string(pace().call / 1ms), "--sample-us", std::to_string(pace().sample / 1us)},
                   scratch_ / "journal");
    fleet_->hand_to([this](const Event& e) { history_.take(e); });
  }
  ~ManySoak() override {
    if (!HasFailure()) return;
    const auto kept = std::filesystem::temp_directory_path() / ("tenure-many-soak-" + std::to_string(::getpid()));
    std::filesystem::rename(scratch_ / "journal", kept);
    std::cout << "the journal is kept: " << kept << '\n';
  }

  std::vector<Deed> deeds() {
    return {{done_to::muted, [this](pid_t pid) { relay_->mute(true, pid); }, [this] { relay_->mute(false); }, true},
            {done_to::crashed, [this](pid_t) { server_->crash(); }},
            {done_to::frozen, [this](pid_t) { server_->freeze(true); }, [this] { server_->freeze(false); }}};
  }

  /// All are led, by every process as many, but for one.
  bool all_led_in_equal_shares() const {
    const auto led = history_.led(boot_clock().now());
    if (led.empty()) return false;
    const auto sum = std::accumulate(led.begin(), led.end(), std::size_t{0},
                                     [](std::size_t all, const auto& one) { return all + one.second; });
    const auto [least, most] =
        std::minmax_element(led.begin(), led.end(), [](auto& a, auto& b) { return a.second < b.second; });
    return sum == elections() && most->second - least->second <= 1;
  }

  Scratch scratch_;
  std::optional<Server> server_;
  std::optional<Relay> relay_;
  History history_;
  std::optional<Fleet> fleet_;
};

TEST_F(ManySoak, NeverTwoLeadersOfAnyElectionWhateverTheNemesisDoes) {
  auto plan = Plan::from_environment(pace().term, 15);
  plan.between_least = plan.term / 5;
  plan.deeds = deeds();
  plan.recovered = [this] { return all_led_in_equal_shares(); };
  Nemesis nemesis(*fleet_, plan);
  EXPECT_TRUE(nemesis.run(std::cout));
  for (const auto& [pid, number] : history_.led(boot_clock().now())) std::cout << pid << " leads " << number << '\n';
  const auto verdict = history_.verdict();
  print(std::cout, verdict);
  EXPECT_TRUE(verdict.findings.empty());
  EXPECT_GT(verdict.tenures, elections()) << "no election moved";
  EXPECT_GE(verdict.to_leaders, 1u);
}

}  // namespace
}  // namespace tenure::test
