// SPDX-License-Identifier: Apache-2.0
// Goal: of many elections of one group each has at most one leader, and a token that rises, however the processes are
// stopped, killed, restarted and cut off, and their server crashes or hangs. Afterwards all are led again, in equal
// shares (over Kafka: by every process some). Method: real processes, a server of the test's own behind a relay, and a
// nemesis. The judge reads the journal, each election for itself. Built once per store. many_chaos_test.cpp shows that
// it notices a broken rule, over Kafka kafka_faults_test.cpp.
//
// TENURE_CHAOS_ELECTIONS and TENURE_CHAOS_SECONDS make it longer: 10000 and 600 are what the library promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <optional>

#include "kafka_wire.hpp"
#include "lateness.hpp"
#include "nemesis.hpp"
#include "relay.hpp"
#include "scratch.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr auto group = "soak";

std::size_t elections() {
  const auto* number = std::getenv("TENURE_CHAOS_ELECTIONS");
  return number == nullptr ? 300 : std::strtoul(number, nullptr, 10);
}

/// All leads of ten thousand elections are megabytes, which a busy machine does not tell in a moment.
struct Pace {
  Clock::Duration term, sample;
  std::vector<std::string> arguments;  ///< The candidates' for it.
};

#if defined TENURE_SOAK_KAFKA
class Server {
 public:
  void stand_before(std::optional<Relay>& relay) const { relay.emplace(server_.port(), Speaks::kafka); }
  std::string url(int port) const {
    return "kafka://127.0.0.1:" + std::to_string(port) + "?units=15&min_session_ms=100&create_topic=true";
  }
  void crash() const { server_.crash(); }
  void freeze(bool on) const { server_.freeze(on); }

  /// A process that knows nothing of it loses all that it leads, and the others get that while its leases run.
  std::vector<Deed> deeds() const {
    return {{done_to::put_out, [this](pid_t victim) { put_one_out(victim); }}};
  }

 private:
  /// Which one that is nobody knows: member ids name no process.
  void put_one_out(pid_t victim) const try {
    KafkaWire wire(server_.brokers());
    const auto members = wire.members_of(group);
    if (!members.empty()) wire.leave(group, members[static_cast<std::size_t>(victim) % members.size()].id);
  } catch (const std::runtime_error&) {  // The coordinator still loads the group, or that one has just left it.
  }

  const kafka::test::Server server_;
};
bool available() { return kafka::test::available(); }
constexpr auto needs = "needs real brokers: set TENURE_KAFKA_VERSION";
/// A broker that a busy machine starves answers nobody within the tenth of a second that a shorter term leaves a call.
Pace pace() { return {5s, 5ms, {"--term-ms", "5000", "--renew-ms", "500", "--call-ms", "500"}}; }
/// A hash spreads them over units, and these are spread in equal shares.
constexpr bool equal_shares = false;
constexpr int usual_seconds = 30;
#else
#ifdef TENURE_SOAK_REDIS
class Server {
 public:
  void stand_before(std::optional<Relay>& relay) const { relay.emplace(server_.port()); }
  std::string url(int port) const { return "redis://127.0.0.1:" + std::to_string(port); }
  void crash() {
    server_.kill();
    server_.start();
  }
  void freeze(bool on) { server_.freeze(on); }
  static std::vector<Deed> deeds() { return {}; }

 private:
  redis::test::Server server_{{"auto-aof-rewrite-min-size 1mb"}};  // else it reads all of its past after each crash
};
bool available() { return !redis::test::server_program().empty(); }
constexpr auto needs = "needs redis-server (Debian: apt install redis-tools)";
#else
class Server {
 public:
  void stand_before(std::optional<Relay>& relay) const { relay.emplace(server_.port()); }
  std::string url(int port) const {
    return "postgresql://postgres:" + server_.password() + "@127.0.0.1:" + std::to_string(port) + "/postgres";
  }
  void crash() {
    server_.crash();
    server_.restart();
  }
  void freeze(bool on) { on ? server_.freeze() : server_.thaw(); }
  static std::vector<Deed> deeds() { return {}; }

 private:
  postgres::test::Server server_;
};
bool available() { return !postgres::test::shared().empty(); }
constexpr auto needs = "needs a real server: set TENURE_POSTGRES";
#endif
Pace pace() {
  if (elections() > 1000) return {10s, 50ms, {"--term-ms", "10000", "--call-ms", "1000"}};
  return {1s, 5ms, {"--term-ms", "1000", "--call-ms", "100"}};
}
constexpr bool equal_shares = true;
constexpr int usual_seconds = 15;
#endif

class ManySoak : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available()) GTEST_SKIP() << needs;
    server_.emplace();
    server_->stand_before(relay_);
    const auto [term, sample, timing] = pace();
    std::vector<std::string> arguments{
        "--store",     server_->url(relay_->port()), "--election",  group,
        "--elections", std::to_string(elections()),  "--sample-us", std::to_string(sample / 1us)};
    arguments.insert(arguments.end(), timing.begin(), timing.end());
    fleet_.emplace(TENURE_CANDIDATE, arguments, scratch_ / "journal");
    fleet_->hand_to([this](const Event& e) { history_.take(e); });
  }

  std::vector<Deed> deeds() {
    auto all = server_->deeds();
    all.push_back(
        {done_to::muted, [this](pid_t pid) { relay_->mute(true, pid); }, [this] { relay_->mute(false); }, true});
    all.push_back({done_to::crashed, [this](pid_t) { server_->crash(); }});
    all.push_back({done_to::frozen, [this](pid_t) { server_->freeze(true); }, [this] { server_->freeze(false); }});
    return all;
  }

  /// All are led, by every process as many, but for one. Without equal shares, by every process some.
  bool all_led() const {
    const auto led = history_.led(boot_clock().now());
    if (led.empty()) return false;
    const auto sum = std::accumulate(led.begin(), led.end(), std::size_t{0},
                                     [](std::size_t all, const auto& one) { return all + one.second; });
    const auto [least, most] =
        std::minmax_element(led.begin(), led.end(), [](auto& a, auto& b) { return a.second < b.second; });
    return sum == elections() && (equal_shares ? most->second - least->second <= 1 : least->second > 0);
  }

  Scratch scratch_;
  std::optional<Server> server_;
  std::optional<Relay> relay_;
  History history_;
  std::optional<Fleet> fleet_;
};

TEST_F(ManySoak, NeverTwoLeadersOfAnyElectionWhateverTheNemesisDoes) {
  auto plan = Plan::from_environment(pace().term, usual_seconds);
  plan.between_least = plan.term / 5;
  plan.deeds = deeds();
  plan.enough = [this] {
    const auto so_far = history_.verdict();
    return so_far.tenures > elections() && so_far.to_leaders > 0;
  };
  plan.recovered = [this] { return all_led(); };
  Nemesis nemesis(*fleet_, plan);
  EXPECT_TRUE(nemesis.run(std::cout));
  for (const auto& [pid, number] : history_.led(boot_clock().now())) std::cout << pid << " leads " << number << '\n';
  const auto verdict = history_.verdict();
  print(std::cout, verdict);
  EXPECT_TRUE(verdict.findings.empty()) << TENURE_PROMISE;
  EXPECT_GT(verdict.tenures, elections()) << "no election moved";
  EXPECT_GE(verdict.to_leaders, 1u);
}

}  // namespace
}  // namespace tenure::test
