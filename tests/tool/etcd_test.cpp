// SPDX-License-Identifier: Apache-2.0
// Goal: `status --all` tells of every election of an etcd cluster, and of nothing else there; `doctor` tells of the
// cluster. Method: leaders that live, that have gone and that died, in a server of the test's own.
#include <gtest/gtest.h>

#include "eventually.hpp"
#include "messages.hpp"
#include "password_change.hpp"
#include "process.hpp"
#include "rows.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

std::string url_of(const etcd::test::Server& server) { return "etcd://" + server.address(); }

TEST(ListOnEtcd, ShowsEachElection) {
  TENURE_NEEDS_ETCD();
  etcd::test::Server server;
  EXPECT_EQ(Process(tool({"status", "--all", "--store", url_of(server)})).ended(), 0) << "there is none";
  const auto run = [&](const std::string& election, const std::string& command) {
    return tool({"run", "-e", election, "--id", "ann", "--store", url_of(server), "--", "sh", "-c", command});
  };
  EXPECT_EQ(Process(run("gone", "true")).ended(), 0);
  Process leads(run("kept/here", "echo led; while :; do sleep 0.01; done"));
  ASSERT_TRUE(eventually([&] { return leads.out() == "led\n"; })) << leads.err();
  server.ctl("put tenure/record/foreign hello");
  server.ctl(R"(put tenure/record/lapsed '{"format":1,"token":7,"beat":1,"who":"name=bob",)"
             R"("released":false,"term_ms":3000,"asked_ns":1,"written_ms":1700000000000}')");

  Process all(tool({"status", "--all", "--json", "--store", url_of(server)}));
  EXPECT_EQ(all.ended(), 4) << "one record is not ours";
  auto rows = rows_of(all.out());
  ASSERT_EQ(rows.size(), 4U) << all.out();
  EXPECT_EQ(rows["kept/here"].at("state"), "led");
  EXPECT_EQ(rows["kept/here"].at("leader").at("name"), "ann");
  EXPECT_GT(rows["kept/here"].at("leader").at("remaining_ms"), 0);
  EXPECT_EQ(rows["gone"].at("state"), "vacant");
  EXPECT_EQ(rows["lapsed"].at("state"), "vacant");
  EXPECT_GT(rows["lapsed"].at("age_ms"), 1'000'000'000);
  EXPECT_EQ(rows["foreign"].at("state"), "unknown");
}

TEST(DoctorOnEtcd, ReportsTheClusterAndOurRights) {
  TENURE_NEEDS_ETCD();
  etcd::test::Server server;
  Process good(tool({"doctor", "--store", url_of(server)}));
  EXPECT_GE(good.ended(), 0);  // a busy machine may find its answers slow, which is 1
  for (const auto* line : {"ok     the server is etcd 3.", "note   the cluster has 1 member(s)", "no alarm is raised",
                           "of its quota of 2048 MiB", "authentication is off", "may read and write the keys below"})
    EXPECT_TRUE(mentions(good.out(), line)) << good.out() << good.err();

  server.ctl("user add root:" + canary);
  server.ctl("user grant-role root root");
  server.ctl("role add observer");
  server.ctl("role grant-permission observer --prefix=true read tenure/");
  server.ctl("user add u:" + canary);
  server.ctl("user grant-role u observer");
  server.ctl("auth enable");
  Process bad(tool({"doctor", "--store", "etcd://u:" + canary + "@" + server.address()}));
  EXPECT_EQ(bad.ended(), 1) << bad.out() << bad.err();
  EXPECT_TRUE(mentions(bad.out(), "WRONG  we may read the election's keys, but not write them")) << bad.out();
  EXPECT_FALSE(mentions(bad.out() + bad.err(), canary));
}

/// etcd takes a changed password's tokens away, so that nobody's connection needs to break.
TEST(AwayEtcd, APasswordThatChangesIsReadAgainAtEachLogin) {
  TENURE_NEEDS_ETCD();
  const etcd::test::Server server;
  for (const auto& words :
       {"user add root:" + canary, std::string("user grant-role root root"), std::string("role add elector"),
        std::string("role grant-permission elector --prefix=true readwrite tenure/"), "user add u:" + password_of(0),
        std::string("user grant-role u elector"), std::string("auth enable")})
    server.ctl(words);
  const Scratch scratch;
  const auto file = scratch.file("password", password_of(0));
  expect_password_may_change(
      by_options({"-e", "e", "--store", "etcd://u@" + server.address(), "--password-file", file}), [&](int n) {
        scratch.file("password", password_of(n));
        server.ctl("--user root:" + canary + " user passwd u --interactive=false <" + file);
      });
}

}  // namespace
}  // namespace tenure::test
