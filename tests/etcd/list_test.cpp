// SPDX-License-Identifier: Apache-2.0
// Goal: a list has every election of a cluster once, whatever its name, and of other keys none; no server makes it
// endless. Method: a real server with some pages of records, and one that answers as the test says.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include <tenure/etcd.hpp>
#include <tenure/kit/who.hpp>

#include "fake_etcd.hpp"
#include "gateway.hpp"
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
using tenure::test::FakeServer;
using tenure::test::mentions;
using tenure::test::record;
using tenure::test::value;
using tenure::test::within;

constexpr auto patience = 20s;

ElectionList list_of(const std::string& url) { return list_url({.url = url, .log = no_log}); }

/// In the list's order.
std::vector<ListedElection> all_of(const std::string& url) {
  const auto list = list_of(url);
  std::vector<ListedElection> out;
  for (bool last = false; !last;) {
    const auto page = list(within(patience));
    if (!page) {
      ADD_FAILURE() << page.error().message;
      break;
    }
    last = page->last;
    out.insert(out.end(), page->elections.begin(), page->elections.end());
    if (out.size() > 1000) {
      ADD_FAILURE() << "it has no end";
      break;
    }
  }
  return out;
}

void write(const Options& options, const std::string& election, const Record& next) {
  ASSERT_TRUE(value(store(options, election)->compare_and_set(std::nullopt, next, within(patience))).applied);
}

/// More than two pages, of which the first has nothing but the longest.
TEST(EtcdList, HasEachElectionOnceInOrder) {
  TENURE_NEEDS_ETCD();
  Server server;
  std::set<std::string> names{"a/b", "a", "a0", "\xff\xff", "record/news", "\x01"};
  auto longest = record(UINT64_MAX, UINT64_MAX);
  longest.who = "name=a;address=;incarnation=1;version=1;later=";  // and two bytes for each further one
  longest.who.resize(max_who_bytes, '"');
  for (int i = 0; i < 110; ++i) {
    auto name = std::to_string(1000 + i);
    name.resize(max_election_bytes, '\xfe');
    names.insert(name);
  }
  for (int i = 0; i < 130; ++i) names.insert("e" + std::to_string(i));
  for (const auto& name : names) write(server.options(), name, longest);
  auto other = server.options();
  other.prefix = "tenure/other/";
  write(other, "not ours", longest);
  server.ctl("put tenure/record one");
  server.ctl("put tenure/record/ two");
  server.ctl("put tenure/record0 three");
  server.ctl("put tenure/record/" + std::string(max_election_bytes + 1, 'x') + " four");

  const auto all = all_of("etcd://" + server.address());
  std::vector<std::string> listed;
  for (const auto& [name, sight, age] : all) {
    listed.push_back(name);
    EXPECT_TRUE(std::holds_alternative<Incumbent>(sight)) << name;
  }
  EXPECT_EQ(listed, std::vector<std::string>(names.begin(), names.end()));
}

TEST(EtcdList, ThePageIsAskedForAgainAfterAnError) {
  TENURE_NEEDS_ETCD();
  Server server;
  for (int i = 0; i < 100; ++i) write(server.options(), std::to_string(1000 + i), record(1, 1));
  const auto list = list_of("etcd://" + server.address());
  const auto first = value(list(within(patience)));
  EXPECT_FALSE(first.last);
  server.freeze(true);
  EXPECT_FALSE(list(within(100ms)));
  server.freeze(false);
  const auto second = value(list(within(patience)));
  EXPECT_TRUE(second.last);
  EXPECT_EQ(first.elections.size() + second.elections.size(), 100u);
}

TEST(EtcdList, NeedsARightToReadAllRecords) {
  TENURE_NEEDS_ETCD();
  Server server;
  server.ctl("user add root:" + canary);
  server.ctl("user grant-role root root");
  server.ctl("role add one");
  server.ctl("role grant-permission one read tenure/record/jobs");
  server.ctl("user add u:" + canary);
  server.ctl("user grant-role u one");
  server.ctl("auth enable");
  server.set_access({.user = "root", .password = canary});
  const auto url = "etcd://u:" + canary + "@" + server.address();
  expect_error(error_of(list_of(url)(within(patience))), Fault::forbidden, {"role grant-permission"});
  server.ctl("role grant-permission one --prefix=true read tenure/record/");
  EXPECT_TRUE(value(list_of(url)(within(patience))).last);
}

/// A server that has these keys, and says so page by page, two in each.
FakeServer::Answer page_of_two(const std::map<std::string, std::string>& keys, const nlohmann::json& question) {
  const auto first = from_base64(question.at("key").get<std::string>());
  const auto before = from_base64(question.at("range_end").get<std::string>());
  nlohmann::json answer{{"header", {{"revision", "1"}}}};
  auto at = keys.lower_bound(first.value());
  for (int i = 0; i < 2 && at != keys.end() && at->first < before; ++i, ++at)
    answer["kvs"].push_back({{"key", base64(at->first)}, {"value", base64(at->second)}});
  if (at != keys.end() && at->first < before) answer["more"] = true;
  return {http(answer.dump())};
}

TEST(EtcdList, ReadsToTheEndWhereTheServerSendsLessThanWasAskedFor) {
  std::map<std::string, std::string> keys{{"tenure/news/a", "x"}, {"tenure/step_down/a", "x"}};
  for (const std::string name : {"a", "aa", "b", "c", "d"})
    keys["tenure/record/" + name] = R"({"token":1,"beat":2,"format":1})";
  FakeServer pages(once_inside([&](const std::string& request) {
    return page_of_two(keys, nlohmann::json::parse(request.substr(request.find("\r\n\r\n"))));
  }));
  std::string names;
  for (const auto& row : all_of("etcd://" + pages.address())) names += row.election + " ";
  EXPECT_EQ(names, "a aa b c d ");
}

TEST(EtcdList, AListWithoutAnEndIsAnError) {
  const std::string same = R"({"header":{"revision":"1"},"more":true,"kvs":[{"key":")" + base64("tenure/record/a") +
                           R"(","value":"eA=="}]})";
  FakeServer endless(once_inside([&](const std::string&) { return FakeServer::Answer{http(same)}; }));
  const auto list = list_of("etcd://" + endless.address());
  EXPECT_EQ(value(list(within(patience))).elections.size(), 1u);
  const auto error = error_of(list(within(patience)));
  EXPECT_TRUE(mentions(error.message, "no part of a list")) << error.message;
}

}  // namespace
}  // namespace tenure::etcd::test
