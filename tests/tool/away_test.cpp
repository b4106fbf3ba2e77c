// SPDX-License-Identifier: Apache-2.0
// Goal: a command ends with its lease while the store hangs, and when the store is away for good; a leader that died is
// told of as such. Method: a Redis server of the test's own is stopped or killed below a tool that leads, or the tool
// is.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "eventually.hpp"
#include "messages.hpp"
#include "password_change.hpp"
#include "process.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

/// A command that ignores SIGTERM, and says who it is.
const std::string stubborn = "trap '' TERM; echo $$; while :; do sleep 0.01; done";

std::vector<std::string> words(const redis::test::Server& server, std::vector<std::string> options,
                               const std::string& term = "2s") {
  std::vector<std::string> all{"run",    "-e", "e", "--store", "redis://" + server.address() + "?first_claim=at_once",
                               "--term", term};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), {"--", "sh", "-c", stubborn});
  return tool(all);
}

pid_t child_of(const Process& run) {
  EXPECT_TRUE(eventually([&] { return run.out().ends_with('\n'); })) << run.err();
  pid_t pid = 0;
  std::istringstream(run.out()) >> pid;
  return pid;
}

TEST(AwayStore, WhileItHangsTheLeaseEndsTheCommand) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  Process run(words(server, {"--once"}));
  const auto child = child_of(run);
  server.freeze(true);
  EXPECT_EQ(run.ended(), 79) << run.err();
  EXPECT_FALSE(alive(child));
  server.freeze(false);
}

TEST(AwayStore, ForGoodEndsTheCommandAndThenTheWait) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  Process run(words(server, {"--wait", "1s", "--on-lost", "kill"}));
  const auto child = child_of(run);
  server.kill();
  EXPECT_EQ(run.ended(), 69) << run.err();
  EXPECT_FALSE(alive(child));
}

/// It claims nothing for a term, which is longer than the wait.
TEST(AwayStore, ThatHasComeBackIsNoReasonForTheEndOfTheWait) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  server.stop();
  Process run(tool(
      {"run", "-e", "e", "--store", "redis://" + server.address(), "--term", "15s", "--wait", "12s", "--", "true"}));
  ASSERT_TRUE(eventually([&] { return mentions(run.err(), "unreachable"); })) << run.err();
  server.start();
  EXPECT_EQ(run.ended(), 75) << run.err();
}

/// For whoever begins to look, what is left of a dead leader's lease is told by the store's clock alone.
TEST(AwayLeader, ThatDiedIsNotShownAsLeading) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  const auto ask = [&](const std::string& command, std::vector<std::string> more) {
    std::vector<std::string> all{command, "-e", "e", "--store", "redis://" + server.address()};
    if (!std::count(more.begin(), more.end(), "--term")) all.insert(all.end(), {"--term", "4s"});
    all.insert(all.end(), more.begin(), more.end());
    return tool(all);
  };
  Process run(words(server, {"--id", "ann"}, "4s"));
  child_of(run);
  Process observe(ask("observe", {}));
  ASSERT_TRUE(eventually([&] { return mentions(observe.out(), "ann leads"); })) << observe.err();
  EXPECT_EQ(Process(ask("status", {})).ended(), 0);
  Process other(ask("step-down", {"--if-token", "1"}));
  EXPECT_EQ(other.ended(), 1) << "it lives: " << other.err();
  EXPECT_EQ(Process(ask("is-leader", {"--id", "ann"})).ended(), 0);

  run.signal(SIGKILL);
  Process soon(ask("status", {"--timeout", "1s"})), later(ask("status", {})), sure(ask("is-leader", {"--id", "ann"})),
      none(ask("step-down", {"--wait", "1s"})), nobody(ask("step-down", {"--wait", "20s"}));
  EXPECT_EQ(none.ended(), 4) << none.out() << none.err();
  EXPECT_TRUE(mentions(none.err(), "ann led, token ") && mentions(none.err(), "no renewal was seen")) << none.err();
  EXPECT_EQ(nobody.ended(), 3) << nobody.out() << nobody.err();
  EXPECT_TRUE(mentions(nobody.err(), "nobody leads \"e\"; ann led, token ")) << nobody.err();
  EXPECT_EQ(soon.ended(), 4) << soon.out() << soon.err();
  EXPECT_TRUE(mentions(soon.out(), "has renewed nothing")) << soon.out();
  EXPECT_EQ(later.ended(), 3) << later.out() << later.err();
  EXPECT_EQ(sure.ended(), 1) << sure.err();
  EXPECT_TRUE(eventually([&] { return observe.out().ends_with("nobody leads\n"); })) << observe.out();
  Process patient(ask("status", {"--term", "30s", "--timeout", "1s"}));
  EXPECT_EQ(patient.ended(), 3) << "who counts by a longer term knows it, too: " << patient.out();
}

/// Whoever asks need not know how often the leader renews.
TEST(AwayLeader, WhoRenewsMoreSeldomThanWeLookForIsAlive) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server;
  Process run(words(server, {"--id", "ann"}, "10s"));  // renews every 2 s
  child_of(run);
  for (int i = 0; i < 2; ++i) {
    Process status(tool(
        {"status", "-e", "e", "--store", "redis://" + server.address(), "--timing", "fast", "--timeout", "300ms"}));
    EXPECT_EQ(status.ended(), 0) << status.out() << status.err();
  }
}

/// On the command line the password stands in a file, too.
TEST(AwayStore, ThatComesBackWithAnotherPasswordIsLoggedInToByWhatTheFileSaysNow) {
  TENURE_NEEDS_REDIS();
  redis::test::Server server({"requirepass " + password_of(0)});
  server.password = password_of(0);
  const Scratch scratch;
  const auto file = scratch.file("password", password_of(0) + "\n");
  expect_password_may_change(
      by_options({"-e", "e", "--term", "6s", "--store", "redis://default@" + server.address() + "?first_claim=at_once",
                  "--password-file", file}),
      [&](int n) {
        scratch.file("password", password_of(n));
        server.ask({"CONFIG", "SET", "requirepass", password_of(n)});
        server.password = password_of(n);
        server.ask({"CLIENT", "KILL", "TYPE", "normal"});
        server.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
      });
}

}  // namespace
}  // namespace tenure::test
