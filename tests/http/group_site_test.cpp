// SPDX-License-Identifier: Apache-2.0
// Goal: of many elections each page says what is true, whatever they are called and however many there are. Method:
// groups in memory, and requests through real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <set>
#include <thread>

#include <tenure/elections.hpp>
#include <tenure/http_mount.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/manual_clock.hpp>
#include <tenure/version.hpp>

#include "group/model_store.hpp"
#include "in_child.hpp"
#include "messages.hpp"
#include "process.hpp"
#include "schema.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string bearer = "0123456789abcdef-" + canary;
const Timing timing{.term = 30s, .renew = 3s, .retry = 300ms, .margin = 1s, .call = 5s, .drain = 5s};

/// One process of a group.
struct Member {
  explicit Member(std::shared_ptr<GroupStore> store, const Candidate& self = {"a", "10.0.0.7:80"},
                  Hooks hooks = quiet(), Exclusive exclusive = Exclusive::yes, Clock& clock = boot_clock())
      : elections(std::in_place, exclusive, std::move(store), self, timing, std::move(hooks), Spread{.on = false}, 2,
                  clock),
        site(std::in_place, *elections, http::SiteOptions{.self = self, .step_down_token = bearer}),
        server(std::in_place, *site) {}
  Member& lead(const std::vector<std::string>& names) {
    elections->join(names);
    elections->start();
    EXPECT_TRUE(eventually([&] { return elections->led().size() == names.size(); }, 2min));
    return *this;
  }
  Fetched get(const std::string& path) const { return fetch(server->address(), path); }
  int status(const std::string& path) const { return get(path).status; }
  Fetched step_down(const std::string& query, const std::string& token = bearer) const {
    return fetch(server->address(), "/step-down" + query, "POST", "Authorization: Bearer " + token + "\r\n");
  }

  std::optional<Elections> elections;
  std::optional<http::Site> site;
  std::optional<http::Server> server;
};

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c < 127); });
}

std::string encoded(const std::string& text) {
  std::string out;
  for (const char c : text) out += percent(c);
  return out;
}

using HttpGroupLeader = OnAHub;
using HttpGroupHealth = OnAHub;
using HttpGroupStatus = OnAHub;
using HttpObservedGroup = OnAHub;
using HttpGroupStepDown = OnAHub;
using HttpGroupAnswers = OnAHub;
using HttpGroupSite = OnAHub;

TEST_F(HttpGroupLeader, IsRightOnlyWhileTheProcessLeadsThatElection) {
  Member a(hub.group("tenants")), b(hub.group("tenants"), {"b", "10.0.0.8:80"});
  EXPECT_EQ(a.status("/leader?election=x"), 503) << "it has not started";
  a.lead({"x"});
  b.elections->join(std::vector<std::string>{"x"});
  b.lead({"y"});
  const auto right = a.get("/leader?election=x");
  EXPECT_EQ(right.status, 200);
  EXPECT_EQ(right.json()["election"], "x");
  EXPECT_EQ(right.json()["leader"]["token"], std::to_string(a.elections->leadership("x").token()->value));
  EXPECT_GT(right.json()["leader"]["remaining_ms"], 0);
  const auto wrong = b.get("/leader?election=x");
  EXPECT_EQ(wrong.status, 503);
  EXPECT_EQ(wrong.json()["leader"]["name"], "a");
  EXPECT_EQ(wrong.json()["leader"]["address"], "10.0.0.7:80");
  EXPECT_EQ(wrong.json()["leader"]["version"], tenure::version());
  EXPECT_EQ(a.status("/leader?election=y"), 503);
  const auto unknown = a.get("/leader?election=z");
  EXPECT_EQ(unknown.status, 503);
  EXPECT_TRUE(unknown.json()["leader"].is_null());
  a.elections->stop();
  EXPECT_EQ(a.status("/leader?election=x"), 503);
  EXPECT_TRUE(eventually([&] { return b.status("/leader?election=x") == 200; }));
}

TEST_F(HttpGroupLeader, TheElectionMustBeNamedAndItsNameMayHaveAnyBytes) {
  const std::string odd("\x01\r\n\x1b[31m%\"\\&=+?#/ \xe2\x80\xae\xff");
  Member a(hub.group("tenants"));
  a.lead({odd, "a b"});
  EXPECT_EQ(a.status("/leader?election=" + encoded(odd)), 200);
  EXPECT_EQ(a.status("/leader?election=a%20b"), 200);
  EXPECT_EQ(a.status("/leader?x=1&election=a+b&y"), 200) << "as a form writes it";
  EXPECT_EQ(a.status("/leader?election=a%2Bb"), 503);
  for (const auto* query : {"", "?", "?election", "?election=", "?x=a", "?election=%", "?election=%4", "?election=%zz",
                            "?election=a%00b", "?election=a&election=b"}) {
    const auto got = a.get("/leader" + std::string(query));
    EXPECT_EQ(got.status, 400) << query;
    EXPECT_FALSE(got.json()["error"].empty()) << query;
    EXPECT_TRUE(is_ascii(got.body)) << query;
  }
  EXPECT_EQ(a.status("/leader?election=" + std::string(200, 'x')), 503);
  EXPECT_EQ(a.status("/leader?election=" + std::string(201, 'x')), 400);
}

/// The one that follows the time is blocked. So it is the answer that looks at the clock.
TEST_F(HttpGroupLeader, ALeaseThatIsOverIsNoLeadership) {
  ManualClock clock;
  std::latch blocked(1), released(1);
  Hooks hooks;
  hooks.log = [&](const LogLine& line) {
    if (line.message != "elected") return;
    blocked.count_down();
    released.wait();
  };
  Member a(hub.group("tenants"), {"a", ""}, hooks, Exclusive::yes, clock);
  a.elections->join("x");
  a.elections->start();
  blocked.wait();
  EXPECT_EQ(a.status("/leader?election=x"), 200);
  EXPECT_EQ(a.status("/healthz"), 200);
  EXPECT_EQ(a.status("/readyz"), 200);
  clock.advance(6s);
  const auto sick = a.get("/healthz");
  EXPECT_EQ(sick.status, 503);
  EXPECT_THAT(sick.body, HasSubstr("threads have not turned"));
  EXPECT_EQ(a.status("/readyz"), 503);
  clock.advance(timing.term);
  EXPECT_EQ(a.status("/leader?election=x"), 503);
  EXPECT_EQ(a.step_down("?election=x").status, 409);
  released.count_down();
  EXPECT_TRUE(eventually([&] { return a.status("/healthz") == 200; }));
}

TEST_F(HttpGroupHealth, AnOustingThatTakesTooLongIsReportedAndTheOthersLeadOn) {
  ManualClock clock;
  std::latch ousting(1), released(1);
  auto hooks = quiet();
  hooks.error = [](const Error&) {};
  hooks.ousting = [&](const Ousting& o) {
    if (o.reason != Reason::resigned) return;
    ousting.count_down();
    released.wait();
  };
  Member a(hub.group("tenants"), {"a", ""}, hooks, Exclusive::yes, clock);
  a.lead({"x", "y"});
  EXPECT_EQ(a.step_down("?election=x").status, 202);
  ousting.wait();
  EXPECT_EQ(a.status("/healthz"), 200);
  // Time goes on, and never faster than the process acts on it.
  EXPECT_TRUE(eventually([&] {
    if (clock.await_parked(2)) clock.advance(500ms);
    return a.get("/healthz").json()["why"].get<std::string>().find("ousting()") != std::string::npos;
  }));
  EXPECT_EQ(a.status("/leader?election=y"), 200);
  released.count_down();
  EXPECT_TRUE(eventually([&] { return a.status("/healthz") == 200; }));
  a.elections->stop();
}

TEST_F(HttpGroupHealth, ReadyIsWhoHasASession) {
  Member a(hub.group("tenants"));
  EXPECT_EQ(a.status("/readyz"), 503);
  EXPECT_EQ(a.status("/healthz"), 200);
  a.lead({"x"});
  EXPECT_EQ(a.status("/readyz"), 200);
  a.elections->stop();
  EXPECT_EQ(a.status("/readyz"), 503);
  EXPECT_EQ(a.status("/healthz"), 200);
}

TEST_F(HttpGroupStatus, ListsAllThatIsLedPageByPage) {
  Member a(hub.group("tenants"));
  std::vector<std::string> names;
  for (int i = 0; i < 2'000; ++i) names.push_back("\x1b%&+=\"\\/ \xc3\xa4" + std::to_string(i));
  a.lead(names);
  std::set<std::string> told;
  std::vector<std::string> documents;
  std::size_t longest = 0;
  for (nlohmann::json next = "status"; !next.is_null();) {
    ASSERT_LE(documents.size(), 20u);
    const auto got = a.get("/" + next.get<std::string>());
    ASSERT_EQ(got.status, 200);
    documents.push_back(got.body);
    longest = std::max(longest, got.body.size());
    const auto document = got.json();
    EXPECT_EQ(document["led"], names.size());
    EXPECT_LE(document["leads"].size(), 100u);
    for (const auto& lead : document["leads"]) {
      EXPECT_TRUE(told.insert(lead["election"]).second) << lead;
      EXPECT_EQ(lead["token"], std::to_string(a.elections->leadership(lead["election"]).token()->value));
    }
    next = document["next"];
  }
  EXPECT_EQ(told, std::set<std::string>(names.begin(), names.end()));
  EXPECT_EQ(documents.size(), 20u);
  EXPECT_LT(longest, 16'000u);
  EXPECT_TRUE(is_ascii(documents.front()));
  EXPECT_EQ(a.status("/status?after=%zz"), 400);
  EXPECT_EQ(a.get("/status?after=%FF").json()["leads"].size(), 0u);
  documents.resize(2);
  expect_as_schema("group_status", documents);
}

TEST_F(HttpGroupStatus, IsAsTheSchemaSays) {
  Member a(hub.group("tenants"));
  std::vector<std::string> documents{a.get("/status").body};
  a.lead({"x"});
  documents.push_back(a.get("/status").body);
  const auto leading = a.get("/status").json();
  EXPECT_EQ(leading["joined"], 1);
  EXPECT_EQ(leading["leads"][0]["election"], "x");
  EXPECT_GT(leading["session"]["remaining_ms"], 0);
  EXPECT_TRUE(leading["next"].is_null());
  a.elections->stop();
  documents.push_back(a.get("/status").body);
  expect_as_schema("group_status", documents);
}

TEST_F(HttpGroupStatus, ListsFirstWhatNobodyLeads) {
  Member a(hub.group("tenants"));
  a.lead({"x", "y", "z"});
  EXPECT_EQ(a.get("/status").json()["unled"], 0);
  a.elections->resign("y", 1h);
  ASSERT_TRUE(eventually([&] { return a.get("/status").json()["unled"] == 1; }));
  EXPECT_EQ(a.get("/status").json()["leaderless"], nlohmann::json({"y"}));
  Member b(hub.group("tenants"), {"b", ""});
  b.lead({"y"});
  EXPECT_TRUE(eventually([&] { return a.get("/status").json()["unled"] == 0; })) << "another one leads it";
}

/// Whoever routes wants the leader's address, and 200 if there is one.
TEST_F(HttpObservedGroup, AnswersARouterWhoLeads) {
  Member a(hub.group("tenants"));
  GroupObserver observer(hub.group("tenants"), timing, {.log = no_log});
  std::optional<http::Site> site(std::in_place, observer, http::SiteOptions{.step_down_token = bearer});
  const http::Server server(*site);
  const auto get = [&](const std::string& path) { return fetch(server.address(), path); };
  EXPECT_EQ(get("/leader?election=x").status, 503);
  EXPECT_TRUE(get("/leader?election=x").json()["leader"].is_null());
  a.lead({"x", "y z"});
  ASSERT_TRUE(eventually([&] { return get("/leader?election=x").status == 200; }));
  const auto x = get("/leader?election=x").json();
  EXPECT_EQ(x["leading"], false) << "it is not the process that answers";
  EXPECT_EQ(x["leader"]["address"], "10.0.0.7:80");
  EXPECT_EQ(x["leader"]["token"], std::to_string(a.elections->leadership("x").token()->value));
  EXPECT_EQ(get("/leader?election=y%20z").status, 200);
  EXPECT_EQ(get("/leader").status, 400);
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(get("/").status, 404);
  EXPECT_EQ(fetch(server.address(), "/step-down?election=x", "POST", "Authorization: Bearer " + bearer + "\r\n").status,
            409);
  const auto status = get("/status"), rest = get("/status?after=x");
  EXPECT_EQ(status.json()["elections"].size(), 2U);
  EXPECT_EQ(status.json()["elections"][0]["leader"]["name"], "a");
  EXPECT_EQ(rest.json()["elections"][0]["election"], "y z");
  a.elections->stop();
  ASSERT_TRUE(eventually([&] { return get("/status").json()["unled"] == 2; }));
  expect_as_schema("observed_status", {status.body, rest.body, get("/status").body});
  expect_as_schema("answer", {get("/leader?election=x").body});
  site.reset();
  EXPECT_EQ(get("/leader?election=x").status, 503);
}

TEST_F(HttpObservedGroup, IsReadyOnlyIfTheStoreAnswers) {
  hub.hang(true);
  GroupObserver observer(hub.group("tenants"), memory::presets().fast, {.log = no_log});
  const http::Site site(observer);
  const auto ready = [&] { return site.answer({.method = "GET", .path = "/readyz"}).status == 200; };
  EXPECT_FALSE(ready());
  hub.hang(false);
  EXPECT_TRUE(eventually(ready));
  hub.hang(true);
  EXPECT_TRUE(eventually([&] { return !ready(); }));
  hub.hang(false);
}

TEST_F(HttpObservedGroup, IsNotHealthyWhileWhatItTellsOfAChangeHangs) {
  Member a(hub.group("tenants"));
  a.lead({"x"});
  std::promise<void> goes_on;
  const auto on = goes_on.get_future().share();
  GroupObserver observer(hub.group("tenants"), timing,
                         {.changed = [&](const std::string&, const Sight&) { on.wait(); }, .log = no_log});
  const http::Site site(observer, {.stuck_after = 20ms});
  const auto status = [&](const char* path) { return site.answer({.method = "GET", .path = path}).status; };
  EXPECT_TRUE(eventually([&] { return status("/healthz") == 503; }));
  EXPECT_EQ(status("/readyz"), 503);
  goes_on.set_value();
  EXPECT_TRUE(eventually([&] { return status("/healthz") == 200 && status("/readyz") == 200; }));
}

/// Where several may lead there is no token to tell.
TEST_F(HttpGroupStatus, ShowsNoTokenWhereSeveralMayLead) {
  class Shared final : public ModelStore {
   public:
    Shared() : ModelStore(false) {}
    Exclusive exclusive() const override { return Exclusive::no; }
  };
  const auto store = std::make_shared<Shared>();
  Member a(store, {"a", ""}, quiet(), Exclusive::no), b(store, {"b", ""}, quiet(), Exclusive::no);
  a.lead({"x"});
  b.elections->join(std::vector<std::string>{"x"});
  b.lead({"y"});
  const auto leader = a.get("/leader?election=x");
  EXPECT_EQ(leader.status, 200);
  EXPECT_TRUE(leader.json()["leader"]["token"].is_null());
  ASSERT_TRUE(eventually([&] { return !b.get("/leader?election=x").json()["leader"].is_null(); }));
  EXPECT_TRUE(b.get("/leader?election=x").json()["leader"]["token"].is_null());
  const auto status = a.get("/status");
  EXPECT_EQ(status.json()["exclusive"], false);
  EXPECT_TRUE(status.json()["leads"][0]["token"].is_null());
  EXPECT_EQ(a.step_down("?election=x").status, 202);
  expect_as_schema("group_status", {status.body});
}

TEST_F(HttpGroupStepDown, NeedsTheTokenAndEndsThatTenureAlone) {
  Member a(hub.group("tenants"));
  a.lead({"x", "y z"});
  EXPECT_EQ(fetch(a.server->address(), "/step-down?election=x", "POST").status, 401);
  EXPECT_EQ(a.step_down("?election=x", bearer + "x").status, 401);
  EXPECT_EQ(a.status("/step-down?election=x"), 405);
  EXPECT_EQ(a.step_down("").status, 400);
  EXPECT_EQ(a.step_down("?election=other").status, 409);
  EXPECT_EQ(a.elections->metrics().session.ousted.at(Reason::resigned), 0u);
  const auto done = a.step_down("?election=y%20z");
  EXPECT_EQ(done.status, 202);
  EXPECT_EQ(done.json()["steps_down"], true);
  EXPECT_TRUE(eventually([&] { return a.elections->metrics().session.ousted.at(Reason::resigned) == 1; }));
  EXPECT_EQ(a.status("/leader?election=x"), 200);
}

TEST_F(HttpGroupAnswers, HaveNoSecretAndAreAsciiAndOddPathsAre404) {
  Member evil(hub.group("tenants"), {"\x1b[31m\r\n</script>\xff", "h\n:1"});
  evil.lead({"\x1b[31m\xff"});
  for (const auto* path : {"/", "/leader", "/leader?election=%1B[31m%FF", "/healthz", "/readyz", "/status", "/metrics",
                           "/step-down", "/else"}) {
    const auto got = evil.get(path);
    EXPECT_NE(got.status, 0) << path;
    EXPECT_FALSE(mentions(got.head + got.body, canary)) << path;
    EXPECT_TRUE(is_ascii(got.body)) << path << got.body;
  }
  EXPECT_EQ(evil.status("/leader?election=%1B[31m%FF"), 200);
  EXPECT_THAT(evil.get("/metrics").body, HasSubstr("tenure_elections_led"));
  EXPECT_THAT(evil.get("/").body, testing::ContainsRegex("<noscript>.*<a href=\"status\">.*</noscript>"));
  const Member odd(hub.group("\x1b[31m\r\n\xff"));
  for (const auto* path : {"/", "/status"}) EXPECT_TRUE(is_ascii(odd.get(path).body)) << path;
  EXPECT_EQ(evil.status("/events"), 404);
  EXPECT_EQ(fetch(evil.server->address(), "/status", "POST").status, 405);
  const auto head = fetch(evil.server->address(), "/status", "HEAD");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
}

TEST_F(HttpGroupSite, MayEndBeforeTheElectionsDoAndBeMountedElsewhere) {
  Member a(hub.group("tenants"));
  a.lead({"x y"});
  httplib::Server own;
  http::mount(own, *a.site, "/tenants");
  const auto address = "127.0.0.1:" + std::to_string(own.bind_to_any_port("127.0.0.1"));
  std::thread serves([&] { own.listen_after_bind(); });
  EXPECT_TRUE(eventually([&] { return own.is_running(); }));
  EXPECT_EQ(fetch(address, "/tenants/leader?election=x%20y").status, 200);
  EXPECT_EQ(fetch(address, "/tenants/leader").status, 400);
  a.site.reset();
  a.elections.reset();
  for (const auto* path : {"/tenants/leader?election=x%20y", "/tenants/status", "/tenants/healthz"})
    EXPECT_EQ(fetch(address, path).status, 503) << path;
  own.stop();
  serves.join();
}

TEST_F(HttpGroupSite, AForkedChildAnswersNothingAndMayDestroyIt) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "such a child may not use threads under ThreadSanitizer";
#endif
  Member a(hub.group("tenants"));
  a.lead({"x"});
  in_child([&] {
    const auto answer = a.site->answerer();
    const http::Request leader{.method = "GET", .path = "/leader", .query = "election=x"};
    const bool refused = answer(leader).status == 503;
    a.server->stop();
    a.server.reset();
    a.site.reset();
    return refused && answer(leader).status == 503;
  });
  EXPECT_EQ(a.status("/leader?election=x"), 200);
}

}  // namespace
}  // namespace tenure::test
