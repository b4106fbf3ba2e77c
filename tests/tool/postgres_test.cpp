// SPDX-License-Identifier: Apache-2.0
// Goal: `tenure setup` makes what a candidate on PostgreSQL needs, and no more than once; `status --all` shows each
// election of its table, and `doctor` tells of the server and of our rights. Method: a database of its own on a real
// server.
#include <gtest/gtest.h>

#include "messages.hpp"
#include "password_change.hpp"
#include "process.hpp"
#include "run_tool.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

namespace pg = postgres::test;

class OnPostgres : public ::testing::Test {
 protected:
  void SetUp() override {
    if (pg::shared().empty()) GTEST_SKIP() << "needs PostgreSQL: docker/postgres start";
    pg::sql(pg::shared(), "create database " + name);
    url = pg::shared("TENURE_POSTGRES_URL");  // postgresql://…/postgres, but this one
    url.replace(url.rfind('/') + 1, url.npos, name);
  }
  void TearDown() override {
    if (!url.empty()) pg::sql(pg::shared(), "drop database " + name + " with (force)");
  }
  const std::string name = pg::unique_name("tool");
  std::string url;
};

TEST_F(OnPostgres, SetupMakesTheTablesOnce) {
  Process before(tool({"status", "-e", "e", "--store", url}));
  EXPECT_EQ(before.ended(), 4) << before.out();
  EXPECT_TRUE(mentions(before.out(), "create_schema()") || mentions(before.out(), "setup")) << before.out();
  for (int i = 0; i < 2; ++i) {
    Process setup(tool({"setup", "--store", url}));
    EXPECT_EQ(setup.ended(), 0) << setup.err();
    EXPECT_TRUE(mentions(setup.out(), "tenure_elections"));
  }
  EXPECT_EQ(Process(tool({"setup", "--store", url + "?create_table=true"})).ended(), 0)
      << "as a candidate's URL has it";
  EXPECT_EQ(Process(tool({"status", "-e", "e", "--store", url})).ended(), 3);
  EXPECT_EQ(Process(tool({"run", "-e", "e", "--store", url, "--term", "2s", "--", "true"})).ended(), 0);
  Process groups(tool({"setup", "--groups", "--store", url}));
  EXPECT_EQ(groups.ended(), 0) << groups.err();
  EXPECT_EQ(pg::sql(url, "select 1 from tenure_leads").size(), 0);
}

TEST_F(OnPostgres, SetupMakesNoSecondTableThatAnotherRoleWouldNotFind) {
  pg::sql(url, "create schema other; create table other.tenure_elections (x int)");
  Process setup(tool({"setup", "--store", url}));
  EXPECT_EQ(setup.ended(), 78) << setup.out();
  for (const auto* words : {"there is other.tenure_elections", "To make a second one all the same"})
    EXPECT_TRUE(mentions(setup.err(), words)) << setup.err();
  EXPECT_EQ(pg::sql(url, "select from pg_tables where tablename = 'tenure_elections'").size(), 1);
}

TEST_F(OnPostgres, RetireRemovesTheNamesThatNobodyLeadsAndKeepsTheirTokens) {
  EXPECT_EQ(Process(tool({"setup", "--groups", "--store", url})).ended(), 0);
  pg::sql(url,
          "insert into tenure_sessions select convert_to('g', 'UTF8'), 7, 0, 1, false, '', 50, 1,"
          " clock_timestamp(), 1, 1, 1, 1");
  pg::sql(url,
          "insert into tenure_leads select convert_to('g', 'UTF8'), convert_to(name, 'UTF8'), 1000, 7, name <> 'led',"
          " null, null, null, null, pg_current_xact_id() from unnest(array['led', 'old', 'older']) as name");
  Process retire(tool({"retire", "--store", url, "--group", "g", "old", "led", "older", "never"}));
  EXPECT_EQ(retire.ended(), 1) << retire.err();
  for (const auto* line : {"led: is led", "old: retired", "older: retired", "never: is not there"})
    EXPECT_TRUE(mentions(retire.out(), line)) << retire.out();
  const auto left = pg::sql(url, "select convert_from(election, 'UTF8'), token from tenure_leads order by 1");
  ASSERT_EQ(left.size(), 2);
  EXPECT_TRUE(left[0][0].as<std::string>().empty() && left[0][1].as<int>() == 1000) << "no token falls below it";
  EXPECT_EQ(left[1][0].as<std::string>(), "led");
}

TEST_F(OnPostgres, StatusShowsAllElections) {
  const Words all{"status", "--all", "--store", url};
  Process before(tool(all));
  EXPECT_EQ(before.ended(), 78) << before.out();
  EXPECT_TRUE(mentions(before.err(), "create_schema()")) << before.err();
  EXPECT_EQ(Process(tool({"setup", "--store", url})).ended(), 0);
  EXPECT_EQ(Process(tool(all)).ended(), 0) << "there is none, so none is vacant";
  pg::sql(url,
          "insert into tenure_elections select convert_to('e' || to_char(n, 'FM0000'), 'UTF8'), n, 1, 'name=ann',"
          " n % 2 = 0, 60000, 1, clock_timestamp() from generate_series(1, 1100) n");
  Process full(tool({"status", "--all", "--store", url, "--limit", "5000"}));
  EXPECT_EQ(full.ended(), 3) << full.err();
  EXPECT_EQ(lines(full.out()), 1100);
  EXPECT_TRUE(full.out().starts_with("e0001  ann leads, token 1, for ")) << full.out().substr(0, 100);
  EXPECT_TRUE(mentions(full.out(), "\ne1100  nobody leads; last written "));
  Process cut(tool(all));
  EXPECT_EQ(cut.ended(), 3);
  EXPECT_EQ(lines(cut.out()), 1000);
  EXPECT_TRUE(mentions(cut.err(), "more than 1000 elections")) << cut.err();
}

TEST_F(OnPostgres, DoctorReportsTheServerAndOurRights) {
  EXPECT_EQ(Process(tool({"setup", "--store", url})).ended(), 0);
  Process good(tool({"doctor", "--store", url}));
  EXPECT_GE(good.ended(), 0);  // a busy machine may find its answers slow, which is 1
  for (const auto* line : {"ok     the server is PostgreSQL 1", "ok     the server is a primary",
                           "fsync and full_page_writes are on", "may select, insert, update on tenure_elections"})
    EXPECT_TRUE(mentions(good.out(), line)) << good.out() << good.err();
  pg::sql(url, "create role " + name + "; grant select on tenure_elections to " + name);
  const auto query = url.find('?') == url.npos ? "?" : "&";
  Process bad(tool({"doctor", "--store", url + query + "options=-crole%3D" + name}));
  EXPECT_EQ(bad.ended(), 1) << bad.out() << bad.err();
  EXPECT_TRUE(mentions(bad.out(), "WRONG  the role " + name + " may not insert, update on tenure_elections"))
      << bad.out();
  pg::sql(url, "drop owned by " + name + "; drop role " + name);
}

/// As a document has it.
TEST_F(OnPostgres, APasswordThatChangesIsReadAgainAtEachLogin) {
  ASSERT_EQ(Process(tool({"setup", "--store", url})).ended(), 0);
  const auto role = pg::unique_name("elector");
  pg::sql(url, "create role " + role + " login password '" + password_of(0) + "'; grant select, insert, update on " +
                   "tenure_elections to " + role);
  const Scratch scratch;
  const auto file = scratch.file("password", password_of(0));
  const auto document_of = [&](const std::string& id) {
    return scratch.file(id + "e.json", R"({"store": {"url": "postgres://)" + role +
                                           "@127.0.0.1:" + pg::shared("TENURE_POSTGRES_PORT") + "/" + name +
                                           R"(", "password": {"file": ")" + file + R"("}}, "candidate": {"name": ")" +
                                           id + R"("}, "election": "e"})");
  };
  const auto place = [&](const std::string& id) {
    return std::vector<std::string>{"-c", document_of(id.empty() ? "asker" : id)};
  };
  expect_password_may_change(place, [&](int n) {
    scratch.file("password", password_of(n) + "\n");
    pg::sql(url, "alter role " + role + " password '" + password_of(n) + "'");
    pg::sql(url, "select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = '" + role + "'");
  });
  pg::sql(url, "drop owned by " + role + "; drop role " + role);
}

}  // namespace
}  // namespace tenure::test
