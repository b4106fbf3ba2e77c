// SPDX-License-Identifier: Apache-2.0
// Goal: what breaks a promise at a cluster, or nearly does, is told with its remedy, and asking changes nothing.
// Method: answers as texts; then real servers that are full, that demand passwords, and that hang.
#include <gtest/gtest.h>

#include <utility>

#include <tenure/etcd.hpp>

#include "checks.hpp"
#include "checkup.hpp"
#include "messages.hpp"
#include "server.hpp"
#include "store_calls.hpp"
#include "within.hpp"

namespace tenure::etcd::test {
namespace {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::mentions;
using tenure::test::text_of;
using tenure::test::value;
using tenure::test::within;

constexpr auto patience = 20s;

// ---- answers ----

Json status_of(const std::string& version, const std::string& size = "1000") {
  return {{"version", version}, {"dbSize", size}, {"leader", "7"}};
}

Json members(int voters, int learners = 0) {
  Json out{{"members", Json::array()}};
  for (int i = 0; i < voters; ++i) out["members"].push_back({{"ID", "7"}});
  for (int i = 0; i < learners; ++i) out["members"].push_back({{"ID", "8"}, {"isLearner", true}});
  return out;
}

ClusterSaid well() {
  ClusterSaid out{.members = {}, .list = members(3), .alarms = Json::object(), .read = Json(), .write = Json()};
  for (const std::string name : {"a", "b", "c"})
    out.members.push_back({name, status_of("3.4.23"), "# HELP x\netcd_server_quota_backend_bytes 2.147483648e+09\n"});
  return out;
}

const Options three{.servers = {{"a"}, {"b"}, {"c"}}};

std::string told(const ClusterSaid& said, const Options& options = three) { return text_of(checks_of(said, options)); }

TEST(EtcdCheckup, AHealthyClusterPasses) {
  const auto text = told(well());
  EXPECT_EQ(text.find("note"), text.npos) << text;
  EXPECT_EQ(text.find("WRONG"), text.npos) << text;
  EXPECT_TOLD(text, "etcd 3.4.23\n");
  EXPECT_TOLD(text, "3 member(s) that vote and a leader, so that 1 may fail\n");
  EXPECT_TOLD(text, "no alarm is raised");
  EXPECT_TOLD(text, "1 MiB of its quota of 2048 MiB");
  EXPECT_TOLD(text, "authentication is off: whoever");
}

TEST(EtcdCheckup, AReleaseThatBreaksAPromiseIsWrong) {
  const auto of = [](const std::string& version) {
    auto said = well();
    said.members[1].status = status_of(version);
    return told(said);
  };
  for (const auto* old : {"3.3.27", "2.3.8", "3", "", "x.y"}) EXPECT_TOLD(of(old), "too old | upgrade");
  for (const auto* lossy : {"3.5.0", "3.5.1", "3.5.2"}) EXPECT_TOLD(of(lossy), "may lose who leads");
  for (const auto* mixed : {"3.5.3", "3.10.0", "4.0.1", "3.5.21"}) EXPECT_TOLD(of(mixed), "note: the members are of");
}

/// A member that is alone may answer before its log is on disk.
TEST(EtcdCheckup, AReleaseThatLosesWritesOfAMemberThatIsAloneIsWrongThere) {
  const auto of = [](const std::string& version, int voters) {
    auto said = well();
    said.list = members(voters, 1);
    for (auto& member : said.members) member.status = status_of(version);
    return told(said);
  };
  for (const auto* lossy : {"3.4.0", "3.4.20", "3.5.3", "3.5.4"}) {
    EXPECT_TOLD(of(lossy, 1), "WRONG: etcd " + std::string(lossy) + " may lose who leads");
    EXPECT_TOLD(of(lossy, 3), "fine: the server is etcd ");
  }
  for (const auto* sound : {"3.4.21", "3.4.23", "3.5.5", "3.5.21", "3.6.0"})
    EXPECT_TOLD(of(sound, 1), "fine: the server is etcd ");
}

TEST(EtcdCheckup, AClusterThatCannotLoseAMemberIsDoubtful) {
  const auto of = [](Json list, const Options& options = three) {
    auto said = well();
    said.list = std::move(list);
    return told(said, options);
  };
  EXPECT_TOLD(of(members(1)),
              "note: the cluster has 1 member(s) that vote and a leader, so that 0 may fail | run three");
  EXPECT_TOLD(of(members(2)), "note: the cluster has 2 ");
  EXPECT_TOLD(of(members(2, 1)), "note: the cluster has 2 ");
  EXPECT_TOLD(of(members(5)), "fine: the cluster has 5 member(s) that vote and a leader, so that 2 may fail\n");
  EXPECT_TOLD(of(members(3), {.servers = {{"a"}}}), "name all in the URL");
  EXPECT_TOLD(of({{"members", 7}}), "note: the cluster has 0 ");
}

TEST(EtcdCheckup, EachAlarmIsWrong) {
  auto said = well();
  said.alarms = Json{{"alarms", {{{"alarm", "NOSPACE"}}, {{"alarm", "NOSPACE"}}, {{"alarm", "CORRUPT"}}}}};
  const auto text = told(said);
  EXPECT_TOLD(text, "WRONG: the alarm NOSPACE is raised: the members refuse every write");
  EXPECT_EQ(text.find("NOSPACE"), text.rfind("NOSPACE")) << text;
  EXPECT_TOLD(text, "WRONG: the alarm CORRUPT");
  EXPECT_FALSE(mentions(text, "no alarm"));
}

TEST(EtcdCheckup, TheQuotaOfTheFullestMemberCounts) {
  auto said = well();
  said.members[2].status = status_of("3.4.23", "1700000000");
  EXPECT_TOLD(told(said), "fine: c has filled 1622 MiB of its quota of 2048 MiB\n");
  said.members[2].status = status_of("3.4.23", "1720000000");
  EXPECT_TOLD(told(said),
              "note: c has filled 1641 MiB of its quota of 2048 MiB, beyond which every write is refused | ");
  auto newer = status_of("3.6.1", "900");
  newer["dbSizeQuota"] = "1000";
  said = well();
  said.members[0].status = newer;
  EXPECT_TOLD(told(said), "note: a has filled 1 MiB of its quota of 1 MiB");
  for (auto& member : said.members) member.metrics = Error{Fault::unreachable, "no"};
  said.members[0].status = status_of("3.4.23");
  EXPECT_TOLD(told(said), "note: no member tells its quota");
}

TEST(EtcdCheckup, AMemberThatIsSilentIsDoubtful) {
  auto said = well();
  said.members[1].status = Error{Fault::unreachable, "refused"};
  EXPECT_TOLD(told(said), "note: b serves no candidate: refused | mend it");
}

// ---- servers ----

std::string examined(const Options& options) { return text_of(value(check_up(options, "jobs", within(patience)))); }

std::string revision(const Server& server) {
  const auto status = server.ctl("endpoint status -w fields");
  return status.substr(status.find("\"Revision\""), 30);
}

TEST(EtcdCheckupOfAServer, ReportsTheServerAndChangesNothing) {
  TENURE_NEEDS_ETCD();
  Server server;
  const auto before = revision(server);
  const auto text = examined(server.options());
  EXPECT_TOLD(text, "fine: the server is etcd 3.");
  EXPECT_TOLD(text, "note: the cluster has 1 member(s)");
  EXPECT_TOLD(text, "fine: no alarm");
  EXPECT_TOLD(text, "of its quota of 2048 MiB\n");
  EXPECT_TOLD(text, "fine: authentication is off");
  EXPECT_TOLD(text, "fine: we may read and write the keys below tenure/");
  EXPECT_EQ(revision(server), before);
  EXPECT_EQ(server.ctl("get --prefix --keys-only ''"), "");
  auto with_user = server.options();
  with_user.user = "u";
  with_user.password = canary;
  EXPECT_TOLD(examined(with_user), "note: authentication is off, so that nobody looks at");
}

TEST(EtcdCheckupOfAServer, ThatIsFullIsWrong) {
  TENURE_NEEDS_ETCD();
  Server server({.options = {"--quota-backend-bytes=200000"}});
  EXPECT_TRUE(eventually([&] {
    try {
      server.ctl("put filler " + std::string(100'000, 'x'));
      return false;
    } catch (const std::runtime_error& e) {
      return mentions(e.what(), "database space exceeded");
    }
  }));
  const auto text = examined(server.options());
  EXPECT_TOLD(text, "WRONG: the alarm NOSPACE is raised");
  EXPECT_TOLD(text, "the member " + server.address() + " has filled 1 MiB of its quota of 1 MiB");
  EXPECT_TOLD(text, "WRONG: a write would be refused: ");
}

TEST(EtcdCheckupOfAServer, KnowsWhatItsUserMayDo) {
  TENURE_NEEDS_ETCD();
  Server server;
  server.ctl("user add root:" + canary);
  server.ctl("user grant-role root root");
  server.ctl("role add observer");
  server.ctl("role grant-permission observer --prefix=true read tenure/");
  server.ctl("role add one");
  for (const std::string part : {"record/", "news/", "step_down/"})
    server.ctl("role grant-permission one readwrite tenure/" + part + "jobs");
  for (const std::string user : {"observer", "one", "none"}) server.ctl("user add " + user + ":" + canary);
  server.ctl("user grant-role observer observer");
  server.ctl("user grant-role one one");
  server.ctl("auth enable");
  server.set_access({.user = "root", .password = canary});
  const auto of = [&](const std::string& user) {
    auto options = server.options();
    options.user = user;
    return examined(options);
  };
  EXPECT_TOLD(of("one"), "fine: authentication is on, and our user is one\n");
  EXPECT_TOLD(of("one"), "fine: we may read and write");
  EXPECT_TOLD(of("observer"), "WRONG: we may read the election's keys, but not write them | etcdctl role grant-");
  EXPECT_TOLD(of("none"), "WRONG: we may not read");
  EXPECT_EQ(server.ctl("get --prefix --keys-only tenure/"), "");
}

TEST(EtcdCheckupOfACluster, NamesTheMemberThatHangs) {
  TENURE_NEEDS_ETCD();
  Cluster cluster;
  const auto good = examined(cluster.options());
  EXPECT_TOLD(good, "fine: the cluster has 3 member(s) that vote and a leader, so that 1 may fail\n");
  auto one = cluster.options();
  one.servers.resize(1);
  EXPECT_TOLD(examined(one), "name all in the URL");
  const auto follower = (cluster.leader() + 1) % cluster.size();
  cluster[follower].freeze(true);
  auto asked = cluster.options();
  std::swap(asked.servers[1], asked.servers[follower]);
  std::string bad;
  EXPECT_TRUE(eventually([&] {
    const auto checks = check_up(asked, "jobs", within(1s));  // less than the pause after which a hanging one is left
    if (checks) bad = text_of(*checks);
    return mentions(bad, "note: the member " + cluster[follower].address() + " serves no candidate: ") &&
           bad.find("serves no") == bad.rfind("serves no");
  })) << bad;
  cluster[follower].freeze(false);
  EXPECT_TOLD(bad, "so that 1 may fail\n");
}

}  // namespace
}  // namespace tenure::etcd::test
