// SPDX-License-Identifier: Apache-2.0
// Goal: an election may have hooks of its own; what goes wrong in them harms no other election, and they are let go
// once nobody needs them. Method: one process on the memory store, whose hooks throw, hang or count.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/memory.hpp>

#include "eventually.hpp"

namespace tenure::memory {
namespace {

using namespace std::chrono_literals;
using tenure::test::eventually;

/// A machine that is busy for seconds ends no lease.
const Timing slow{.term = 6s, .renew = 50ms, .retry = 10ms, .margin = 300ms, .call = 2s, .drain = 1s};

/// What hooks were called with.
struct Heard {
  Hooks hooks() {
    return {.elected = [this](const Elected& e) { note("elected " + e.election); },
            .ousting = [this](const Ousting& o) { note("ousting " + o.election); },
            .error = [this](const Error& e) { note("error " + e.message); },
            .log = no_log};
  }
  std::shared_ptr<const Hooks> shared() { return std::make_shared<const Hooks>(hooks()); }
  void note(const std::string& what) {
    const std::lock_guard lock(mutex);
    all.push_back(what);
  }
  std::size_t count(const std::string& part) const {
    const std::lock_guard lock(mutex);
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const std::string& one) { return one.find(part) != std::string::npos; }));
  }
  mutable std::mutex mutex;
  std::vector<std::string> all;
};

struct ElectionsHooks : testing::Test {
  const Hub hub;
};

TEST_F(ElectionsHooks, AnElectionsOwnHooksAreCalledInPlaceOfTheCommonOnes) {
  Heard common, own;
  Elections elections(hub.group("jobs"), {"a", ""}, slow, common.hooks());
  elections.join("own", own.shared());
  elections.join(std::vector<std::string>{"b", "c"});
  elections.join("own", common.shared());  // it was joined before, so nothing changes
  elections.start();
  ASSERT_TRUE(eventually([&] { return own.count("elected own") == 1 && common.count("elected") == 2; }));
  elections.stop();
  EXPECT_EQ(own.count("ousting own"), 1u);
  EXPECT_EQ(common.count("ousting"), 2u);
  EXPECT_EQ(own.count(" b") + own.count(" c") + common.count(" own"), 0u);
}

TEST_F(ElectionsHooks, WhatOneElectionsHooksThrowOnlyItsOwnErrorHears) {
  Heard common, own;
  auto throws = own.hooks();
  throws.elected = [](const Elected&) { throw std::runtime_error("spoon"); };
  throws.ousting = [](const Ousting&) { throw std::runtime_error("fork"); };
  throws.error = [&](const Error& e) {
    own.note("error " + e.message);
    throw std::runtime_error("error, too");
  };
  Elections elections(hub.group("jobs"), {"a", ""}, slow, common.hooks());
  elections.join("bad", std::make_shared<const Hooks>(throws));
  elections.join("good");
  elections.start();
  ASSERT_TRUE(eventually([&] { return own.count("spoon") == 1 && common.count("elected good") == 1; }));
  EXPECT_TRUE(elections.leadership("bad").is_leader()) << "work that did not start is for its user to end";
  elections.resign("bad", 1h);
  ASSERT_TRUE(eventually([&] { return own.count("fork") == 1 && !elections.leadership("bad").is_leader(); }));
  EXPECT_TRUE(elections.leadership("good").is_leader());
  elections.stop();
  EXPECT_EQ(common.count("ousting good"), 1u);
  EXPECT_EQ(common.count("error"), 0u);
}

TEST_F(ElectionsHooks, HooksThatNeverReturnHoldUpNoOtherElectionNorTheErrorsOfOthers) {
  Heard common, own;
  std::atomic<bool> hold{true};
  auto hangs = own.hooks();
  hangs.ousting = [&](const Ousting&) { hold.wait(true); };
  hangs.error = [&](const Error& e) {
    own.note("error " + e.message);
    hold.wait(true);
  };
  auto throws = common.hooks();
  throws.ousting = [&](const Ousting& o) {
    common.note("ousting " + o.election);
    throw std::runtime_error("spoon");
  };
  Elections elections(hub.group("jobs"), {"a", ""}, slow, throws, {}, 3);
  elections.join("hangs", std::make_shared<const Hooks>(hangs));
  elections.join("b");
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.led().size() == 2; }));
  elections.resign("hangs", 1h);
  ASSERT_TRUE(eventually([&] { return own.count("had not returned when its time was up") == 1; }));
  // Two of its hooks hang now. The one thread that is left serves the others.
  elections.resign("b", 0s);
  EXPECT_TRUE(eventually([&] { return common.count("spoon") == 1 && common.count("elected b") == 2; }));
  EXPECT_EQ(common.count("had not returned"), 0u);
  hold = false;
  hold.notify_all();
}

TEST_F(ElectionsHooks, OfOneElectionAreCalledOneAtATimeThoughThreadsAreFree) {
  Heard heard;
  std::atomic<bool> hold{true}, stopped{false};
  auto hooks = heard.hooks();
  hooks.elected = [&](const Elected& e) {
    if (e.election != "e") return;
    const std::stop_callback tell(e.stop, [&] { stopped = true; });
    hold.wait(true);
  };
  Elections elections(hub.group("jobs"), {"a", ""}, slow, hooks);
  elections.join(std::vector<std::string>{"e", "other"});
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.led().size() == 2; }));
  elections.resign("e", 1h);
  ASSERT_TRUE(eventually([&] { return stopped.load(); }));
  elections.resign("other", 1h);  // Its ousting() stands behind that of "e".
  ASSERT_TRUE(eventually([&] { return heard.count("ousting other") == 1; }));
  EXPECT_EQ(heard.count("ousting e"), 0u) << "elected() still runs";
  hold = false;
  hold.notify_all();
  EXPECT_TRUE(eventually([&] { return heard.count("ousting e") == 1; }));
}

TEST_F(ElectionsHooks, HooksThatHangOnEveryThreadAreReportedAndNothingIsClaimedMeanwhile) {
  Heard heard;
  std::atomic<bool> hold{true};
  auto hooks = heard.hooks();
  hooks.ousting = [&](const Ousting&) { hold.wait(true); };
  Elections elections(hub.group("jobs"), {"a", ""}, slow, hooks, {}, 1);
  elections.join("hangs");
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.is_leader("hangs"); }));
  elections.resign("hangs", 1h);
  ASSERT_TRUE(eventually([&] { return heard.count("no election is claimed until one returns") == 1; }));
  elections.join("new");
  const auto commits = [&] { return elections.metrics().session.calls["commit"].durations.count(); };
  const auto enough = commits() + 3;
  ASSERT_TRUE(eventually([&] { return commits() > enough; }));
  EXPECT_FALSE(elections.is_leader("new"));
  hold = false;
  hold.notify_all();
  EXPECT_TRUE(eventually([&] { return heard.count("elected new") == 1; }));
}

TEST_F(ElectionsHooks, AnErrorThatWaitsForAnotherGoesToStderrToo) {
  std::atomic<bool> hold{true};
  Hooks hooks;
  hooks.elected = [](const Elected&) { throw std::runtime_error("spoon"); };
  hooks.error = [&](const Error&) { hold.wait(true); };
  testing::internal::CaptureStderr();
  Elections elections(hub.group("jobs"), {"a", ""}, slow, hooks, {}, 1);
  elections.join(std::vector<std::string>{"a", "b"});
  elections.start();
  EXPECT_TRUE(eventually([&] { return elections.metrics().session.errors[Fault::hook_threw] == 2; }));
  hold = false;
  hold.notify_all();
  elections.stop();
  const auto told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("spoon"), std::string::npos);
  EXPECT_EQ(told.find("spoon"), told.rfind("spoon")) << "the first one was called at once: " << told;
}

TEST_F(ElectionsHooks, OfElectionsThatAreWonInOneCommitRunOnAllThreads) {
  std::atomic<int> inside{0};
  std::atomic<bool> hold{true};
  const Hooks hooks{.elected =
                        [&](const Elected&) {
                          ++inside;
                          hold.wait(true);
                        },
                    .log = no_log};
  Elections elections(hub.group("jobs"), {"a", ""}, slow, hooks, {}, 4);
  elections.join(std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
  elections.start();
  EXPECT_TRUE(eventually([&] { return inside == 4; }));
  hold = false;
  hold.notify_all();
  EXPECT_TRUE(eventually([&] { return inside == 6; }));
  elections.stop();
}

TEST_F(ElectionsHooks, AreKeptUntilTheElectionIsLeftAndTheLastOneReturned) {
  Heard first, second;
  std::atomic<bool> hold{true};
  auto slow_end = first.hooks();
  slow_end.ousting = [&](const Ousting&) { hold.wait(true); };
  auto kept = std::make_shared<const Hooks>(slow_end);
  const std::weak_ptr<const Hooks> seen = kept;
  Elections elections(hub.group("jobs"), {"a", ""}, slow);
  elections.join("job", std::move(kept));
  elections.start();
  ASSERT_TRUE(eventually([&] { return first.count("elected job") == 1; }));
  elections.leave("job");
  auto next = second.shared();
  const std::weak_ptr<const Hooks> seen_next = next;
  elections.join("job", std::move(next));
  EXPECT_FALSE(seen.expired()) << "ousting() still runs";
  hold = false;
  hold.notify_all();
  EXPECT_TRUE(eventually([&] { return seen.expired(); }));
  EXPECT_TRUE(eventually([&] { return second.count("elected job") == 1; }));
  elections.leave("job");
  EXPECT_TRUE(eventually([&] { return second.count("ousting job") == 1; }));
  EXPECT_TRUE(eventually([&] { return seen_next.expired(); }));
}

TEST_F(ElectionsHooks, WhoJoinsAgainBeforeTheOldHooksReturnedHasTheNewOnes) {
  Heard common, own;
  std::atomic<bool> hold{true};
  auto slowly = own.hooks();
  slowly.ousting = [&](const Ousting& o) {
    own.note("ousting " + o.election);
    hold.wait(true);
  };
  Elections elections(hub.group("jobs"), {"a", ""}, slow, common.hooks());
  elections.join("e", std::make_shared<const Hooks>(slowly));
  elections.start();
  ASSERT_TRUE(eventually([&] { return own.count("elected e") == 1; }));
  elections.leave("e");
  ASSERT_TRUE(eventually([&] { return own.count("ousting e") == 1; }));
  elections.join("e");
  hold = false;
  hold.notify_all();
  EXPECT_TRUE(eventually([&] { return common.count("elected e") == 1; }));
  EXPECT_EQ(own.count("elected e"), 1u);
  elections.stop();
}

TEST_F(ElectionsHooks, WhoReplacesHooksLetsTheOldOnesGoWithoutALock) {
  Heard common, own;
  std::atomic<bool> hold{true}, gone{false}, answered{false}, in_time{false};
  auto slowly = own.hooks();
  slowly.ousting = [&](const Ousting& o) {
    own.note("ousting " + o.election);
    hold.wait(true);
  };
  Elections elections(hub.group("jobs"), {"a", ""}, slow, common.hooks());
  std::jthread asker;
  /// What the user keeps in hooks. Where it ends, it asks.
  const auto kept = [&] {
    return std::shared_ptr<int>(new int{}, [&](const int* all) {
      delete all;
      asker = std::jthread([&] {
        (void)elections.metrics();
        answered = true;
      });
      in_time = eventually([&] { return answered.load(); });
      gone = true;
    });
  };
  elections.join("e", std::make_shared<const Hooks>(slowly));
  elections.start();
  ASSERT_TRUE(eventually([&] { return own.count("elected e") == 1; }));
  elections.leave("e");
  ASSERT_TRUE(eventually([&] { return own.count("ousting e") == 1; }));
  elections.join("e",
                 std::make_shared<const Hooks>(Hooks{.elected = [all = kept()](const Elected&) {}, .log = no_log}));
  elections.leave("e");
  elections.join("e");
  EXPECT_TRUE(eventually([&] { return gone.load(); }));
  EXPECT_TRUE(in_time);
  hold = false;
  hold.notify_all();
  EXPECT_TRUE(eventually([&] { return common.count("elected e") == 1; }));
  elections.stop();
}

TEST_F(ElectionsHooks, OfAnElectionThatWasNeverLedAreGivenBackToo) {
  Heard heard;
  auto hooks = heard.shared();
  const std::weak_ptr<const Hooks> seen = hooks;
  Elections elections(hub.group("jobs"), {"a", ""}, slow, {}, {.most = 0});
  elections.join("job", std::move(hooks));
  elections.start();
  EXPECT_FALSE(seen.expired());
  elections.leave("job");
  EXPECT_TRUE(eventually([&] { return seen.expired(); }));
}

TEST_F(ElectionsHooks, BadOptionsAreRefusedBeforeAnythingIsJoined) {
  Elections elections(hub.group("jobs"), {"a", ""}, slow);
  Hooks asks{.eligible = [] { return true; }};
  EXPECT_THROW(elections.join("job", std::make_shared<const Hooks>(asks)), std::invalid_argument);
  EXPECT_THROW(elections.join("job", std::make_shared<const Hooks>(Hooks{.stall_after = -1ns})), std::invalid_argument);
  EXPECT_THROW(elections.join(std::vector<std::string>{"good", ""}), std::invalid_argument);
  elections.start();
  elections.join("last");
  ASSERT_TRUE(eventually([&] { return elections.leadership("last").is_leader(); }));
  EXPECT_EQ(elections.led().size(), 1u);
}

}  // namespace
}  // namespace tenure::memory
