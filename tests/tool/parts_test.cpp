// SPDX-License-Identifier: Apache-2.0
// Goal: the tool's parts that need no process are right: when a command must end, durations, what is shown of a URL.
// Method: calls them.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "durations.hpp"
#include "in_child.hpp"
#include "kill_deadline.hpp"
#include "look.hpp"
#include "messages.hpp"
#include "notify.hpp"
#include "place.hpp"
#include "secrets.hpp"
#include "tree.hpp"

namespace {

using namespace tenure;
using namespace std::chrono_literals;

TEST(Durations, AreAWholeNumberAndAUnit) {
  EXPECT_EQ(tool::duration("500ms"), 500ms);
  EXPECT_EQ(tool::duration("10s"), 10s);
  EXPECT_EQ(tool::duration("5m"), 5min);
  EXPECT_EQ(tool::duration("1h"), 1h);
  for (const char* wrong : {"", "s", "5", "0s", "-1s", "1.5s", "1 s", "1d", "99999999999999h", "4294967295h"})
    EXPECT_THROW(tool::duration(wrong), std::invalid_argument) << wrong;
}

TEST(Durations, AreShownInSeconds) {
  EXPECT_EQ(tool::seconds(7150ms), "7.15 s");
  EXPECT_EQ(tool::seconds(2s), "2 s");
  EXPECT_EQ(tool::seconds(5ms), "0.005 s");
  EXPECT_EQ(tool::seconds(-500ms), "-0.5 s");
}

/// The last question of all may have next to no time.
TEST(Asking, EndsWithTheErrorThatSaysMost) {
  int asked = 0;
  const auto found = tool::asked_until(boot_clock().now() + 100ms, [&](const Limit&) -> Result<int> {
    if (++asked == 1) return Error{Fault::corrupt, "the record cannot be read"};
    return Error{Fault::timed_out, "no answer within 1 ms"};
  });
  EXPECT_GT(asked, 1);
  EXPECT_EQ(found.error().fault, Fault::corrupt);
}

TEST(Secrets, AreNotShown) {
  const auto& secret = test::canary;
  for (const std::string& url : std::vector<std::string>{
           "redis://u:" + secret + "@h/0",
           "redis://u:pa/" + secret + "?x@h/0",
           "postgres://u@h/db?password=" + secret,
           "postgres://u@h/db?sslmode=require&password=" + secret + "&x=y",
           "redis://h/0?name=a@b&password=" + secret,
           "kafka://h/topic?ssl.key=" + secret,
           "redis:" + secret + "@h",
       })
    EXPECT_FALSE(test::mentions(tool::shown(url), secret)) << tool::shown(url);
}

TEST(Secrets, LeaveTheRestOfAnAddress) {
  EXPECT_EQ(tool::shown("file:///run/elections"), "file:///run/elections");
  EXPECT_EQ(tool::shown("redis://u:p@h:1/0"), "redis://***@h:1/0");
  EXPECT_EQ(tool::shown("kafka://b1:9092,b2/topic?group=g&x=y"), "kafka://b1:9092,b2/topic?group=g&x=***");
}

TEST(Secrets, AreOverwrittenInACommandLine) {
  std::string words[] = {
      "tenure", "--store",      "redis://u:" + test::canary + "@h", "--store=redis://u:" + test::canary + "@h",
      "--",     "redis://u:p@h"};
  char* argv[6];
  for (int i = 0; i < 6; ++i) argv[i] = words[i].data();
  tool::hide_from_ps(6, argv);
  EXPECT_FALSE(test::mentions(words[2], test::canary));
  EXPECT_FALSE(test::mentions(words[3], test::canary));
  EXPECT_EQ(words[5], "redis://u:p@h") << "the child's own";
}

/// Some stores want more renewals in a term than others.
TEST(Places, ATermAloneGivesATimingAsTheStoresPresetsAre) {
  Presets presets;
  presets.balanced = {.term = 10s, .renew = 1500ms};
  EXPECT_EQ(tool::timing_of({.term = "20s"}, presets).renew, Clock::Duration(20s) / 6);
  presets.balanced.renew = 2s;
  EXPECT_EQ(tool::timing_of({.term = "20s"}, presets).renew, 4s);
}

TEST(Places, AQuestionMakesNothingHoweverThatIsWritten) {
  const auto asked = [](const std::string& query) {
    Opening opening{.url = "kafka://h" + query};
    tool::only_ask(opening);
    return opening.url;
  };
  EXPECT_EQ(asked("?create_topic=true"), "kafka://h");
  EXPECT_EQ(asked("?a=1&create%5Ftopic=true&create_topic=true&b=2"), "kafka://h?a=1&b=2");
  EXPECT_EQ(asked("?create_topic=true&create_topic=true&b=create_topic"), "kafka://h?b=create_topic");
  EXPECT_EQ(asked("?x_create_topic=1&create_topic"), "kafka://h?x_create_topic=1");
}

constexpr Clock::Time at(Clock::Duration time) { return Clock::Time(time); }

TEST(KillDeadline, ComesWithTheLease) {
  tool::KillDeadline deadline;
  deadline.extend({at(5s), at(7s)});
  EXPECT_EQ(deadline.next(), at(5s));
  EXPECT_FALSE(deadline.terms(at(5s) - 1ns));
  EXPECT_TRUE(deadline.terms(at(5s)));
  EXPECT_FALSE(deadline.terms(at(6s))) << "once";
  EXPECT_TRUE(deadline.ending());
  EXPECT_FALSE(deadline.kills(at(7s) - 1ns));
  EXPECT_EQ(deadline.next(), at(7s));
  EXPECT_TRUE(deadline.kills(at(7s)));
}

TEST(KillDeadline, IsPutOffByARenewal) {
  tool::KillDeadline deadline;
  deadline.extend({at(5s), at(7s)});
  deadline.extend({at(8s), at(10s)});
  deadline.extend({at(6s), at(8s)});  // takes nothing back
  EXPECT_FALSE(deadline.terms(at(8s) - 1ns));
  EXPECT_FALSE(deadline.kills(at(10s) - 1ns));
}

TEST(KillDeadline, IsNotPutOffOnceItHasBegun) {
  tool::KillDeadline deadline;
  deadline.extend({at(5s), at(7s)});
  EXPECT_TRUE(deadline.terms(at(5s)));
  deadline.extend({at(8s), at(10s)});
  EXPECT_TRUE(deadline.kills(at(7s))) << "what ignores SIGTERM gets no new time";
}

TEST(KillDeadline, OfAnEndThatWasAskedForIsLimitedByTheLeaseToo) {
  tool::KillDeadline deadline;
  deadline.extend({at(5s), at(7s)});
  deadline.end(at(1s), at(20s));
  EXPECT_TRUE(deadline.terms(at(1s)));
  EXPECT_TRUE(deadline.kills(at(7s)));
  tool::KillDeadline renewed;
  renewed.extend({at(5s), at(7s)});
  renewed.end(at(1s), at(9s));
  renewed.extend({at(8s), at(30s)});
  EXPECT_TRUE(renewed.terms(at(1s)));
  EXPECT_FALSE(renewed.kills(at(9s) - 1ns)) << "while the lease goes on, the user's grace holds";
  EXPECT_TRUE(renewed.kills(at(9s)));
}

TEST(KillDeadline, WithoutALeaseIsNow) {
  tool::KillDeadline deadline;
  EXPECT_TRUE(deadline.terms(at(1ns)));
  EXPECT_TRUE(deadline.kills(at(1ns)));
}

TEST(Pace, KillsBeforeOthersMayLead) {
  for (const auto term : {300ms, 2000ms, 10000ms, 3600000ms})
    for (const auto grace : {0ms, 1ms, 1000ms, 3600000ms}) {
      const auto timing = Timing::of(term);
      const auto lease = tool::Pace::of(timing, grace).lease(timing.deadline(at(1h)));
      EXPECT_LT(lease.kill_at, at(1h) + timing.term - timing.clock_allowance());
      EXPECT_LE(lease.term_at, lease.kill_at);
      EXPECT_GT(lease.term_at, at(1h) + timing.renew + timing.call) << "a healthy leader's command goes on";
    }
}

TEST(Pace, LeavesTheGraceThatIsAskedForIfItCan) {
  const auto timing = Timing::of(10s);
  const auto lease = tool::Pace::of(timing, 2s).lease(at(1h));
  EXPECT_EQ(lease.kill_at - lease.term_at, 2s);
  EXPECT_EQ(tool::Pace::of(timing, 1h).grace, timing.rides_out() / 2);
}

/// The hook of a former tenure may have returned before the tool comes to its event.
TEST(Tree, OfALaterTenureIsNotFreedByLateWordOfAFormerOne) {
  const Token former{1}, later{2};
  tool::Tree tree;
  ASSERT_TRUE(tree.claim(former));
  tree.free(former);
  tree.await_end();
  ASSERT_TRUE(tree.claim(later));
  tree.free(former);
  EXPECT_FALSE(tree.is_free());
  tree.free(later);
  EXPECT_TRUE(tree.is_free());
}

TEST(Tree, OnceItIsClosedNothingIsStarted) {
  tool::Tree tree;
  ASSERT_TRUE(tree.claim({1}));
  tree.close();
  tree.await_end();
  EXPECT_FALSE(tree.claim({2}));
  EXPECT_TRUE(tree.is_free());
}

TEST(Progress, IsAByteOrAWatchdogThatMayRest) {
  tool::Progress progress;
  EXPECT_FALSE(progress.told());
  EXPECT_EQ(::write(progress.writes(), "x", 1), 1);
  EXPECT_TRUE(progress.told());
  EXPECT_FALSE(progress.told()) << "once";

  ::setenv("NOTIFY_SOCKET", progress.socket().c_str(), 1);
  tool::ServiceManager command;
  ASSERT_TRUE(command.listens());
  command.tell("READY=1\nSTATUS=no WATCHDOG=1 here");
  EXPECT_FALSE(progress.told());
  command.tell("STATUS=x\nWATCHDOG=1\n");
  EXPECT_TRUE(progress.told());
}

/// Otherwise anybody could fill its queue, and the command would count as stalled.
TEST(Progress, TheSocketIsOutOfReachOfOtherUsers) {
  std::string name;
  {
    const tool::Progress progress;
    name = progress.socket();
    const auto directory = std::filesystem::path(name).parent_path();
    EXPECT_EQ(std::filesystem::status(directory).permissions(), std::filesystem::perms::owner_all);
    if (::getuid() == 0)
      test::in_child([&] {
        ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
        return ::setuid(65534) == 0 && !tool::ServiceManager().listens();
      });
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(name).parent_path()));
}

TEST(Progress, OfAnotherUserIsNone) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, who may become another user";
  tool::Progress progress;
  ::setenv("NOTIFY_SOCKET", progress.socket().c_str(), 1);
  tool::ServiceManager command;
  ASSERT_TRUE(command.listens());
  test::in_child([&] {
    if (::setuid(65534) != 0) return false;
    command.tell("WATCHDOG=1");
    return true;
  });
  pollfd heard{progress.hears(), POLLIN, 0};
  ASSERT_EQ(::poll(&heard, 1, 30'000), 1);
  EXPECT_FALSE(progress.told());
  command.tell("WATCHDOG=1");
  EXPECT_TRUE(progress.told());
}

TEST(ServiceManager, TakesItsVariablesAway) {
  ::setenv("NOTIFY_SOCKET", "/nowhere", 1);
  ::setenv("WATCHDOG_USEC", "200000", 1);
  const tool::ServiceManager service;
  EXPECT_FALSE(service.listens());
  EXPECT_EQ(service.beat(), 100ms);
  for (const auto* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC"}) EXPECT_EQ(::getenv(name), nullptr) << name;
  ::setenv("WATCHDOG_USEC", "200000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(tool::ServiceManager().beat(), std::nullopt) << "it is for another process";
}

}  // namespace
