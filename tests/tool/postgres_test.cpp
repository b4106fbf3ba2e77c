// SPDX-License-Identifier: Apache-2.0
// Goal: `tenure setup` makes what a candidate on PostgreSQL needs, and no more than once. Method: a database of its own
// on a real server.
#include <gtest/gtest.h>

#include "messages.hpp"
#include "process.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

namespace pg = postgres::test;

TEST(SetupOnPostgres, MakesTheTablesOnce) {
  if (pg::shared().empty()) GTEST_SKIP() << "needs PostgreSQL: docker/postgres start";
  const auto name = pg::unique_name("setup");
  pg::sql(pg::shared(), "create database " + name);  // postgresql://…/postgres, but this one
  auto url = pg::shared("TENURE_POSTGRES_URL");
  url.replace(url.rfind('/') + 1, url.npos, name);
  Process before(tool({"status", "-e", "e", "--store", url}));
  EXPECT_EQ(before.ended(), 4) << before.out();
  EXPECT_TRUE(mentions(before.out(), "create_schema()") || mentions(before.out(), "setup")) << before.out();
  for (int i = 0; i < 2; ++i) {
    Process setup(tool({"setup", "--store", url}));
    EXPECT_EQ(setup.ended(), 0) << setup.err();
    EXPECT_TRUE(mentions(setup.out(), "tenure_elections"));
  }
  EXPECT_EQ(Process(tool({"status", "-e", "e", "--store", url})).ended(), 3);
  EXPECT_EQ(Process(tool({"run", "-e", "e", "--store", url, "--term", "2s", "--", "true"})).ended(), 0);
  Process groups(tool({"setup", "--groups", "--store", url}));
  EXPECT_EQ(groups.ended(), 0) << groups.err();
  EXPECT_EQ(pg::sql(url, "select 1 from tenure_leads").size(), 0);
  pg::sql(pg::shared(), "drop database " + name + " with (force)");
}

}  // namespace
}  // namespace tenure::test
