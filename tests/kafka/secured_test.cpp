// SPDX-License-Identifier: Apache-2.0
// Goal: on a cluster that demands TLS and a password, an election needs no more rights than the header names. An error
// names the right that is missing, and no secret. Method: the SASL_SSL listener of docker/kafka --secured, rights by
// ACLs.
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "broker.hpp"
#include "checks.hpp"
#include "eventually.hpp"
#include "lateness.hpp"
#include "launched.hpp"
#include "scratch.hpp"
#include "support.hpp"

namespace tenure::kafka::test {
namespace {

using tenure::test::eventually;
using tenure::test::text_of;

constexpr const char* password = "elector-password";  // docker/kafka's

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

class KafkaSecured : public testing::Test {
 protected:
  void SetUp() override {
    if (secured_.empty()) GTEST_SKIP() << "needs a broker that docker/kafka started with --secured";
    create_topic(real_brokers(), topic_, 2);
  }
  Options options(const std::string& name = "a") const {
    Options o;
    o.brokers = secured_;
    o.group = group_;
    o.candidate = {name, ""};
    o.properties = {{"security.protocol", "sasl_ssl"},
                    {"sasl.mechanism", "PLAIN"},
                    {"sasl.username", "elector"},
                    {"sasl.password", password},
                    {"ssl.ca.location", environment("TENURE_KAFKA_CA")}};
    return o;
  }
  std::string url() const {
    return "kafka://elector:" + std::string(password) + "@" + secured_ + "/" + topic_ + "?group=" + group_ +
           "&security.protocol=sasl_ssl&sasl.mechanism=PLAIN&ssl.ca.location=" + environment("TENURE_KAFKA_CA");
  }
  void allow(Resource resource, const std::string& name, Right right = Right::read) const {
    create_acl(real_brokers(), "User:elector", resource, name, right);
  }
  void allow_election() const {
    allow(Resource::group, group_);
    allow(Resource::topic, topic_);
  }

  /// The error that tells of it, at once from a candidate and from an observer.
  static std::string refusal(const Options& o) {
    Lines lines;
    auto logged = o;
    logged.log = lines.log();
    Candidate a(logged);
    const auto error = a.trouble(Fault::forbidden);
    const auto sight = a.observe();
    EXPECT_TRUE(std::holds_alternative<Unknown>(sight));
    std::string told = error ? error->message : "it was never refused";
    for (const auto& line : lines.all()) EXPECT_FALSE(mentions(line, password)) << line;
    EXPECT_FALSE(mentions(told, password)) << told;
    return told;
  }

  const std::string secured_ = environment("TENURE_KAFKA_SECURED");
  const std::string group_ = unique_name("tenure-secured");
  const std::string topic_ = group_ + ".neli";
};

TEST_F(KafkaSecured, ReadOnGroupAndTopicIsEnoughToLeadAndToHandOver) {
  allow_election();
  Candidate a(options("a")), b(options("b"));
  std::optional<Token> token;
  EXPECT_TRUE(once([&] {  // The handshakes of a new handle may outlast the lease on a busy machine.
    token = a.campaign();
    return token && std::holds_alternative<Denied>(b.answered()) && a.renewed(*token);
  }));
  ASSERT_TRUE(token);
  EXPECT_EQ(a.released(), std::nullopt);
  const auto next = b.campaign();
  ASSERT_TRUE(next);
  EXPECT_GT(*next, *token) << TENURE_PROMISE;
}

TEST_F(KafkaSecured, AUrlCarriesUserPasswordAndAuthority) {
  allow_election();
  const auto opened = open_url({.url = url(), .election = "jobs", .candidate = {"a", ""}});
  const auto sight = opened.backend->observe(within(patience));
  EXPECT_TRUE(std::holds_alternative<Vacant>(sight));
}

TEST_F(KafkaSecured, TheCheckUpNamesTheRightThatItLacksAndReportsTheRest) {
  allow_election();
  const Opening opening{.url = url(), .election = "jobs", .log = no_log};
  Result<Checks> checks = Checks{};
  ASSERT_TRUE(once([&] { return bool(checks = check_url(opening, within(patience))); })) << checks.error().message;
  const auto told = text_of(*checks);
  EXPECT_TRUE(mentions(told, "fine: the topic " + topic_ + " has 2 partition(s)")) << told;
  EXPECT_TRUE(mentions(told, "note: the broker does not tell its settings: ")) << told;
  EXPECT_TRUE(mentions(told, "grant DESCRIBE_CONFIGS on the cluster")) << told;
}

TEST_F(KafkaSecured, ARequestToStepDownNeedsReadOnItsGroup) {
  allow_election();
  auto o = options();
  o.remote_step_down = true;
  Candidate a(o);
  ASSERT_TRUE(a.campaign());
  const auto refused = open(o)->request_step_down("ops", "upgrade", within(patience));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->fault, Fault::forbidden);
  EXPECT_TRUE(mentions(refused->message, "READ on group \"" + group_ + ".requests\"")) << refused->message;

  allow(Resource::group, group_ + ".requests");
  EXPECT_TRUE(once([&] {  // The handshakes of a new handle may outlast the lease on a busy machine.
    const auto token = a.campaign();
    if (!token || !a.renewed(*token)) return false;
    if (const auto error = open(o)->request_step_down("ops", "upgrade", within(patience))) {
      std::cout << error->message << '\n';
      return false;
    }
    for (const auto until = within(patience); !until.passed(); wait_out(within(200ms))) {
      const auto answer = a.renew(*token);
      if (std::holds_alternative<StepDownRequested>(answer)) return true;
      if (std::holds_alternative<Denied>(answer)) return false;
    }
    return false;
  }));
}

TEST_F(KafkaSecured, AMissingRightToReadTheTopicIsNamed) {
  allow(Resource::group, group_);
  EXPECT_TRUE(mentions(refusal(options()), "READ on topic \"" + topic_ + "\""));
}

TEST_F(KafkaSecured, AMissingRightToReadTheGroupIsNamed) {
  allow(Resource::topic, topic_);
  EXPECT_TRUE(mentions(refusal(options()), "READ on group \"" + group_ + "\""));
}

TEST_F(KafkaSecured, ARightThatComesLaterIsEnough) {
  allow(Resource::topic, topic_);
  Candidate a(options());
  ASSERT_TRUE(a.trouble(Fault::forbidden));
  allow(Resource::group, group_);
  EXPECT_TRUE(a.campaign());
}

TEST_F(KafkaSecured, AMissingRightToCreateTheTopicIsNamed) {
  allow(Resource::group, group_);
  auto o = options();
  o.topic = group_ + ".another";
  o.create_topic = CreateTopic{};
  auto told = refusal(o);
  EXPECT_TRUE(mentions(told, "READ on topic \"" + o.topic + "\", and CREATE")) << told;
  allow(Resource::topic, o.topic);
  told = refusal(o);
  EXPECT_TRUE(mentions(told, "needs CREATE on topic \"" + o.topic + "\"")) << told;
  allow(Resource::topic, o.topic, Right::create);
  EXPECT_TRUE(Candidate(o).campaign());
}

TEST_F(KafkaSecured, AWrongPasswordIsReportedAndNotShown) {
  allow_election();
  auto o = options();
  o.properties["sasl.password"] = std::string(password) + "-wrong";
  const auto told = refusal(o);
  EXPECT_TRUE(mentions(told, "sasl.")) << told;
  EXPECT_TRUE(mentions(told, "uthentication")) << told;
}

TEST_F(KafkaSecured, AnUnknownAuthorityIsRefused) {
  allow_election();
  auto o = options();
  o.properties.erase("ssl.ca.location");
  const auto told = refusal(o);
  EXPECT_TRUE(mentions(told, "certificate")) << told;
  EXPECT_TRUE(mentions(told, "ssl.")) << told;
}

/// Of nobody who signs anything here.
constexpr const char* another_authority = R"(-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgIUFfSKYobu05KS5BDa08ZMT/W58fwwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHYW5vdGhlcjAgFw0yNjExMjcxMzU2MTBaGA8yMTI2MTEwMzEz
NTYxMFowEjEQMA4GA1UEAwwHYW5vdGhlcjBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABGsoE9xUkhXJ4ZVhRyXBeP3GtvoiyDGGsbraUxT7rC/qcfGO7dwM5FggYasJ
r11KWTEeCxagEaMLoiPzFbIgh8ajUzBRMB0GA1UdDgQWBBSJrnfV28PY+x7svtZx
LtBGnslQpzAfBgNVHSMEGDAWgBSJrnfV28PY+x7svtZxLtBGnslQpzAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCICH5+DD7YJ9iBblvfYKe2SIBddLP
E1h3PaO0Brj97oZKAiEA2mHdjlkLaPqlGrtoqpFVrfuD2z15wJkY+MbuPitPRFo=
-----END CERTIFICATE-----
)";

// As a cluster does that gets a new authority: the file is renewed, and the process runs on.
TEST_F(KafkaSecured, AnAuthorityThatIsRenewedOnDiskIsReadAgain) {
  allow_election();
  const tenure::test::Scratch dir;
  const auto file = dir.path() / "ca.pem";
  std::ofstream(file) << another_authority;
  auto o = options();
  o.properties["ssl.ca.location"] = file;
  Candidate a(o);
  const auto refused = a.trouble(Fault::forbidden);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(mentions(refused->message, "certificate")) << refused->message;
  std::filesystem::copy_file(environment("TENURE_KAFKA_CA"), file, std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(a.campaign());
}

// In PEM, since librdkafka 2.0.2 leaks what it reads from a PKCS12 file.
TEST_F(KafkaSecured, ACertificateOfOurOwnThatIsRenewedOnDiskIsReadAgain) {
  allow_election();
  const tenure::test::Scratch dir;
  const auto mine = (dir.path() / "mine.pem").string(), next = (dir.path() / "next.pem").string();
  const auto make = "cd '" + dir.path().string() +
                    "' && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 " +
                    "-nodes -subj /CN=stranger -keyout key -out cert 2>/dev/null && cat key cert >'" + mine +
                    "' && openssl pkcs12 -in '" + environment("TENURE_KAFKA_DIR") +
                    "/keys.p12' -nodes -passin pass:" + password + " -out '" + next + "'";
  ASSERT_EQ(std::system(make.c_str()), 0);
  auto o = options();
  o.properties["ssl.certificate.location"] = o.properties["ssl.key.location"] = mine;
  Candidate a(o);
  const auto refused = a.trouble(Fault::forbidden);
  // Later ones show no certificate of an issuer that the broker does not name.
  if (rd_kafka_version() < 0x02080000) {
    ASSERT_TRUE(refused);
    EXPECT_TRUE(mentions(refused->message, "certificate")) << refused->message;
  }
  std::filesystem::rename(next, mine);
  EXPECT_TRUE(a.campaign());
}

TEST_F(KafkaSecured, APasswordThatChangesIsAskedForAgain) {
  allow_election();
  auto o = options();
  o.properties.erase("sasl.username"), o.properties.erase("sasl.password");
  std::atomic<bool> right{false};
  o.credentials = [&right] { return Credentials{"elector", password + std::string(right ? "" : "-wrong")}; };
  Candidate a(o);
  EXPECT_TRUE(a.trouble(Fault::forbidden));
  right = true;
  EXPECT_TRUE(a.campaign());
}

// ---- tokens of OAUTHBEARER ----

class KafkaSecuredByTokens : public KafkaSecured {
 protected:
  /// A token as an identity provider signs it, of the user, for so many seconds. `key`: another one than the broker's.
  static Result<OauthToken> token(int seconds, const std::string& key = "") {
    const auto jwt = tenure::test::output_of("'" TENURE_LAUNCHER "' token '" + environment("TENURE_KAFKA_DIR") + "' " +
                                             std::to_string(seconds) + " " + key);
    if (jwt.empty()) return Error{Fault::unreachable, "the launcher gave no token"};
    return OauthToken{jwt, std::chrono::seconds(seconds), "elector", {}};
  }
  Options options_by(OauthTokenSource source) const {
    auto o = options();
    o.properties.erase("sasl.username");
    o.properties.erase("sasl.password");
    o.properties["sasl.mechanism"] = "OAUTHBEARER";
    o.oauth_token = std::move(source);
    return o;
  }
};

TEST_F(KafkaSecuredByTokens, LeadsByThemAndAsksForNewOnesMeanwhile) {
  allow_election();
  std::atomic<int> given{0};
  Candidate a(options_by([&] { return ++given, token(5); }));
  const auto led = a.campaign();
  ASSERT_TRUE(led);
  EXPECT_TRUE(a.renewed(*led));
  const int before = given;
  EXPECT_TRUE(eventually([&] { return given >= before + 2; })) << "one for each handle";
}

TEST_F(KafkaSecuredByTokens, OneThatNobodyTrustsIsRefusedAndNotShown) {
  allow_election();
  const tenure::test::Scratch dir;
  const auto key = (dir.path() / "another.key").string();
  ASSERT_EQ(std::system(("openssl genrsa -out '" + key + "' 2048 2>/dev/null").c_str()), 0);
  const auto made = token(600, key);
  ASSERT_TRUE(made);
  const auto told = refusal(options_by([&] { return made; }));
  EXPECT_TRUE(mentions(told, "uthentication")) << told;
  EXPECT_TRUE(mentions(told, "Options::oauth_token")) << told;
  EXPECT_FALSE(mentions(told, made->value.substr(made->value.rfind('.')))) << told;
}

TEST_F(KafkaSecuredByTokens, OneThatIsOverIsRefused) {
  allow_election();
  const auto told = refusal(options_by([] {
    auto made = token(-60);
    if (made) made->lasts = 60s;  // As a process whose clock is wrong would have it.
    return made;
  }));
  EXPECT_TRUE(mentions(told, "uthentication")) << told;
}

TEST_F(KafkaSecured, WithoutTlsItIsSaidThatTheBrokerMayWantIt) {
  allow_election();
  auto o = options();
  o.properties = {};
  Candidate a(o);
  std::string told;
  for (const auto all = within(patience); !all.passed() && !mentions(told, "security.protocol");
       wait_out(within(100ms))) {
    const auto answer = a.acquire();
    ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
    told = std::get<Unknown>(answer).error.message;
  }
  EXPECT_TRUE(mentions(told, "security.protocol")) << told;
}

}  // namespace
}  // namespace tenure::kafka::test
