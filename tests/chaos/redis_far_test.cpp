// SPDX-License-Identifier: Apache-2.0
// Goal: candidates reach a server that is far away or behind a slow proxy, and keep their connections. A server that
// ends all connections at once ousts no leader. Method: real processes and a relay on loopback; what only elects does
// so in this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <iostream>

#include "elects_in_time.hpp"
#include "history.hpp"
#include "nemesis.hpp"
#include "relay.hpp"
#include "server.hpp"
#include "tls_server.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr auto waits = 30s;

bool leads(const Event& e) { return e.what == "lead"; }
bool ends(const Event& e) { return e.what == "ousting"; }

class RedisFar : public ::testing::Test {
 protected:
  void SetUp() override {
    TENURE_NEEDS_REDIS();
    server_.emplace();
    relay_.emplace(server_->port());
  }

  Fleet fleet(const std::string& preset, const std::string& journal, const std::string& query = {}) const {
    return {TENURE_CANDIDATE,
            {"--store", "redis://127.0.0.1:" + std::to_string(relay_->port()) + query, "--election", "jobs", "--preset",
             preset},
            scratch_.path() / journal};
  }

  test::Scratch scratch_;
  std::optional<redis::test::Server> server_;
  std::optional<Relay> relay_;
};

/// Plain, or over TLS that verifies the server.
class RedisFarElects : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    TENURE_NEEDS_REDIS();
    if (!GetParam()) {
      server_.emplace();
      relay_.emplace(server_->port());
      url_ = "redis://127.0.0.1:" + std::to_string(relay_->port()) + "?first_claim=at_once";
      return;
    }
    if (const auto why = redis::test::obstacle_to_tls(); !why.empty()) GTEST_SKIP() << why;
    made_.emplace();
    secured_.emplace(*made_);
    relay_.emplace(std::stoi(secured_->port()));
    url_ = "rediss://localhost:" + std::to_string(relay_->port()) +
           "?first_claim=at_once&ca_file=" + made_->file("ca.pem");
  }

  std::shared_ptr<Backend> open() const { return redis::open(redis::from_url(url_), redis::test::unique_name("jobs")); }

  std::optional<redis::test::Server> server_;
  std::optional<redis::test::Certificates> made_;
  std::optional<redis::test::Secured> secured_;
  std::optional<Relay> relay_;
  std::string url_;
};

TEST_P(RedisFarElects, TheFastPresetAtARoundTripOf40Ms) {
  relay_->far_away(40ms);
  EXPECT_TRUE(elects_in_time([&] { return open(); }, redis::presets().fast));
}

TEST_P(RedisFarElects, TheBalancedPresetAtARoundTripOf150Ms) {
  relay_->far_away(150ms);
  EXPECT_TRUE(elects_in_time([&] { return open(); }, redis::presets().balanced));
}

INSTANTIATE_TEST_SUITE_P(By, RedisFarElects, testing::Bool(),
                         [](const auto& that) { return std::string(that.param ? "VerifiedTls" : "Tcp"); });

/// The best of some attempts is judged, because a process that gets no processor for some seconds rightly loses its
/// lease. No attempt would pass if a connection had to be made within one call: then 60 to 95 of 100 leaders were
/// ousted, and an attempt has ten.
TEST_F(RedisFar, ABreakOfAllConnectionsOustsNoLeader) {
  bool ousted = true;
  for (int attempt = 0; attempt < 8 && ousted; ++attempt) {
    relay_->far_away(0ms);
    auto all = fleet("balanced", "journal " + std::to_string(attempt), "?first_claim=at_once");
    constexpr int count = 10;
    for (int i = 0; i < count; ++i)
      all.start("c" + std::to_string(i), {"--election", "jobs " + std::to_string(attempt) + std::to_string(i)});
    std::size_t from = 0;
    for (int i = 0; i < count; ++i, ++from) ASSERT_NE(from = all.await(from, is("elected"), waits), Fleet::npos);
    relay_->far_away(110ms);  // which makes it so certain that one call is not enough, and leaves one time to be slow
    server_->ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    const auto broken = boot_clock().now();
    const auto from_there = all.events().size();
    // A lease that was asked for since then came by a new connection.
    const auto timing = redis::presets().balanced;
    const auto asked_since = [&](const Event& e) { return leads(e) && e.until - timing.term + timing.margin > broken; };
    ousted = false;
    for (const auto pid : all.running()) {
      const auto at = all.await(
          from_there, [&](const Event& e) { return e.pid == pid && (ends(e) || asked_since(e)); }, waits);
      ousted = ousted || at == Fleet::npos || ends(all.events()[at]);
    }
  }
  EXPECT_FALSE(ousted);
}

/// Here, too, the best of some attempts is judged. A leader whose host or store stands still for two calls needs a new
/// connection, and waits for it behind those of the others. If a connection had to be made within one call, no attempt
/// would have a leader.
TEST_F(RedisFar, SixCandidatesBehindASlowProxyElectALeaderAndKeepIt) {
  relay_->slow_to_connect(50ms, 300ms);
  bool kept = false;
  for (int attempt = 0; attempt < 4 && !kept; ++attempt) {
    auto six = fleet("fast", "journal " + std::to_string(attempt));
    for (int i = 0; i < 6; ++i) six.start("c" + std::to_string(i));
    ASSERT_NE(six.await(0, leads, waits), Fleet::npos);
    kept = six.await(six.events().size(), ends, 2 * 3s) == Fleet::npos && six.leader() != 0;
  }
  EXPECT_TRUE(kept);
}

}  // namespace
}  // namespace tenure::test
