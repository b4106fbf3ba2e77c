// SPDX-License-Identifier: Apache-2.0
// Goal: options are completed, refused with what would be right, and never tell a secret. Method: by value;
// no broker.
#include "settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include <tenure/kafka.hpp>
#include <tenure/kafka_group.hpp>
#include <tenure/kafka_transactions.hpp>

#include "closable_log.hpp"
#include "messages.hpp"
#include "refusal.hpp"

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::mentions;
using tenure::test::refusal_of;
using testing::Test;

Options options() {
  Options o;
  o.brokers = "127.0.0.1:1";
  o.group = "jobs";
  return o;
}

std::string refusal(const Options& o) {
  return refusal_of([&] { completed(o); });
}

TEST(KafkaSettings, TheDefaultGroupIsTheProgramsName) {
  Options o;
  o.brokers = "127.0.0.1:1";
  o = completed(o);
  EXPECT_EQ(o.group, "kafka_unit_test");
  EXPECT_EQ(o.topic, "kafka_unit_test.neli");
  EXPECT_FALSE(o.candidate.name.empty());
}

TEST(KafkaSettings, OptionsThatCannotWorkAreRefusedByName) {
  const auto with = [](auto change) {
    auto o = options();
    change(o);
    return refusal(o);
  };
  EXPECT_EQ(refusal(options()), "accepted");
  EXPECT_TRUE(mentions(with([](auto& o) { o.brokers.clear(); }), "Options::brokers"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.topic = "a/b"; }), "Options::topic"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.topic = ".."; }), "topic"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.topic = std::string(250, 'a'); }), "topic"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.group = std::string(201, 'a'); }), "election"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.group = "a\nb"; }), "control"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.group = "\xff\xfe"; }), "UTF-8"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.group = "jobs.requests"; }), "to step down"));
  EXPECT_TRUE(mentions(with([](auto& o) {
                         o.group = "\xc3\xa4 b";
                         o.topic = "t";
                       }),
                       "accepted"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.create_topic = CreateTopic{1, 1}; }), "at least 2"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.create_topic = CreateTopic{2, 0}; }), "replication_factor"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.session = 1ms; }), "Options::session"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.heartbeat = -1ms; }), "Options::heartbeat"));
  EXPECT_TRUE(mentions(with([](auto& o) { o.observe_every = 0ms; }), "Options::observe_every"));
}

TEST(KafkaSettings, PropertiesThatTheElectionDecidesAreRefusedWithTheReason) {
  for (const auto* name :
       {"group.id", "client.id", "bootstrap.servers", "metadata.broker.list", "partition.assignment.strategy",
        "enable.auto.commit", "enable.auto.offset.store", "auto.commit.interval.ms", "isolation.level",
        "socket.max.fails", "group.instance.id", "group.protocol", "group.remote.assignor", "session.timeout.ms",
        "heartbeat.interval.ms", "max.poll.interval.ms", "allow.auto.create.topics", "test.mock.num.brokers",
        "auto.offset.reset"}) {
    auto o = options();
    o.properties[name] = "5";
    const auto said = refusal(o);
    EXPECT_TRUE(mentions(said, std::string("properties[\"") + name + "\"] is decided by the election: ")) << said;
  }
  auto o = options();
  o.properties["session.timeout.ms"] = "5";
  EXPECT_TRUE(mentions(refusal(o), "Options::session"));
  o = options();
  o.properties["client.rack"] = "a";
  EXPECT_TRUE(mentions(refusal(o), "it decides who owns partition 0")) << refusal(o);
}

TEST(KafkaSettings, NoPropertyMakesReadsThatDoNotWaitForTransactions) {
  for (const auto* name :
       {"isolation.level", "api.version.request", "api.version.fallback.ms", "broker.version.fallback"}) {
    auto o = options();
    o.properties[name] = "0";
    EXPECT_TRUE(mentions(refusal(o), "decided by the election: reads must wait for")) << name << refusal(o);
  }
}

TEST(KafkaSettings, UnknownPropertiesAndValuesSayWhatLibrdkafkaSays) {
  auto o = options();
  o.properties["no.such.thing"] = "5";
  EXPECT_TRUE(mentions(refusal(o), "properties[\"no.such.thing\"]: No such configuration property")) << refusal(o);
  o = options();
  o.properties["security.protocol"] = "telepathy";
  EXPECT_TRUE(mentions(refusal(o), "properties[\"security.protocol\"]: ")) << refusal(o);
  o = options();
  for (const auto* value : {"60000", "2001", "0x7530", "030000", " 60000", "+1500", ""}) {
    o.properties["socket.timeout.ms"] = value;
    EXPECT_TRUE(mentions(refusal(o), "at most 2000 ms")) << value << ": " << refusal(o);
  }
}

TEST(KafkaSettings, OtherPropertiesPassThrough) {
  auto o = options();
  o.properties["broker.address.family"] = "v4";
  o.properties["socket.timeout.ms"] = "1500";
  o = completed(o);
  const auto all = common_properties(o, o.group);
  EXPECT_EQ(all.at("broker.address.family"), "v4");
  EXPECT_EQ(all.at("socket.timeout.ms"), "1500");
  EXPECT_EQ(all.at("isolation.level"), "read_committed");
}

TEST(KafkaSettings, AMembersPropertiesCarryTheRules) {
  auto o = completed(options());
  const Pace pace{.session = 12s, .heartbeat = 500ms, .observe_every = 1s};
  EXPECT_EQ(member_properties(o, pace, "!tenure.1"), (Properties{{"bootstrap.servers", "127.0.0.1:1"},
                                                                 {"group.id", "jobs"},
                                                                 {"client.id", "!tenure.1"},
                                                                 {"partition.assignment.strategy", "range"},
                                                                 {"session.timeout.ms", "12000"},
                                                                 {"heartbeat.interval.ms", "500"},
                                                                 {"max.poll.interval.ms", "24000"},
                                                                 {"isolation.level", "read_committed"},
                                                                 {"enable.auto.commit", "false"},
                                                                 {"enable.auto.offset.store", "false"},
                                                                 {"allow.auto.create.topics", "false"},
                                                                 {"receive.message.max.bytes", "16777216"},
                                                                 {"queued.max.messages.kbytes", "1024"},
                                                                 {"socket.timeout.ms", "2000"},
                                                                 {"api.version.request.timeout.ms", "2000"},
                                                                 {"socket.connection.setup.timeout.ms", "2000"},
                                                                 {"reconnect.backoff.ms", "50"},
                                                                 {"reconnect.backoff.max.ms", "500"},
                                                                 {"socket.keepalive.enable", "true"},
                                                                 {"socket.nagle.disable", "true"},
                                                                 {"topic.metadata.refresh.interval.ms", "60000"},
                                                                 {"log.connection.close", "false"}}));
}

TEST(KafkaSettings, SecretsAreNeverPrinted) {
  auto o = options();
  for (const auto* name : {"sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem",
                           "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret"})
    o.properties[name] = canary;
  o.properties["client.dns.lookup"] = std::string("not ") + canary;  // the same text in a plain place
  const auto redacted = redactor_of(o.properties);
  EXPECT_EQ(redacted(std::string("login ") + canary + " and " + canary), "login *** and ***");

  auto bad = options();
  bad.properties["sasl.password"] = canary;
  bad.properties["security.protocol"] = canary;  // refused, and librdkafka quotes it
  EXPECT_FALSE(mentions(refusal(bad), canary)) << refusal(bad);
  EXPECT_TRUE(mentions(refusal(bad), "security.protocol"));
  bad = options();
  bad.properties["sasl.oauthbearer.method"] = canary;
  EXPECT_FALSE(mentions(refusal(bad), canary)) << refusal(bad);
  EXPECT_TRUE(mentions(refusal(bad), "sasl.oauthbearer.method"));
}

TEST(KafkaSettings, BrokersOffLoopbackAreKnown) {
  auto o = options();
  o.brokers = "127.0.0.1:9092, localhost:9092,[::1]:9092";
  EXPECT_TRUE(hosts_of_a_network(o).empty());
  o.brokers = "kafka1:9092,PLAINTEXT://10.0.0.1:9092,kafka3,127.0.0.1";
  EXPECT_EQ(hosts_of_a_network(o), (std::vector<std::string>{"kafka1", "10.0.0.1", "kafka3"}));
}

TEST(KafkaSettings, WhatIsMissingOfTlsIsKnown) {
  const auto remedy = [](Properties properties) {
    auto o = options();
    o.properties = std::move(properties);
    return tls_remedy(o);
  };
  for (const auto* plain : {"", "plaintext", "SASL_PLAINTEXT"})
    EXPECT_EQ(remedy({{"security.protocol", plain}}), "Set the property security.protocol to ssl or sasl_ssl");
  for (const auto* off : {"false", "False", "f", "0"})
    EXPECT_TRUE(mentions(remedy({{"security.protocol", "ssl"}, {"enable.ssl.certificate.verification", off}}),
                         "Leave out the property enable.ssl.certificate.verification"))
        << off;
  EXPECT_TRUE(mentions(remedy({{"security.protocol", "SASL_SSL"}, {"ssl.endpoint.identification.algorithm", "none"}}),
                       "Leave out the property ssl.endpoint.identification.algorithm"));
  EXPECT_EQ(remedy({{"security.protocol", "ssl"}}), "");
  EXPECT_EQ(remedy({{"security.protocol", "ssl"},
                    {"enable.ssl.certificate.verification", "true"},
                    {"ssl.endpoint.identification.algorithm", "https"}}),
            "");
}

TEST(KafkaSettings, OpenWarnsOncePerBrokerOfANetworkThatTlsDoesNotProtect) {
  tenure::test::Lines lines;
  auto o = options();
  o.brokers = "127.0.0.1:1,192.0.2.1:9092";  // The second one is for documents: nobody is there.
  o.properties = {{"security.protocol", "ssl"}, {"enable.ssl.certificate.verification", "false"}};
  o.log = lines.log();
  open(o);
  const auto all = lines.all();
  const auto warns = [](const auto& line) { return mentions(line, "TLS does not protect"); };
  ASSERT_EQ(std::count_if(all.begin(), all.end(), warns), 1) << testing::PrintToString(all);
  EXPECT_TRUE(mentions(*std::find_if(all.begin(), all.end(), warns), "broker 192.0.2.1"));
}

TEST(KafkaSettings, TransactionsWarnOnceIfTheyAloneDoWithoutTls) {
  for (const bool protects : {true, false}) {
    tenure::test::Lines lines;
    auto o = options();
    o.brokers = "127.0.0.1:1,192.0.2.1:9092";
    if (protects) o.properties = {{"security.protocol", "ssl"}};
    o.log = lines.log();
    const auto election = open(o);
    const auto warnings = [&] {
      const auto all = lines.all();
      return std::count_if(all.begin(), all.end(), [](const auto& line) {
        return mentions(line, "broker 192.0.2.1") && mentions(line, "TLS does not protect");
      });
    };
    EXPECT_EQ(warnings(), protects ? 0 : 1);
    const Transactions alike(election, "id");
    EXPECT_EQ(warnings(), protects ? 0 : 1) << "nothing else than the election has said";
    const Transactions unchecked(election, "id", {{"enable.ssl.certificate.verification", "false"}});
    EXPECT_EQ(warnings(), 1);
  }
}

TEST(KafkaSettings, NoAnswerOfABrokerTakesMoreThanSixteenMegabytesUnlessTheUserSaysSo) {
  const auto bound = [](Properties properties) {
    auto o = options();
    o.properties = std::move(properties);
    o.log = no_log;
    EXPECT_NO_THROW(open(o)) << "librdkafka wants what is fetched to be less";
    return common_properties(completed(o), o.group).at("receive.message.max.bytes");
  };
  EXPECT_EQ(bound({}), "16777216");
  EXPECT_EQ(bound({{"message.max.bytes", "10000000"}}), "16777216") << "as producers have it";
  EXPECT_EQ(bound({{"receive.message.max.bytes", "100000000"}}), "100000000");
}

// ---- timing ----

Pace pace(const Timing& timing, const Options& o = options()) {
  const auto result = pace_of(timing, o);
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  return *result;
}

std::string timing_refusal(const Timing& timing, const Options& o = options()) {
  const auto result = pace_of(timing, o);
  return result ? "accepted" : result.error().message;
}

TEST(KafkaTiming, PresetsAreValidAndHaveTheirSessions) {
  for (const auto& timing : {presets().fast, presets().balanced, presets().steady}) timing.validate();
  EXPECT_EQ(pace(presets().fast).session, 6s);
  EXPECT_EQ(pace(presets().fast).heartbeat, 250ms);
  EXPECT_EQ(pace(presets().fast).observe_every, 125ms);
  EXPECT_EQ(pace(presets().balanced).session, 12s);
  EXPECT_EQ(pace(presets().balanced).heartbeat, 500ms);
  EXPECT_EQ(pace(presets().balanced).observe_every, 500ms);
  EXPECT_EQ(pace(presets().steady).session, 20s);
  EXPECT_EQ(pace(presets().steady).heartbeat, 1s);
}

TEST(KafkaTiming, PresetsForOnesOwnBrokerHaveSessionsFrom100Ms) {
  auto o = options();
  o.min_session = 100ms;
  const auto own = own_broker_presets();
  for (const auto& timing : {own.fast, own.balanced, own.steady}) timing.validate();
  EXPECT_EQ(pace(own.fast, o).session, 100ms);
  EXPECT_EQ(pace(own.fast, o).heartbeat, 25ms);
  EXPECT_EQ(pace(own.balanced, o).session, 400ms);
  EXPECT_EQ(pace(own.steady, o).session, 1250ms);
  EXPECT_EQ(pace(own.steady, o).heartbeat, 100ms);
  EXPECT_EQ(pace(presets().fast, o).session, 5750ms) << "a broker that allows less needs no more than that";
  EXPECT_TRUE(mentions(timing_refusal(own.fast), "Options::min_session")) << timing_refusal(own.fast);
  o.min_session = 99ms;
  EXPECT_TRUE(mentions(refusal(o), "Options::min_session is 99 ms; 100 ms to an hour is allowed")) << refusal(o);
}

TEST(KafkaTiming, OptionsOverrideSessionAndHeartbeat) {
  auto o = options();
  o.session = 8s;
  o.heartbeat = 300ms;
  o.observe_every = 700ms;
  const auto p = pace(presets().balanced, o);
  EXPECT_EQ(p.session, 8s);
  EXPECT_EQ(p.heartbeat, 300ms);
  EXPECT_EQ(p.observe_every, 700ms);
}

TEST(KafkaTiming, RefusesALeaseThatEndsBeforeTheSession) {
  auto t = presets().fast;
  t.margin += 1ms;
  EXPECT_TRUE(mentions(timing_refusal(t), "5999 ms")) << timing_refusal(t);
  EXPECT_TRUE(mentions(timing_refusal(t), "group.min.session.timeout.ms"));
  EXPECT_TRUE(mentions(timing_refusal(Timing::of(3s)), "tenure::kafka::presets().fast"));
  auto o = options();
  o.session = 20s;
  EXPECT_TRUE(mentions(timing_refusal(presets().balanced, o), "20000 ms"));
  o.session = 2s;  // a broker that allows it
  EXPECT_EQ(timing_refusal({.term = 3s, .renew = 300ms, .retry = 50ms, .margin = 100ms, .call = 1s, .drain = 1s}, o),
            "accepted");
}

TEST(KafkaTiming, WhereTheBrokersWantLongSessionsTheRefusalNamesATermThatWorks) {
  auto o = options();
  o.min_session = 30s;
  const auto told = timing_refusal(presets().steady, o);
  EXPECT_TRUE(mentions(told, "This works: term 33000 ms, renew 3000 ms and margin 1000 ms")) << told;
  EXPECT_EQ(timing_refusal({.term = 33s, .renew = 3s, .retry = 400ms, .margin = 1s, .call = 2s, .drain = 22s}, o),
            "accepted");
}

TEST(KafkaTiming, RefusesSeldomRenewals) {
  auto t = presets().balanced;
  t.renew = t.term / 6 + 1ms;
  EXPECT_TRUE(mentions(timing_refusal(t), "term / 6")) << timing_refusal(t);
}

TEST(KafkaTiming, RefusesSeldomHeartbeats) {
  auto o = options();
  o.heartbeat = 4s;
  EXPECT_TRUE(mentions(timing_refusal(presets().balanced, o), "heartbeat"));
}

// ---- timing of a group ----

std::string group_refusal(const Timing& timing, const Options& o = options()) {
  const auto result = group_pace_of(timing, o, Exclusive::no);
  return result ? "accepted" : result.error().message;
}

TEST(KafkaGroupTiming, S5PresetsArePresumedForExactlyAsLongAsIsNeeded) {
  const auto preset = group_presets(Exclusive::no);
  const std::pair<Timing, Clock::Duration> sessions[] = {
      {preset.fast, 6s}, {preset.balanced, 12s}, {preset.steady, 20s}};
  for (const auto& [timing, session] : sessions) {
    timing.validate();
    const auto pace = group_pace_of(timing, options(), Exclusive::no);
    ASSERT_TRUE(pace) << pace.error().message;
    EXPECT_EQ(pace->session, session);
    EXPECT_EQ(least_presumption(*pace, options()), 4 * session + 2s);
    EXPECT_EQ(timing.term - timing.margin, 4 * session + 2s);
    EXPECT_EQ(member_properties(options(), *pace, "c").at("max.poll.interval.ms"), std::to_string(2 * session / 1ms));
  }
  EXPECT_EQ(group_presets(Exclusive::yes), presets());
}

TEST(KafkaGroupTiming, S5RefusesAMillisecondLessAndShowsTheSum) {
  auto t = group_presets(Exclusive::no).fast;
  t.margin += 1ms;
  for (const auto* part : {"(25999 ms)", "at least 26000 ms", "(6000 ms each)", "a rebalance (12000 ms)",
                           "socket.timeout.ms, 2000 ms", "group.min.session.timeout.ms", "group_presets"})
    EXPECT_TRUE(mentions(group_refusal(t), part)) << group_refusal(t);
  EXPECT_TRUE(mentions(group_refusal(presets().steady), "must be at least 26000 ms"));
  auto o = options();
  o.properties["socket.timeout.ms"] = "1999";
  EXPECT_EQ(group_refusal(t, o), "accepted") << "a request takes less";
}

TEST(KafkaGroupTiming, S5AShorterSessionNeedsLess) {
  auto o = options();
  o.session = 1s;
  Timing t{.term = 6100ms, .renew = 300ms, .retry = 50ms, .margin = 100ms, .call = 1s, .drain = 1s};
  EXPECT_EQ(group_refusal(t, o), "accepted");
  t.term -= 1ms;
  EXPECT_TRUE(mentions(group_refusal(t, o), "must be at least 6000 ms")) << group_refusal(t, o);
}

TEST(KafkaGroupTiming, S6RefusesSeldomRenewalsAndHeartbeats) {
  auto t = group_presets(Exclusive::no).fast;
  t.renew = 2001ms;
  EXPECT_TRUE(mentions(group_refusal(t), "a third of the session (6000 ms)")) << group_refusal(t);
  auto o = options();
  o.heartbeat = 1501ms;
  EXPECT_TRUE(mentions(group_refusal(group_presets(Exclusive::no).fast, o), "a quarter of the session"));
}

// ---- URLs ----

Opening at(const std::string& url) {
  Opening opening;
  opening.url = url;
  opening.election = "jobs";
  return opening;
}

Options options_of(const Opening& opening) { return asked_by(opening).options; }

std::string url_refusal(const Opening& opening) {
  return refusal_of([&] { completed(options_of(opening)); });
}

TEST(KafkaUrl, NamesBrokersTopicAndGroup) {
  auto o = options_of(at("kafka://b1:9092,b2,[::1]:9/topic?group=g&ssl.ca.location=/a%20b"));
  EXPECT_EQ(o.brokers, "b1:9092,b2,[::1]:9");
  EXPECT_EQ(o.topic, "topic");
  EXPECT_EQ(o.group, "g");
  EXPECT_EQ(o.properties, (std::map<std::string, std::string>{{"ssl.ca.location", "/a b"}}));
  EXPECT_FALSE(o.create_topic);
  EXPECT_FALSE(o.remote_step_down);
  EXPECT_EQ(o.first_claim, FirstClaim::at_once);

  o = completed(options_of(at("kafka://b1")));
  EXPECT_EQ(o.group, "jobs") << "the election's name";
  EXPECT_EQ(o.topic, "jobs.neli");

  o = options_of(at("kafka://b1/?create_topic=true&first_claim=wait&remote_step_down=true"));
  EXPECT_TRUE(o.create_topic);
  EXPECT_TRUE(o.remote_step_down);
  EXPECT_EQ(o.first_claim, FirstClaim::wait);
  EXPECT_TRUE(o.properties.empty());
}

TEST(KafkaUrl, SaysWhatSessionsTheBrokersAllowAndHasThePresetsForIt) {
  EXPECT_EQ(options_of(at("kafka://b/t?min_session_ms=250")).min_session, 250ms);
  EXPECT_TRUE(mentions(url_refusal(at("kafka://b/t?min_session_ms=0.1s")), "min_session_ms must be a number from 1"));
  EXPECT_TRUE(mentions(url_refusal(at("kafka://b/t?min_session=100")), "did you mean \"min_session_ms\"?"));
  const auto opened = [](const std::string& query) { return open_url(at("kafka://127.0.0.1:1/t?" + query)).presets; };
  EXPECT_EQ(opened("min_session_ms=100"), own_broker_presets());
  EXPECT_EQ(opened("min_session_ms=101"), presets());
  EXPECT_EQ(open_group_url(at("kafka://127.0.0.1:1/t?min_session_ms=100")).presets, own_broker_presets());
}

TEST(KafkaUrl, CarriesUserAndPassword) {
  auto opening = at("kafka://u:p%40@b/t?security.protocol=sasl_ssl&sasl.mechanism=PLAIN");
  EXPECT_EQ(options_of(opening).properties["sasl.username"], "u");
  EXPECT_EQ(options_of(opening).properties["sasl.password"], "p@");
  opening.properties["sasl.password"] = canary;
  EXPECT_TRUE(mentions(url_refusal(opening), "sasl.password and the URL's user")) << url_refusal(opening);
  EXPECT_FALSE(mentions(url_refusal(opening), canary));
  opening = at("kafka://b/t");
  opening.user = "u";
  EXPECT_TRUE(mentions(url_refusal(opening), "it needs security.protocol=sasl_ssl")) << "or nobody signs in";
}

TEST(KafkaUrl, CredentialsAreAskedForWithEachHandle) {
  auto opening = at("kafka://u:old@b/t?security.protocol=sasl_ssl&sasl.mechanism=PLAIN");
  int asked = 0;
  opening.credentials = [&] { return Credentials{.password = canary + std::to_string(++asked)}; };
  const auto o = completed(options_of(opening));
  EXPECT_EQ(asked, 0);
  ClosableLog handles(o);
  EXPECT_EQ(handles.login(), (Properties{{"sasl.username", "u"}, {"sasl.password", canary + "1"}}));
  EXPECT_EQ(handles.login().at("sasl.password"), canary + "2");
  EXPECT_EQ(handles.redacted()("not " + canary + "2 here"), "not *** here");
  opening.credentials = []() -> Credentials { throw std::runtime_error("the vault is away"); };
  EXPECT_THROW(ClosableLog(completed(options_of(opening))).login(), std::runtime_error);
  for (const auto* query : {"", "?security.protocol=ssl", "?security.protocol=sasl_ssl&sasl.mechanism=OAUTHBEARER",
                            "?security.protocol=sasl_ssl&sasl.mechanism=PLAIN&sasl.password=x"}) {
    opening.url = std::string("kafka://b/t") + query;
    EXPECT_TRUE(mentions(refusal(options_of(opening)), "credentials ")) << query;
  }
}

TEST(KafkaUrl, AWrongUrlIsRefusedWithTheReason) {
  const auto refused = [](const std::string& url) { return url_refusal(at(url)); };
  EXPECT_TRUE(mentions(refused("kafka:///t"), "a URL is \"kafka://host:port"));
  EXPECT_TRUE(mentions(refused("kafka:t"), "a URL is \"kafka://host:port"));
  EXPECT_TRUE(mentions(refused("kafka://b/a/b"), "no name for a Kafka topic"));
  EXPECT_TRUE(mentions(refused("kafka://b/t?grup=g"), "no setting \"grup\", did you mean \"group\"?"));
  EXPECT_TRUE(mentions(refused("kafka://b/t?create_topic=yes"), "create_topic must be false or true"));
  EXPECT_TRUE(mentions(refused("kafka://b/t?first_claim="), "first_claim must be at_once or wait"));
  EXPECT_TRUE(mentions(refused("kafka://b/t?sasl.pasword=x"), "did you mean \"sasl.password\"?"))
      << refused("kafka://b/t?sasl.pasword=x");
  EXPECT_TRUE(mentions(refused("kafka://b/t?security.protocl=ssl"), "did you mean \"security.protocol\"?"));
  EXPECT_TRUE(mentions(refused("kafka://b/t?client.dns.lookup=x"), "properties[\"client.dns.lookup\"]"));
  EXPECT_TRUE(mentions(refused("kafka://b/t?session.timeout.ms=1"), "is decided by the election"));
}

TEST(KafkaUrl, ItsAuthorCannotRunOrLoadAnything) {
  for (const auto* name :
       {"plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.engine.id", "ssl.providers",
        "sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.metadata.authentication.type", "SSL.Engine.Location"}) {
    auto opening = at("kafka://b/t?" + std::string(name) + "=/tmp/x");
    EXPECT_TRUE(mentions(url_refusal(opening), "no URL and no document may set it")) << name;
    opening = at("kafka://b/t");
    opening.properties[name] = "/tmp/x";
    EXPECT_TRUE(mentions(url_refusal(opening), "no URL and no document may set it")) << name;
  }
  for (const auto* value : {"%24(id)", "a%3Bid", "a%20b", "%25%7Bssl.key.password%7D", "%60id%60", "a%22b"})
    for (const auto* name : {"sasl.kerberos.principal", "sasl.kerberos.keytab", "sasl.kerberos.service.name"})
      EXPECT_TRUE(mentions(url_refusal(at("kafka://b/t?" + std::string(name) + "=" + value)), "into a command"))
          << name << value;
  EXPECT_EQ(
      url_refusal(at("kafka://b/t?sasl.kerberos.principal=kafka/h.example%40EXAMPLE&sasl.kerberos.keytab=/etc/k_1")),
      "accepted");
  auto o = options();
  o.properties["sasl.kerberos.kinit.cmd"] = "kinit -k";
  EXPECT_EQ(refusal(o), "accepted") << "an application's own choice";
}

TEST(KafkaUrl, MoreSettingsThanThereAreAreRefusedAtOnce) {
  auto opening = at("kafka://b/t");
  for (int i = 0; i < 60'000; ++i) opening.properties["a" + std::to_string(i)] = "1";
  EXPECT_TRUE(mentions(url_refusal(opening), "60000 properties are given; 500")) << url_refusal(opening);
}

TEST(KafkaUrl, OfAGroupSaysItsMode) {
  const auto opened = [](const std::string& query) { return open_group_url(at("kafka://127.0.0.1:1/t" + query)); };
  EXPECT_EQ(opened("").store->exclusive(), Exclusive::yes);
  EXPECT_EQ(opened("?exclusive=yes").presets, presets());
  EXPECT_EQ(opened("?units=7&exclusive=no").store->exclusive(), Exclusive::no);
  EXPECT_EQ(opened("?exclusive=no").presets, group_presets(Exclusive::no));
  const auto error = opened("?exclusive=no").store->accepts(presets().fast);
  ASSERT_TRUE(error);
  EXPECT_TRUE(mentions(error->message, "with Exclusive::no")) << error->message;
  EXPECT_THROW(opened("?exclusive=maybe"), std::invalid_argument);
  EXPECT_TRUE(mentions(url_refusal(at("kafka://b/t?exclusive=no")), "exclusive")) << "of a single election";
}

}  // namespace
}  // namespace tenure::kafka
