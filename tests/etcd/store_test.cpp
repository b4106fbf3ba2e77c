// SPDX-License-Identifier: Apache-2.0
// Goal: what etcd does besides the contract: errors of a real server, with their remedies; late answers; the watch;
// lost data; TLS and passwords; a cluster whose members fail. Method: real servers of each test's own.
#include <gtest/gtest.h>

#include <tenure/etcd.hpp>

#include "messages.hpp"
#include "server.hpp"
#include "store_calls.hpp"
#include "within.hpp"

namespace tenure::etcd::test {
namespace {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::error_of;
using tenure::test::expect_error;
using tenure::test::Lines;
using tenure::test::long_enough;
using tenure::test::mentions;
using tenure::test::record;
using tenure::test::swap;
using tenure::test::value;
using tenure::test::within;

Expected at(std::uint64_t token, std::vector<std::uint64_t> beats) { return {{token}, std::move(beats)}; }

Record released(Record made) {
  made.released = true;
  return made;
}

class EtcdStore : public testing::Test {
 protected:
  void SetUp() override { TENURE_NEEDS_ETCD(); }
};

// ---- the record ----

TEST_F(EtcdStore, AWriteWhoseAnswerIsLateMayHaveLanded) {
  Server server;
  const auto a = store(server.options(), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  server.freeze(true);
  expect_error(error_of(a->compare_and_set(at(1, {11}), record(1, 12), within(100ms))), Fault::timed_out,
               {"no answer within 100 ms"});
  server.freeze(false);
  EXPECT_TRUE(swap(*a, at(1, {11, 12}), record(1, 13)));
}

/// A revision would not tell the two records apart.
TEST_F(EtcdStore, ARecordOfTheSameRevisionInAnEmptiedClusterIsAnother) {
  Server server;
  const auto ours = store(server.options(), "jobs");
  ASSERT_TRUE(swap(*ours, std::nullopt, record(1, 11)));
  server.kill();
  std::filesystem::remove_all(server.directory() / "data");
  server.start();
  const auto other = store(server.options(), "jobs");
  ASSERT_TRUE(swap(*other, std::nullopt, record(9, 99)));
  EXPECT_FALSE(swap(*ours, at(1, {11}), record(1, 12)));
  EXPECT_EQ(value(ours->read(within(long_enough))).record->token, Token{9});
}

TEST_F(EtcdStore, WhatSomebodyElseWroteIsReportedOrTakenOver) {
  Server server;
  const auto a = store(server.options(), "jobs");
  server.ctl("put tenure/record/jobs hello");
  EXPECT_EQ(error_of(a->read(within(long_enough))).fault, Fault::corrupt);
  server.ctl(R"(put tenure/record/jobs '{"token":5,"beat":6,"format":1}')");
  EXPECT_TRUE(value(a->read(within(long_enough))).unreadable);
  EXPECT_TRUE(swap(*a, at(5, {6}), record(7, 8)));
}

TEST_F(EtcdStore, ARequestForATenureThatIsOverDoesNotTakeTheNewOnesPlace) {
  Server server;
  const auto a = store(server.options(), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(2, 11)));
  EXPECT_EQ(a->request_step_down({{2}, "ops", "upgrade"}, within(long_enough)), std::nullopt);
  EXPECT_EQ(a->request_step_down({{1}, "late", "upgrade"}, within(long_enough)), std::nullopt);
  const auto request = value(a->read(within(long_enough))).step_down;
  ASSERT_TRUE(request);
  EXPECT_EQ(request->by, "ops");
}

// ---- the watch ----

TEST_F(EtcdStore, ARenewalWakesNobodyAndAReleaseSavesARead) {
  Server server;
  const auto leader = store(server.options(), "jobs"), follower = store(server.options(), "jobs");
  ASSERT_TRUE(swap(*leader, std::nullopt, record(1, 11)));
  follower->await_change(Version{{1}, 11}, within(long_enough));  // The watch stands from now on.
  ASSERT_TRUE(swap(*leader, at(1, {11}), record(1, 12)));
  const auto limit = within(200ms);
  EXPECT_EQ(follower->await_change(Version{{1}, 11}, limit), std::nullopt);
  EXPECT_TRUE(limit.passed()) << "a renewal has woken it";

  ASSERT_TRUE(swap(*leader, at(1, {12}), released(record(1, 13))));
  EXPECT_EQ(follower->await_change(Version{{1}, 12}, within(long_enough)), (Version{{1}, 13}));
  auto demand = at(1, {13});
  demand.released = true;
  EXPECT_TRUE(swap(*follower, demand, record(2, 21)));
}

TEST_F(EtcdStore, AWatchIsMadeAgainAfterARestart) {
  Server server;
  const auto leader = store(server.options(), "jobs"), follower = store(server.options(), "jobs", no_log);
  ASSERT_TRUE(swap(*leader, std::nullopt, record(1, 11)));
  follower->await_change(Version{{1}, 11}, within(long_enough));
  server.kill();
  server.start();
  EXPECT_TRUE(eventually([&] { return bool(leader->read(within(1s))); }));
  follower->await_change(Version{{1}, 11}, within(long_enough));  // It tells that the watch broke,
  follower->await_change(Version{{1}, 11}, within(long_enough));  // and that it stands again.
  ASSERT_TRUE(swap(*leader, at(1, {11}), released(record(1, 12))));
  EXPECT_EQ(follower->await_change(Version{{1}, 11}, within(long_enough)), (Version{{1}, 12}));
}

/// Nobody looks at the watch meanwhile, as where its candidate leads.
TEST_F(EtcdStore, ManyNewsAtOnceAreReadToTheEnd) {
  Server server;
  const auto leader = store(server.options(), "jobs");
  Lines lines;
  const auto follower = store(server.options(), "jobs", lines.log());
  auto made = record(1, 1);
  made.who.assign(400, 'x');
  ASSERT_TRUE(swap(*leader, std::nullopt, made));
  follower->await_change(std::nullopt, within(long_enough));
  constexpr std::uint64_t changes = 600;  // of more than 500 bytes each
  for (std::uint64_t i = 2; i <= changes; ++i) {
    const auto expected = at(i - 1, {i - 1});
    made.token = {i};
    made.beat = i;
    made.released = i == changes;
    ASSERT_TRUE(swap(*leader, expected, made));
  }
  std::optional<Version> told;
  EXPECT_TRUE(eventually([&] {
    told = follower->await_change(Version{{1}, 1}, within(1s));
    return told.has_value();
  }));
  EXPECT_EQ(told, (Version{{changes}, changes}));
  EXPECT_TRUE(lines.all().empty()) << lines.all()[0];
}

// ---- what may be wrong at a server ----

TEST_F(EtcdStore, AFullServerIsReportedWithItsRemedyAndServesAgain) {
  Server server({.options = {"--quota-backend-bytes=200000"}});
  const auto a = store(server.options(), "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  EXPECT_TRUE(eventually([&] {
    try {
      server.ctl("put filler " + std::string(100'000, 'x'));
      return false;
    } catch (const std::runtime_error& e) {
      return mentions(e.what(), "database space exceeded");
    }
  }));
  expect_error(error_of(a->compare_and_set(at(1, {11}), record(1, 12), within(long_enough))), Fault::misconfigured,
               {"etcdctl alarm disarm"});
  EXPECT_TRUE(a->read(within(long_enough)));
}

/// Root, and "elector" who may use the keys of tenure/. "nobody" may use none.
void demand_passwords(Server& server) {
  server.ctl("user add root:" + canary);
  server.ctl("user grant-role root root");
  server.ctl("role add elector");
  server.ctl("role grant-permission elector --prefix=true readwrite tenure/");
  server.ctl("user add elector:" + canary);
  server.ctl("user grant-role elector elector");
  server.ctl("user add nobody:" + canary);
  server.ctl("auth enable");
  server.set_access({.user = "root", .password = canary});
}

TEST_F(EtcdStore, PasswordsAreDemandedAndEachRefusalSaysWhy) {
  Server server;
  demand_passwords(server);
  auto options = server.options();
  const auto refusal = [&](const std::string& user, const std::string& password) {
    options.user = user;
    options.password = password;
    const auto error = error_of(store(options, "jobs")->read(within(long_enough)));
    EXPECT_EQ(error.fault, Fault::forbidden) << error.message;
    EXPECT_FALSE(mentions(error.message, canary)) << error.message;
    return error.message;
  };
  EXPECT_TRUE(mentions(refusal("", ""), "set user and password"));
  EXPECT_TRUE(mentions(refusal("elector", canary + "x"), "check user and password"));
  EXPECT_TRUE(mentions(refusal("absent", canary), "check user and password"));
  EXPECT_TRUE(mentions(refusal("nobody", canary), "role grant-permission"));

  options.user = "elector";
  options.password = canary;
  const auto a = store(options, "jobs"), b = store(options, "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  b->await_change(std::nullopt, within(long_enough));
  ASSERT_TRUE(swap(*a, at(1, {11}), released(record(1, 12))));
  EXPECT_EQ(b->await_change(Version{{1}, 11}, within(long_enough)), (Version{{1}, 12}));
  EXPECT_EQ(a->request_step_down({{1}, "ops", "why"}, within(long_enough)), std::nullopt);

  Lines lines;
  options.user = "nobody";
  const auto forbidden = store(options, "jobs", lines.log());
  EXPECT_TRUE(eventually([&] {
    forbidden->await_change(std::nullopt, within(1s));
    return lines.mention("this candidate cannot watch");
  })) << "and so it will notice a release late";
  EXPECT_FALSE(lines.mention(canary));
}

/// As when it expired: the member knows it no more.
TEST_F(EtcdStore, ATokenThatIsForgottenIsRenewedWithinTheCall) {
  Server server;
  demand_passwords(server);
  auto options = server.options();
  options.user = "elector";
  const auto a = store(options, "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  server.ctl("auth disable");
  auto nobody = server.access();
  server.set_access({});
  server.ctl("auth enable");
  server.set_access(nobody);
  EXPECT_TRUE(swap(*a, at(1, {11}), record(1, 12)));
}

TEST_F(EtcdStore, ByTlsBothSidesAreVerifiedAndEachRefusalSaysWhy) {
  const Scratch keys;
  make_certificates(keys);
  const auto file = [&](const std::string& name) { return (keys / name).string(); };
  Server server(
      {.options = {"--cert-file=" + file("server.pem"), "--key-file=" + file("server.key"),
                   "--trusted-ca-file=" + file("ca.pem"), "--client-cert-auth"},
       .access = {
           .tls = true, .ca_file = file("ca.pem"), .cert_file = file("client.pem"), .key_file = file("client.key")}});
  const auto good = server.options();
  const auto a = store(good, "jobs"), b = store(good, "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  b->await_change(std::nullopt, within(long_enough));
  ASSERT_TRUE(swap(*a, at(1, {11}), released(record(1, 12))));
  EXPECT_EQ(b->await_change(Version{{1}, 11}, within(long_enough)), (Version{{1}, 12}));

  const auto refusal = [](const Options& options) {
    return error_of(store(options, "jobs")->read(within(long_enough))).message;
  };
  auto bad = good;
  bad.ca_file = file("other.pem");
  EXPECT_TRUE(mentions(refusal(bad), "ca_file must have the authority")) << refusal(bad);
  bad.ca_file = file("absent.pem");
  EXPECT_TRUE(mentions(refusal(bad), "ca_file must name a readable file")) << refusal(bad);
  bad = good;
  bad.cert_file = bad.key_file = {};
  EXPECT_TRUE(mentions(refusal(bad), "cert_file")) << refusal(bad);
  bad.cert_file = file("client.pem");
  bad.key_file = file("server.key");
  EXPECT_TRUE(mentions(refusal(bad), "belong together")) << refusal(bad);
  bad = good;
  bad.servers[0].host = "localhost";  // which the certificate does not have
  EXPECT_TRUE(mentions(refusal(bad), "the host by which we connect")) << refusal(bad);
  bad = {};
  bad.servers = good.servers;
  EXPECT_TRUE(mentions(refusal(bad), "etcds://")) << refusal(bad);
}

/// As where certificates live for hours: the server has those of a new authority, and so have our files.
TEST_F(EtcdStore, CertificatesThatWereReplacedOnDiskAreReadByTheNextConnection) {
  const Scratch keys;
  make_certificates(keys);
  const auto file = [&](const std::string& name) { return (keys / name).string(); };
  Server server(
      {.options = {"--cert-file=" + file("server.pem"), "--key-file=" + file("server.key"),
                   "--trusted-ca-file=" + file("ca.pem"), "--client-cert-auth"},
       .access = {
           .tls = true, .ca_file = file("ca.pem"), .cert_file = file("client.pem"), .key_file = file("client.key")}});
  const auto a = store(server.options(), "jobs", no_log);
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  server.kill();
  make_certificates(keys);
  server.start();
  EXPECT_TRUE(eventually([&] { return bool(a->read(within(1s))); }));
}

TEST_F(EtcdStore, TlsToAPortWithoutItIsAClearError) {
  Server server;
  auto options = server.options();
  options.tls = true;
  Error error;
  EXPECT_TRUE(eventually([&] {  // a busy machine may let the whole call pass first
    error = error_of(store(options, "jobs")->read(within(long_enough)));
    return mentions(error.message, "write etcd://");
  })) << error.message;
}

// ---- a cluster ----

/// A renewal's next call may still fail. Two calls in a row without an answer end a connection.
bool soon_writes(ConditionalStore& store, std::uint64_t token, std::vector<std::uint64_t>& beats) {
  return eventually([&] {
    beats.push_back(beats.back() + 1);
    const auto swap = store.compare_and_set(Expected{{token}, beats}, record(token, beats.back()), within(2s));
    return swap && swap->applied;
  });
}

TEST_F(EtcdStore, AnotherMemberIsAskedIfOneDiesOrHangs) {
  Cluster cluster;
  const auto a = store(cluster.options(), "jobs", no_log);
  std::vector<std::uint64_t> beats{11};
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  cluster[0].kill();
  EXPECT_TRUE(soon_writes(*a, 1, beats));
  cluster[0].launch();
  ASSERT_TRUE(cluster[0].await());
  cluster[1].freeze(true);
  EXPECT_TRUE(soon_writes(*a, 1, beats));
  cluster[1].freeze(false);
}

TEST_F(EtcdStore, WithoutAMajorityNobodyWritesAndTheErrorSaysSo) {
  Cluster cluster;
  const auto a = store(cluster.options(), "jobs", no_log);
  std::vector<std::uint64_t> beats{11};
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  cluster[1].kill();
  cluster[2].kill();
  std::string said;
  EXPECT_TRUE(eventually([&] {
    const auto read = a->read(within(2s));
    said = read ? "a record" : read.error().message;
    return mentions(said, "majority");
  })) << said;
  EXPECT_FALSE(a->compare_and_set(Expected{{1}, beats}, record(1, 12), within(1s)));
  beats.push_back(12);
  cluster[1].launch();
  EXPECT_TRUE(soon_writes(*a, 1, beats));
}

}  // namespace
}  // namespace tenure::etcd::test
