// SPDX-License-Identifier: Apache-2.0
// Goal: each page says what is true, and no more. Method: managers on an election in memory or on a scripted store, and
// requests through real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <latch>

#include <tenure/prometheus.hpp>
#include <tenure/version.hpp>

#include "messages.hpp"
#include "process.hpp"
#include "refusal.hpp"
#include "schema.hpp"
#include "scripted_backend.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string bearer = "0123456789abcdef-" + canary;

using HttpLeader = OnAHub;
using HttpStatus = OnAHub;
using HttpPage = OnAHub;
using HttpMetrics = OnAHub;
using HttpEvents = OnAHub;
using HttpStepDown = OnAHub;
using HttpAnswers = OnAHub;

TEST_F(HttpLeader, IsRightOnlyWhileTheProcessLeads) {
  Process a(hub, {"a", "10.0.0.7:80"}), b(hub, {"b", "10.0.0.8:80"});
  EXPECT_EQ(a.get("/leader").status, 503) << "it has not started";
  a.lead();
  b.start();
  const auto right = a.get("/leader");
  EXPECT_EQ(right.status, 200);
  EXPECT_EQ(right.json()["leader"]["token"], std::to_string(a.manager->leadership().token()->value));
  EXPECT_GT(right.json()["leader"]["remaining_ms"], 0);
  ASSERT_TRUE(eventually([&] { return b.manager->leadership().incumbent().has_value(); }));
  const auto wrong = b.get("/leader");
  EXPECT_EQ(wrong.status, 503);
  EXPECT_EQ(wrong.json()["leader"]["name"], "a");
  EXPECT_EQ(wrong.json()["leader"]["address"], "10.0.0.7:80");
  EXPECT_EQ(wrong.json()["leader"]["version"], tenure::version());
  a.manager->stop();
  EXPECT_EQ(a.get("/leader").status, 503);
  EXPECT_TRUE(eventually([&] { return b.get("/leader").status == 200; }));
}

TEST_F(HttpLeader, OfAnotherElectionIsNotOurs) {
  Process a(hub, {"a", ""}, {.step_down_token = bearer});
  a.lead();
  const auto ours = a.manager->metrics().election;
  EXPECT_EQ(a.get("/leader?election=" + ours).status, 200);
  for (const auto* page : {"/leader", "/status", "/healthz", "/"}) {
    const auto other = a.get(page + std::string("?election=other"));
    EXPECT_EQ(other.status, 404) << page;
    EXPECT_THAT(other.body, HasSubstr("takes part in the election"));
  }
  EXPECT_EQ(a.get("/leader?election=%").status, 400);
  const auto authorized = "Authorization: Bearer " + bearer + "\r\n";
  EXPECT_EQ(fetch(a.server->address(), "/step-down?election=other", "POST", authorized).status, 404);
  EXPECT_TRUE(a.manager->leadership().is_leader());
}

/// A store, a clock and hooks that do what the test says.
class HttpHealth : public testing::Test {
 protected:
  static constexpr Timing timing{.term = 60s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};
  void begin(const Hooks& hooks = quiet()) {
    manager.emplace(backend, timing, hooks, backend->clock);
    site.emplace(*manager);
    server.emplace(*site);
    manager->start();
  }
  int status(const std::string& path) { return fetch(server->address(), path).status; }

  /// Time goes on until `holds`, and never faster than the manager acts on it: a manager that is late is not healthy.
  template <class Holds>
  bool in_steps(Clock::Duration step, Holds holds) {
    return eventually([&] {
      if (!backend->clock.await_parked(1) || holds()) return holds();
      backend->clock.advance(step);
      return false;
    });
  }

  std::shared_ptr<ScriptedBackend> backend = std::make_shared<ScriptedBackend>();
  std::optional<LeaderManager> manager;
  std::optional<http::Site> site;
  std::optional<http::Server> server;
};

TEST_F(HttpHealth, ALeaseThatIsOverIsNoLeaderships) {
  begin();
  ASSERT_TRUE(manager->await_leadership(30s));
  EXPECT_EQ(status("/leader"), 200);
  backend->hang();
  backend->clock.advance(timing.term);
  EXPECT_EQ(status("/leader"), 503);
  backend->let_go();
}

TEST_F(HttpHealth, AFollowerIsHealthyAlsoForAWhileAfterItsCallHangs) {
  auto hooks = quiet();
  hooks.error = [](const Error&) {};
  backend->refuse(true);
  begin(hooks);
  EXPECT_TRUE(eventually([&] { return status("/readyz") == 200; }));
  EXPECT_EQ(status("/healthz"), 200);
  backend->hang();
  ASSERT_TRUE(in_steps(1s, [&] { return manager->metrics().errors.at(Fault::wedged) == 1; }));
  backend->clock.advance(40s);
  EXPECT_TRUE(eventually([&] { return status("/healthz") == 200; })) << "once the manager has acted on the time";
  EXPECT_EQ(status("/readyz"), 503) << "the store has long said nothing";
  backend->clock.advance(20s);
  EXPECT_TRUE(eventually([&] {
    const auto sick = fetch(server->address(), "/healthz");
    return sick.status == 503 && std::string(sick.json()["why"]).find("a call of the store") != std::string::npos;
  })) << "it takes no part any more";
  backend->let_go();
}

/// The store does not answer meanwhile.
TEST_F(HttpHealth, TheHistoryTellsOfALeaseThatJustEnds) {
  auto hooks = quiet();
  hooks.error = [](const Error&) {};
  backend->refuse(true);
  begin(hooks);
  const auto last = [&] {
    const auto all = fetch(server->address(), "/status").json()["history"];
    return all.empty() ? std::string() : std::string(all.back()["what"]);
  };
  ASSERT_TRUE(eventually([&] { return last() == "incumbent"; }));
  EXPECT_EQ(fetch(server->address(), "/leader").json()["state"], "led");
  backend->throwing(true);
  EXPECT_TRUE(in_steps(500ms, [&] { return last() == "vacant"; }));
  for (const auto* page : {"/leader", "/status"}) {
    const auto told = [&] { return fetch(server->address(), page).json(); };
    EXPECT_TRUE(in_steps(500ms, [&] { return told()["state"] == "unknown"; })) << page << ": another one may lead";
    EXPECT_THAT(told().value("error", told())["message"].dump(), HasSubstr("no such host")) << page;
  }
}

TEST_F(HttpHealth, ALeaderWhoseCallHangsIsNotHealthy) {
  auto hooks = quiet();
  hooks.error = [](const Error&) {};
  begin(hooks);
  ASSERT_TRUE(manager->await_leadership(30s));
  EXPECT_EQ(status("/healthz"), 200);
  backend->hang();
  ASSERT_TRUE(backend->clock.await_parked(1));
  backend->clock.advance(timing.renew);
  ASSERT_TRUE(backend->await("renew"));
  ASSERT_TRUE(in_steps(10ms, [&] { return manager->metrics().errors.at(Fault::wedged) == 1; }));
  EXPECT_EQ(status("/healthz"), 200) << "it may come back soon";
  backend->clock.advance(6s);
  EXPECT_TRUE(eventually([&] {  // Until the manager has acted on the time, that is what ails it.
    const auto sick = fetch(server->address(), "/healthz");
    return sick.status == 503 && std::string(sick.json()["why"]).find("a call of the store") != std::string::npos;
  }));
  EXPECT_EQ(status("/readyz"), 503);
  backend->let_go();
  EXPECT_TRUE(eventually([&] { return status("/healthz") == 200; }));
}

TEST_F(HttpHealth, AManagerThatNoLongerTurnsIsNotHealthy) {
  std::latch blocked(1), released(1);
  Hooks hooks;
  hooks.log = [&](const LogLine& line) {
    if (line.message != "elected") return;
    blocked.count_down();
    released.wait();
  };
  begin(hooks);
  blocked.wait();
  EXPECT_EQ(status("/healthz"), 200);
  backend->clock.advance(6s);
  EXPECT_EQ(status("/healthz"), 503);
  released.count_down();
  EXPECT_TRUE(eventually([&] { return status("/healthz") == 200; }));
}

TEST_F(HttpHealth, StalledWorkIsReportedAndIsNoReasonToRestart) {
  auto hooks = quiet();
  hooks.stall_after = 3s;
  begin(hooks);
  ASSERT_TRUE(manager->await_leadership(30s));
  EXPECT_EQ(fetch(server->address(), "/status").json()["health"]["since_progress_ms"], 0);
  ASSERT_TRUE(in_steps(100ms, [&] { return manager->metrics().stalled; }));
  const auto health = fetch(server->address(), "/healthz");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.json()["stalled"], true);
  EXPECT_EQ(fetch(server->address(), "/status").json()["health"]["stalled"], true);
  const auto ready = fetch(server->address(), "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_THAT(ready.body, HasSubstr("stalled"));
  EXPECT_TRUE(in_steps(100ms, [&] {
    manager->leadership().progressed();
    return status("/readyz") == 200;
  }));
}

TEST_F(HttpStatus, ShowsWhoLeadsAndWhatHappened) {
  Process a(hub);
  a.lead();
  const auto got = a.get("/status");
  ASSERT_EQ(got.status, 200);
  const auto status = got.json();
  EXPECT_EQ(status["version"], 1);
  EXPECT_EQ(status["election"], "jobs");
  EXPECT_EQ(status["self"]["state"], "leading");
  EXPECT_EQ(status["state"], "led");
  EXPECT_EQ(status["leader"]["self"], true);
  EXPECT_EQ(status["leader"]["name"], "a");
  EXPECT_EQ(status["leader"]["version"], tenure::version());
  EXPECT_EQ(status["counts"]["elected"], 1);
  EXPECT_EQ(status["health"]["healthy"], true);
  ASSERT_TRUE(eventually([&] { return a.get("/status").json()["history"].size() == 1; }));
  EXPECT_EQ(a.get("/status").json()["history"][0]["what"], "elected");
  EXPECT_TRUE(a.get("/status").json()["leader"]["since_unix_ms"].is_number());
  EXPECT_THAT(got.head, HasSubstr("Cache-Control: no-store"));
  a.manager->stop();
  EXPECT_TRUE(eventually([&] { return a.get("/status").json()["self"]["state"] == "ended"; }));
}

TEST_F(HttpStatus, IsAsTheSchemaSays) {
  Process a(hub), b(hub, {"b", ""});
  std::vector<std::string> documents{a.get("/status").body};
  a.lead();
  b.start();
  ASSERT_TRUE(eventually([&] { return b.manager->leadership().incumbent().has_value(); }));
  documents.push_back(a.get("/status").body);
  documents.push_back(b.get("/status").body);
  a.manager->stop();
  ASSERT_TRUE(eventually([&] { return a.get("/status").json()["self"]["state"] == "ended"; }));
  documents.push_back(a.get("/status").body);
  expect_as_schema("status", documents);
  expect_as_schema("answer", {a.get("/leader").body, b.get("/leader").body});
  expect_as_schema("health_answer", {a.get("/healthz").body});
  expect_as_schema("ready_answer", {a.get("/readyz").body, b.get("/readyz").body});
  expect_as_schema("refusal", {a.get("/else").body});
}

TEST_F(HttpPage, IsSelfContainedAndAllowsNothingElse) {
  Process a(hub);
  const auto got = a.get("/"), again = a.get("/");
  EXPECT_EQ(got.status, 200);
  EXPECT_THAT(got.head, HasSubstr("Content-Type: text/html; charset=utf-8"));
  EXPECT_THAT(got.head, HasSubstr("default-src 'none'; script-src 'nonce-"));
  const auto mark = got.head.find("'nonce-");
  ASSERT_NE(mark, got.head.npos);
  const auto nonce = got.head.substr(mark + 7, 32);
  EXPECT_THAT(got.body, HasSubstr("<script nonce=\"" + nonce + "\">"));
  EXPECT_THAT(got.body, HasSubstr("<style nonce=\"" + nonce + "\">"));
  EXPECT_FALSE(mentions(again.head, nonce));
  EXPECT_THAT(got.head, HasSubstr("img-src data:;"));
  EXPECT_THAT(got.body, testing::ContainsRegex("<noscript>.*<a href=\"status\">.*</noscript>")) << "without a script";
  const std::string icon = "<link rel=\"icon\" href=\"data:,\">";  // Without it a browser asks for /favicon.ico.
  auto body = got.body;
  ASSERT_NE(body.find(icon), body.npos);
  body.erase(body.find(icon), icon.size());
  for (const auto* foreign : {"@NONCE@", "http:", "https:", "//cdn", "src=", "<link", "innerHTML", "unsafe"})
    EXPECT_FALSE(mentions(body, foreign)) << foreign;
}

TEST_F(HttpMetrics, AreThoseOfPrometheus) {
  Process a(hub);
  a.lead();
  const auto got = a.get("/metrics");
  EXPECT_EQ(got.status, 200);
  EXPECT_THAT(got.head, HasSubstr(std::string("Content-Type: ") + prometheus::content_type));
  EXPECT_THAT(got.body, HasSubstr("leader_election_master_status{name=\"jobs\"} 1\n"));
}

TEST_F(HttpEvents, ShowEachChangeOnce) {
  Process a(hub);
  Client client(a.server->address());
  client.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(client.await("event: status\n"));
  a.lead();
  ASSERT_TRUE(client.await("\"what\":\"elected\""));
  a.manager->resign(1h);
  ASSERT_TRUE(client.await("\"what\":\"ousted\""));
  EXPECT_THAT(client.got(), HasSubstr("\"reason\":\"resigned\""));
  a.manager->stop();
  ASSERT_TRUE(client.await("\"what\":\"ended\""));
  for (const auto* what : {"elected", "ousted", "ended"}) {
    const auto text = "\"what\":\"" + std::string(what) + "\"";
    EXPECT_EQ(client.got().find(text), client.got().rfind(text)) << what;
  }
  EXPECT_THAT(client.got(), HasSubstr("id: 1\nevent: change\ndata: {"));
  EXPECT_THAT(client.got(), HasSubstr("Content-Type: text/event-stream"));
}

TEST_F(HttpStepDown, NeedsTheToken) {
  Process a(hub, {"a", ""}, {.step_down_token = bearer});
  EXPECT_EQ(a.step_down(bearer).status, 409) << "it does not lead";
  a.lead();
  EXPECT_EQ(fetch(a.server->address(), "/step-down", "POST").status, 401);
  EXPECT_EQ(a.step_down(bearer + "x").status, 401);
  EXPECT_EQ(a.step_down("").status, 401);
  EXPECT_EQ(fetch(a.server->address(), "/step-down", "GET", "Authorization: Bearer " + bearer + "\r\n").status, 405);
  EXPECT_TRUE(a.manager->leadership().is_leader());
  const auto done = a.step_down(bearer);
  EXPECT_EQ(done.status, 202);
  EXPECT_TRUE(eventually([&] { return a.manager->metrics().ousted.at(Reason::resigned) == 1; }));
}

TEST_F(HttpStepDown, IsRefusedEntirelyWithoutOneThatIsConfigured) {
  Process a(hub);
  a.lead();
  EXPECT_EQ(a.step_down("").status, 403);
  EXPECT_EQ(a.step_down(bearer).status, 403);
  EXPECT_TRUE(a.manager->leadership().is_leader());
}

TEST_F(HttpStepDown, ATokenThatIsEasilyGuessedOrCannotBeSentIsRefusedAndNotShown) {
  for (const auto& token : {std::string("s3cr3t-canary"), "s3cr3t-canary \r\n" + std::string(20, 'x'),
                            "s3cr3t-canary%41" + std::string(20, 'x')}) {
    const auto said = refusal_of([&] { const Process a(hub, {}, {.step_down_token = token}); });
    EXPECT_NE(said, "accepted");
    EXPECT_FALSE(mentions(said, canary));
  }
}

TEST_F(HttpAnswers, HaveNoSecretAndAreAsciiWhateverOthersAreCalled) {
  Process evil(hub, {"\x1b[31m\r\n</script>\xe2\x80\xae\xff", "h\n:1"}, {.step_down_token = bearer});
  Process a(hub, {"a", ""}, {.step_down_token = bearer});
  evil.lead();
  a.start();
  ASSERT_TRUE(eventually([&] { return a.manager->leadership().incumbent().has_value(); }));
  for (const auto* process : {&evil, &a})
    for (const auto* path : {"/leader", "/healthz", "/readyz", "/status", "/metrics", "/step-down", "/else"}) {
      const auto got = process->get(path);
      EXPECT_NE(got.status, 0) << path;
      EXPECT_FALSE(mentions(got.head + got.body, canary)) << path;
      EXPECT_TRUE(
          std::all_of(got.body.begin(), got.body.end(), [](char c) { return c == '\n' || (c >= ' ' && c < 127); }))
          << path << got.body;
    }
  EXPECT_THAT(a.get("/leader").body, HasSubstr("\\u001b[31m"));
}

TEST_F(HttpAnswers, AnUnknownPathIs404AndHeadHasNoBody) {
  Process a(hub);
  a.lead();
  EXPECT_EQ(a.get("/nothing").status, 404);
  EXPECT_EQ(fetch(a.server->address(), "/leader", "POST").status, 405);
  EXPECT_EQ(fetch(a.server->address(), "/leader", "DELETE").status, 405);
  const auto head = fetch(a.server->address(), "/leader", "HEAD");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(fetch(a.server->address(), "/events", "HEAD").status, 200);
}

}  // namespace
}  // namespace tenure::test
