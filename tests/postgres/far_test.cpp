// SPDX-License-Identifier: Apache-2.0
// Goal: a server that is far away is reached, and one that ends every connection at once ousts nobody. Method: a relay
// on loopback that makes every round trip longer, and counts them.
#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tenure/leader_manager.hpp>

#include "elects_in_time.hpp"
#include "relay.hpp"
#include "support.hpp"

namespace tenure::postgres::test {
namespace {

using tenure::test::elects_in_time;
using testing::HasSubstr;

class PostgresFar : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    relay_.emplace(std::stoi(shared("TENURE_POSTGRES_PORT")));
    options_.conninfo += " port=" + std::to_string(relay_->port()) + " application_name=" + options_.table;
  }

  struct Candidate {
    Candidate(const Options& options, const std::string& election, const Timing& timing)
        : manager(open(options, election, {}, no_log), timing, hooks()) {
      manager.start();
    }
    bool leads() const { return manager.leadership().is_leader(); }
    bool asked_since(Clock::Time then) const {
      const auto timing = presets().balanced;
      return boot_clock().now() + manager.leadership().remaining() - timing.term + timing.margin > then;
    }
    Hooks hooks() {
      Hooks out;
      out.ousting = [this](const Ousting& o) {
        if (o.reason == Reason::stopped) return;
        ++ousted;
        std::cout << "ousted: " + std::string(to_string(o.reason)) + ": " + o.detail + "\n";
      };
      out.log = no_log;
      return out;
    }
    std::atomic<int> ousted{};
    LeaderManager manager;
  };

  /// The server's processes that serve us.
  std::vector<int> sessions() const {
    std::vector<int> out;
    for (const auto& row : admin("select pid from pg_stat_activity where application_name = '" + options_.table + "'"))
      out.push_back(row[0].as<int>());
    return out;
  }

  std::optional<tenure::test::Relay> relay_;
};

/// The round trips of the relay that the first call takes before it asks.
std::uint64_t to_connect(const tenure::test::Relay& relay, const std::function<void()>& asks) {
  const auto before = relay.round_trips();
  asks();
  const auto first = relay.round_trips();
  asks();
  EXPECT_EQ(relay.round_trips() - first, 1u) << "once it is connected";
  return first - before - 1;
}

/// TCP's, three of a password by SCRAM, and one that introduces us.
TEST_F(PostgresFar, ToConnectTakesFiveRoundTrips) {
  options_.conninfo += " sslmode=disable";
  const auto one = store(options_);
  EXPECT_EQ(to_connect(*relay_, [&] { value(one->read(within(20s))); }), 5u);
  auto tables = fresh_group(shared());
  tables.conninfo = options_.conninfo;
  const auto many = open_group(tables, "group");
  EXPECT_EQ(to_connect(*relay_, [&] { value(many->look({}, within(20s))); }), 5u);
  admin("drop table " + tables.sessions + ", " + tables.leads);
}

TEST_F(PostgresFar, FastElectsAtFortyMilliseconds) {
  options_.conninfo += " sslmode=disable";
  relay_->far_away(40ms);
  EXPECT_TRUE(elects_in_time([&] { return open(options_, unique_name("jobs")); }, presets().fast));
}

TEST_F(PostgresFar, BalancedElectsAtAHundredAndFifty) {
  options_.conninfo += " sslmode=disable";
  relay_->far_away(150ms);
  EXPECT_TRUE(elects_in_time([&] { return open(options_, unique_name("jobs")); }, presets().balanced));
}

/// Over TLS that verifies the server. A connection takes one round trip more to ask for it, one for the handshake, and
/// one if the client first offers a curve that the server does not take, as PostgreSQL before 18 by default.
class PostgresFarTls : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    server_.emplace();
    relay_.emplace(server_->port());
    there_ = fresh_table(server_->by_socket());
    there_.conninfo = server_->at_localhost("sslmode=verify-full sslrootcert=" + server_->data("ca.pem") +
                                            " port=" + std::to_string(relay_->port()));
  }

  std::optional<TlsServer> server_;
  std::optional<tenure::test::Relay> relay_;
  Options there_;
};

TEST_F(PostgresFarTls, ToConnectTakesEightRoundTripsAtMost) {
  const auto one = store(there_);
  EXPECT_LE(to_connect(*relay_, [&] { value(one->read(within(20s))); }), 8u);
}

TEST_F(PostgresFarTls, FastElectsAtFortyMilliseconds) {
  relay_->far_away(40ms);
  EXPECT_TRUE(elects_in_time([&] { return open(there_, unique_name("jobs")); }, presets().fast));
}

TEST_F(PostgresFarTls, BalancedElectsAtAHundredAndFifty) {
  relay_->far_away(150ms);
  EXPECT_TRUE(elects_in_time([&] { return open(there_, unique_name("jobs")); }, presets().balanced));
}

/// The best of some attempts is judged, because a process that gets no processor for some seconds rightly loses its
/// lease. If a connection had to be made within one call, each attempt would oust all.
TEST_F(PostgresFar, ConnectionsThatAllBreakAtOnceOustNobody) {
  bool ousted = true;
  for (int attempt = 0; attempt < 4 && ousted; ++attempt) {
    relay_->far_away(0ms);
    std::vector<std::unique_ptr<Candidate>> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(std::make_unique<Candidate>(options_, "jobs " + std::to_string(attempt) + " " + std::to_string(i),
                                                presets().balanced));
    for (const auto& one : all) ASSERT_TRUE(eventually([&] { return one->leads(); }));
    std::vector<int> before;  // Those of the attempt before take a moment to end.
    ASSERT_TRUE(eventually([&] { return (before = sessions()).size() == all.size(); }));
    relay_->far_away(80ms);  // which makes it so certain that one call is not enough
    std::string pids;
    for (const int pid : before) pids += (pids.empty() ? "" : ",") + std::to_string(pid);
    admin("select pg_terminate_backend(pid) from unnest(array[" + pids + "]) as pid");
    const auto ended = boot_clock().now();
    // A lease that was asked for since then came by a new session.
    for (const auto& one : all) EXPECT_TRUE(eventually([&] { return one->ousted > 0 || one->asked_since(ended); }));
    ousted = !std::ranges::all_of(all, [](const auto& one) { return one->ousted == 0 && one->leads(); });
    for (const int pid : sessions()) EXPECT_THAT(before, testing::Not(testing::Contains(pid)));
  }
  EXPECT_FALSE(ousted);
}

TEST_F(PostgresFar, AMessageSaysWhatIsWaitedForHowLongAndWhatToDo) {
  relay_->far_away(150ms);
  const auto far = store(options_);
  const auto told = [&](const std::string& part) {
    Error error;
    EXPECT_TRUE(eventually([&] {
      const auto result = far->read(within(75ms));
      if (!result) error = seen(result.error());
      return error.message.find(part) != error.message.npos;
    })) << part;
    EXPECT_EQ(error.fault, Fault::timed_out);
    return error.message;
  };
  const auto connecting = told("introduction");
  for (const auto* part : {"postgres (127.0.0.1:", "still connecting after", "this call had 75 ms", "Timing::call"})
    EXPECT_THAT(connecting, HasSubstr(part));
  const auto asking = told("no answer within 75 ms");
  for (const auto* part : {"where a round trip took ", "raise Timing::call"}) EXPECT_THAT(asking, HasSubstr(part));
}

}  // namespace
}  // namespace tenure::postgres::test
