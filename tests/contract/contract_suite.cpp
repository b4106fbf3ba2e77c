// SPDX-License-Identifier: Apache-2.0
// Goal: the rules that every store keeps, written once. Method: backends driven verb by verb in real time. Every wait
// is for a condition and has a deadline. It is compiled once, and each store's own contract_test.cpp instantiates it.
#include <tenure/contract/contract_suite.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <tenure/kit/names.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/leader_manager.hpp>
#include <tenure/version.hpp>
#include <thread>
#include <vector>

namespace tenure::contract {
namespace {

class OfFactory final : public StoreUnderTest {
 public:
  OfFactory(OpenStore open, Clock::Duration short_term) : open_(std::move(open)), short_term_(short_term) {
    const auto answer = open_("of a factory")->read(Player::within(seconds(30)));
    if (!answer) throw std::runtime_error("the store did not answer: " + answer.error().message);
    absence_certain_ = answer->absence_certain;
  }

  std::shared_ptr<Backend> backend(const std::string& election, const Candidate& candidate) override {
    check_election(election);
    return lock_table(store(election), election, candidate);
  }
  std::shared_ptr<ConditionalStore> store(const std::string& election) override { return open_(election); }
  Timing short_timing() const override { return short_terms_of(short_term_); }
  bool pushes() const override { return false; }
  bool absence_certain() const override { return absence_certain_; }

 private:
  const OpenStore open_;
  const Clock::Duration short_term_;
  bool absence_certain_{};
};

}  // namespace

Subject subject(std::string name, std::function<OpenStore()> fresh, Clock::Duration short_term) {
  return {std::move(name),
          [fresh = std::move(fresh), short_term] { return std::make_unique<OfFactory>(fresh(), short_term); }};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreContract);

// ---- tenure ----

TEST_P(BackendContract, AFreeElectionIsAcquired) {
  terms_are_short();
  auto a = player("a");
  const auto token = lead(a);
  EXPECT_GT(token, Token{});
}

TEST_P(BackendContract, AHeldElectionIsDeniedToOthersWhileItsLeaseIsRenewed) {
  terms_are_short();
  auto a = player("a"), b = player("b");
  auto token = std::optional(lead(a));
  auto held_until = now();
  int denied = 0;
  for (const auto begun = now(); now() < begun + 2 * timing_.term || (denied == 0 && now() < begun + patience);) {
    const auto asked = now();
    if (a.renewed(*token)) {
      held_until = asked + timing_.term;
    } else {  // A busy machine may let a lease end, for its holder a margin before its end, but nothing else may.
      ASSERT_GE(now(), held_until - timing_.margin);
      ASSERT_TRUE(token = a.campaign(patience));
      continue;
    }
    const auto answer = b.acquire();
    if (std::holds_alternative<Granted>(answer)) {
      ASSERT_GE(now(), held_until);
      ASSERT_EQ(b.release(), std::nullopt);
    }
    if (const auto* d = std::get_if<Denied>(&answer); d && d->holder) {
      ++denied;
      EXPECT_EQ(d->holder->name, "a");
      EXPECT_EQ(d->holder->token, *token);
    }
    b.backend().await_change(Vacant{}, Player::within(timing_.retry));
  }
  EXPECT_GT(denied, 0);
}

TEST_P(BackendContract, OnlyTheHolderRenewsTheLease) {
  auto a = player("a"), b = player("b");
  const auto token = lead(a);
  EXPECT_TRUE(std::holds_alternative<Denied>(b.renew(token)));
  EXPECT_TRUE(std::holds_alternative<Denied>(b.renew(Token{token.value + 1})));
  EXPECT_TRUE(a.renewed(token));
}

TEST_P(BackendContract, NobodyRenewsALeaseThatHasEnded) {
  if (!store_->lapses()) GTEST_SKIP() << "a living holder keeps this store's tenures";
  terms_are_short();
  auto a = player("a");
  const auto token = lead(a);
  wait_out(Player::within(timing_.term));
  EXPECT_FALSE(a.renewed(token));
  const auto next = a.campaign(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, token);
}

TEST_P(BackendContract, AReleasedElectionIsFreeAtOnceAndTheOldHolderIsDenied) {
  auto a = player("a"), b = player("b");
  const auto token = lead(a);
  ASSERT_EQ(a.release(), std::nullopt);
  EXPECT_FALSE(a.renewed(token));
  const auto next = b.campaign(store_->first_election());
  ASSERT_TRUE(next);
  EXPECT_GT(*next, token);
  EXPECT_FALSE(a.renewed(token));
  EXPECT_TRUE(b.renewed(*next));
}

TEST_P(BackendContract, OnlyTheHolderReleasesAnElection) {
  auto a = player("a"), b = player("b");
  const auto token = lead(a);
  EXPECT_EQ(b.release(), std::nullopt);
  EXPECT_FALSE(std::holds_alternative<Granted>(b.acquire()));
  EXPECT_EQ(b.release(), std::nullopt);
  EXPECT_TRUE(a.renewed(token));
}

TEST_P(BackendContract, ReleasingTwiceOrNothingIsNoError) {
  auto a = player("a");
  EXPECT_EQ(a.release(), std::nullopt);
  lead(a);
  EXPECT_EQ(a.release(), std::nullopt);
  EXPECT_EQ(a.release(), std::nullopt);
}

TEST_P(BackendContract, ACrashedHolderIsReplaced) {
  terms_are_short();
  auto a = player("a"), b = player("b");
  const auto token = lead(a);
  static_cast<void>(b.acquire());
  store_->crash(a.give_up_backend());
  const auto next = b.campaign(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, token);
}

TEST_P(BackendContract, AHolderThatStopsRenewingIsReplacedOnlyAfterItsLease) {
  if (!store_->lapses()) GTEST_SKIP() << "a living holder keeps this store's tenures";
  terms_are_short();
  auto a = player("a"), b = player("b");
  lead(a);
  Clock::Time asked;
  for (bool renewed = false; !renewed; renewed = a.renewed(*a.campaign(patience))) asked = now();
  ASSERT_TRUE(b.campaign(patience));
  EXPECT_GE(now() - asked, timing_.term);
}

TEST_P(BackendContract, TokensRiseWhateverEndedTheTenure) {
  terms_are_short();
  Token last{};
  const auto rises = [&](std::optional<Token> token) {
    const bool higher = token && *token > last;
    if (token) last = *token;
    return higher;
  };
  auto a = player("a");
  ASSERT_TRUE(rises(lead(a)));
  ASSERT_EQ(a.release(), std::nullopt);
  ASSERT_TRUE(rises(a.campaign(patience)));  // after a release
  store_->crash(a.give_up_backend());
  auto b = player("b");
  ASSERT_TRUE(rises(b.campaign(patience)));  // after a crash
  if (store_->lapses()) {
    auto c = player("c");
    ASSERT_TRUE(rises(c.campaign(patience)));  // after an expiry
    ASSERT_EQ(c.release(), std::nullopt);
  }
  store_->crash(b.give_up_backend());
  if (!store_->restart()) return;
  auto d = player("d");
  ASSERT_TRUE(rises(d.campaign(patience)));  // after a restart of the store
}

TEST_P(BackendContract, ARestartedStoreStillKnowsTheHolder) {
  terms_are_short();
  for (; timing_.term < minutes(1); timing_.term *= 4) {  // until a restart fits into a term
    auto a = player("a"), b = player("b");
    const auto token = a.campaign(patience);
    ASSERT_TRUE(token);
    const auto asked = now();
    ASSERT_TRUE(a.renewed(*token));
    if (!store_->restart()) GTEST_SKIP() << "this store has no server that restarts";
    auto answer = b.acquire();
    for (; std::holds_alternative<Unknown>(answer) && now() < asked + patience; answer = b.acquire())
      wait_out(Player::within(timing_.retry));
    if (now() < asked + timing_.term) {
      EXPECT_TRUE(std::holds_alternative<Denied>(answer));
      return;
    }
    static_cast<void>(a.release());
    static_cast<void>(b.release());
  }
  FAIL() << "no restart fitted into a term";
}

TEST_P(BackendContract, ElectionsOfOneStoreAreIndependent) {
  auto a = player("a", "one"), b = player("b", "two");
  lead(a);
  lead(b);
  EXPECT_EQ(a.release(), std::nullopt);
  const auto sight = sight_of(b);
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).name, "b");
}

/// Eight candidates contend, and each leader adds one to a number that nothing else guards.
TEST_P(BackendContract, ContendedIncrementsAreNotLost) {
  const int each = store_->contended_tenures();
  constexpr int contenders = 8;
  std::atomic<int> inside{0}, overlaps{0}, gave_up{0};
  int number = 0;
  std::vector<Token> tokens;
  std::mutex tokens_mutex;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < contenders; ++i)
      threads.emplace_back([&, i] {
        auto p = player("p" + std::to_string(i));
        for (int n = 0; n < each; ++n) {
          const auto token = p.campaign(4 * patience);
          if (!token) {
            ++gave_up;
            return;
          }
          if (++inside != 1) ++overlaps;
          {
            const std::lock_guard lock(tokens_mutex);
            tokens.push_back(*token);
            ++number;
          }
          --inside;
          while (p.release()) wait_out(Player::within(timing_.retry));
        }
      });
  }
  EXPECT_EQ(gave_up, 0);
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(number, contenders * each);
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<>())) << "tokens do not rise";
}

// ---- sight ----

TEST_P(BackendContract, ObserversLearnWhoLeadsAndForHowLong) {
  auto a = player("a"), watcher = player("watcher");
  EXPECT_TRUE(std::holds_alternative<Vacant>(sight_of(watcher)));
  const auto token = lead(a);
  ASSERT_TRUE(a.renewed(token));
  const auto sight = sight_of(watcher);
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  const auto& who = std::get<Incumbent>(sight);
  EXPECT_EQ(who.name, "a");
  EXPECT_EQ(who.address, "a:1");
  EXPECT_FALSE(who.incarnation.empty());
  EXPECT_EQ(who.version, version());
  EXPECT_EQ(who.token, token);
  EXPECT_GT(who.remaining, Clock::Duration::zero());
  // It may be told late, but never for longer than a term from now (rounded up to a millisecond).
  EXPECT_LE(who.remaining, timing_.term + milliseconds(1));
  ASSERT_EQ(a.release(), std::nullopt);
  EXPECT_TRUE(std::holds_alternative<Vacant>(sight_of(watcher)));
}

TEST_P(BackendContract, AnObserverSeesALapsedLeaseWithNothingRemaining) {
  if (!store_->lapses()) GTEST_SKIP() << "a living holder keeps this store's tenures";
  terms_are_short();
  auto a = player("a"), watcher = player("watcher");
  const auto token = lead(a);
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight_of(watcher)));
  wait_out(Player::within(timing_.term + milliseconds(1)));
  const auto sight = sight_of(watcher);
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).token, token);
  EXPECT_EQ(std::get<Incumbent>(sight).remaining, Clock::Duration::zero());
}

TEST_P(BackendContract, ARequestToStepDownReachesTheLeaderWithItsNextRenewal) {
  if (!store_->heeds_step_down()) GTEST_SKIP() << "leaders do not heed requests to step down, as this store is opened";
  auto a = player("a"), b = player("b");
  const auto ask = [&](const std::string& why) {
    return b.backend().request_step_down("ops", why, Player::within(timing_.call));
  };
  const auto token = lead(a);
  const auto offered = ask("upgrade");
  if (offered && offered->fault == Fault::misconfigured) GTEST_SKIP() << offered->message;
  ASSERT_EQ(offered, std::nullopt);
  EXPECT_TRUE(b.backend().request_step_down("ops", "late", Player::within(-milliseconds(1))));
  const auto answer = a.renew(token);
  ASSERT_TRUE(std::holds_alternative<StepDownRequested>(answer));
  EXPECT_EQ(std::get<StepDownRequested>(answer).token, token);
  EXPECT_EQ(std::get<StepDownRequested>(answer).by, "ops");
  EXPECT_EQ(std::get<StepDownRequested>(answer).why, "upgrade");
  ASSERT_EQ(a.release(), std::nullopt);
  EXPECT_EQ(ask("nobody leads"), std::nullopt);
  const auto next = a.campaign(patience);
  ASSERT_TRUE(next);
  EXPECT_TRUE(a.renewed(*next)) << "the next tenure was not asked to step down";
  const auto too_long = ask(std::string(max_why_bytes + 1, 'x'));
  ASSERT_TRUE(too_long);
  EXPECT_EQ(too_long->fault, Fault::misconfigured);
  EXPECT_NE(too_long->message.find("why has 201 bytes"), std::string::npos) << too_long->message;
}

TEST_P(BackendContract, AwaitChangeEndsAtItsLimitOrByItsStopToken) {
  auto a = player("a"), b = player("b");
  lead(a);
  const auto seen = sight_of(b);
  const Lateness lateness;
  const auto limit = Player::within(timing_.retry);
  b.backend().await_change(seen, limit);
  const auto ended = now();
  EXPECT_LE(ended, limit.by + seconds(1) + 3 * lateness.most(ended));
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  const auto patient = Player::within(patience, stop.get_token());
  do {  // a wait may end for no reason
    b.backend().await_change(seen, patient);
  } while (!stop.stop_requested());
  EXPECT_LT(now(), patient.by);
}

TEST_P(BackendContract, AReleaseEndsTheWaitOfAFollower) {
  if (!store_->pushes()) GTEST_SKIP() << "this store tells nobody of a change";
  auto a = player("a"), b = player("b");
  const auto token = lead(a);
  ASSERT_FALSE(std::holds_alternative<Granted>(b.acquire()));
  Clock::Time led{};
  std::jthread follower([&] {
    if (b.campaign(patience)) led = now();
  });
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(a.renewed(token));
    wait_out(Player::within(timing_.retry));
  }
  ASSERT_TRUE(a.renewed(token));
  const auto released = now();
  ASSERT_EQ(a.release(), std::nullopt);
  follower.join();
  ASSERT_GT(led, released);
  EXPECT_LT(led - released, store_->hand_over()) << "nothing was told";
}

TEST_P(BackendContract, AReleaseBeforeAwaitChangeIsNotMissed) {
  if (!store_->pushes()) GTEST_SKIP() << "this store tells nobody of a change";
  auto a = player("a"), b = player("b");
  const auto token = lead(a);
  ASSERT_TRUE(a.renewed(token));
  const auto seen = sight_of(b);
  ASSERT_EQ(a.release(), std::nullopt);
  const auto before = now();
  b.backend().await_change(seen, Player::within(timing_.term / 2));
  EXPECT_LT(now() - before, timing_.term / 2);
}

/// Also where nothing is pushed: the follower, which knows when the lease ends, looks then. A starved one may miss it.
TEST_P(BackendContract, WhoResignsLeavesTheLeadToAFollower) {
  terms_are_short();
  const Hooks quiet{.log = [](const LogLine&) {}};
  LeaderManager a(store_->backend("jobs", {"a", ""}), timing_, quiet);
  LeaderManager b(store_->backend("jobs", {"b", ""}), timing_, quiet);
  const auto renewals = [&] {
    const auto calls = a.metrics().calls;
    return calls.contains("renew") ? calls.at("renew").durations.count() : 0;
  };
  a.start();
  ASSERT_TRUE(a.await_leadership(store_->first_election()));
  b.start();
  for (int i = 0; i < 3 && !b.leadership().is_leader(); ++i) {
    ASSERT_TRUE(eventually([&] { return b.leadership().incumbent() || b.leadership().is_leader(); }));
    const auto before = a.leadership().token();
    const auto from = renewals();
    ASSERT_TRUE(eventually([&] { return renewals() >= from + 4 || b.leadership().is_leader(); }));
    a.resign();
    ASSERT_TRUE(eventually([&] { return b.leadership().is_leader() || a.leadership().token() > before; }));
  }
  EXPECT_TRUE(b.leadership().is_leader());
}

// ---- faults ----

TEST_P(BackendContract, EveryVerbEndsAtItsLimitWhenTheStoreHangs) {
  auto a = player("a"), b = player("b");
  const auto token = lead(a);
  if (!store_->hang(true)) GTEST_SKIP() << "this store cannot be made to hang";
  const Lateness lateness;
  const auto in_time = [&](const char* verb, auto&& call) {
    const auto limit = Player::within(timing_.retry * 5);
    call(limit);
    const auto ended = now();
    EXPECT_LE(ended, limit.by + milliseconds(200) + 3 * lateness.most(ended)) << verb;
  };
  in_time("renew",
          [&](const Limit& limit) { EXPECT_TRUE(std::holds_alternative<Unknown>(a.backend().renew(token, limit))); });
  in_time("acquire",
          [&](const Limit& limit) { EXPECT_FALSE(std::holds_alternative<Granted>(b.backend().acquire(limit))); });
  in_time("observe", [&](const Limit& limit) { b.backend().observe(limit); });
  in_time("await_change", [&](const Limit& limit) { b.backend().await_change(Vacant{}, limit); });
  in_time("release", [&](const Limit& limit) { a.backend().release(limit); });
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  b.backend().observe(Player::within(patience, stop.get_token()));
  store_->hang(false);
}

/// By an hour, once and there and back, while somebody leads and somebody else contends.
TEST_P(BackendContract, ASteppedStoreClockMakesNoSecondLeader) {
  auto a = player("a"), b = player("b");
  const auto token = lead(a);
  for (const auto step : {hours(1), hours(-1), hours(-1), hours(1)}) {
    if (!store_->step_clock(step)) GTEST_SKIP() << "this store's clock cannot be stepped";
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(a.renewed(token));
      ASSERT_FALSE(std::holds_alternative<Granted>(b.acquire()));
      b.backend().await_change(Vacant{}, Player::within(timing_.retry));
    }
  }
  store_->step_clock(hours(-1));
  ASSERT_EQ(a.release(), std::nullopt);
  const auto next = b.campaign(patience);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, token) << "the token followed the store's clock back";
}

TEST_P(BackendContract, ASteppedStoreClockNeitherHastensNorDelaysATakeover) {
  terms_are_short();
  using Steps = std::vector<hours>;
  if (!store_->lapses() || !store_->step_clock(hours(0))) GTEST_SKIP() << "this store's clock cannot be stepped";
  auto a = player("a"), b = player("b");
  for (const auto& steps : {Steps{hours(1)}, Steps{hours(-1)}, Steps{hours(1), hours(-1)}}) {
    SCOPED_TRACE(testing::PrintToString(steps.front().count()) + " h, " + std::to_string(steps.size()) + " step(s)");
    const auto before = now();
    const auto token = a.campaign(patience);
    ASSERT_TRUE(token);
    // It asks until the store answers: b must know the lease.
    ASSERT_TRUE(std::holds_alternative<Incumbent>(sight_of(b)));
    const Lateness lateness;
    const auto seen = now();
    auto next = std::async(std::launch::async, [&] { return b.campaign(patience); });
    for (const auto step : steps) store_->step_clock(step);
    const auto follower = next.get();
    ASSERT_TRUE(follower);
    EXPECT_GT(*follower, *token);
    const auto led = now();
    EXPECT_GE(led - before, timing_.term);
    EXPECT_LE(led - seen, 2 * timing_.term + 10 * lateness.most(led)) << "at the latest a term after it was seen";
    ASSERT_EQ(b.release(), std::nullopt);
  }
}

// ---- names ----

TEST_P(BackendContract, OddElectionNamesAreElectionsOfTheirOwn) {
  std::vector<Player> players;
  for (const auto& election : store_->odd_elections()) {
    SCOPED_TRACE(testing::PrintToString(election));
    EXPECT_TRUE(std::holds_alternative<Vacant>(sight_of(player("watcher", election))));
    auto& p = players.emplace_back(player("p" + std::to_string(players.size()), election));
    lead(p);
    EXPECT_EQ(p.backend().election(), election);
    const auto sight = sight_of(player("watcher", election));
    ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
    EXPECT_EQ(std::get<Incumbent>(sight).name, "p" + std::to_string(players.size() - 1));
  }
}

TEST_P(BackendContract, OddCandidateNamesReachAnObserverUnchanged) {
  const Candidate odd{"a'\"\\\n\r\x01{}$1:=,; \xff" + std::string(max_candidate_bytes - 20, 'n'), "\t'--\x7f"};
  auto a = player(odd);
  lead(a);
  const auto sight = sight_of(player("watcher"));
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).name, odd.name);
  EXPECT_EQ(std::get<Incumbent>(sight).address, odd.address);
}

TEST_P(BackendContract, InvalidNamesAreRefusedAndTheMessageSaysWhich) {
  const auto refusal = [&](const std::string& election, const Candidate& candidate) -> std::string {
    try {
      store_->backend(election, candidate);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "accepted";
  };
  for (const auto& bad : {std::string(), std::string(201, 'x'), std::string(10'000, 'x'), std::string("a\0b", 3)})
    EXPECT_NE(refusal(bad, {"a", ""}).find("election"), std::string::npos) << bad.size() << " bytes";
  EXPECT_NE(refusal("jobs", {std::string(101, 'x'), ""}).find("candidate.name"), std::string::npos);
  EXPECT_NE(refusal("jobs", {"a", std::string(101, 'x')}).find("candidate.address"), std::string::npos);
  EXPECT_LT(refusal(std::string(10'000, 'x'), {"a", ""}).size(), 1000u) << "the bad name is told in full";
}

// ---- the record ----

TEST_P(StoreContract, AnAbsentRecordIsCreatedOnce) {
  const auto a = open(), b = open();
  EXPECT_EQ(standing(*a), std::nullopt);
  EXPECT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  const auto second = b->compare_and_set(std::nullopt, record(2, 22, "b"), call());
  ASSERT_TRUE(refused(second));
  const auto& found = second->found.record;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->token, Token{1});
  EXPECT_EQ(found->beat, 11u);
}

TEST_P(StoreContract, ARecordIsReadAsItWasWritten) {
  const auto a = open();
  auto next = record(7, 0xfedc'ba98'7654'3210u, "odd '\"\\\n\x01 name");
  next.who += ";of_a_later_version='\"\\x00\\{}$1:=,%s@--";  // any visible ASCII
  next.who.resize(max_who_bytes, '~');
  next.term = timing_.term + std::chrono::nanoseconds(1);
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, next, call())));
  const auto found = standing(*open());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->token, next.token);
  EXPECT_EQ(found->beat, next.beat);
  EXPECT_EQ(found->who, next.who);
  EXPECT_FALSE(found->released);
  EXPECT_EQ(found->term, timing_.term + milliseconds(1)) << "a term is rounded up";
  EXPECT_EQ(found->asked, next.asked);
}

/// The store's clock, and how long ago it was at a write: followers count by that.
TEST_P(StoreContract, TheStoreSaysWhenARecordWasWritten) {
  const auto a = open(), b = open();
  std::optional<Expected> stands;
  for (const std::uint64_t beat : {11u, 12u}) {
    const auto asked = now();
    ASSERT_TRUE(applied(a->compare_and_set(stands, record(1, beat), call())));
    stands = Expected{{1}, {beat}};
    wait_out(Player::within(milliseconds(50)));
    const auto found = b->read(call());
    ASSERT_TRUE(found && found->record);
    const milliseconds since(found->now_ms - found->record->written_ms);
    EXPECT_GT(found->record->written_ms, 1'000'000'000'000) << "milliseconds since 1970, set by the store";
    EXPECT_GE(since, milliseconds(40)) << "now_ms is of the read, written_ms of the write";
    EXPECT_LE(since, now() - asked + milliseconds(40));
  }
}

/// Its version may stand in another election, too.
TEST_P(StoreContract, AWriteIsOfItsElectionAlone) {
  const auto a = open(), other = store_->store("another election");
  for (const auto& store : {a, other})
    ASSERT_TRUE(applied(store->compare_and_set(std::nullopt, record(1, 11), call())));
  ASSERT_TRUE(applied(a->compare_and_set(Expected{{1}, {11}}, record(1, 12), call())));
  const auto offered = a->request_step_down({{1}, "ops", "upgrade"}, call());
  EXPECT_TRUE(!offered || offered->fault == Fault::misconfigured);
  const auto found = other->read(call());
  ASSERT_TRUE(found && found->record);
  EXPECT_EQ(found->record->beat, 11u);
  EXPECT_FALSE(found->step_down);
}

/// Only then its lease's end is known without a look at the record as it stands.
TEST_P(StoreContract, NobodyClaimsAnothersClockForItsOwn) {
  const auto a = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  const auto found = open()->read(call());
  ASSERT_TRUE(found);
  EXPECT_TRUE(store_->one_clock() || !found->same_clock)
      << "same_clock is for a store of one host; one_clock() says that this is one";
}

TEST_P(StoreContract, ACallAfterItsLimitIsAnErrorAndWritesNothing) {
  const auto a = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  const Limit passed{boot_clock(), now(), {}};
  EXPECT_FALSE(a->read(passed));
  EXPECT_FALSE(a->compare_and_set(Expected{{1}, {11}}, record(1, 12), passed));
  EXPECT_TRUE(a->request_step_down({{1}, "ops", "late"}, passed));
  const auto found = open()->read(call());
  ASSERT_TRUE(found && found->record);
  EXPECT_EQ(found->record->beat, 11u);
  EXPECT_FALSE(found->step_down);
}

TEST_P(StoreContract, AWriteDemandsTokenAndBeat) {
  const auto a = open(), b = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  EXPECT_TRUE(refused(b->compare_and_set(Expected{{1}, {12}}, record(2, 22, "b"), call())));
  EXPECT_TRUE(refused(b->compare_and_set(Expected{{2}, {11}}, record(3, 22, "b"), call())));
  EXPECT_TRUE(refused(b->compare_and_set(Expected{{1}, {}}, record(2, 22, "b"), call())));
  EXPECT_TRUE(refused(b->compare_and_set(std::nullopt, record(2, 22, "b"), call())));
  EXPECT_EQ(standing(*b)->beat, 11u);
  EXPECT_TRUE(applied(a->compare_and_set(Expected{{1}, {9, 10, 11}}, record(1, 12), call()))) << "any of the beats";
  const auto taken = b->compare_and_set(Expected{{1}, {12}}, record(2, 22, "b"), call());
  ASSERT_TRUE(applied(taken));
  EXPECT_EQ(taken->found.record->beat, 22u) << "applied: what stands there is ours";
  EXPECT_TRUE(refused(a->compare_and_set(Expected{{1}, {11, 12}}, record(1, 13), call())));
  EXPECT_EQ(standing(*a)->who, record(2, 22, "b").who);
}

TEST_P(StoreContract, AWriteMayDemandARelease) {
  const auto a = open(), b = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  EXPECT_TRUE(refused(b->compare_and_set(Expected{{1}, {11}, true}, record(2, 22, "b"), call()))) << "it is held";
  ASSERT_TRUE(applied(a->compare_and_set(Expected{{1}, {11}}, released(1, 12), call())));
  EXPECT_TRUE(refused(b->compare_and_set(Expected{{1}, {11}, true}, record(2, 22, "b"), call())));
  EXPECT_TRUE(applied(b->compare_and_set(Expected{{1}, {12}, true}, record(2, 22, "b"), call())));
}

TEST_P(StoreContract, ALateDuplicateOfAWriteChangesNothing) {
  const auto a = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  ASSERT_TRUE(applied(a->compare_and_set(Expected{{1}, {11}}, record(1, 12), call())));
  ASSERT_TRUE(applied(a->compare_and_set(Expected{{1}, {11, 12}}, record(1, 13), call())));
  EXPECT_TRUE(refused(a->compare_and_set(Expected{{1}, {11}}, record(1, 12), call()))) << "a renewal";
  EXPECT_TRUE(refused(a->compare_and_set(std::nullopt, record(1, 11), call()))) << "a claim";
  EXPECT_EQ(standing(*a)->beat, 13u);
}

TEST_P(StoreContract, AReleaseStandsInTheRecord) {
  const auto a = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  ASSERT_TRUE(applied(a->compare_and_set(Expected{{1}, {11}}, released(1, 12), call())));
  const auto found = standing(*open());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->released);
  EXPECT_EQ(found->token, Token{1}) << "a released record keeps its token";
}

TEST_P(StoreContract, RacingWritersAreSerialised) {
  constexpr int writers = 8;
  const int each = store_->contended_tenures();
  std::mutex mutex;
  std::vector<std::string> errors;
  std::set<std::pair<std::uint64_t, std::uint64_t>> replaced;  ///< Versions, by the writes that were applied.
  const auto failed = [&](const Error& error) {
    const std::lock_guard lock(mutex);
    errors.push_back(error.message);
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < writers; ++i)
      threads.emplace_back([&, i, store = open()] {
        auto beat = static_cast<std::uint64_t>(i) << 32;
        for (int n = 0; n < each;) {
          const auto found = store->read(Player::within(patience));
          if (!found) return failed(found.error());
          const auto& stands = found->record;
          const auto expected = stands ? std::optional(Expected{stands->token, {stands->beat}}) : std::nullopt;
          const auto next = record(stands ? stands->token.value + 1 : 1, ++beat, "w");
          const auto result = store->compare_and_set(expected, next, Player::within(patience));
          if (!result) return failed(result.error());
          if (!result->applied) continue;
          ++n;
          const std::lock_guard lock(mutex);
          replaced.emplace(stands ? stands->token.value : 0, stands ? stands->beat : 0);
        }
      });
  }
  EXPECT_EQ(errors, std::vector<std::string>{});
  EXPECT_EQ(replaced.size(), static_cast<std::size_t>(writers * each)) << "two writes replaced the same version";
  ASSERT_TRUE(standing(*open()));
  const auto last = standing(*open())->token;
  if (store_->refused_may_have_stood())
    EXPECT_GE(last, Token{static_cast<std::uint64_t>(writers * each)});
  else
    EXPECT_EQ(last, Token{static_cast<std::uint64_t>(writers * each)});
}

TEST_P(StoreContract, AChangeOfTheRecordEndsAwaitChangeAlsoIfItCameFirst) {
  if (!store_->pushes()) GTEST_SKIP() << "this store tells nobody of a change";
  const auto a = open(), b = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  const auto found = standing(*b);
  ASSERT_TRUE(found);
  const auto before = now();
  ASSERT_TRUE(applied(a->compare_and_set(Expected{{1}, {11}}, released(1, 12), call())));
  b->await_change(Version{found->token, found->beat}, Player::within(patience));
  EXPECT_LT(now() - before, patience);
}

/// A wait may end for no reason, and a push may come late. So a name is tried for more than once.
TEST_P(StoreContract, APushNamesOnlyAReleaseThatStands) {
  if (!store_->pushes()) GTEST_SKIP() << "this store tells nobody of a change";
  const auto a = open(), b = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 1), call())));
  ASSERT_TRUE(standing(*b));
  std::vector<Version> freed;
  int named = 0;
  const auto wait = [&](Version seen, Clock::Duration within) {
    const auto version = b->await_change(seen, Player::within(within));
    if (!version) return;
    ++named;
    EXPECT_NE(std::find(freed.begin(), freed.end(), *version), freed.end()) << "it names what nobody released";
  };
  wait({{1}, 1}, timing_.retry);  // it listens from here on
  for (std::uint64_t token = 1; token < 20 && (token < 3 || (named == 0 && store_->names_releases())); ++token) {
    ASSERT_TRUE(applied(a->compare_and_set(Expected{{token}, {token}}, record(token + 1, 100), call())));
    wait({{token}, token}, patience);
    // A push that comes behind the read of its record ends the next wait. None is on its way when a wait is not ended.
    for (const auto until = now() + patience; now() < until;) {
      ASSERT_EQ(standing(*b)->token, Token{token + 1});
      const auto began = now();
      wait({{token + 1}, 100}, timing_.retry);
      if (now() - began >= timing_.retry / 2) break;
    }
    freed.push_back({{token + 1}, token + 1});
    ASSERT_TRUE(applied(a->compare_and_set(Expected{{token + 1}, {100}}, released(token + 1, token + 1), call())));
    wait({{token + 1}, 100}, patience);
  }
  EXPECT_EQ(named > 0, store_->names_releases());
}

// ---- the protocol over it ----

TEST_P(StoreContract, ARequestToStepDownReachesTheHolderWithItsNextRenewal) {
  auto a = player("a");
  const auto token = lead(a);
  const auto asker = open();
  const auto offered = asker->request_step_down({Token{token.value + 1}, "ops", "another tenure"}, call());
  if (offered && offered->fault == Fault::misconfigured) GTEST_SKIP() << offered->message;
  EXPECT_TRUE(a.renewed(token)) << "a request of another token means nothing";
  ASSERT_EQ(asker->request_step_down({token, "ops", "upgrade"}, call()), std::nullopt);
  EXPECT_EQ(asker->request_step_down({Token{token.value + 1}, "ops", "another tenure"}, call()), std::nullopt);
  for (int i = 0; i < 2; ++i) {
    const auto answer = a.renew(token);
    ASSERT_TRUE(std::holds_alternative<StepDownRequested>(answer))
        << "it stands beside the record until that is replaced";
    EXPECT_EQ(std::get<StepDownRequested>(answer).token, token);
    EXPECT_EQ(std::get<StepDownRequested>(answer).by, "ops");
    EXPECT_EQ(std::get<StepDownRequested>(answer).why, "upgrade");
  }
  ASSERT_EQ(a.release(), std::nullopt);
  const auto next = a.campaign(patience);
  ASSERT_TRUE(next);
  EXPECT_TRUE(a.renewed(*next)) << "the next tenure was not asked to step down";
}

TEST_P(StoreContract, AGhostRecordIsTakenOverAtOnceWithANewToken) {
  leave_it_free();
  auto a = faulty("a");
  a.store->next(Mishap::answer_lost);
  ASSERT_TRUE(std::holds_alternative<Unknown>(a.player.acquire()));
  const auto ghost = standing(*open());
  ASSERT_TRUE(ghost);
  ASSERT_EQ(incumbent_of(ghost->who, {}, {}).name, "a");
  const auto answer = a.player.acquire();
  ASSERT_TRUE(std::holds_alternative<Granted>(answer));
  EXPECT_GT(std::get<Granted>(answer).token, ghost->token);
}

TEST_P(StoreContract, AGhostRecordIsReleased) {
  leave_it_free();
  auto a = faulty("a");
  a.store->next(Mishap::answer_lost);
  ASSERT_TRUE(std::holds_alternative<Unknown>(a.player.acquire()));
  ASSERT_EQ(a.player.release(), std::nullopt);
  EXPECT_TRUE(std::holds_alternative<Granted>(player("b").acquire()));
}

TEST_P(StoreContract, AfterAReleaseALateClaimFindsNothing) {
  leave_it_free();
  auto a = faulty("a");
  a.store->next(Mishap::held);
  ASSERT_TRUE(std::holds_alternative<Unknown>(a.player.acquire()));
  ASSERT_EQ(a.store->held(), 1u);
  ASSERT_EQ(a.player.release(), std::nullopt);
  EXPECT_EQ(a.store->deliver_held(call()), 0u);
  EXPECT_TRUE(std::holds_alternative<Granted>(player("b").acquire()));
}

TEST_P(StoreContract, UnansweredRenewalsDoNotEndTheTenure) {
  auto a = faulty("a");
  const auto token = a.player.campaign(store_->first_election());
  ASSERT_TRUE(token);
  a.store->next(Mishap::answer_lost, 2);
  EXPECT_TRUE(std::holds_alternative<Unknown>(a.player.renew(*token)));
  EXPECT_TRUE(std::holds_alternative<Unknown>(a.player.renew(*token)));
  EXPECT_TRUE(a.player.renewed(*token));
  a.store->next(Mishap::held);
  EXPECT_TRUE(std::holds_alternative<Unknown>(a.player.renew(*token)));
  EXPECT_TRUE(a.player.renewed(*token));
  EXPECT_EQ(a.store->deliver_held(call()), 0u) << "a late renewal";
  EXPECT_FALSE(a.store->repeat_last(call())) << "a renewal delivered twice";
  EXPECT_TRUE(a.player.renewed(*token));
}

TEST_P(StoreContract, AnUnansweredReleaseCanBeRepeated) {
  auto a = faulty("a");
  ASSERT_TRUE(a.player.campaign(store_->first_election()));
  a.store->next(Mishap::answer_lost);
  EXPECT_NE(a.player.backend().release(a.player.call()), std::nullopt);
  EXPECT_EQ(a.player.release(), std::nullopt);
  EXPECT_TRUE(std::holds_alternative<Granted>(player("b").acquire()));
}

/// Both copies know the same token and beat; the first to write leaves the other one behind.
TEST_P(StoreContract, OfTwoClonesOfAHolderOneIsRefused) {
  const auto a = open();
  ASSERT_TRUE(applied(a->compare_and_set(std::nullopt, record(1, 11), call())));
  const Expected known{{1}, {11}};
  EXPECT_TRUE(applied(a->compare_and_set(known, record(1, 12), call())));
  const auto copy = a->compare_and_set(known, record(1, 13), call());
  ASSERT_TRUE(refused(copy));
  EXPECT_EQ(copy->found.record->beat, 12u);
}

}  // namespace tenure::contract
