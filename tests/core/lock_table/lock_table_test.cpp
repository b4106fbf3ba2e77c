// SPDX-License-Identifier: Apache-2.0
// Goal: what the backend over a ConditionalStore asks of the store, when, and how often.
// Method: a mock store on a ManualClock that moves while a call is out.
#include <tenure/kit/who.hpp>
#include <tenure/lock_table.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>

#include <tenure/gmock.hpp>
#include <tenure/manual_clock.hpp>

#include "in_child.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using testing::_;
using testing::NiceMock;
using testing::Return;

/// Jumps when it is read for the nth time, as if the reader had been stopped just before.
struct JumpingClock final : Clock {
  JumpingClock(ManualClock& clock, int nth, Duration by) : real(clock), left(nth), jump(by) {}
  Time now() const noexcept override {
    if (--left == 0) real.advance(jump);
    return real.now();
  }
  std::unique_ptr<Waker> make_waker() override { return real.make_waker(); }
  std::int64_t unix_ms() const noexcept override { return real.unix_ms(); }
  ManualClock& real;
  mutable int left;
  const Duration jump;
};

struct LockTableBackend : testing::Test {
  ManualClock clock;
  std::shared_ptr<NiceMock<MockConditionalStore>> store = std::make_shared<NiceMock<MockConditionalStore>>();
  std::vector<LogLine> logged;
  std::shared_ptr<Backend> backend =
      lock_table(store, "jobs", {"me", "me:1"}, [this](const LogLine& line) { logged.push_back(line); });
  const Timing timing = Timing::of(10s);

  void SetUp() override { ASSERT_EQ(backend->accepts(timing), std::nullopt); }

  Limit limit(Clock::Duration d = 5s) { return {clock, clock.now() + d, {}}; }
  Record theirs(std::uint64_t token, std::uint64_t beat) const {
    return {.token = {token},
            .beat = beat,
            .who = who_text({"other", ""}, "2222"),
            .term = 10s,
            .asked = clock.now().time_since_epoch(),
            .written_ms = 1};
  }
  static Result<Read> holds(Record record) { return Read{.record = std::move(record)}; }
  static Result<Read> nothing() { return Read{.absence_certain = true}; }
  /// A read that takes so long, and shows what stood when it began.
  auto slow_read(Clock::Duration time, Result<Read> found) {
    return [this, time, found = std::move(found)](const Limit&) {
      clock.advance(time);
      return found;
    };
  }
  /// From now on.
  void shows(const Result<Read>& found) { ON_CALL(*store, read(_)).WillByDefault(Return(found)); }
  /// The answer to a claim, which is of this kind.
  template <class Kind>
  Kind acquire_is(Clock::Duration time = 5s) {
    const auto answer = backend->acquire(limit(time));
    EXPECT_TRUE(std::holds_alternative<Kind>(answer)) << "another answer, number " << answer.index();
    return std::holds_alternative<Kind>(answer) ? std::get<Kind>(answer) : Kind{};
  }

  /// Grants whatever is asked, and remembers it.
  Record granted;
  void grant() {
    ON_CALL(*store, compare_and_set(_, _, _))
        .WillByDefault([this](const std::optional<Expected>&, const Record& next, const Limit&) {
          granted = next;
          return Result<Swap>(Swap{true, {.record = next}});
        });
  }
  Token lead() {
    shows(nothing());
    grant();
    acquire_is<Granted>();
    return granted.token;
  }
  /// Of the incumbent's lease, as an observer sees it.
  Clock::Duration remaining() { return std::get<Incumbent>(backend->observe(limit())).remaining; }
  /// Until when the store is asked to wait.
  Clock::Time awaited(const std::function<void()>& wait) {
    auto until = Clock::Time::min();
    EXPECT_CALL(*store, await_change(_, _)).Times(testing::AtMost(1)).WillOnce([&](const auto&, const Limit& l) {
      until = l.by;
      return std::nullopt;
    });
    wait();
    testing::Mock::VerifyAndClearExpectations(store.get());
    return until;
  }
  Clock::Time awaited(const Limit& by) {
    return awaited([&] { backend->await_change(Vacant{}, by); });
  }
  /// The same of a follower that attempts first, and is stopped for so long just before its nth look at the clock.
  Clock::Time awaited_when_stopped(Backend& follower, int nth, Clock::Duration time) {
    JumpingClock jumping(clock, nth, time);
    return awaited([&] {
      if (std::holds_alternative<Denied>(follower.acquire({jumping, clock.now() + 5s, {}})))
        follower.await_change(Vacant{}, {jumping, clock.now() + 1h, {}});
    });
  }
  std::shared_ptr<Backend> follower() {
    auto made = lock_table(store, "jobs", {"me", "me:1"}, no_log);
    EXPECT_EQ(made->accepts(timing), std::nullopt);
    return made;
  }
  static constexpr int looks_at_the_clock = 8;  ///< In an attempt and a wait: no more than these.
};

TEST_F(LockTableBackend, AFollowerReadsOnceAndWritesNothing) {
  EXPECT_CALL(*store, read(_)).Times(3).WillRepeatedly(Return(holds(theirs(5, 50))));
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(acquire_is<Denied>().holder.value().name, "other");
}

TEST_F(LockTableBackend, AFreeRecordIsReadAndClaimedInOneCall) {
  EXPECT_CALL(*store, read(_)).WillOnce(Return(nothing()));
  EXPECT_CALL(*store, compare_and_set(testing::Eq(std::nullopt), _, _))
      .WillOnce([](const auto&, const Record& next, const Limit&) {
        return Swap{true, {.record = next}};
      });
  acquire_is<Granted>();
}

TEST_F(LockTableBackend, OfAFarStoreOneCallReadsAndTheNextClaims) {
  grant();
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  EXPECT_CALL(*store, await_change(_, _)).Times(0);
  EXPECT_CALL(*store, read(_)).WillOnce(slow_read(40ms, nothing()));
  acquire_is<Denied>(75ms);  // 35 ms are too few for a claim
  backend->await_change(Vacant{}, limit());
  testing::Mock::VerifyAndClearExpectations(store.get());
  grant();
  EXPECT_CALL(*store, read(_)).Times(0);
  const auto asked = clock.now();
  acquire_is<Granted>(75ms);
  EXPECT_EQ(granted.asked, asked.time_since_epoch());
}

TEST_F(LockTableBackend, TheRestOfACallMayBeEnoughForTheClaim) {
  grant();
  EXPECT_CALL(*store, read(_)).WillOnce(slow_read(30ms, nothing()));
  acquire_is<Granted>(75ms);  // 45 ms are
}

TEST_F(LockTableBackend, AFollowerOfAFarStoreWaitsOn) {
  EXPECT_CALL(*store, read(_)).WillOnce(slow_read(40ms, holds(theirs(5, 50))));
  acquire_is<Denied>(75ms);
  EXPECT_EQ(awaited(limit(5s)), clock.now() + 5s) << "nothing is to be claimed yet";
}

TEST_F(LockTableBackend, AskedIsWhenTheVerbBeganAndASightIsTimedAfterItsAnswer) {
  const auto began = clock.now();
  ON_CALL(*store, read(_)).WillByDefault(slow_read(1s, nothing()));
  grant();
  acquire_is<Granted>();
  EXPECT_EQ(granted.asked, began.time_since_epoch());

  const auto other = lock_table(store, "jobs", {"other", ""});
  ASSERT_EQ(other->accepts(timing), std::nullopt);
  ON_CALL(*store, read(_)).WillByDefault(slow_read(2s, holds(theirs(5, 50))));
  const auto sight = other->observe(limit());
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).remaining, 10s) << "counted from the receipt, not from the question";
}

TEST_F(LockTableBackend, NothingIsClaimedOnceTheLimitHasPassed) {
  ON_CALL(*store, read(_)).WillByDefault(slow_read(6s, nothing()));
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  acquire_is<Unknown>(5s);
}

TEST_F(LockTableBackend, AStoreThatDoesNotAnswerIsUnknown) {
  shows(Error{Fault::unreachable, "no route"});
  EXPECT_EQ(acquire_is<Unknown>().error.message, "no route");
  const auto sight = backend->observe(limit());
  ASSERT_TRUE(std::holds_alternative<Unknown>(sight));
  EXPECT_EQ(std::get<Unknown>(sight).error.message, "no route");
}

TEST_F(LockTableBackend, AWriteThatThrewMayStillTakeEffectAndIsOurs) {
  shows(nothing());
  Record thrown;
  EXPECT_CALL(*store, compare_and_set(_, _, _))
      .WillOnce([&](const auto&, const Record& next, const Limit&) -> Result<Swap> {
        thrown = next;
        throw std::runtime_error("connection torn");
      })
      .WillOnce([](const auto&, const Record& next, const Limit&) {
        return Swap{true, {.record = next}};
      });
  EXPECT_THROW(backend->acquire(limit()), std::runtime_error);
  ON_CALL(*store, read(_)).WillByDefault([&](const Limit&) { return holds(thrown); });
  EXPECT_GT(acquire_is<Granted>().token, thrown.token);
}

TEST_F(LockTableBackend, AFollowerSleepsToTheEndOfTheLeaseAndPassesOnWhatItSaw) {
  shows(holds(theirs(5, 50)));
  acquire_is<Denied>();
  const auto end = clock.now() + 10s;
  EXPECT_EQ(awaited(limit(1h)), end);
  EXPECT_EQ(awaited(limit(3s)), clock.now() + 3s);
  EXPECT_CALL(*store, await_change(testing::Eq(Version{{5}, 50}), _)).WillOnce(Return(std::nullopt));
  backend->await_change(Vacant{}, limit());
}

TEST_F(LockTableBackend, AFollowerDoesNotSleepPastTheEndOfTheLeaseWhereverItIsStopped) {
  grant();
  for (int nth = 1; nth <= looks_at_the_clock; ++nth) {
    shows(holds(theirs(5, 50)));
    const auto me = follower();
    ASSERT_TRUE(std::holds_alternative<Denied>(me->acquire(limit())));
    const auto end = clock.now() + 10s;
    clock.advance_to(end - 1ms);
    EXPECT_LE(awaited_when_stopped(*me, nth, 1s), end) << nth;
  }
}

TEST_F(LockTableBackend, AFollowerThatIsStoppedPastItsNextLookDoesNotSleepThroughTheLease) {
  for (int nth = 1; nth <= looks_at_the_clock; ++nth) {
    shows(Read{.record = theirs(5, 50), .now_ms = 501});  // written 500 ms ago
    const auto until = awaited_when_stopped(*follower(), nth, 2s);
    EXPECT_LE(until, clock.now() + 10s) << nth;
  }
}

TEST_F(LockTableBackend, APushedReleaseIsClaimedAtOnceAndARefusalIsASight) {
  shows(holds(theirs(5, 50)));
  acquire_is<Denied>();
  EXPECT_CALL(*store, await_change(_, _)).WillRepeatedly(Return(Version{{5}, 51}));
  backend->await_change(Vacant{}, limit());
  EXPECT_CALL(*store, read(_)).Times(0);
  EXPECT_CALL(*store, compare_and_set(_, _, _))
      .WillOnce([this](const std::optional<Expected>& expected, const Record&, const Limit&) {
        EXPECT_TRUE(expected && expected->released);
        return Swap{false, {.record = theirs(6, 60)}};
      });
  EXPECT_EQ(acquire_is<Denied>().holder.value().token, Token{6});
  testing::Mock::VerifyAndClearExpectations(store.get());

  EXPECT_CALL(*store, read(_)).WillOnce(Return(holds(theirs(6, 60))));
  acquire_is<Denied>();  // a notice is good for one claim
}

TEST_F(LockTableBackend, APushIsNoGroundOnceTheLimitHasPassedOrDataWereLost) {
  shows(holds(theirs(5, 50)));
  ON_CALL(*store, await_change(_, _)).WillByDefault(Return(Version{{5}, 51}));
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  acquire_is<Denied>();
  backend->await_change(Vacant{}, limit());
  acquire_is<Unknown>(0s);

  shows(holds(theirs(4, 40)));
  (void)backend->observe(limit());
  ON_CALL(*store, await_change(_, _)).WillByDefault(Return(Version{{4}, 41}));
  backend->await_change(Vacant{}, limit());
  acquire_is<Unknown>();  // the loss is told first
}

TEST_F(LockTableBackend, AnObserverSleepsToTheEndOfTheLeaseAndThenOn) {
  shows(holds(theirs(5, 50)));
  (void)backend->observe(limit());
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 10s);
  clock.advance(10s);
  const auto sight = backend->observe(limit());
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight)) << "lapsed, but nobody else's yet";
  EXPECT_EQ(std::get<Incumbent>(sight).remaining, 0s);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 1h) << "it must not spin";
}

// Rule 28.
TEST_F(LockTableBackend, AWatcherKnowsAtItsFirstLookThatALeaderDiedWhereTheStoresClockShowsIt) {
  shows(Read{.record = theirs(5, 50), .now_ms = 1'000'001});  // written long ago
  EXPECT_EQ(remaining(), 0s);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + timing.renew) << "the clock may have been stepped";
  clock.advance(timing.renew);
  EXPECT_EQ(remaining(), 0s);
  shows(Read{.record = theirs(5, 51), .now_ms = 1'000'001});
  EXPECT_EQ(remaining(), 10s) << "it was, for this is new";
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 10s);
  clock.advance(10s);
  EXPECT_EQ(remaining(), 0s);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 1h) << "it must not spin";
}

TEST_F(LockTableBackend, AWatcherCountsWhatIsLeftOfALeaseByTheStoresClockAndTheLeadersTerm) {
  auto short_term = theirs(5, 50);
  short_term.term = 4s;
  shows(Read{.record = short_term, .now_ms = 1'001});  // written a second ago
  EXPECT_EQ(remaining(), 3s);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 3s);
  clock.advance(1s);
  EXPECT_EQ(remaining(), 2s);
  const auto other = lock_table(store, "jobs");
  ASSERT_EQ(other->accepts(timing), std::nullopt);
  shows(Read{.record = short_term, .now_ms = -1'000'000});  // written in the future
  EXPECT_EQ(std::get<Incumbent>(other->observe(limit())).remaining, 10s) << "that clock tells nothing";
  const auto answer = follower()->acquire(limit());
  EXPECT_EQ(std::get<Denied>(answer).holder.value().remaining, 10s) << "and no candidate believes it";
}

TEST_F(LockTableBackend, TheLoserOfARaceForAFreeRecordIsNotHeldUpButOnce) {
  auto freed = theirs(5, 50);
  freed.released = true;
  shows(holds(freed));
  freed.beat = 51;
  ON_CALL(*store, compare_and_set(_, _, _)).WillByDefault(Return(Swap{false, {.record = freed}}));
  acquire_is<Denied>();
  EXPECT_EQ(awaited(limit(1h)), Clock::Time::min()) << "free already: no wait";
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 1h) << "it must not spin";
}

TEST_F(LockTableBackend, AForkedChildNeverLeadsByItsParentsBackend) {
  lead();  // In the child too the record would be one that it wrote itself.
  test::in_child([&] {
    const auto answer = backend->acquire(limit());
    const auto* unknown = std::get_if<Unknown>(&answer);
    return unknown && unknown->error.fault == Fault::misconfigured;
  });
}

TEST_F(LockTableBackend, LostDataIsReportedOnceAndLogged) {
  shows(holds(theirs(9, 90)));
  acquire_is<Denied>();
  shows(holds(theirs(5, 50)));
  EXPECT_EQ(acquire_is<Unknown>().error.fault, Fault::corrupt);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0].level, Level::error);
  EXPECT_EQ(logged[0].fields.at(0), (std::pair<std::string, std::string>("election", "jobs")));
  acquire_is<Denied>();
  EXPECT_EQ(logged.size(), 1u);
}

TEST_F(LockTableBackend, LossThatARenewalMetIsReportedByTheNextAcquire) {
  const auto token = lead();
  ON_CALL(*store, compare_and_set(_, _, _)).WillByDefault(Return(Swap{false, {}}));
  EXPECT_TRUE(std::holds_alternative<Denied>(backend->renew(token, limit())));
  EXPECT_EQ(acquire_is<Unknown>().error.fault, Fault::corrupt);
}

TEST_F(LockTableBackend, AnUnreadableRecordIsNobodys) {
  shows(Read{.record = theirs(7, 70), .unreadable = true});
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend->observe(limit())));
  EXPECT_FALSE(acquire_is<Denied>().holder);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 10s);
}

TEST_F(LockTableBackend, ACandidateThatMeetsACopyOfItselfTakesAnotherIncarnation) {
  const auto token = lead();
  auto copys = granted;
  copys.beat += 1;
  ON_CALL(*store, compare_and_set(_, _, _)).WillByDefault(Return(Swap{false, {.record = copys}}));
  EXPECT_TRUE(std::holds_alternative<Denied>(backend->renew(token, limit())));
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0].level, Level::warning);
  copys.released = true;
  shows(holds(copys));
  grant();
  acquire_is<Granted>();
  const auto anew = incumbent_of(granted.who, {}, {}), before = incumbent_of(copys.who, {}, {});
  EXPECT_NE(anew.incarnation, before.incarnation);
  EXPECT_EQ(anew.incarnation.size(), 32u);
  EXPECT_EQ(anew.name + anew.address, before.name + before.address);
}

TEST_F(LockTableBackend, EveryWriteHasABeatOfItsOwn) {
  const auto token = lead();
  std::set<std::uint64_t> beats{granted.beat};
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(std::holds_alternative<Granted>(backend->renew(token, limit())));
    beats.insert(granted.beat);
  }
  EXPECT_EQ(beats.size(), 21u);
}

TEST_F(LockTableBackend, ReleasingNothingAsksTheStoreNothing) {
  EXPECT_CALL(*store, read(_)).Times(0);
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  EXPECT_EQ(backend->release(limit()), std::nullopt);
}

TEST_F(LockTableBackend, AReleaseEndsByItsLimit) {
  (void)lead();
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  const auto error = backend->release(limit(0s));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->fault, Fault::timed_out);
}

TEST_F(LockTableBackend, ATimingThatTheStoreDoesNotAcceptIsRefused) {
  EXPECT_CALL(*store, accepts(timing)).WillOnce(Return(Error{Fault::misconfigured, "too short for this store"}));
  EXPECT_EQ(backend->accepts(timing)->message, "too short for this store");
}

TEST_F(LockTableBackend, AStoreThatTurnedReadOnlyIsReportedOnceUntilItSaysSomethingElse) {
  auto said = holds(theirs(5, 50));
  said->read_only = Error{Fault::forbidden, "a standby"};
  ON_CALL(*store, read(_)).WillByDefault([&](const Limit&) { return said; });
  for (int i = 0; i < 3; ++i) static_cast<void>(backend->acquire(limit()));
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0].message, "this candidate could not lead: a standby");
  said->read_only->message = "a full disk";
  static_cast<void>(backend->acquire(limit()));
  EXPECT_EQ(logged.size(), 2u);
}

TEST_F(LockTableBackend, ALogThatThrowsDisturbsNothing) {
  const auto loud = lock_table(store, "jobs", {"me", ""}, [](const LogLine&) { throw 1; });
  shows(holds(theirs(9, 90)));
  (void)loud->acquire(limit());
  shows(holds(theirs(5, 50)));
  EXPECT_TRUE(std::holds_alternative<Unknown>(loud->acquire(limit())));
}

TEST_F(LockTableBackend, ABackendWithoutAStoreOrANameIsRefused) {
  EXPECT_THROW(lock_table(nullptr, "jobs"), std::invalid_argument);
  EXPECT_THROW(lock_table(store, ""), std::invalid_argument);
  EXPECT_THROW(lock_table(store, std::string(201, 'x')), std::invalid_argument);
  EXPECT_THROW(lock_table(store, "jobs", {std::string(101, 'x'), ""}), std::invalid_argument);
}

TEST(LockTableTiming, PresetsAreValidAndAsLongAsTheySay) {
  const auto presets = lock_table_presets();
  EXPECT_EQ(presets.fast.term, 3s);
  EXPECT_EQ(presets.balanced.term, 10s);
  EXPECT_EQ(presets.steady.term, 30s);
  for (const auto& timing : {presets.fast, presets.balanced, presets.steady}) {
    EXPECT_NO_THROW(timing.validate());
    EXPECT_EQ(timing.renew, timing.term / 5);
    // An outage that begins just before a renewal is ridden out for what is left.
    EXPECT_GE(timing.term - timing.margin - timing.renew - timing.call, timing.term * 6 / 10);
  }
}

}  // namespace
}  // namespace tenure
