// SPDX-License-Identifier: Apache-2.0
// Goal: what the backend over a ConditionalStore asks of the store, when, and how often.
// Method: a mock store on a ManualClock that moves while a call is out.
#include <tenure/kit/who.hpp>
#include <tenure/lock_table.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <stdexcept>

#include <tenure/gmock.hpp>
#include <tenure/manual_clock.hpp>

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
    ON_CALL(*store, read(_)).WillByDefault(Return(nothing()));
    grant();
    const auto answer = backend->acquire(limit());
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
    return granted.token;
  }
  /// Until when the store is asked to wait.
  Clock::Time awaited(const Limit& by) {
    auto until = Clock::Time::min();
    EXPECT_CALL(*store, await_change(_, _)).Times(testing::AtMost(1)).WillOnce([&](const auto&, const Limit& l) {
      until = l.by;
      return std::nullopt;
    });
    backend->await_change(Vacant{}, by);
    testing::Mock::VerifyAndClearExpectations(store.get());
    return until;
  }
  /// The same of a follower that attempts first, and is stopped for so long just before its nth look at the clock.
  Clock::Time awaited_when_stopped(Backend& follower, int nth, Clock::Duration time) {
    JumpingClock jumping(clock, nth, time);
    auto until = Clock::Time::min();
    EXPECT_CALL(*store, await_change(_, _)).Times(testing::AtMost(1)).WillOnce([&](const auto&, const Limit& l) {
      until = l.by;
      return std::nullopt;
    });
    if (std::holds_alternative<Denied>(follower.acquire({jumping, clock.now() + 5s, {}})))
      follower.await_change(Vacant{}, {jumping, clock.now() + 1h, {}});
    testing::Mock::VerifyAndClearExpectations(store.get());
    return until;
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
  for (int i = 0; i < 3; ++i) {
    const auto answer = backend->acquire(limit());
    ASSERT_TRUE(std::holds_alternative<Denied>(answer));
    EXPECT_EQ(std::get<Denied>(answer).holder->name, "other");
  }
}

TEST_F(LockTableBackend, AFreeRecordIsReadAndClaimedInOneCall) {
  EXPECT_CALL(*store, read(_)).WillOnce(Return(nothing()));
  EXPECT_CALL(*store, compare_and_set(testing::Eq(std::nullopt), _, _))
      .WillOnce([](const auto&, const Record& next, const Limit&) {
        return Swap{true, {.record = next}};
      });
  EXPECT_TRUE(std::holds_alternative<Granted>(backend->acquire(limit())));
}

TEST_F(LockTableBackend, OfAFarStoreOneCallReadsAndTheNextClaims) {
  const auto read_for = [this](Clock::Duration time) {
    return [this, time](const Limit&) {
      clock.advance(time);
      return nothing();
    };
  };
  grant();
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  EXPECT_CALL(*store, await_change(_, _)).Times(0);
  EXPECT_CALL(*store, read(_)).WillOnce(read_for(40ms));
  EXPECT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit(75ms)))) << "35 ms are too few for a claim";
  backend->await_change(Vacant{}, limit());
  testing::Mock::VerifyAndClearExpectations(store.get());
  grant();
  EXPECT_CALL(*store, read(_)).Times(0);
  const auto asked = clock.now();
  EXPECT_TRUE(std::holds_alternative<Granted>(backend->acquire(limit(75ms))));
  EXPECT_EQ(granted.asked, asked.time_since_epoch());
}

TEST_F(LockTableBackend, TheRestOfACallMayBeEnoughForTheClaim) {
  grant();
  EXPECT_CALL(*store, read(_)).WillOnce([this](const Limit&) {
    clock.advance(30ms);
    return nothing();
  });
  EXPECT_TRUE(std::holds_alternative<Granted>(backend->acquire(limit(75ms)))) << "45 ms are";
}

TEST_F(LockTableBackend, AFollowerOfAFarStoreWaitsOn) {
  EXPECT_CALL(*store, read(_)).WillOnce([this](const Limit&) {
    clock.advance(40ms);
    return holds(theirs(5, 50));
  });
  EXPECT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit(75ms))));
  EXPECT_EQ(awaited(limit(5s)), clock.now() + 5s) << "nothing is to be claimed yet";
}

TEST_F(LockTableBackend, AskedIsWhenTheVerbBeganAndASightIsTimedAfterItsAnswer) {
  const auto began = clock.now();
  ON_CALL(*store, read(_)).WillByDefault([this](const Limit&) {
    clock.advance(1s);
    return nothing();
  });
  grant();
  ASSERT_TRUE(std::holds_alternative<Granted>(backend->acquire(limit())));
  EXPECT_EQ(granted.asked, began.time_since_epoch());

  const auto other = lock_table(store, "jobs", {"other", ""});
  ASSERT_EQ(other->accepts(timing), std::nullopt);
  ON_CALL(*store, read(_)).WillByDefault([this](const Limit&) {
    const auto stands = theirs(5, 50);
    clock.advance(2s);
    return holds(stands);
  });
  const auto sight = other->observe(limit());
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).remaining, 10s) << "counted from the receipt, not from the question";
}

TEST_F(LockTableBackend, NothingIsClaimedOnceTheLimitHasPassed) {
  ON_CALL(*store, read(_)).WillByDefault([this](const Limit&) {
    clock.advance(6s);
    return nothing();
  });
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend->acquire(limit(5s))));
}

TEST_F(LockTableBackend, AStoreThatDoesNotAnswerIsUnknown) {
  ON_CALL(*store, read(_)).WillByDefault(Return(Error{Fault::unreachable, "no route"}));
  const auto answer = backend->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
  EXPECT_EQ(std::get<Unknown>(answer).error.message, "no route");
  const auto sight = backend->observe(limit());
  ASSERT_TRUE(std::holds_alternative<Unknown>(sight));
  EXPECT_EQ(std::get<Unknown>(sight).error.message, "no route");
}

TEST_F(LockTableBackend, AWriteThatThrewMayStillTakeEffectAndIsOurs) {
  ON_CALL(*store, read(_)).WillByDefault(Return(nothing()));
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
  const auto answer = backend->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Granted>(answer));
  EXPECT_GT(std::get<Granted>(answer).token, thrown.token);
}

TEST_F(LockTableBackend, AFollowerSleepsToTheEndOfTheLeaseAndPassesOnWhatItSaw) {
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(5, 50))));
  ASSERT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit())));
  const auto end = clock.now() + 10s;
  EXPECT_EQ(awaited(limit(1h)), end);
  EXPECT_EQ(awaited(limit(3s)), clock.now() + 3s);
  EXPECT_CALL(*store, await_change(testing::Eq(Version{{5}, 50}), _)).WillOnce(Return(std::nullopt));
  backend->await_change(Vacant{}, limit());
}

TEST_F(LockTableBackend, AFollowerDoesNotSleepPastTheEndOfTheLeaseWhereverItIsStopped) {
  grant();
  for (int nth = 1; nth <= looks_at_the_clock; ++nth) {
    ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(5, 50))));
    const auto me = follower();
    ASSERT_TRUE(std::holds_alternative<Denied>(me->acquire(limit())));
    const auto end = clock.now() + 10s;
    clock.advance_to(end - 1ms);
    EXPECT_LE(awaited_when_stopped(*me, nth, 1s), end) << nth;
  }
}

TEST_F(LockTableBackend, AFollowerThatIsStoppedPastItsNextLookDoesNotSleepThroughTheLease) {
  for (int nth = 1; nth <= looks_at_the_clock; ++nth) {
    const Result<Read> written_500_ms_ago = Read{.record = theirs(5, 50), .now_ms = 501};
    ON_CALL(*store, read(_)).WillByDefault(Return(written_500_ms_ago));
    const auto until = awaited_when_stopped(*follower(), nth, 2s);
    EXPECT_LE(until, clock.now() + 10s) << nth;
  }
}

TEST_F(LockTableBackend, APushedReleaseIsClaimedAtOnceAndARefusalIsASight) {
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(5, 50))));
  ASSERT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit())));
  EXPECT_CALL(*store, await_change(_, _)).WillRepeatedly(Return(Version{{5}, 51}));
  backend->await_change(Vacant{}, limit());
  EXPECT_CALL(*store, read(_)).Times(0);
  EXPECT_CALL(*store, compare_and_set(_, _, _))
      .WillOnce([this](const std::optional<Expected>& expected, const Record&, const Limit&) {
        EXPECT_TRUE(expected && expected->released);
        return Swap{false, {.record = theirs(6, 60)}};
      });
  const auto answer = backend->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Denied>(answer));
  EXPECT_EQ(std::get<Denied>(answer).holder->token, Token{6});
  testing::Mock::VerifyAndClearExpectations(store.get());

  EXPECT_CALL(*store, read(_)).WillOnce(Return(holds(theirs(6, 60))));
  ASSERT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit()))) << "a notice is good for one claim";
}

TEST_F(LockTableBackend, APushIsNoGroundOnceTheLimitHasPassedOrDataWereLost) {
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(5, 50))));
  ON_CALL(*store, await_change(_, _)).WillByDefault(Return(Version{{5}, 51}));
  EXPECT_CALL(*store, compare_and_set(_, _, _)).Times(0);
  ASSERT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit())));
  backend->await_change(Vacant{}, limit());
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend->acquire(limit(0s))));

  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(4, 40))));
  (void)backend->observe(limit());
  ON_CALL(*store, await_change(_, _)).WillByDefault(Return(Version{{4}, 41}));
  backend->await_change(Vacant{}, limit());
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend->acquire(limit()))) << "the loss is told first";
}

TEST_F(LockTableBackend, AnObserverSleepsToTheEndOfTheLeaseAndThenOn) {
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(5, 50))));
  (void)backend->observe(limit());
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 10s);
  clock.advance(10s);
  const auto sight = backend->observe(limit());
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight)) << "lapsed, but nobody else's yet";
  EXPECT_EQ(std::get<Incumbent>(sight).remaining, 0s);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 1h) << "it must not spin";
}

// Rule 28.
TEST_F(LockTableBackend, AWatcherKnowsAtItsFirstLookThatALeaderDiedWhereTheStoresClockTellsIt) {
  const auto remaining = [this] { return std::get<Incumbent>(backend->observe(limit())).remaining; };
  const Result<Read> long_ago = Read{.record = theirs(5, 50), .now_ms = 1'000'001};
  ON_CALL(*store, read(_)).WillByDefault(Return(long_ago));
  EXPECT_EQ(remaining(), 0s);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + timing.renew) << "the clock may have been stepped";
  clock.advance(timing.renew);
  EXPECT_EQ(remaining(), 0s);
  const Result<Read> renewed = Read{.record = theirs(5, 51), .now_ms = 1'000'001};
  ON_CALL(*store, read(_)).WillByDefault(Return(renewed));
  EXPECT_EQ(remaining(), 10s) << "it was, for this is new";
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 10s);
  clock.advance(10s);
  EXPECT_EQ(remaining(), 0s);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 1h) << "it must not spin";
}

TEST_F(LockTableBackend, AWatcherCountsWhatIsLeftOfALeaseByTheStoresClockAndTheLeadersTerm) {
  auto short_term = theirs(5, 50);
  short_term.term = 4s;
  const Result<Read> a_second_ago = Read{.record = short_term, .now_ms = 1'001};
  ON_CALL(*store, read(_)).WillByDefault(Return(a_second_ago));
  const auto told = [this] {
    const auto sight = backend->observe(limit());
    return std::get<Incumbent>(sight).remaining;
  };
  EXPECT_EQ(told(), 3s);
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 3s);
  clock.advance(1s);
  EXPECT_EQ(told(), 2s);
  const auto other = lock_table(store, "jobs");
  ASSERT_EQ(other->accepts(timing), std::nullopt);
  const Result<Read> in_the_future = Read{.record = short_term, .now_ms = -1'000'000};
  ON_CALL(*store, read(_)).WillByDefault(Return(in_the_future));
  EXPECT_EQ(std::get<Incumbent>(other->observe(limit())).remaining, 10s) << "that clock tells nothing";
  const auto answer = follower()->acquire(limit());
  EXPECT_EQ(std::get<Denied>(answer).holder->remaining, 10s) << "and no candidate believes it";
}

TEST_F(LockTableBackend, TheLoserOfARaceForAFreeRecordIsNotHeldUpButOnce) {
  auto freed = theirs(5, 50);
  freed.released = true;
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(freed)));
  freed.beat = 51;
  ON_CALL(*store, compare_and_set(_, _, _)).WillByDefault(Return(Swap{false, {.record = freed}}));
  ASSERT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit())));
  EXPECT_EQ(awaited(limit(1h)), Clock::Time::min()) << "free already: no wait";
  EXPECT_EQ(awaited(limit(1h)), clock.now() + 1h) << "it must not spin";
}

TEST_F(LockTableBackend, AForkedChildNeverLeadsByItsParentsBackend) {
  lead();  // In the child too the record would be one that it wrote itself.
  const auto child = ::fork();
  if (child == 0) {
    const auto answer = backend->acquire(limit());
    const auto* unknown = std::get_if<Unknown>(&answer);
    ::_exit(unknown && unknown->error.fault == Fault::misconfigured ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST_F(LockTableBackend, LostDataIsReportedOnceAndLogged) {
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(9, 90))));
  ASSERT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit())));
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(5, 50))));
  const auto answer = backend->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
  EXPECT_EQ(std::get<Unknown>(answer).error.fault, Fault::corrupt);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0].level, Level::error);
  EXPECT_EQ(logged[0].fields.at(0), (std::pair<std::string, std::string>("election", "jobs")));
  EXPECT_TRUE(std::holds_alternative<Denied>(backend->acquire(limit())));
  EXPECT_EQ(logged.size(), 1u);
}

TEST_F(LockTableBackend, LossThatARenewalMetIsReportedByTheNextAcquire) {
  const auto token = lead();
  ON_CALL(*store, compare_and_set(_, _, _)).WillByDefault(Return(Swap{false, {}}));
  EXPECT_TRUE(std::holds_alternative<Denied>(backend->renew(token, limit())));
  const auto answer = backend->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Unknown>(answer));
  EXPECT_EQ(std::get<Unknown>(answer).error.fault, Fault::corrupt);
}

TEST_F(LockTableBackend, AnUnreadableRecordIsNobodys) {
  ON_CALL(*store, read(_)).WillByDefault([this](const Limit&) {
    return Read{.record = theirs(7, 70), .unreadable = true};
  });
  EXPECT_TRUE(std::holds_alternative<Unknown>(backend->observe(limit())));
  const auto answer = backend->acquire(limit());
  ASSERT_TRUE(std::holds_alternative<Denied>(answer));
  EXPECT_FALSE(std::get<Denied>(answer).holder);
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
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(copys)));
  grant();
  ASSERT_TRUE(std::holds_alternative<Granted>(backend->acquire(limit())));
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

TEST_F(LockTableBackend, AStoreThatTurnedReadOnlyIsToldOfOnceUntilItSaysSomethingElse) {
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
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(9, 90))));
  (void)loud->acquire(limit());
  ON_CALL(*store, read(_)).WillByDefault(Return(holds(theirs(5, 50))));
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
