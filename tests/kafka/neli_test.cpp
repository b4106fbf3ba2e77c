// SPDX-License-Identifier: Apache-2.0
// Goal: every rule of fenced NELI holds. The numbers are those of backends/kafka/README.md. Method: facts are handed to
// one Neli at chosen moments of a clock that is only a number, and what it does is compared; the store, the group and
// the callers are played by the test.
#include "neli.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;
using Time = Clock::Time;

constexpr auto lease = 6250ms;
constexpr auto margin = 250ms;
constexpr std::int64_t unix_start = 1'700'000'000'000;

Neli::Settings settings() {
  return {.lease = lease,
          .margin = margin,
          .observe_every = 250ms,
          .name = "me",
          .address = "me:1",
          .incarnation = "mine",
          .first_claim_waits = false,
          .remote_step_down = false,
          .highest = {}};
}

Commit record(std::int64_t token, const std::string& incarnation = "other", bool released = false,
              std::uint64_t seq = 1, Clock::Duration its_lease = lease) {
  return {token, encode(Record{released, its_lease, incarnation, seq, incarnation, incarnation + ":1"})};
}

Token token_of(const Commit& commit) { return {static_cast<std::uint64_t>(commit.offset)}; }

const Error unreachable{Fault::unreachable, "broker away"};
const Error evicted{Fault::deposed, "UNKNOWN_MEMBER_ID"};

/// One Neli, and everything round it played by hand.
class Scene {
 public:
  explicit Scene(Neli::Settings s = settings()) : neli(std::move(s)) {}

  void give(const Fact& fact) {
    if (const auto* answer = std::get_if<fact::Committed>(&fact); answer && unanswered == answer->id) unanswered = 0;
    if (std::holds_alternative<fact::Revoked>(fact)) may_commit = false;
    for (auto& next : neli.on(fact, now, unix_start + (now - start) / 1ms)) {
      std::visit([this](const auto& action) { keeps_the_fence(action); }, next);
      actions.push_back(std::move(next));
    }
  }
  /// Rules 11 and 13: a commit between an assignment and our own unassign only, one at a time, and no unassign before
  /// its answer. Checked in every test.
  void keeps_the_fence(const action::Assign&) { may_commit = true; }
  void keeps_the_fence(const action::Unassign&) {
    EXPECT_FALSE(unanswered) << "sent later, the commit would carry the next generation";
    may_commit = false;
  }
  void keeps_the_fence(const action::Drop&) {
    unanswered = 0;
    may_commit = false;
  }
  void keeps_the_fence(const action::SendCommit& send) {
    EXPECT_TRUE(may_commit) << "a commit outside of an assignment";
    EXPECT_FALSE(unanswered) << "two commits at a time";
    unanswered = send.id;
  }
  template <class Other>
  void keeps_the_fence(const Other&) {}
  /// Stops at every alarm on the way, as the serving thread does.
  void advance(Clock::Duration by) {
    const auto to = now + by;
    for (auto alarm = neli.alarm(); alarm <= to; alarm = neli.alarm()) {
      ASSERT_GT(alarm, now) << "an alarm that does not move is a hot loop";
      now = alarm;
      give(fact::Elapsed{});
      if (answering) answer_reads();
    }
    now = to;
    give(fact::Elapsed{});
    if (answering) answer_reads();
  }
  /// From here on every read shows this, and advance() answers it at once.
  void stands(std::optional<Commit> found) {
    world = std::move(found);
    answering = true;
    answer_reads();
  }
  void answer_reads() {
    while (did<action::Observe>()) observed(world);
    while (did<action::ReadMember>()) read(world);
  }

  std::uint64_t call(Verb verb, Token of = {}, Sight seen = Vacant{}, Clock::Duration within = 2s) {
    give(fact::Called{++calls, verb, now + within, of, std::move(seen)});
    return calls;
  }
  void observed(std::optional<Commit> found) { give(fact::Observed{take<action::Observe>().id, std::move(found)}); }
  void observed(Error error) { give(fact::Observed{take<action::Observe>().id, std::move(error)}); }
  void assigned(bool owner, int generation = 7) { give(fact::Assigned{handle, owner, generation}); }
  void committed(Outcome outcome = Outcome::accepted, Error error = {}) {
    give(fact::Committed{sent.id, outcome, std::move(error)});
  }
  void read(std::optional<Commit> found, const std::string& carried) {
    give(fact::MemberRead{take<action::ReadMember>().id, Reading{std::move(found), carried}});
  }
  void read(std::optional<Commit> found) { read(std::move(found), nonce); }

  /// The next action of a kind; those before it stay.
  template <class A>
  A take() {
    const auto it =
        std::find_if(actions.begin(), actions.end(), [](const auto& a) { return std::holds_alternative<A>(a); });
    if (it == actions.end()) {
      ADD_FAILURE() << "nothing of the kind was done";
      return {};
    }
    auto out = std::get<A>(*it);
    actions.erase(it);
    return out;
  }
  template <class A>
  bool did() const {
    return std::any_of(actions.begin(), actions.end(), [](const auto& a) { return std::holds_alternative<A>(a); });
  }
  Commit take_commit(int partition) {
    sent = take<action::SendCommit>();
    EXPECT_EQ(sent.partition, partition);
    if (partition == 1) nonce = sent.commit.metadata;
    return sent.commit;
  }
  Record take_record() {
    const auto commit = take_commit(0);
    const auto out = decode(commit.metadata);
    EXPECT_TRUE(out) << commit.metadata;
    return out.value_or(Record{});
  }
  Answer take_answer() { return take<action::Reply>().answer; }
  template <class A>
  A take_answer() {
    const auto answer = take_answer();
    EXPECT_TRUE(std::holds_alternative<A>(answer)) << "another answer, number " << answer.index();
    return std::holds_alternative<A>(answer) ? std::get<A>(answer) : A{};
  }

  // ---- ways that many tests go ----

  /// In the group, the record read, no assignment yet.
  void join(std::optional<Commit> found = {}) {
    call(Verb::acquire);
    observed(std::move(found));
    opened();
    forget();
  }
  void opened() { handle = take<action::Open>().handle; }
  /// Owner of partition 0 with a nonce that stands and a read under way.
  void own(int generation = 7) {
    assigned(true, generation);
    take_commit(1);
    committed();
    forget<action::Assign>();
  }
  /// A released record: claims at once.
  void lead(std::int64_t before = 40) {
    join(record(before, "other", true));
    own();
    read(record(before, "other", true));
    call(Verb::acquire);
    take_record();
    committed();
    token = take_answer<Granted>().token;
    forget();
  }
  void renew() {
    call(Verb::renew, token);
    take_record();
    committed();
    ASSERT_EQ(take_answer<Granted>().token, token);
  }
  void forget() { actions.clear(); }
  template <class A>
  void forget() {
    std::erase_if(actions, [](const auto& a) { return std::holds_alternative<A>(a); });
  }

  static constexpr Time start{1h};
  Time now = start;
  Neli neli;
  std::vector<Action> actions;
  std::uint64_t calls{0}, handle{0};
  action::SendCommit sent;
  std::string nonce;
  Token token;
  std::optional<Commit> world;
  bool answering{};
  std::uint64_t unanswered{};
  bool may_commit{};
};

// ---- rules 1 and 2: join ----

TEST(NeliJoin, ReadsTheRecordBeforeItOpensAMember) {
  Scene s;
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<action::Open>());
  s.observed(record(41));
  EXPECT_TRUE(s.did<action::Open>());
}

TEST(NeliJoin, RanksByTokenThenCreationThenIncarnation) {
  Scene s;
  s.call(Verb::acquire);
  s.advance(1234ms);
  s.observed(record(41));
  EXPECT_EQ(s.take<action::Open>().client_id, "!tenure.00000000000000000041.1700000001234.mine");
}

TEST(NeliJoin, RanksBeforeEveryOrdinaryMember) {
  Scene s;
  s.call(Verb::acquire);
  s.observed(std::nullopt);
  const auto ours = s.take<action::Open>().client_id;
  for (const std::string name : {"rdkafka", "consumer-jobs-1", "console-consumer", "sarama", "0", "-", "A", ".", "_"})
    EXPECT_LT(ours, name);
}

TEST(NeliJoin, TriesUntilTheRecordIsRead) {
  Scene s;
  s.call(Verb::acquire);
  s.observed(unreachable);
  EXPECT_EQ(s.take_answer<Unknown>().error, unreachable);
  EXPECT_FALSE(s.did<action::Open>());
  s.advance(250ms);
  s.observed(record(41));
  EXPECT_TRUE(s.did<action::Open>());
}

TEST(NeliJoin, TellsTheSameTroubleAgainOnlyAtTheLimit) {
  Scene s;
  s.call(Verb::acquire);
  s.observed(unreachable);
  s.take_answer<Unknown>();
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<action::Reply>()) << "a hot loop of the caller";
  s.advance(1990ms);
  EXPECT_EQ(s.take_answer<Unknown>().error, unreachable);
}

TEST(NeliJoin, TellsWhoLeadsWhileItWaitsForAnAssignment) {
  Scene s;
  s.call(Verb::acquire);
  s.observed(record(41));
  const auto holder = s.take_answer<Denied>().holder;
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->name, "other");
  EXPECT_EQ(holder->address, "other:1");
  EXPECT_EQ(holder->token, Token{41});
  EXPECT_EQ(holder->remaining, lease);
}

TEST(NeliJoin, AMemberThatCannotBeOpenedIsTriedAgainAfterAPause) {
  Scene s;
  s.join();
  s.give(fact::Broken{s.handle, {Fault::misconfigured, "no such file"}});
  EXPECT_TRUE(s.did<action::Drop>());
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Unknown>().error.message, "no such file");
  s.advance(999ms);
  EXPECT_FALSE(s.did<action::Observe>());
  s.advance(1ms);
  s.observed(std::nullopt);
  EXPECT_TRUE(s.did<action::Open>());
}

// ---- rules 3 to 7: what decides a claim ----

// Rule 3: the nonce.

TEST(NeliNonce, IsAcknowledgedBeforeTheReadThatDecides) {
  Scene s;
  s.join(record(40, "other", true));
  s.assigned(true);
  EXPECT_TRUE(s.did<action::Assign>());
  s.call(Verb::acquire);
  s.take_commit(1);
  EXPECT_FALSE(s.did<action::ReadMember>());
  s.committed();
  EXPECT_FALSE(s.did<action::SendCommit>()) << "claimed by what the observer read";
  s.read(record(40, "other", true));
  EXPECT_TRUE(s.did<action::SendCommit>());
}

TEST(NeliNonce, AReadWithoutItDecidesNothing) {
  Scene s;
  s.join(record(41));
  s.own();
  s.call(Verb::acquire);
  s.read(record(40, "other", true), "somebody's");
  EXPECT_FALSE(s.did<action::SendCommit>());
  const auto first = s.nonce;
  s.advance(249ms);
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.advance(1ms);
  s.take_commit(1);
  EXPECT_NE(s.nonce, first) << "unique per attempt";
}

TEST(NeliNonce, AFailedOneIsReplacedAfterAPause) {
  Scene s;
  s.join();
  s.assigned(true);
  s.take_commit(1);
  const auto first = s.nonce;
  s.committed(Outcome::failed, unreachable);
  s.advance(249ms);
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.advance(1ms);
  s.take_commit(1);
  EXPECT_NE(s.nonce, first);
}

TEST(NeliNonce, ServesEveryReadUntilTheNextRevoke) {
  Scene s;
  s.join(record(41));
  s.own();
  for (int i = 0; i < 3; ++i) {
    s.read(record(41, "other", false, 2 + static_cast<unsigned>(i)));
    s.advance(250ms);
    EXPECT_FALSE(s.did<action::SendCommit>());
  }
  const auto first = s.nonce;
  s.give(fact::Revoked{s.handle, false});
  s.assigned(true, 8);
  s.take_commit(1);
  EXPECT_NE(s.nonce, first);
}

TEST(NeliNonce, UnansweredForALeaseCostsTheHandle) {
  Scene s;
  s.join();
  s.assigned(true);
  s.forget();
  s.call(Verb::await_change, {}, Vacant{}, 1min);
  s.advance(lease - 1ms);
  EXPECT_FALSE(s.did<action::Drop>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<action::Drop>());
}

TEST(NeliNonce, NoPartitionForItMeansToLookAtTheTopicAgain) {
  Scene s;
  s.join();
  s.assigned(true);
  s.take_commit(1);
  s.forget();
  s.committed(Outcome::unknown_topic, {Fault::misconfigured, "no partition 1"});
  EXPECT_TRUE(s.did<action::Drop>());
  s.call(Verb::acquire);
  s.advance(1s);
  EXPECT_TRUE(s.take<action::Observe>().check_topic);
}

// Rule 4: the wait, and what ends it.
TEST(NeliWait, AReleasedRecordIsClaimedAtOnce) {
  Scene s;
  s.join(record(40, "other", true));
  s.own();
  s.read(record(40, "other", true));
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_commit(0).offset, 41);
}

TEST(NeliWait, OnesOwnRecordIsClaimedAtOnce) {
  Scene s;
  s.join(record(40, "mine"));
  s.own();
  s.read(record(40, "mine"));
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_commit(0).offset, 41);
}

// Rule 5: an absent record.
TEST(NeliWait, AnAbsentRecordOfANewGroupIsClaimedAtOnceByTheWallClocksToken) {
  Scene s;
  s.join();
  s.own(1);
  s.read(std::nullopt);
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_commit(0).offset, unix_start + 1);
}

/// How long after the assignment an owner of an absent record claims.
Clock::Duration wait_of_absent(Neli::Settings with, int generation) {
  Scene s(std::move(with));
  s.join();
  s.call(Verb::await_change, {}, Vacant{}, 1min);
  s.stands(std::nullopt);
  s.advance(3s);  // which an observer sees all the time, and which proves nothing
  s.answering = false;
  const auto from = s.now;
  s.own(generation);
  s.read(std::nullopt);
  for (int i = 0; i < 100 && !s.did<action::SendCommit>(); ++i) {
    s.call(Verb::acquire);
    if (s.did<action::SendCommit>()) break;
    s.advance(250ms);
    if (s.did<action::ReadMember>()) s.read(std::nullopt);
  }
  return s.now - from;
}

TEST(NeliWait, AnAbsentRecordOfAGroupThatWasThereIsALeaseAway) {
  EXPECT_EQ(wait_of_absent(settings(), 1), 0s);
  EXPECT_EQ(wait_of_absent(settings(), 2), lease);
}

/// An owner of an absent record, in a group that rebalances every two seconds: how long after its first assignment it
/// claims. `meanwhile` happens in the first rebalance.
template <class F>
Clock::Duration wait_of_absent_in_turmoil(Neli::Settings with, F meanwhile) {
  Scene s(std::move(with));
  s.join();
  const auto from = s.now;
  for (int generation = 7; generation < 20; ++generation) {
    s.own(generation);
    s.read(std::nullopt);
    s.call(Verb::acquire);
    for (int i = 0; i < 8 && !s.did<action::SendCommit>(); ++i) {
      s.advance(250ms);
      if (s.did<action::ReadMember>()) s.read(std::nullopt);
      s.call(Verb::acquire);
    }
    if (s.did<action::SendCommit>()) break;
    s.give(fact::Revoked{s.handle, false});
    if (generation == 7) meanwhile(s);
    s.forget();
  }
  return s.now - from;
}

TEST(NeliWait, AnAbsentRecordIsWaitedForOnceHoweverOftenTheGroupRebalances) {
  EXPECT_EQ(wait_of_absent_in_turmoil(settings(), [](Scene&) {}), lease);
}

TEST(NeliWait, AnAbsentRecordThatStoodMeanwhileIsWaitedForAnew) {
  const auto stood = [](Scene& s) {
    s.call(Verb::await_change, {}, Vacant{}, 1min);
    s.advance(250ms);
    s.observed(record(41));
  };
  EXPECT_GE(wait_of_absent_in_turmoil(settings(), stood), lease + 2s);
}

TEST(NeliWait, AnAbsentRecordIsWaitedForAnewByAnotherMember) {
  // Without us the group may have been empty, and whoever led meanwhile be deleted from it.
  const auto lost = [](Scene& s) {
    s.give(fact::Revoked{s.handle, true});
    s.stands(std::nullopt);
    s.advance(1s);
    s.answering = false;
    s.opened();
  };
  EXPECT_GE(wait_of_absent_in_turmoil(settings(), lost), lease + 2s);
}

TEST(NeliWait, WhereTheTopicMayBeDeletedAnAbsentRecordIsWaitedForFromEveryAssignment) {
  auto with = settings();
  with.first_claim_waits = true;
  EXPECT_GT(wait_of_absent_in_turmoil(with, [](Scene&) {}), 3 * lease) << "and in turmoil never";
}

TEST(NeliWait, AnAbsentRecordThatThisProcessHasSeenIsALeaseAway) {
  auto with = settings();
  with.highest = {5};
  EXPECT_GE(wait_of_absent(with, 1), lease);
}

TEST(NeliWait, AnAbsentRecordAfterAForeignCommitIsALeaseAway) {
  Scene s;
  s.join(Commit{0, "somebody's own"});
  s.own(1);
  s.read(std::nullopt);
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<action::SendCommit>());
}

TEST(NeliWait, AnAbsentRecordIsALeaseAwayForThoseWhoAskForIt) {
  auto with = settings();
  with.first_claim_waits = true;
  EXPECT_EQ(wait_of_absent(with, 1), lease);
}

// Rule 4 again: another's record.
TEST(NeliWait, AnothersRecordIsWaitedForFromWhenItWasFirstSeen) {
  Scene s;
  s.join(record(41));
  s.call(Verb::await_change, {}, Vacant{}, 1min);
  s.advance(3s);  // standing by
  s.own();
  s.read(record(41));
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->remaining, lease - 3s);
  s.call(Verb::await_change, {}, Incumbent{"other", "other", "other:1", {41}, 1s}, 1min);
  s.forget<action::ReadMember>();
  s.advance(lease - 3s - 1ms);
  s.forget();
  s.advance(1ms);
  EXPECT_TRUE(s.did<action::Wake>());
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_commit(0).offset, 42);
}

TEST(NeliWait, AChangeRestartsTheWaitAndAReleaseEndsIt) {
  Scene s;
  s.join(record(41));
  s.own();
  s.read(record(41));
  s.advance(250ms);
  s.read(record(41, "other", false, 2));
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->remaining, lease);
  s.advance(250ms);
  s.read(record(41, "other", true, 3));
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_commit(0).offset, 42);
}

TEST(NeliWait, TheLongestLeaseSeenIsWaitedFor) {
  for (const bool seen_before : {false, true}) {
    Scene s;
    s.join(record(41, "slow", false, 1, 20s));
    const auto now_there = seen_before ? record(42) : record(41, "slow", false, 1, 20s);
    s.own();
    s.read(now_there);
    s.call(Verb::await_change, {}, Sight(Incumbent{"x", "x", "", {41}, 1s}), 1min);
    s.forget();
    for (auto left = 20s - 250ms; left > 0ms; left -= 250ms) {
      s.advance(250ms);
      if (s.did<action::ReadMember>()) s.read(now_there);
      s.call(Verb::acquire);
      ASSERT_FALSE(s.did<action::SendCommit>()) << left / 1ms;
    }
    s.advance(250ms);
    s.call(Verb::acquire);
    EXPECT_TRUE(s.did<action::SendCommit>());
  }
}

// Rule 6: a foreign commit.
/// The first claim over a commit that is not one of ours, a lease after it was first seen.
std::int64_t claim_over(const Commit& foreign) {
  Scene s;
  s.join(foreign);
  s.own();
  s.read(foreign);
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->remaining, lease);
  s.call(Verb::await_change, {}, Incumbent{"", "", "", token_of(foreign), 1s}, 1min);
  s.stands(foreign);
  s.advance(lease);
  s.call(Verb::acquire);
  return s.take_commit(0).offset;
}

TEST(NeliWait, AForeignCommitCountsAsALeaseAndItsOffsetIsExceeded) {
  EXPECT_EQ(claim_over({2 * unix_start, "somebody's own"}), 2 * unix_start + 1);
}

TEST(NeliWait, OverAForeignCommitTokensDoNotBeginAnew) {
  // A console consumer's, or that of a reset of the offsets: the topic is empty, so both write 0.
  const auto later = unix_start + lease / 1ms;
  for (const auto& foreign : {Commit{0, ""}, Commit{1000, "somebody's own"}, Commit{0, record(0).metadata}})
    EXPECT_EQ(claim_over(foreign), later + 1) << foreign.metadata;
}

// Rule 7: a token that fell.
TEST(NeliWait, ATokenThatFellIsAnAlarmAndAFullLease) {
  Scene s;
  s.join(record(41));
  s.own();
  s.read(record(30, "other", true));
  EXPECT_TRUE(s.did<action::Report>());
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<action::SendCommit>()) << "no shortcut by a record of the past";
  s.forget<action::ReadMember>();
  s.advance(250ms);
  s.read(record(30, "other", true));
  s.advance(lease - 251ms);
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.forget();
  s.advance(1ms);
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_commit(0).offset, 42) << "above what was seen, not above what was read";
}

TEST(NeliWait, AnObserversOlderAnswerIsDiscarded) {
  Scene s;
  s.join(record(41, "other", false, 5));
  for (const auto& older : {record(40, "other", true), record(41, "other", false, 4)}) {
    const auto seen = Incumbent{"other", "other", "other:1", {41}, 1s};
    s.call(Verb::await_change, {}, seen, 1min);
    s.advance(250ms);
    s.observed(older);
    EXPECT_FALSE(s.did<action::Wake>());
    s.call(Verb::acquire);
    const auto holder = s.take_answer<Denied>().holder;
    EXPECT_EQ(holder->token, Token{41});
    EXPECT_EQ(holder->remaining, lease - (s.now - Scene::start)) << "its wait goes on";
  }
}

TEST(NeliWait, AnObserversOlderAnswerForALeaseIsAnAlarm) {
  Scene s;
  s.join(record(41));
  s.call(Verb::await_change, {}, Incumbent{"other", "other", "other:1", {41}, 1s}, 1min);
  s.stands(record(30));
  s.advance(lease - 250ms);
  EXPECT_FALSE(s.did<action::Report>());
  s.advance(500ms);
  EXPECT_TRUE(s.did<action::Report>());
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->token, Token{30});
}

// ---- rules 8 to 10: claim ----

TEST(NeliClaim, IsSentForACallOnly) {
  Scene s;
  s.join(record(40, "other", true));
  s.own();
  s.read(record(40, "other", true));
  s.advance(2s);
  EXPECT_FALSE(s.did<action::SendCommit>());
}

TEST(NeliClaim, GrantsTheTokenThatWasAcknowledged) {
  Scene s;
  s.lead(40);
  EXPECT_EQ(s.token, Token{41});
  EXPECT_EQ(decode(s.sent.commit.metadata)->incarnation, "mine");
  EXPECT_EQ(decode(s.sent.commit.metadata)->name, "me");
  EXPECT_EQ(decode(s.sent.commit.metadata)->lease, lease);
}

TEST(NeliClaim, AfterOneOfUnknownOutcomeNoOtherGoesOutInThatGeneration) {
  // Handled after its successor, it would write the old token over the new one.
  Scene s;
  s.join(record(40, "other", true));
  s.own();
  s.read(record(40, "other", true));
  s.advance(200ms);
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_commit(0).offset, 41);
  s.committed(Outcome::failed, unreachable);
  EXPECT_EQ(s.take_answer<Unknown>().error, unreachable);
  EXPECT_EQ(s.take<action::Drop>().handle, s.handle)
      << "a member id that does not join again is in no later generation";
  s.call(Verb::acquire);
  s.advance(1s);
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.observed(record(40, "other", true));  // it may be in the log and not be shown
  s.opened();
  s.own(8);
  s.read(record(40, "other", true));
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_commit(0).offset, 42) << "a failed token is never used again";
}

TEST(NeliClaim, AfterARenewalOfUnknownOutcomeNoneGoesOutInThatGeneration) {
  for (const bool another_generation : {false, true}) {
    Scene s;
    s.lead();
    s.call(Verb::renew, s.token);
    s.take_record();
    s.committed(Outcome::failed, unreachable);
    s.take_answer<Unknown>();
    s.advance(500ms);
    s.renew();  // the tenure goes on: it writes the same token
    if (another_generation) {
      s.give(fact::Revoked{s.handle, false});
      s.assigned(true, 8);
      s.renew();
    }
    s.forget();
    s.advance(lease - margin);
    EXPECT_EQ(s.did<action::Drop>(), !another_generation);
  }
}

TEST(NeliClaim, RefusedIsNotLedBy) {
  for (const auto outcome : {Outcome::fenced, Outcome::unknown_topic, Outcome::failed}) {
    Scene s;
    s.join(record(40, "other", true));
    s.own();
    s.read(record(40, "other", true));
    s.call(Verb::acquire);
    s.take_record();
    s.committed(outcome, evicted);
    EXPECT_EQ(s.take_answer<Unknown>().error, evicted);
    s.call(Verb::renew, {41});
    EXPECT_FALSE(s.did<action::SendCommit>());
    s.take_answer<Denied>();
  }
}

TEST(NeliClaim, ALateAcknowledgementIsNotUsed) {
  Scene s;
  s.join(record(40, "other", true));
  s.own();
  s.read(record(40, "other", true));
  s.call(Verb::acquire, {}, Vacant{}, 1min);
  s.take_commit(0);
  s.advance(lease - margin);
  s.committed();
  s.take_answer<Unknown>();
  s.call(Verb::acquire);
  s.advance(250ms);
  s.read(record(41, "mine"));
  EXPECT_EQ(s.take_commit(0).offset, 42);
}

TEST(NeliClaim, AcknowledgedToNobodyIsNotUsed) {
  Scene s;
  s.join(record(40, "other", true));
  s.own();
  s.read(record(40, "other", true));
  const auto id = s.call(Verb::acquire);
  s.take_commit(0);
  s.give(fact::Abandoned{id});
  const auto next = s.call(Verb::acquire);
  EXPECT_NE(next, id);
  s.committed();
  EXPECT_FALSE(s.did<action::Reply>()) << "the claim was sent before this call asked";
  s.advance(250ms);
  s.read(record(41, "mine"));
  EXPECT_EQ(s.take_commit(0).offset, 42);
  s.committed();
  EXPECT_EQ(s.take_answer<Granted>().token, Token{42});
}

TEST(NeliClaim, GrantedToACallerThatHadGoneIsNotUsed) {
  Scene s;
  s.join(record(40, "other", true));
  s.own();
  s.read(record(40, "other", true));
  const auto id = s.call(Verb::acquire);
  s.take_commit(0);
  s.committed();
  s.take_answer<Granted>();
  s.give(fact::Abandoned{id});
  s.call(Verb::renew, {41});
  s.take_answer<Denied>();
}

TEST(NeliClaim, OnesOwnTokenCountsAsSeen) {
  Scene s;
  s.lead(40);
  EXPECT_EQ(s.neli.highest(), Token{41});
  s.advance(lease - margin);
  s.call(Verb::acquire);
  s.read(record(40, "other", true));  // the store has lost a commit that it had acknowledged
  EXPECT_TRUE(s.did<action::Report>());
  EXPECT_FALSE(s.did<action::SendCommit>());
}

TEST(NeliClaim, UnansweredForALeaseCostsTheHandle) {
  Scene s;
  s.join(record(40, "other", true));
  s.own();
  s.read(record(40, "other", true));
  s.call(Verb::acquire, {}, Vacant{}, 1min);
  s.forget();
  s.advance(lease - 1ms);
  EXPECT_FALSE(s.did<action::Drop>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<action::Drop>());
}

TEST(NeliClaim, NoTokenFollowsTheLargestOffset) {
  Scene s;
  const auto last = record(std::numeric_limits<std::int64_t>::max(), "other", true);
  s.join(last);
  s.own();
  s.read(last);
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<action::SendCommit>());
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::corrupt);
}

TEST(NeliClaim, AnAcquireWhileLeadingIsANewTenure) {
  Scene s;
  s.lead(40);
  s.call(Verb::acquire);
  s.read(record(41, "mine"));
  EXPECT_EQ(s.take_commit(0).offset, 42);
}

// ---- rules 11 and 12: renew ----

TEST(NeliRenew, EveryRenewalDiffers) {
  Scene s;
  s.lead();
  auto seq = decode(s.sent.commit.metadata)->seq;
  for (int i = 0; i < 3; ++i) {
    s.advance(500ms);
    s.renew();
    const auto record = decode(s.sent.commit.metadata);
    EXPECT_EQ(s.sent.commit.offset, static_cast<std::int64_t>(s.token.value));
    EXPECT_GT(record->seq, std::exchange(seq, record->seq));
  }
}

TEST(NeliRenew, OneIsOutstandingAtATime) {
  Scene s;
  s.lead();
  const auto id = s.call(Verb::renew, s.token);
  s.take_record();
  s.advance(1s);
  s.give(fact::Abandoned{id});
  s.call(Verb::renew, s.token);
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.committed();
  EXPECT_FALSE(s.did<action::Reply>()) << "that one was sent before this call asked";
  s.take_record();
  s.committed();
  s.take_answer<Granted>();
}

TEST(NeliRenew, AnErrorChangesNothingButTheNextAttempt) {
  Scene s;
  s.lead();
  s.call(Verb::renew, s.token);
  s.take_record();
  s.committed(Outcome::failed, unreachable);
  EXPECT_EQ(s.take_answer<Unknown>().error, unreachable);
  s.call(Verb::renew, s.token);
  s.advance(99ms);
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.advance(1ms);
  s.take_record();
  s.committed();
  s.take_answer<Granted>();
}

TEST(NeliRenew, DeposedUntilTheLeaseHasRunOut) {
  Scene s;
  s.lead();
  s.call(Verb::renew, s.token);
  s.take_record();
  s.committed(Outcome::fenced, evicted);
  EXPECT_EQ(s.take_answer<Unknown>().error, evicted);
  s.advance(1s);
  s.call(Verb::renew, s.token);
  EXPECT_FALSE(s.did<action::SendCommit>());
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::deposed);
  s.advance(lease);
  s.call(Verb::renew, s.token);
  s.take_answer<Denied>();
}

TEST(NeliRenew, DeposedAndNeverToldMoreTheHandleIsDropped) {
  Scene s;
  s.lead();
  s.call(Verb::renew, s.token);
  s.take_record();
  s.committed(Outcome::fenced, evicted);
  s.call(Verb::acquire, {}, Vacant{}, 1min);
  s.forget();
  s.advance(lease - 1ms);
  EXPECT_FALSE(s.did<action::Drop>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<action::Drop>());
}

TEST(NeliRenew, OfAnotherTokenIsDenied) {
  Scene s;
  s.lead(40);
  s.call(Verb::renew, {40});
  s.take_answer<Denied>();
  EXPECT_FALSE(s.did<action::SendCommit>());
}

TEST(NeliRenew, ALeaderReadsNoRecord) {
  Scene s;
  s.lead();
  s.renew();
  s.forget();
  s.advance(lease - margin - 1ms);
  EXPECT_FALSE(s.did<action::Observe>());
  EXPECT_FALSE(s.did<action::ReadMember>());
}

// ---- rules 13 and 14: a rebalance ----

TEST(NeliRebalance, TheLeaderKeepsItsTokenAndCommitsNothingMeanwhile) {
  Scene s;
  s.lead();
  s.give(fact::Revoked{s.handle, false});
  EXPECT_TRUE(s.did<action::Unassign>());
  s.call(Verb::renew, s.token);
  s.advance(1s);
  EXPECT_FALSE(s.did<action::SendCommit>());
  EXPECT_FALSE(s.did<action::Reply>());
  s.assigned(true, 8);
  EXPECT_EQ(s.take_record().incarnation, "mine") << "no nonce before a renewal";
  s.committed();
  EXPECT_EQ(s.take_answer<Granted>().token, s.token);
}

TEST(NeliRebalance, ARenewalWaitsForTheAssignmentUpToItsLimit) {
  Scene s;
  s.lead();
  s.give(fact::Revoked{s.handle, false});
  s.call(Verb::renew, s.token);
  s.advance(2s);
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::timed_out);
}

TEST(NeliRebalance, WaitsForTheOutstandingCommit) {
  Scene s;
  s.lead();
  s.call(Verb::renew, s.token);
  s.take_record();
  s.give(fact::Revoked{s.handle, false});
  s.advance(100ms);
  EXPECT_FALSE(s.did<action::Unassign>());
  s.committed();
  EXPECT_TRUE(s.did<action::Unassign>());
  EXPECT_EQ(s.take_answer<Granted>().token, s.token);
}

TEST(NeliRebalance, AnUnansweredCommitCostsTheHandleNotTheLease) {
  Scene s;
  s.lead();
  s.call(Verb::renew, s.token, Vacant{}, 10s);
  s.take_record();
  s.give(fact::Revoked{s.handle, false});
  s.advance(499ms);
  EXPECT_FALSE(s.did<action::Drop>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<action::Drop>());
  EXPECT_FALSE(s.did<action::Unassign>()) << "the commit could go out under the next generation";
  s.take_answer<Unknown>();
  // A new handle that owns partition 0 before the deadline goes on with the same token.
  s.advance(500ms);
  s.observed(record(41, "mine"));
  s.opened();
  s.assigned(true, 9);
  s.call(Verb::renew, s.token);
  s.take_record();
  s.committed();
  EXPECT_EQ(s.take_answer<Granted>().token, s.token);
  s.call(Verb::release);
  EXPECT_TRUE(s.take_record().released);
}

TEST(NeliRebalance, AnAssignmentBeforeTheAnswerCostsTheHandle) {
  // No client does that. If one did, the commit could carry the new generation.
  Scene s;
  s.lead();
  s.call(Verb::renew, s.token);
  s.take_record();
  s.assigned(true, 8);
  EXPECT_TRUE(s.did<action::Drop>());
  EXPECT_FALSE(s.did<action::Assign>());
}

TEST(NeliRebalance, WithoutPartitionZeroTheLeaseRunsOut) {
  Scene s;
  s.lead();
  s.give(fact::Revoked{s.handle, false});
  s.assigned(false, 8);
  s.call(Verb::renew, s.token);
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::deposed);
  s.advance(1s);
  s.give(fact::Revoked{s.handle, false});
  s.assigned(true, 9);  // back before the deadline
  s.renew();
}

TEST(NeliRebalance, AStandbyAnswersTheAssignmentAndWaits) {
  Scene s;
  s.join(record(41));
  s.assigned(false);
  EXPECT_TRUE(s.did<action::Assign>());
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.call(Verb::acquire);
  EXPECT_EQ(s.take_answer<Denied>().holder->token, Token{41});
}

// ---- rules 15 and 16: evicted ----

TEST(NeliLost, AStandbyRanksAnewByAReadFromAfterTheDrop) {
  Scene s;
  s.join(record(41));
  s.assigned(false);
  s.call(Verb::await_change, {}, Incumbent{"other", "other", "other:1", {41}, 1s}, 1min);
  s.stands(record(41));
  s.advance(2s);
  s.answering = false;
  s.advance(250ms);
  const auto under_way = s.take<action::Observe>();
  const auto old = s.handle;
  s.give(fact::Revoked{s.handle, true});
  EXPECT_EQ(s.take<action::Drop>().handle, old);
  EXPECT_FALSE(s.did<action::Unassign>()) << "that would rejoin with the old rank";
  s.give(fact::Observed{under_way.id, std::optional(record(41))});
  EXPECT_FALSE(s.did<action::Open>()) << "read before the drop";
  s.advance(1s);
  s.observed(record(43));
  EXPECT_EQ(s.take<action::Open>().client_id.substr(0, 28), "!tenure.00000000000000000043");
}

TEST(NeliLost, ALeaderKeepsItsRankWhileItsLeaseRuns) {
  Scene s;
  s.lead();
  s.give(fact::Revoked{s.handle, true});
  EXPECT_TRUE(s.did<action::Unassign>());
  EXPECT_FALSE(s.did<action::Drop>());
  s.call(Verb::renew, s.token);
  EXPECT_EQ(s.take_answer<Unknown>().error.fault, Fault::deposed);
  s.advance(2s);
  s.assigned(true, 9);
  s.renew();
}

TEST(NeliLost, ALeaderRanksAnewWhenItsLeaseEndsUnassigned) {
  Scene s;
  s.lead();
  s.give(fact::Revoked{s.handle, true});
  s.advance(lease - margin - 1ms);
  EXPECT_FALSE(s.did<action::Drop>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<action::Drop>());
}

// ---- rules 17 and 18: the deadline ----

TEST(NeliDeadline, CountsFromTheSendingOfTheLastAcknowledgedCommit) {
  Scene s;
  s.lead();
  s.advance(1s);
  s.call(Verb::renew, s.token, Vacant{}, 10s);
  s.take_record();
  const auto sent = s.now;
  s.advance(2s);
  s.committed();
  s.take_answer<Granted>();
  s.advance(sent + lease - margin - s.now - 1ms);
  s.call(Verb::renew, s.token);
  s.take_record();
  EXPECT_FALSE(s.did<action::Reply>());
  s.advance(1ms);
  s.take_answer<Denied>();
}

TEST(NeliDeadline, AnAnswerThatArrivesWithItRevivesNothing) {
  Scene s;
  s.lead();
  s.call(Verb::renew, s.token, Vacant{}, 1min);
  s.take_record();
  s.now += lease - margin;
  s.committed();
  EXPECT_FALSE(std::holds_alternative<Granted>(s.take_answer()));
}

TEST(NeliDeadline, WithACommitUnansweredTheHandleIsDropped) {
  Scene s;
  s.lead();
  s.call(Verb::renew, s.token, Vacant{}, 1min);
  s.advance(lease - margin);
  EXPECT_TRUE(s.did<action::Drop>());
}

TEST(NeliDeadline, LeadingAgainIsANewTokenByANewRead) {
  Scene s;
  s.lead(40);
  s.advance(lease - margin);
  EXPECT_FALSE(s.did<action::Drop>());
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.read(record(41, "mine"));
  EXPECT_EQ(s.take_commit(0).offset, 42);
}

TEST(NeliDeadline, ResultsOfOlderHandlesAreIgnored) {
  Scene s;
  s.lead(40);
  const auto old = s.handle;
  s.call(Verb::renew, s.token, Vacant{}, 1min);
  s.take_record();
  const auto late = s.sent.id;
  s.advance(lease - margin);
  s.call(Verb::acquire);
  s.observed(record(41, "mine"));
  s.opened();
  s.forget();
  s.give(fact::Committed{late, Outcome::accepted, {}});
  s.give(fact::Assigned{old, true, 9});
  s.give(fact::Revoked{old, true});
  EXPECT_FALSE(s.did<action::Assign>() || s.did<action::Drop>() || s.did<action::Reply>());
}

// ---- rule 19: release ----

TEST(NeliRelease, WritesThatItIsFreeThenLeaves) {
  Scene s;
  s.lead(40);
  s.call(Verb::release);
  EXPECT_FALSE(s.did<action::Drop>());
  const auto written = s.take_commit(0);
  EXPECT_EQ(written.offset, 41);
  EXPECT_TRUE(decode(written.metadata)->released);
  s.committed();
  EXPECT_TRUE(s.did<action::Drop>());
  EXPECT_FALSE(s.did<action::ReplyReleased>()) << "before the group knows";
  s.give(fact::Left{s.handle});
  EXPECT_EQ(s.take<action::ReplyReleased>().error, std::nullopt);
}

TEST(NeliRelease, WaitsNotForEverToBeOutOfTheGroup) {
  Scene s;
  s.lead();
  s.call(Verb::release);
  s.take_record();
  s.committed();
  s.advance(300ms);
  EXPECT_EQ(s.take<action::ReplyReleased>().error, std::nullopt);
}

TEST(NeliRelease, RanksLastAtTheNextAcquire) {
  Scene s;
  s.lead(40);
  s.call(Verb::release);
  s.take_record();
  s.committed();
  s.give(fact::Left{s.handle});
  s.forget();
  s.advance(5s);
  EXPECT_FALSE(s.did<action::Observe>()) << "it does not contend meanwhile";
  s.call(Verb::acquire);
  s.observed(record(41, "mine", true, 9));
  const auto opened = s.take<action::Open>();
  EXPECT_NE(opened.handle, s.handle);
  EXPECT_EQ(opened.client_id, "!tenure.00000000000000000041.1700000005000.mine");
}

TEST(NeliRelease, InARebalanceWaitsForTheAssignment) {
  Scene s;
  s.lead();
  s.give(fact::Revoked{s.handle, false});
  s.call(Verb::release);
  s.advance(1s);
  EXPECT_FALSE(s.did<action::Drop>());
  s.assigned(true, 8);
  EXPECT_TRUE(s.take_record().released);
}

TEST(NeliRelease, InARebalanceThatOutlastsTheDeadlineLeavesUnsaid) {
  Scene s;
  s.lead();
  s.give(fact::Revoked{s.handle, false});
  s.call(Verb::release, {}, Vacant{}, 1min);
  s.advance(lease - margin);
  EXPECT_TRUE(s.did<action::Drop>());
  EXPECT_FALSE(s.did<action::SendCommit>());
}

TEST(NeliRelease, WithACommitUnansweredLeavesUnsaid) {
  Scene s;
  s.lead();
  const auto id = s.call(Verb::renew, s.token);
  s.take_record();
  s.give(fact::Abandoned{id});
  s.call(Verb::release);
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.advance(500ms);
  EXPECT_TRUE(s.did<action::Drop>());
  EXPECT_FALSE(s.did<action::SendCommit>());
  s.give(fact::Left{s.handle});
  EXPECT_TRUE(s.take<action::ReplyReleased>().error);
}

TEST(NeliRelease, AClaimThatNobodyAwaitedIsReleasedToo) {
  Scene s;
  s.join(record(40, "other", true));
  s.own();
  s.read(record(40, "other", true));
  const auto id = s.call(Verb::acquire);
  s.take_commit(0);
  s.give(fact::Abandoned{id});
  s.call(Verb::release);
  s.committed();
  const auto written = s.take_commit(0);
  EXPECT_EQ(written.offset, 41);
  EXPECT_TRUE(decode(written.metadata)->released);
}

TEST(NeliRelease, WritesNothingWhereSomebodyElseMayHaveWritten) {
  // The lease ran out while another owned partition 0; then it came back.
  Scene s;
  s.lead();
  s.give(fact::Revoked{s.handle, false});
  s.assigned(false, 8);
  s.advance(lease - margin);
  s.give(fact::Revoked{s.handle, false});
  s.assigned(true, 9);
  s.forget();
  s.call(Verb::release);
  EXPECT_FALSE(s.did<action::SendCommit>());
  EXPECT_TRUE(s.did<action::Drop>());
}

TEST(NeliRelease, OfUnknownOutcomeCostsTheHandleAndIsTold) {
  for (const bool in_a_rebalance : {false, true}) {
    Scene s;
    s.lead();
    s.call(Verb::release);
    s.take_record();
    if (in_a_rebalance) s.give(fact::Revoked{s.handle, false});
    s.committed(Outcome::failed, unreachable);
    EXPECT_TRUE(s.did<action::Drop>());
    EXPECT_FALSE(s.did<action::Unassign>());
    s.give(fact::Left{s.handle});
    EXPECT_EQ(s.take<action::ReplyReleased>().error, unreachable);
  }
}

TEST(NeliRelease, OfNothingIsNoError) {
  Scene s;
  s.call(Verb::release);
  EXPECT_EQ(s.take<action::ReplyReleased>().error, std::nullopt);
  s.join();
  s.call(Verb::release);
  EXPECT_TRUE(s.did<action::Drop>());
  EXPECT_FALSE(s.did<action::SendCommit>());
}

TEST(NeliRelease, AnAbandonedOneStillLeaves) {
  Scene s;
  s.lead();
  const auto id = s.call(Verb::release);
  s.give(fact::Abandoned{id});
  EXPECT_TRUE(s.did<action::Drop>());
  s.forget();
  s.call(Verb::acquire);
  s.advance(1s);
  s.observed(record(41, "mine", true, 9));
  EXPECT_TRUE(s.did<action::Open>()) << "and can contend again";
}

// ---- rule 20: asked from outside ----

TEST(NeliStepDown, AsksEveryThreeSecondsWhileLeading) {
  auto with = settings();
  with.remote_step_down = true;
  Scene s(with);
  s.lead();
  s.forget();
  s.give(fact::Requested{std::optional<Commit>()});
  s.advance(2999ms);
  EXPECT_FALSE(s.did<action::ReadRequests>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<action::ReadRequests>());
  s.renew();
  s.give(fact::Requested{std::optional(Commit{40, encode(StepDown{"ops", "old"})})});
  s.renew();  // of another tenure: means nothing
  s.give(fact::Requested{std::optional(Commit{41, encode(StepDown{"ops", "upgrade"})})});
  s.call(Verb::renew, s.token);
  s.take_record();
  s.committed();
  const auto recalled = s.take_answer<Recalled>();
  EXPECT_EQ(recalled.token, s.token);
  EXPECT_EQ(recalled.by, "ops");
  EXPECT_EQ(recalled.why, "upgrade");
}

TEST(NeliStepDown, WhoMayNotReadTheRequestsIsToldOnceUntilItMay) {
  auto with = settings();
  with.remote_step_down = true;
  Scene s(with);
  s.lead();
  for (const bool told : {true, false}) {
    s.forget();
    s.give(fact::Requested{Error{Fault::forbidden, "needs READ"}});
    EXPECT_EQ(s.did<action::Report>(), told);
    s.give(fact::Requested{Error{Fault::timed_out, "passes"}});
  }
  s.give(fact::Requested{std::optional<Commit>()});
  s.forget();
  s.give(fact::Requested{Error{Fault::forbidden, "needs READ"}});
  EXPECT_TRUE(s.did<action::Report>()) << "the right was taken away again";
}

TEST(NeliStepDown, IsNotAskedForUnlessWanted) {
  Scene s;
  s.lead();
  s.advance(5s);
  EXPECT_FALSE(s.did<action::ReadRequests>());
}

// ---- rule 21: a stranger in the group ----

/// Assigned without partition 0, while the record lapses.
void stand_by(Scene& s, const std::optional<Commit>& found) {
  s.join(found);
  s.stands(found);
  s.assigned(false);
  s.forget();
}

/// As a manager does: asked all the time.
void stand_by(Scene& s, Clock::Duration by) {
  for (const auto until = s.now + by; s.now < until;) {
    s.call(Verb::await_change, {}, Vacant{}, 1min);
    s.advance(std::min<Clock::Duration>(250ms, until - s.now));
  }
}

TEST(NeliStranger, IsAskedForWhenNobodyLedForALease) {
  Scene s;
  stand_by(s, record(41));
  stand_by(s, 2 * lease - 1ms);  // of the record, and another
  EXPECT_FALSE(s.did<action::FindOwner>());
  stand_by(s, 1ms);
  EXPECT_TRUE(s.did<action::FindOwner>());
  s.forget();
  s.give(fact::OwnerFound{PartitionOwner{.client_id = "console-consumer", .host = "/10.0.0.7"}});
  const auto said = s.take<action::Report>();
  EXPECT_EQ(said.level, Level::warning);
  EXPECT_NE(said.message.find("\"console-consumer\" at /10.0.0.7"), std::string::npos) << said.message;
  EXPECT_NE(said.message.find("group of its own"), std::string::npos) << said.message;
  stand_by(s, 5 * lease);
  EXPECT_FALSE(s.did<action::FindOwner>()) << "once is enough";
}

TEST(NeliStranger, OverNoRecordOfOursTheLeaseCountsFromTheFirstSight) {
  for (const auto& found :
       {std::optional<Commit>(), std::optional(Commit{0, ""}), std::optional(record(41, "other", true))}) {
    Scene s;
    stand_by(s, found);
    stand_by(s, lease - 1ms);
    EXPECT_FALSE(s.did<action::FindOwner>());
    stand_by(s, 1ms);
    EXPECT_TRUE(s.did<action::FindOwner>());
  }
}

TEST(NeliStranger, IsNoCandidateOfOurs) {
  for (const auto& owner :
       {std::optional<PartitionOwner>(), std::optional(PartitionOwner{.client_id = "!tenure.1.2.x", .host = "/h"}),
        std::optional(PartitionOwner{.client_id = "tenure.1.2.x", .host = "/h"})}) {
    Scene s;
    stand_by(s, std::nullopt);
    stand_by(s, lease);
    s.forget();
    s.give(fact::OwnerFound{owner});
    EXPECT_FALSE(s.did<action::Report>());
    stand_by(s, lease);
    EXPECT_TRUE(s.did<action::FindOwner>()) << "and is asked for again";
  }
}

TEST(NeliStranger, IsToldAgainAfterSomebodyLed) {
  Scene s;
  const auto told = [&] {
    s.give(fact::OwnerFound{PartitionOwner{.client_id = "rdkafka", .host = "/h"}});
    return s.did<action::Report>();
  };
  stand_by(s, std::nullopt);
  stand_by(s, lease);
  EXPECT_TRUE(told());
  s.give(fact::Revoked{s.handle, false});
  s.stands(record(41));
  s.assigned(false);
  s.forget();
  stand_by(s, 2 * lease + 250ms);  // from the next read on
  EXPECT_TRUE(s.did<action::FindOwner>());
  EXPECT_TRUE(told());
}

TEST(NeliStranger, OfTheOtherProtocolIsToldWithItsRemedy) {
  Scene s;
  stand_by(s, std::nullopt);
  stand_by(s, lease);
  s.forget();
  s.give(fact::OwnerFound{PartitionOwner{.client_id = {}, .host = {}, .converted = true}});
  const auto said = s.take<action::Report>().message;
  EXPECT_NE(said.find("group.consumer.migration.policy=disabled"), std::string::npos) << said;
}

TEST(NeliStranger, IsNotAskedForWhereSomebodyLeadsOrMayClaim) {
  Scene leader;
  leader.lead();
  Scene owner;
  owner.join(record(41));
  owner.own();
  owner.stands(record(41));
  for (int i = 0; i < 60; ++i) {
    leader.advance(500ms);
    leader.renew();
    owner.call(Verb::await_change, {}, Incumbent{"other", "other", "other:1", {41}, 0s}, 1min);
    owner.advance(500ms);
  }
  EXPECT_FALSE(leader.did<action::FindOwner>());
  EXPECT_FALSE(owner.did<action::FindOwner>());
}

TEST(NeliStranger, ACommitOfItsIsNoLossOfTheStores) {
  Scene s;
  s.join(record(41));
  s.own();
  s.read(Commit{0, ""});
  for (; s.did<action::Report>();) {
    const auto said = s.take<action::Report>().message;
    EXPECT_EQ(said.find("lost"), std::string::npos) << said;
  }
  s.call(Verb::acquire);
  EXPECT_FALSE(s.did<action::SendCommit>()) << "a full lease all the same";
}

// ---- the backend ----

// Rule 22: nobody asks.
TEST(NeliSeat, LeavesTheGroupWhenNobodyAsksForALease) {
  Scene s;
  s.join(record(41));
  s.stands(record(41));
  s.assigned(false);
  s.advance(lease - 1ms);
  EXPECT_FALSE(s.did<action::Drop>());
  s.advance(1ms);
  EXPECT_TRUE(s.did<action::Drop>());
  s.forget();
  s.advance(1min);
  EXPECT_FALSE(s.did<action::Open>() || s.did<action::Observe>());
  s.call(Verb::acquire);
  s.answer_reads();
  EXPECT_TRUE(s.did<action::Open>());
}

TEST(NeliSeat, StaysWhileItIsAsked) {
  Scene s;
  s.join(record(41));
  s.call(Verb::await_change, {}, Incumbent{"other", "other", "other:1", {41}, 1s}, 1min);
  s.advance(2s);
  EXPECT_FALSE(s.did<action::Drop>());
  Scene leader;
  leader.lead();
  for (int i = 0; i < 30; ++i) {
    leader.advance(500ms);
    leader.renew();
  }
  EXPECT_FALSE(leader.did<action::Drop>());
}

// What the callers are told.
TEST(NeliSeat, AWaitEndsWhenTheHolderChanges) {
  for (const auto& change : {record(42), record(41, "other", true, 2)}) {
    Scene s;
    s.join(record(41));
    s.call(Verb::await_change, {}, Incumbent{"other", "other", "other:1", {41}, 1s}, 1min);
    s.advance(250ms);
    s.observed(change);
    EXPECT_TRUE(s.did<action::Wake>());
  }
}

TEST(NeliSeat, AWaitOutlastsRenewalsAndEndsWithTheLease) {
  Scene s;
  s.join(record(41));
  const auto seen = Incumbent{"other", "other", "other:1", {41}, 1s};
  s.call(Verb::await_change, {}, seen, 1min);
  for (unsigned i = 2; i < 20; ++i) {
    s.advance(250ms);
    s.observed(record(41, "other", false, i));
    ASSERT_FALSE(s.did<action::Wake>());
  }
  const auto last = s.now;
  while (!s.did<action::Wake>()) {
    s.advance(50ms);
    if (s.did<action::Observe>()) s.observed(record(41, "other", false, 19));
    ASSERT_LE(s.now, last + lease);
  }
  EXPECT_GT(s.now, last + lease - 50ms);
}

TEST(NeliSeat, AWaitEndsExactlyWithTheLeaseWhateverReadsAreUnderWay) {
  Scene s;
  s.join(record(41));
  s.call(Verb::await_change, {}, Incumbent{"other", "other", "other:1", {41}, 1s}, 1min);
  s.advance(1s);
  EXPECT_EQ(s.neli.alarm(), Scene::start + lease);
}

TEST(NeliSeat, AWaitEndsWhenAClaimIsWorthTrying) {
  Scene s;
  s.join(record(40, "other", true));
  s.call(Verb::await_change, {}, Vacant{}, 1min);
  s.own();
  EXPECT_FALSE(s.did<action::Wake>());
  s.read(record(40, "other", true));
  EXPECT_TRUE(s.did<action::Wake>());
}

TEST(NeliSeat, WhatOneWroteOneselfAndDoesNotLeadByIsNobodys) {
  Scene s;
  s.call(Verb::acquire);
  s.observed(record(40, "mine"));
  EXPECT_EQ(s.take_answer<Denied>().holder, std::nullopt);
  s.call(Verb::await_change, {}, Vacant{}, 1min);
  EXPECT_FALSE(s.did<action::Wake>());
}

TEST(NeliSeat, AWaitForAHolderThatHasLapsedIsNoHotLoop) {
  Scene s;
  s.join(record(41));
  s.stands(record(41));
  s.call(Verb::await_change, {}, Incumbent{"other", "other", "other:1", {41}, 1s}, 1min);
  s.advance(lease);
  EXPECT_TRUE(s.did<action::Wake>());
  s.forget();
  s.call(Verb::acquire);
  const auto holder = s.take_answer<Denied>().holder;
  ASSERT_TRUE(holder);
  EXPECT_EQ(holder->remaining, 0s);
  s.call(Verb::await_change, {}, *holder, 1min);
  s.advance(2s);
  EXPECT_FALSE(s.did<action::Wake>());
}

TEST(NeliSeat, AWaitEndsAtOnceWhenItIsSoAlready) {
  Scene s;
  s.join(record(41));
  s.call(Verb::await_change, {}, Incumbent{"another", "another", "", {40}, 1s}, 1min);
  EXPECT_TRUE(s.did<action::Wake>());
}

TEST(NeliSeat, ObservesWithoutJoining) {
  Scene s;
  s.call(Verb::observe);
  s.observed(record(41));
  const auto sight = s.take<action::ReplySight>().sight;
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).token, Token{41});
  s.advance(1min);
  EXPECT_FALSE(s.did<action::Open>());
}

TEST(NeliSeat, ObservesWhatIsSoNow) {
  Scene s;
  s.call(Verb::observe);
  s.observed(record(41));
  s.take<action::ReplySight>();
  s.advance(50ms);
  s.call(Verb::observe);
  EXPECT_FALSE(s.did<action::ReplySight>());
  s.observed(record(41, "other", true, 2));
  EXPECT_TRUE(std::holds_alternative<Vacant>(s.take<action::ReplySight>().sight));
  s.call(Verb::observe);
  s.observed(unreachable);
  EXPECT_TRUE(std::holds_alternative<Unknown>(s.take<action::ReplySight>().sight));
}

TEST(NeliSeat, ALapsedHolderIsSeenWithNothingRemaining) {
  Scene s;
  s.call(Verb::observe);
  s.stands(record(41));
  s.advance(lease);
  s.forget();
  s.call(Verb::observe);
  s.answer_reads();
  const auto sight = s.take<action::ReplySight>().sight;
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight).remaining, 0s);
}

TEST(NeliSeat, ALeaderSeesItself) {
  Scene s;
  s.lead(40);
  s.call(Verb::observe);
  const auto sight = s.take<action::ReplySight>().sight;
  ASSERT_TRUE(std::holds_alternative<Incumbent>(sight));
  EXPECT_EQ(std::get<Incumbent>(sight), (Incumbent{"me", "mine", "me:1", {41}, lease}));
}

TEST(NeliSeat, AnObserverStopsReadingWhenNobodyAsks) {
  Scene s;
  s.call(Verb::observe);
  s.stands(record(41));
  s.advance(lease);
  s.answering = false;
  s.forget();
  s.advance(1min);
  EXPECT_FALSE(s.did<action::Observe>());
}

TEST(NeliSeat, WhatNeedsTheUserIsToldOnceAndEndsAWait) {
  Scene s;
  s.join(record(41));
  const Error session{Fault::misconfigured, "INVALID_SESSION_TIMEOUT"};
  const auto seen = Incumbent{"other", "other", "other:1", {41}, 1s};
  s.call(Verb::await_change, {}, seen, 1min);
  s.give(fact::Troubled{s.handle, session});
  EXPECT_TRUE(s.did<action::Wake>());
  s.forget();
  s.call(Verb::await_change, {}, seen, 1min);
  s.give(fact::Troubled{s.handle, session});
  EXPECT_FALSE(s.did<action::Wake>());
  s.call(Verb::acquire);
  s.advance(2s);
  EXPECT_EQ(s.take_answer<Unknown>().error, session);
}

TEST(NeliSeat, ClosingLeavesTheGroup) {
  Scene s;
  s.lead();
  s.give(fact::Closing{});
  EXPECT_TRUE(s.did<action::Drop>());
}

}  // namespace
}  // namespace tenure::kafka
