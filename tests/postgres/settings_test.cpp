// SPDX-License-Identifier: Apache-2.0
// Goal: what a user configures reaches libpq as he meant it, what can never work is refused with the reason, and no
// secret is in any message. Method: libpq itself takes apart what it is told; no server.
#include "settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <pqxx/pqxx>
#include <sstream>
#include <stdexcept>

#include "faults.hpp"
#include "messages.hpp"
#include "refusal.hpp"

namespace tenure::postgres {
namespace {

using tenure::test::canary;
using tenure::test::refusal_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::map<std::string, std::string> understood(const std::string& conninfo) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(PQconninfoParse(conninfo.c_str(), nullptr),
                                                                            &PQconninfoFree);
  std::map<std::string, std::string> out;
  for (const auto* option = parsed.get(); option && option->keyword; ++option)
    if (option->val) out[option->keyword] = option->val;
  return out;
}

std::map<std::string, std::string> told(const Options& options) { return understood(settings_of(options).conninfo); }

Options with(const std::string& conninfo, const std::string& user = "", const std::string& password = "") {
  return {conninfo, user, password};
}

std::string refusal(const Options& options) {
  return refusal_of([&] { settings_of(options); });
}

TEST(Settings, AnEmptyConninfoLeavesAllButANameAndProbesToLibpq) {
  EXPECT_EQ(told({}), (std::map<std::string, std::string>{{"fallback_application_name", "tenure"},
                                                          {"keepalives_idle", "15"},
                                                          {"keepalives_interval", "5"},
                                                          {"keepalives_count", "3"}}));
}

/// Else one that only listens would notice after two hours that the other end has gone.
TEST(Settings, AConnectionThatNobodyAnswersIsProbedAsTheUserSaysOrSoon) {
  auto own = told(with("keepalives_idle=7 keepalives_count=9"));
  EXPECT_EQ(own["keepalives_idle"] + own["keepalives_interval"] + own["keepalives_count"], "759");
  EXPECT_FALSE(told(with("service=mine")).contains("keepalives_idle")) << "the service may say";
}

/// libpq counts whole seconds from the last whole one: of two it may leave one.
TEST(Settings, ConnectTimeoutIsTheCallThreadsPatienceUnlessTheUserSetsIt) {
  const auto within = [](const std::string& conninfo, Clock::Duration patience) {
    return understood(settings_of(with(conninfo)).conninfo_within(patience))["connect_timeout"];
  };
  EXPECT_EQ(within("host=a", std::chrono::seconds(2)), "3");
  EXPECT_EQ(within("host=a", std::chrono::milliseconds(20)), "2");
  EXPECT_EQ(within("host=a connect_timeout=7", std::chrono::seconds(2)), "7");
}

TEST(Settings, KeysAndValuesAndUrisMeanWhatTheyMeanToLibpq) {
  EXPECT_EQ(told(with(R"(password='a \'b\\ c' user = x)"))["password"], R"(a 'b\ c)");
  auto uri = told(with("postgresql://u:p%40%27%5C@a:1,b:2/db?target_session_attrs=read-write&connect_timeout=7"));
  EXPECT_EQ(uri["host"], "a,b");
  EXPECT_EQ(uri["port"], "1,2");
  EXPECT_EQ(uri["dbname"], "db");
  EXPECT_EQ(uri["user"], "u");
  EXPECT_EQ(uri["password"], R"(p@'\)");
  EXPECT_EQ(uri["target_session_attrs"], "read-write");
  EXPECT_EQ(uri["connect_timeout"], "7") << "the user's own stands";
  EXPECT_EQ(told(with("service=mine"))["service"], "mine");
  EXPECT_EQ(told(with("application_name=jobs"))["application_name"], "jobs");
}

TEST(Settings, UserAndPasswordOfOptionsReplaceThoseOfConninfo) {
  auto both = told(with("postgres://u:p@h/db", "other", "pass'word\\"));
  EXPECT_EQ(both["user"], "other");
  EXPECT_EQ(both["password"], "pass'word\\");
  EXPECT_EQ(both["host"], "h");
}

TEST(Settings, AConninfoThatLibpqRefusesIsRefusedWithoutRepeatingIt) {
  for (const std::string& bad :
       {std::string("password=with a ") + canary, std::string("host=h ") + canary + "=1",
        std::string("postgres://u:") + canary + "%zz@h", std::string("postgres://h/db?") + canary,
        std::string("postgres://h/db?") + canary + "=1", std::string("password='") + canary,
        std::string("postgres://[") + canary, std::string("h\0", 2) + canary}) {
    const auto said = refusal(with(bad));
    EXPECT_THAT(said, HasSubstr("conninfo is neither a URI")) << bad;
    EXPECT_THAT(said, Not(HasSubstr(canary))) << bad;
  }
}

/// Of each of these libpq would print a part as a host, a port or a database.
TEST(Settings, APasswordThatIsNotEncodedIsRefusedAndNoPartOfItIsRepeated) {
  const std::string c = canary;
  for (const auto& conninfo : {"postgres://u:" + c + "/x@127.0.0.1/db",
                               "postgres://u:x/" + c + "@127.0.0.1/db",
                               "postgres://u:abc@" + c + "@127.0.0.1/db",
                               "postgresql://u:" + c + "@x@127.0.0.1/db",
                               "postgres://u:" + c + "/x@h:1,i:2/db?sslmode=require",
                               "postgres://u:" + c + "/",
                               "postgres://u:" + c + ":1@/x@h",
                               "postgres://u:x/y" + c + "@h",
                               "postgres://u:" + c,
                               "postgres://u:a@b/c@" + c,
                               "host=u@" + c,
                               "host= password=" + c + " user=u",
                               "dbname= password=" + c,
                               "user= password=" + c + " host=h",
                               "application_name= sslpassword=" + c,
                               "postgres://u:a?b@h/" + c + "@host/app",
                               "host=a,b@" + c,
                               "port=" + c,
                               "port=5432,7" + c,
                               "postgres://u:" + c + "?x/y@h",
                               "postgres://u:%zz" + c + "@h/db",
                               "dbname=postgres://u:" + c + "@h/db",
                               "host=postgres://u:" + c + "/h"}) {
    const auto told = refusal(with(conninfo));
    EXPECT_NE(told, "accepted") << conninfo;
    EXPECT_THAT(told, Not(HasSubstr("canary"))) << conninfo;
    EXPECT_THAT(told, Not(HasSubstr("s3cr3t"))) << conninfo;
  }
  EXPECT_THAT(refusal(with("postgres://u:abc@" + c + "@h/db")), HasSubstr("%40"));
  EXPECT_THAT(refusal(with("postgres://u:" + c + "/x@h/db")), HasSubstr("%2F"));
  for (const auto* fine : {"postgres://u:a%40b%2Fc@h/db", "postgres://u:a?b@h/db", "postgres://u:a:b@h:1,i:2/db",
                           "postgres://h/db", "postgres://u:a?b@h/db?host=c", "postgres:///db?host=/run/x",
                           "postgres://h/db?user=me@there", "host=@abstract", "host=a,b port=1,2"})
    EXPECT_EQ(refusal(with(fine)), "accepted") << fine;
}

TEST(Settings, TheServerThatAnsweredLastIsTriedFirst) {
  const auto from = [](const std::string& conninfo, std::size_t host, const std::vector<std::string>& at = {}) {
    const auto settings = settings_of(with(conninfo));
    const auto told = understood(settings.conninfo + settings.beginning_with(host, at));
    const auto value = [&](const char* key) { return told.contains(key) ? told.at(key) : "-"; };
    return value("host") + " " + value("hostaddr") + " " + value("port");
  };
  EXPECT_EQ(from("host=a,b,c port=1,2,3", 1), "b,c,a - 2,3,1");
  EXPECT_EQ(from("host=a,b port=7", 1), "b,a - 7,7");
  EXPECT_EQ(from("host=a,b", 1), "b,a - -");
  EXPECT_EQ(from("postgres://a:1,b/db", 1), "b,a - ,1");
  EXPECT_EQ(from("hostaddr=10.0.0.1,10.0.0.2", 1), "- 10.0.0.2,10.0.0.1 -");
  EXPECT_EQ(from("host=a", 0), "a - -");
  EXPECT_EQ(from("host=a", 0, {"1.1.1.1", "2.2.2.2"}), "a,a 1.1.1.1,2.2.2.2 -");
  EXPECT_EQ(from("host=a,b,c port=1,2,3", 1, {"1.1.1.1", "::1"}), "b,b,c,a 1.1.1.1,::1,, 2,2,3,1");
}

TEST(Settings, CredentialsAreAskedAtEachLoginAndTheirPasswordIsASecret) {
  auto options = with("host=h user=u password=old");
  int asked = 0;
  options.credentials = [&] {
    const auto now = std::to_string(++asked);
    return Credentials{"me" + now, canary + now};
  };
  auto settings = settings_of(options);
  for (int i = 1; i < 3; ++i) {
    const auto told = understood(settings.conninfo + settings.login());
    EXPECT_EQ(told.at("user"), "me" + std::to_string(i));
    EXPECT_EQ(told.at("password"), canary + std::to_string(i));
    EXPECT_EQ(settings.redacted("no " + told.at("password") + " old"), "no *** ***");
  }
  options.credentials = []() -> Credentials { throw std::runtime_error("the vault is shut to old\n"); };
  try {
    settings_of(options).login();
    ADD_FAILURE() << "it was accepted";
  } catch (const NoCredentials& e) {
    EXPECT_THAT(e.what(), HasSubstr("credentials threw: the vault is shut to ***"));
  }
}

TEST(Settings, ValuesThatLibpqWouldRefuseAtConnectAreRefusedAtOnce) {
  EXPECT_THAT(refusal(with("sslmode=nonsense")), HasSubstr("sslmode must be one of: disable allow prefer require"));
  EXPECT_THAT(refusal(with("host=h target_session_attrs=rw")), HasSubstr("read-write"));
  for (const auto* port : {"0", "-1", "54x32", "99999", "5432 ", "1,x"})
    EXPECT_THAT(refusal(with(std::string("host=h port='") + port + "'")), HasSubstr("from 1 to 65535")) << port;
  EXPECT_THAT(refusal(with("host=h sslmode=verify-full sslrootcert=/no/such/ca.crt")),
              HasSubstr("sslrootcert: the file /no/such/ca.crt is not there"));
  EXPECT_THAT(refusal(with("host=h sslcert=/no/such/client.crt")), HasSubstr("sslcert: the file"));
  EXPECT_THAT(refusal(with("host=h sslkey=/tmp/engine.so:key")), HasSubstr("sslkey names an engine of OpenSSL"));
  ::setenv("PGSSLMODE", "nonsense", 1);
  EXPECT_THAT(refusal({}), HasSubstr("sslmode"));
  ::unsetenv("PGSSLMODE");
  EXPECT_EQ(refusal(with("host=h sslmode=verify-full sslrootcert=system")), "accepted");
  EXPECT_EQ(refusal(with("host=h sslmode=verify-full")), "accepted");
}

TEST(Settings, TlsThatVerifiesANameNeedsTheName) {
  EXPECT_THAT(refusal(with("hostaddr=10.0.0.7 sslmode=verify-full")), HasSubstr("host"));
  for (const std::string fine :
       {"host=db.example hostaddr=10.0.0.7 sslmode=verify-full", "hostaddr=10.0.0.7 sslmode=verify-ca",
        "service=mine hostaddr=10.0.0.7 "
        "sslmode=verify-full"})
    EXPECT_EQ(refusal(with(fine)), "accepted") << fine;
}

TEST(Settings, AMessageNamesTheAddressOfAServerWithoutAName) {
  EXPECT_EQ(settings_of(with("hostaddr=10.0.0.7 dbname=d")).target, "10.0.0.7:5432/d");
}

TEST(Settings, AServerKnowsTheElectionAndTheCandidateByName) {
  EXPECT_EQ(application_name("jobs"), "tenure jobs");
  EXPECT_EQ(application_name("jobs", "worker-7"), "tenure jobs worker-7");
  EXPECT_EQ(application_name("a b\n\xc3\xa4", "x"), "tenure a?b??? x");
  const std::string e(200, 'e'), c(100, 'c');
  EXPECT_EQ(application_name(e), "tenure " + std::string(55, 'e'));
  EXPECT_EQ(application_name(e, c), "tenure " + std::string(28, 'e') + " " + std::string(27, 'c'));
  EXPECT_EQ(application_name("jobs", c), "tenure jobs " + std::string(51, 'c'));
  EXPECT_EQ(application_name(e, "me"), "tenure " + std::string(53, 'e') + " me");
  EXPECT_EQ(understood(settings_of(with("application_name=mine"), "tenure jobs").conninfo)["application_name"], "mine");
}

TEST(Settings, ALogThatThrowsDisturbsNothing) {
  EXPECT_NO_THROW(open(with("host=db.example"), "jobs", {}, [](const LogLine&) { throw 1; }));
}

TEST(Settings, TablesAreCheckedAndQuoted) {
  EXPECT_EQ(quoted_table("tenure_elections"), R"("tenure_elections")");
  EXPECT_EQ(quoted_table("Ops.Leaders_2"), R"("Ops"."Leaders_2")");
  EXPECT_EQ(quoted_table(std::string(63, 'x')).size(), 65u);
  for (const std::string bad : {"", ".", "a.", ".a", "a.b.c", "1a", "a-b", "a b", "t\"; drop table x; --", "'", "a\n",
                                "pg_temp.\"x\"", "t\xc3\xa4"})
    EXPECT_THAT(refusal({"", "", "", bad}), HasSubstr("postgres: table \"")) << bad;
  EXPECT_THAT(refusal({"", "", "", std::string(64, 'x')}), HasSubstr("at most 62"));
  EXPECT_THAT(refusal({"", "", "", std::string("a\0b", 3)}), HasSubstr("table"));
  EXPECT_LT(refusal({"", "", "", std::string(100'000, 'x')}).size(), 300u);
  EXPECT_THROW(schema("a; b"), std::invalid_argument);
}

TEST(Settings, ServersThatTlsDoesNotVerifyAreWarnedOf) {
  const auto unverified = [](const std::string& conninfo) { return settings_of(with(conninfo)).unverified_hosts; };
  EXPECT_THAT(unverified("host=db.example,10.0.0.7"), ElementsAre("db.example", "10.0.0.7"));
  EXPECT_THAT(unverified("postgres://db.example/x?sslmode=require"), ElementsAre("db.example"));
  for (const std::string fine :
       {"", "host=localhost,127.0.0.1,::1", "host=/run/postgresql", "host=db.example sslmode=verify-full",
        "host=db.example sslmode=verify-ca", "host=db.example sslrootcert=system", "service=mine"})
    EXPECT_THAT(unverified(fine), IsEmpty()) << fine;
  EXPECT_THAT(unverified("hostaddr=10.0.0.7"), ElementsAre("10.0.0.7"));
  EXPECT_THAT(unverified("host=localhost,b hostaddr=10.0.0.7,127.0.0.1"), ElementsAre("localhost"))
      << "hostaddr tells where the connection leads";
  EXPECT_EQ(told(with("host=db.example sslrootcert=system"))["sslmode"], "verify-full") << "also before libpq 16";
  EXPECT_THAT(unverified("host=db.example sslrootcert=system sslmode=require"), ElementsAre("db.example"));
  std::vector<std::string> logged;
  open(with("host=db.example"), "jobs", {}, [&](const LogLine& line) { logged.push_back(line.message); });
  EXPECT_THAT(logged, ElementsAre(HasSubstr("sslmode=verify-full")));
}

TEST(Settings, AUrlIsHandedOnAndItsPropertiesAreChecked) {
  Opening opening;
  opening.url = std::string("postgres://u:") + canary + "@localhost/db";
  opening.election = "jobs";
  opening.properties = {{"table", "ops.leaders"}};
  const auto opened = open_url(opening);
  EXPECT_EQ(opened.backend->election(), "jobs");
  EXPECT_LT(opened.presets.fast.term, opened.presets.balanced.term);
  EXPECT_LT(opened.presets.balanced.term, opened.presets.steady.term);

  const auto refused = [](const Opening& wrong) {
    auto said = refusal_of([&] { open_url(wrong); });
    EXPECT_THAT(said, Not(HasSubstr(canary)));
    return said;
  };
  auto wrong = opening;
  wrong.properties = {{"tabel", canary}};
  EXPECT_THAT(refused(wrong), AllOf(HasSubstr("\"tabel\", did you mean \"table\"?"),
                                    HasSubstr("put a parameter of libpq into the URL")));
  wrong.properties = {{"table", "a b"}};
  EXPECT_THAT(refused(wrong), HasSubstr("table \"a b\""));
  wrong.url += "?table=other&sslmode=require";
  EXPECT_THAT(refused(wrong), HasSubstr("table"));
  wrong.properties.clear();
  EXPECT_EQ(refused(wrong), "accepted");
  const auto url = wrong.url;
  for (const auto& [more, why] :
       {std::pair("&table=b", "table twice"), {"&create_table=maybe", "create_table"}, {"&leads=x", "\"leads\""}}) {
    wrong.url = url + more;
    EXPECT_THAT(refused(wrong), HasSubstr(why));
  }
  wrong = opening;
  wrong.properties.clear();
  wrong.url += "?sslmode=require&table=a%20b";
  EXPECT_THAT(refused(wrong), HasSubstr("table \"a b\""));
  wrong.url = opening.url + "?table=%zz";
  EXPECT_THAT(refused(wrong), HasSubstr("%25"));
  wrong.url = opening.url + "?sessions=ops.s&sslmode=require&leads=ops%2El";
  EXPECT_NO_THROW(open_group_url(wrong));
  wrong = opening;
  wrong.url = std::string("mysql://u:") + canary + "@h";
  EXPECT_THAT(refused(wrong), HasSubstr("must begin with postgres://"));
  wrong = opening;
  wrong.election = std::string(201, 'x');
  EXPECT_THAT(refused(wrong), HasSubstr("election"));
}

TEST(Settings, SecretsAreTakenOutOfMessagesOfLibpqAndTheServer) {
  ::setenv("PGPASSWORD", "from the environment", 1);
  const auto environment = settings_of({});
  ::unsetenv("PGPASSWORD");
  EXPECT_EQ(environment.redacted("no from the environment\n"), "no ***");
  const auto settings = settings_of(with(std::string("password=") + canary + " sslpassword=second"));
  EXPECT_EQ(settings.redacted(std::string("a ") + canary + canary + "\x1b[31m second"), "a ******?[31m ***");
  const auto error = explained("28P01", std::string("FATAL: ") + canary, settings, "");
  EXPECT_THAT(error.message, Not(HasSubstr(canary)));
}

TEST(Settings, TheShippedSchemasAreTheLibrarys) {
  const auto shipped = [](const std::string& file) {
    std::ifstream in(TENURE_SQL + file);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  };
  EXPECT_EQ(schema(), shipped("tenure_elections.sql"));
  EXPECT_THAT(schema("ops.leaders"), HasSubstr(R"(create table if not exists "ops"."leaders" ()"));
  EXPECT_THAT(schema("ops.leaders"), HasSubstr(R"(grant select, insert, update on "ops"."leaders" to)"));
  EXPECT_THAT(schema("ops.leaders"), Not(HasSubstr("tenure_elections")));
  EXPECT_EQ(group_schema(), shipped("tenure_groups.sql"));
  const auto elsewhere = group_schema("ops.tenure_leads", "tenure_sessions");
  EXPECT_THAT(elsewhere, HasSubstr(R"(create table if not exists "ops"."tenure_leads" ()"));
  EXPECT_THAT(elsewhere, HasSubstr(R"(create table if not exists "tenure_sessions" ()"));
  EXPECT_THAT(elsewhere, HasSubstr(R"(grant select, insert, update, delete on "ops"."tenure_leads" to)"));
}

TEST(Settings, TheTablesOfGroupsAreCheckedToo) {
  for (const auto wrong : {&Options::sessions, &Options::leads}) {
    Options options;
    options.*wrong = "a b";
    EXPECT_EQ(refusal(options), "accepted") << "it is not used";
    EXPECT_THROW(open_group(options, "group"), std::invalid_argument);
  }
  EXPECT_THROW(open_group({}, ""), std::invalid_argument);
  std::vector<std::string> logged;
  open_group(with("host=db.example"), "jobs", [&](const LogLine& line) { logged.push_back(line.message); });
  EXPECT_THAT(logged, ElementsAre(HasSubstr("sslmode=verify-full")));
}

TEST(Faults, OneCodeWithSeveralCausesHasTheRemedyOfEach) {
  const auto said = [](const char* code, const std::string& words) {
    return explained(code, words, settings_of({}), "").message;
  };
  EXPECT_THAT(said("42501", "ERROR: permission denied for table tenure_elections"), HasSubstr("grant select, insert"));
  EXPECT_THAT(said("42501", "ERROR: permission denied for schema ops"), HasSubstr("grant usage"));
  EXPECT_THAT(said("42501", "ERROR: permission denied for function f"), HasSubstr("grant execute"));
  EXPECT_THAT(said("0A000", "ERROR: cached plan must not change result type"), HasSubstr("was altered"));
  EXPECT_THAT(said("0A000", "ERROR: DO is not implemented"), HasSubstr("must be PostgreSQL 13"));
  EXPECT_THAT(said("42703", "ERROR: column \"beat\" does not exist"), HasSubstr("is not the one of share"));
  EXPECT_THAT(said("42883", "ERROR: function pg_snapshot_xmin() does not exist"), HasSubstr("must be PostgreSQL 13"));
  EXPECT_THAT(said("55000", "ERROR: recovery is in progress"), HasSubstr("on a standby nobody can lead"));
  EXPECT_THAT(said("55000", "ERROR: logical decoding"), Not(HasSubstr("standby")));
}

/// libpq tells no code for a refused connection; its words are all there is.
TEST(Faults, ARefusedConnectionIsClassifiedByTheServersText) {
  const auto fault = [](const std::string& words) {
    return explained(sqlstate_of(pqxx::broken_connection(words)), words, settings_of({}), "").fault;
  };
  EXPECT_EQ(fault("FATAL:  password authentication failed for user \"x\""), Fault::forbidden);
  EXPECT_EQ(fault("fe_sendauth: no password supplied"), Fault::forbidden);
  EXPECT_EQ(fault("FATAL:  no pg_hba.conf entry for host"), Fault::forbidden);
  EXPECT_EQ(fault("FATAL:  role \"x\" does not exist"), Fault::forbidden);
  EXPECT_EQ(fault("FATAL:  database \"x\" does not exist"), Fault::misconfigured);
  EXPECT_EQ(fault("FATAL:  sorry, too many clients already"), Fault::unreachable);
  EXPECT_EQ(fault("FATAL:  the database system is starting up"), Fault::unreachable);
  EXPECT_EQ(fault("connection to server failed: Connection refused"), Fault::unreachable);
  EXPECT_EQ(fault("FATAL:  el sistema de base de datos"), Fault::unreachable);
}

}  // namespace
}  // namespace tenure::postgres
