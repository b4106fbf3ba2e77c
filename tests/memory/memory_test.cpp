// SPDX-License-Identifier: Apache-2.0
// Goal: the hub elects, and each of its switches does what its name says.
// Method: backends driven verb by verb on a ManualClock.
#include <tenure/memory.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include <tenure/manual_clock.hpp>

namespace tenure {
namespace {

using namespace std::chrono_literals;

struct Memory : testing::Test {
  ManualClock clock;
  memory::Hub hub;
  const Timing timing = Timing::of(10s);

  std::shared_ptr<Backend> backend(const std::string& name) { return backend(hub, name); }
  std::shared_ptr<Backend> backend(const memory::Hub& at, const std::string& name) {
    auto s = memory::open(at, "jobs", {name, ""});
    EXPECT_EQ(s->accepts(timing), std::nullopt);
    return s;
  }
  Limit limit(Clock::Duration d = 1s) { return {clock, clock.now() + d, {}}; }
  std::optional<Token> acquire(Backend& s) {
    const auto answer = s.acquire(limit());
    const auto* granted = std::get_if<Granted>(&answer);
    return granted ? std::optional(granted->token) : std::nullopt;
  }
};

TEST_F(Memory, ALeaseEndsExactlyATermAfterItWasAsked) {
  const auto a = backend("a"), b = backend("b");
  ASSERT_TRUE(acquire(*a));
  clock.advance(4s);
  EXPECT_FALSE(acquire(*b));
  clock.advance(6s - 1ns);
  EXPECT_FALSE(acquire(*b));
  clock.advance(1ns);
  EXPECT_TRUE(acquire(*b));
}

TEST_F(Memory, ALeaseOnAServerEndsATermAfterItWasFirstSeen) {
  const memory::Hub server({.same_clock = false});
  const auto a = backend(server, "a"), b = backend(server, "b");
  ASSERT_TRUE(acquire(*a));
  clock.advance(4s);
  EXPECT_FALSE(acquire(*b));
  clock.advance(10s - 1ns);
  EXPECT_FALSE(acquire(*b));
  clock.advance(1ns);
  EXPECT_TRUE(acquire(*b));
}

TEST_F(Memory, ClocksThatDifferAreNotTakenForOne) {
  ManualClock ahead(Clock::Time{1000h});
  const auto a = backend("a"), b = backend("b");
  ASSERT_TRUE(acquire(*a));
  EXPECT_TRUE(std::holds_alternative<Denied>(b->acquire({ahead, ahead.now() + 1s, {}})));
}

TEST_F(Memory, AMissingRecordOfACacheIsWaitedFor) {
  const memory::Hub cache({.absence_certain = false});
  const auto a = backend(cache, "a");
  EXPECT_FALSE(acquire(*a));
  clock.advance(10s);
  EXPECT_TRUE(acquire(*a));
}

TEST_F(Memory, AReleaseWakesAFollowerAndWithoutPushItSleepsOn) {
  for (const bool push : {true, false}) {
    const memory::Hub at({.push = push});
    const auto a = backend(at, "a"), b = backend(at, "b");
    ASSERT_TRUE(acquire(*a));
    ASSERT_FALSE(acquire(*b));
    std::atomic<bool> awake{false};
    std::jthread follower([&] {
      b->await_change(Vacant{}, limit(1min));
      awake = true;
    });
    ASSERT_TRUE(clock.await_parked(1));
    EXPECT_EQ(clock.next_alarm(), clock.now() + 10s) << "the lease's end";
    ASSERT_EQ(a->release(limit()), std::nullopt);
    if (!push) {
      ASSERT_TRUE(clock.await_parked(1));
      EXPECT_FALSE(awake);
      clock.advance(10s);
    }
    follower.join();
    EXPECT_TRUE(awake);
  }
}

TEST_F(Memory, AnUnreachableHubIsUnknownAndItsReturnEndsWaits) {
  const auto a = backend("a"), b = backend("b");
  ASSERT_TRUE(acquire(*a));
  ASSERT_FALSE(acquire(*b));
  hub.unreachable(true);
  EXPECT_TRUE(std::holds_alternative<Unknown>(b->acquire(limit())));
  EXPECT_TRUE(std::holds_alternative<Unknown>(b->observe(limit())));
  std::jthread follower([&] { b->await_change(Vacant{}, limit(1min)); });
  ASSERT_TRUE(clock.await_parked(1));
  hub.unreachable(false);
  follower.join();
  EXPECT_TRUE(std::holds_alternative<Incumbent>(b->observe(limit())));
}

TEST_F(Memory, AHangingHubKeepsACallToItsLimitAndHasNoEffect) {
  const auto a = backend("a");
  hub.hang(true);
  std::jthread caller([&] { EXPECT_TRUE(std::holds_alternative<Unknown>(a->acquire(limit(3s)))); });
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(clock.next_alarm(), clock.now() + 3s);
  clock.advance(3s);
  caller.join();
  hub.hang(false);
  EXPECT_TRUE(std::holds_alternative<Vacant>(a->observe(limit())));
}

TEST_F(Memory, ALostAnswerLeavesAGhostThatItsBackendTakesOver) {
  const auto a = backend("a"), b = backend("b");
  hub.lose_answers(1);
  EXPECT_TRUE(std::holds_alternative<Unknown>(a->acquire(limit())));
  EXPECT_FALSE(acquire(*b)) << "it took effect";
  EXPECT_TRUE(acquire(*a));
}

TEST_F(Memory, AHeldWriteArrivesLateIfItStillCan) {
  const auto a = backend("a"), b = backend("b");
  hub.hold_writes(1);
  EXPECT_TRUE(std::holds_alternative<Unknown>(a->acquire(limit())));
  EXPECT_TRUE(std::holds_alternative<Vacant>(b->observe(limit())));
  hub.deliver_held();
  EXPECT_TRUE(std::holds_alternative<Incumbent>(b->observe(limit())));
  ASSERT_EQ(a->release(limit()), std::nullopt);

  hub.hold_writes(1);
  EXPECT_TRUE(std::holds_alternative<Unknown>(a->acquire(limit())));
  ASSERT_TRUE(acquire(*b));
  hub.deliver_held();
  const auto sight = a->observe(limit());
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).name, "b") << "what it expected is gone";
}

TEST_F(Memory, AFlushIsNoticedAndWaitedFor) {
  const auto a = backend("a");
  const auto token = acquire(*a);
  ASSERT_TRUE(token);
  hub.flush();
  EXPECT_TRUE(std::holds_alternative<Denied>(a->renew(*token, limit())));
  const auto told = a->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Unknown>(told));
  EXPECT_EQ(std::get<Unknown>(told).error.fault, Fault::corrupt);
  EXPECT_FALSE(acquire(*a));
  clock.advance(10s);
  const auto next = acquire(*a);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, *token);
}

TEST_F(Memory, ASteppedClockMovesTokensButNoLease) {
  const auto a = backend("a"), b = backend("b");
  const auto token = acquire(*a);
  ASSERT_TRUE(token);
  hub.step_clock(1h);
  EXPECT_FALSE(acquire(*b));
  ASSERT_EQ(a->release(limit()), std::nullopt);
  const auto ahead = acquire(*b);
  ASSERT_TRUE(ahead);
  EXPECT_GE(ahead->value, token->value + 3'600'000);
  hub.step_clock(-2h);
  EXPECT_FALSE(acquire(*a));
  ASSERT_EQ(b->release(limit()), std::nullopt);
  const auto next = acquire(*a);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, *ahead);
}

TEST_F(Memory, HubsAreApartAndOutliveTheirHandles) {
  std::shared_ptr<Backend> a, b;
  {
    const memory::Hub here, there;
    a = backend(here, "a");
    b = backend(there, "b");
  }
  EXPECT_TRUE(acquire(*a));
  EXPECT_TRUE(acquire(*b));
}

// ---- groups ----

/// One session opens, and commits claims and releases.
struct MemoryGroup : Memory {
  std::shared_ptr<GroupStore> group = hub.group("orders");
  const SessionId id{7};
  std::uint64_t beat{1};

  void SetUp() override { ASSERT_TRUE(opened()); }

  bool opened() {
    const auto done = group->open(id, {.record = {.beat = beat, .term = 10s}}, limit());
    return done && done->granted;
  }
  Commit next(std::vector<Claim> claims = {}) {
    return {.session = id,
            .beats = {beat},
            .next = {.record = {.beat = beat + 1, .term = 10s}},
            .claims = std::move(claims)};
  }
  bool granted(const Commit& commit) {
    const auto done = group->commit(commit, limit());
    if (done && done->granted) beat = commit.next.record.beat;
    return done && done->granted;
  }
  Look look() {
    const auto look = hub.group("orders")->look({}, limit());
    return look ? *look : Look{};
  }
};

TEST_F(MemoryGroup, AnUnreachableHubIsAnErrorAndItsReturnEndsWaits) {
  const auto cursor = look().cursor;
  hub.unreachable(true);
  EXPECT_EQ(group->look({}, limit()).error().fault, Fault::unreachable);
  EXPECT_EQ(group->commit(next(), limit()).error().fault, Fault::unreachable);
  std::jthread follower([&] { group->await_change(cursor, limit(1min)); });
  ASSERT_TRUE(clock.await_parked(1));
  hub.unreachable(false);
  follower.join();
  EXPECT_TRUE(granted(next())) << "nothing had happened";
}

TEST_F(MemoryGroup, AHangingHubKeepsACallToItsLimitAndHasNoEffect) {
  hub.hang(true);
  std::jthread caller([&] { EXPECT_FALSE(group->commit(next({{"jobs", {}}}), limit(3s))); });
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(clock.next_alarm(), clock.now() + 3s);
  clock.advance(3s);
  caller.join();
  hub.hang(false);
  EXPECT_TRUE(look().leads.empty());
}

TEST_F(MemoryGroup, AReleaseWakesAFollowerAndWithoutPushItSleepsOn) {
  for (const bool push : {true, false}) {
    hub = memory::Hub({.push = push});
    group = hub.group("orders");
    ASSERT_TRUE(opened());
    ASSERT_TRUE(granted(next({{"jobs", {}}})));
    const auto seen = look();
    std::atomic<bool> awake{false};
    std::optional<Release> told;
    std::jthread follower([&] {
      told = group->await_change(seen.cursor, limit(1min));
      awake = true;
    });
    ASSERT_TRUE(clock.await_parked(1));
    auto release = next();
    release.releases = {{"jobs", seen.leads.at("jobs").token, SessionId{8}}};
    ASSERT_TRUE(granted(release));
    if (!push) {
      ASSERT_TRUE(clock.await_parked(1));
      EXPECT_FALSE(awake);
      clock.advance(1min);
    }
    follower.join();
    EXPECT_EQ(told.has_value(), push);
    if (told) {
      EXPECT_EQ(told->heir, SessionId{8});
    }
  }
}

TEST_F(MemoryGroup, ARenewalAndAClaimWakeNobody) {
  const auto cursor = look().cursor;
  std::jthread follower([&] { group->await_change(cursor, limit(1min)); });
  ASSERT_TRUE(clock.await_parked(1));
  const auto alarm = clock.next_alarm();
  EXPECT_TRUE(granted(next()));
  EXPECT_TRUE(granted(next({{"jobs", {}}})));
  ASSERT_TRUE(clock.await_parked(1));
  EXPECT_EQ(clock.next_alarm(), alarm);
  clock.advance(1min);
}

TEST_F(MemoryGroup, OfSeveralReleasesInOneCommitNoneIsNamed) {
  ASSERT_TRUE(granted(next({{"jobs", {}}, {"mails", {}}})));
  const auto seen = look();
  auto both = next();
  for (const auto& [election, lead] : seen.leads) both.releases.push_back({election, lead.token});
  ASSERT_TRUE(granted(both));
  const auto before = clock.now();
  EXPECT_FALSE(group->await_change(seen.cursor, limit(1min)));
  EXPECT_EQ(clock.now(), before) << "it did not wait";
}

TEST_F(MemoryGroup, ALostAnswerLeavesAGhostThatItsSessionClaimsAnew) {
  hub.lose_answers(1);
  EXPECT_FALSE(group->commit(next({{"jobs", {}}}), limit()));
  const auto ghost = look().leads.at("jobs");
  EXPECT_EQ(ghost.session, id);
  EXPECT_FALSE(granted(next())) << "it took effect: the session has another beat";
  auto again = next({{"jobs", ghost.token}});
  again.beats.push_back(beat + 1);
  again.at_least = {ghost.token.value + 1};
  EXPECT_TRUE(granted(again));
  EXPECT_GT(look().leads.at("jobs").token, ghost.token);
}

TEST_F(MemoryGroup, AHeldCommitArrivesLateIfItStillCan) {
  hub.hold_writes(1);
  EXPECT_FALSE(group->commit(next({{"jobs", {}}}), limit()));
  EXPECT_TRUE(look().leads.empty());
  group.reset();
  hub.deliver_held();
  EXPECT_TRUE(look().leads.contains("jobs"));

  group = hub.group("orders");
  ++beat;
  hub.hold_writes(2);
  EXPECT_FALSE(group->commit(next({{"mails", {}}}), limit()));
  EXPECT_FALSE(group->open(SessionId{8}, {}, limit()));
  ASSERT_TRUE(group->end(id, {beat}, 99, limit()));
  hub.deliver_held();
  EXPECT_FALSE(look().leads.contains("mails")) << "its session has ended";
  EXPECT_TRUE(look().sessions.contains(SessionId{8}));
}

TEST_F(MemoryGroup, AFlushTakesTheGroupsToo) {
  hub.flush();
  EXPECT_FALSE(granted(next()));
  EXPECT_TRUE(look().sessions.empty());
}

TEST_F(MemoryGroup, ALostSessionLeavesItsLeads) {
  ASSERT_TRUE(granted(next({{"jobs", {}}})));
  hub.lose_session("orders", id);
  hub.lose_session("unknown", id);
  EXPECT_FALSE(granted(next()));
  EXPECT_TRUE(look().sessions.empty());
  EXPECT_EQ(look().leads.at("jobs").session, id);
}

TEST_F(MemoryGroup, GroupsAndElectionsOfOneNameAreApartAndOutliveTheirHandles) {
  std::shared_ptr<Backend> single;
  {
    const memory::Hub other;
    single = backend(other, "a");
    group = other.group("jobs");
  }
  EXPECT_TRUE(opened());
  EXPECT_TRUE(acquire(*single));
  EXPECT_TRUE(granted(next({{"jobs", {}}})));
  EXPECT_THROW(static_cast<void>(hub.group("")), std::invalid_argument);
}

}  // namespace
}  // namespace tenure
