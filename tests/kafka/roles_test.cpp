// SPDX-License-Identifier: Apache-2.0
// Goal: the rules R1 to R16 of the chapter "Roles" of backends/kafka/README.md hold, by their numbers. Method: facts
// are handed to one Roles at chosen moments of a clock that is only a number; the test plays the coordinator.
#include "roles.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <tenure/kit/who.hpp>

#include "role_scene.hpp"

namespace tenure::kafka {
namespace {

using namespace std::chrono_literals;

constexpr int count = scene_units;
constexpr auto lease = 10s;
constexpr auto margin = 500ms;

Commit foreign(Token token, const std::string& who, bool released = false, std::uint64_t seq = 1, int units = count) {
  return {static_cast<std::int64_t>(token.value),
          encode(Record{.released = released, .lease = lease, .seq = seq, .who = {who, who, ""}, .units = units})};
}

struct Scene : RoleScene {
  Scene()
      : RoleScene(std::make_unique<Roles>(RoleConfig{
            .units = count, .lease = lease, .margin = margin, .observe_every = 500ms, .incarnation = "me"})) {}

  /// A member of the group that owns all, and leads these.
  void lead(const std::vector<std::string>& names) {
    for (int unit = 0; unit < count; ++unit) offset(record_of(unit)) = foreign({5}, "other", true);
    own();
    do_commit(names);
    ASSERT_EQ(done().claimed.size(), names.size());
  }
};

/// A namespace of its own, because the class under test has this name, too.
namespace rules_of_roles {

struct Roles : testing::Test {
  Scene s;
};

/// It owns all units, and leads a role of unit 0.
struct RolesThatLead : Roles {
  void SetUp() override { s.lead({role(0)}); }
};

// ---- R1 ----

TEST_F(Roles, R1TheUnitOfANameThatIsNoNumberGoesByItsHashWhichNeverChanges) {
  EXPECT_EQ(unit_of("", 16), 5);
  EXPECT_EQ(unit_of("a", 16), 12);
  EXPECT_EQ(unit_of("reports", 16), 8);
  EXPECT_EQ(unit_of("shard-0001", 256), 165);
  EXPECT_EQ(unit_of("shard-0001", 1), 0);
  EXPECT_EQ(unit_of("-1", 16), 11);
  EXPECT_EQ(unit_of("1 ", 16), 4);
  EXPECT_EQ(unit_of("1a", 16), 7);
  EXPECT_EQ(unit_of("0x10", 16), 4);
  EXPECT_EQ(unit_of("shard-7", 16), 15);
}

TEST_F(Roles, R1TheUnitOfANumberIsItsRemainder) {
  EXPECT_EQ(unit_of("0", 16), 0);
  EXPECT_EQ(unit_of("7", 16), 7);
  EXPECT_EQ(unit_of("17", 16), 1);
  EXPECT_EQ(unit_of("0017", 16), 1);
  EXPECT_EQ(unit_of("255", 256), 255);
  EXPECT_EQ(unit_of("18446744073709551617", 10), 7) << "above 64 bits, too";
  EXPECT_EQ(unit_of("12", 1), 0);
}

// ---- R2 ----

TEST_F(Roles, R2OneCommitRenewsAllThatIsLed) {
  s.lead({role(0), role(0, 1), role(1)});
  const auto before = s.commits;
  s.pass(1s);
  s.commit();
  EXPECT_EQ(s.commits, before + 1);
  EXPECT_EQ(s.sent->commits.size(), 2u) << "a record per unit";
  s.accept();
  EXPECT_TRUE(s.done().granted);
  EXPECT_TRUE(s.done().not_renewed.empty());
}

TEST_F(Roles, R2WhoLeadsNothingCommitsNothing) {
  s.open();
  const auto before = s.commits;
  s.commit();
  EXPECT_TRUE(s.done().granted);
  EXPECT_EQ(s.commits, before);
}

TEST_F(Roles, OnlyWhoOpensASessionCreatesAMissingTopic) {
  s.call(role_call::See{});
  s.pass({});
  EXPECT_EQ(s.observations, 1);
  EXPECT_FALSE(s.creates);
  s.observe();
  s.call(role_call::Open{SessionId{77}, {.record = {.who = "name=me"}}});
  EXPECT_FALSE(s.answer) << "it does not exist yet";
  EXPECT_EQ(s.observations, 2);
  EXPECT_TRUE(s.creates);
}

TEST_F(Roles, WhoOnlyLooksWaitsForTheRecordsAndJoinsNothing) {
  s.call(role_call::See{});
  EXPECT_FALSE(s.answer) << "nothing is known yet";
  EXPECT_EQ(s.observations, 1);
  s.offset(record_of(0)) = foreign({5}, "other");
  s.observe();
  ASSERT_TRUE(s.answer);
  const auto seen = s.look();
  ASSERT_TRUE(seen.leads.contains(role(0)));
  const auto& lead = seen.leads.at(role(0));
  EXPECT_FALSE(lead.released);
  EXPECT_EQ(read_who(seen.sessions.at(lead.session).record.who).value().name, "other");
  EXPECT_FALSE(seen.leads.contains(role(1))) << "nobody ever led it";
  s.give(role_fact::Observed{Error{Fault::unreachable, "away"}});
  s.call(role_call::See{});
  EXPECT_TRUE(s.failed()) << "it has no other news";
  s.observe();
  EXPECT_EQ(s.look().leads.size(), 2U);
  EXPECT_EQ(s.opened, 0);
}

TEST_F(Roles, WhoOnlyLooksHearsThatNothingCouldBeRead) {
  s.call(role_call::See{});
  s.pass(2s);
  EXPECT_TRUE(s.failed());
}

/// Each answer comes when the next call waits already: the next renewal goes out at once.
TEST_F(Roles, WhoLeadsByCommitsThatAreSlowKeepsItsHandle) {
  s.lead({role(0), role(1)});
  s.commit();
  for (const auto until = s.now + 3 * lease; s.now < until;) {
    s.pass(1s);
    s.commit();
    s.observe();
    s.accept();
    ASSERT_TRUE(s.sent);
  }
  EXPECT_EQ(s.drops, 0);
}

TEST_F(Roles, TheTroubleOfAMemberThatIsGoneFailsNoOpenOfALaterSession) {
  s.open();
  s.give(role_fact::Broken{s.handle, {Fault::unreachable, "the coordinator was away"}});
  s.call(role_call::End{SessionId{77}});
  s.pass(1s);
  s.observe();
  for (int i = 0; i < 3; ++i) {
    s.call(role_call::Open{SessionId{78}, {.record = {.who = "name=me"}}});
    if (s.answer) break;
    s.observe();
    s.pass({});
  }
  ASSERT_FALSE(s.failed());
  EXPECT_TRUE(s.done().granted);
}

TEST_F(Roles, TheTroubleOfAMemberThatOwnsNothingFailsOneWriteAndNoMore) {
  s.join({});
  for (int i = 0; i < 2; ++i) {
    s.give(role_fact::Troubled{s.handle, {Fault::forbidden, "the token source failed"}});
    s.commit();
    EXPECT_TRUE(s.failed()) << "again, if it comes again";
    s.commit();
    ASSERT_FALSE(s.failed());
    EXPECT_TRUE(s.done().granted);
  }
}

TEST_F(Roles, R14AMemberThatMayNotJoinIsOpenedAnew) {
  s.open();
  const auto refuse_for = [&](Clock::Duration by) {
    for (const auto until = s.now + by; s.now < until;) {
      s.give(role_fact::Troubled{s.handle, {Fault::forbidden, "certificate verify failed"}});
      s.stay(std::min<Clock::Duration>(250ms, until - s.now));
    }
  };
  refuse_for(5s - 1ms);
  EXPECT_EQ(s.drops, 0);
  refuse_for(1ms);
  EXPECT_EQ(s.drops, 1);
  s.stay(1s);
  EXPECT_EQ(s.opened, 2);
  refuse_for(4s);
  EXPECT_EQ(s.drops, 1) << "it has its own time";
}

// ---- R4 ----

TEST_F(Roles, R4NothingIsAllottedBeforeAReadThatCarriesTheNonce) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "other", true);
  s.join(all_partitions);
  ASSERT_TRUE(s.sent);
  EXPECT_EQ(s.sent->commits.begin()->first, nonce_of(0));
  const auto old = s.offsets;
  s.accept();
  ASSERT_TRUE(s.reading);
  s.give(role_fact::MemberRead{*std::exchange(s.reading, std::nullopt), old});
  EXPECT_FALSE(s.allotted(role(0))) << "an old coordinator answered";
  s.pass(250ms);
  s.prove();
  EXPECT_TRUE(s.allotted(role(0)));
}

TEST_F(Roles, R4ALeaseIsWaitedForAndARecordThatChangesRestartsTheWait) {
  s.offset(record_of(0)) = foreign({5}, "other");
  s.own({0, 1, 2});
  s.pass(lease - 1s);
  s.offset(record_of(0)) = foreign({5}, "other", false, 2);
  s.read();
  s.commit();  // It is still there.
  s.pass(2s);
  EXPECT_FALSE(s.allotted(role(0)));
  EXPECT_FALSE(s.look().leads.at(role(0)).released);
  if (s.reading) s.read();
  s.pass(lease - 2s);
  EXPECT_TRUE(s.allotted(role(0)));
  EXPECT_TRUE(s.look().leads.at(role(0)).released) << "as core must see it to claim";
}

TEST_F(Roles, R4AForeignCommitIsReportedOnceByOwnerAndObserver) {
  for (const bool owns : {false, true}) {
    s = Scene();
    s.offset(record_of(1)) = Commit{7, "somebody's own"};
    if (owns)
      s.own();
    else
      s.join({});
    EXPECT_NE(s.told.find("a foreign commit stands in place of the record of partition 3: offset 7"), s.told.npos)
        << owns << s.told;
    s.told.clear();
    s.stay(lease / 2);
    EXPECT_EQ(s.told, "") << owns;
  }
}

TEST_F(Roles, R4ATokenThatFellIsReportedOnceByOwnerAndObserver) {
  for (const bool owns : {false, true}) {
    s = Scene();
    s.offset(record_of(1)) = foreign({41}, "other");
    s.join({});
    s.stay(500ms);
    s.offset(record_of(1)) = foreign({31}, "other");
    if (owns)
      s.rebalance(all_partitions, 3), s.prove();
    else
      s.stay(lease + 250ms);
    EXPECT_NE(s.told.find("the token of partition 3 fell to 31 from 41: Kafka lost"), s.told.npos) << owns << s.told;
    s.told.clear();
    s.stay(lease / 2);
    EXPECT_EQ(s.told, "") << owns;
  }
}

TEST_F(Roles, R4AnAbsentRecordIsWaitedForAnewAfterAGenerationInWhichAnotherOneMayHaveLed) {
  const auto wait = [this](Clock::Duration time) {
    for (; time > 0s; time -= 500ms) s.read_on(), s.commit();
  };
  for (const bool heard_of : {false, true}) {
    s = Scene();
    s.own();
    wait(lease - 1s);
    if (heard_of) s.rebalance({}, 3);
    s.rebalance(all_partitions, 4);
    s.prove();
    wait(lease - 500ms);
    EXPECT_FALSE(s.sent) << heard_of;
    s.pass(500ms);
    s.accept();  // Unit 0 tells the number, by the rules of a claim.
    EXPECT_TRUE(s.allotted(role(0))) << heard_of;
  }
}

TEST_F(Roles, R4WhoJoinedBeforeTheGroupWasThereWaitsForNoLeaseInALaterGeneration) {
  for (const bool new_group : {false, true}) {
    s = Scene();
    s.open(new_group);
    s.assign(all_partitions, 2);
    s.prove();
    if (s.sent) s.accept();  // Unit 0 tells the number.
    EXPECT_EQ(s.allotted(role(0)), new_group) << "generation 1 was over before anybody was told of it";
  }
}

/// Its own claims may have been lost in the rebalance that brought us in.
TEST_F(Roles, R4WhoHearsByANonceOfItsGenerationThatTheGroupIsNewWaitsForNoLease) {
  for (const bool now : {false, true}) {
    s = Scene();
    s.open();
    s.assign({record_of(1), nonce_of(1), farewell_of(1)}, 12);
    s.accept();
    s.offset(nonce_of(0)) = Commit{1, now ? "other.7;new12" : "other.7;new2"};
    s.offset(record_of(0)) = foreign({5}, "other");
    s.read();
    EXPECT_EQ(s.allotted(role(1)), now);
    s.rebalance({record_of(1), nonce_of(1), farewell_of(1)}, 13);
    s.prove();
    EXPECT_FALSE(s.allotted(role(1))) << "it may have left";
  }
}

TEST_F(Roles, R4WhoWasThereBeforeTheGroupTellsTheOthersForALease) {
  const auto nonce = [&] {
    std::string told;
    for (; s.sent && told.empty(); s.accept())
      if (s.sent->commits.contains(nonce_of(0))) told = s.sent->commits.at(nonce_of(0)).metadata;
    return told;
  };
  s.join(all_partitions, 1);
  EXPECT_EQ(nonce(), "me.1;new1");
  s.read();
  s.accept();  // Unit 0 tells the number.
  s.do_commit({role(0), role(1)});
  s.rebalance({record_of(0), nonce_of(0), farewell_of(0), record_of(1), nonce_of(1), farewell_of(1)}, 2);
  EXPECT_EQ(nonce(), "me.2;new2") << "it has nothing to read, but others may have";
  for (int i = 0; i < 2; ++i) s.pass(lease / 2), s.do_commit();
  s.rebalance(all_partitions, 3);
  EXPECT_EQ(nonce(), "") << "they know it by the records now";
}

TEST_F(Roles, R4OnlyTheFirstHandleJoinedBeforeTheGroupWasThere) {
  s.open(true);
  s.assign(all_partitions, 2);
  s.give(role_fact::Broken{s.handle, {Fault::unreachable, "lost"}});
  s.stay(1s);
  ASSERT_EQ(s.opened, 2);
  s.assign(all_partitions, 3);
  s.prove();
  EXPECT_FALSE(s.sent) << "unit 0 tells the number by the rules of a claim";
  EXPECT_FALSE(s.allotted(role(0)));
}

/// As in a single election: it shows what stood before, and would be told as a lost commit.
TEST_F(Roles, R4AReadThatWasUnderWayAtAClaimIsForgotten) {
  s.offset(record_of(0)) = foreign({5}, "other", true);
  s.offset(record_of(1)) = foreign({5}, "other");  // so that it goes on reading
  s.own();
  for (int i = 0; i < 100 && !s.reading; ++i) s.pass(5ms);
  ASSERT_TRUE(s.reading);
  const role_fact::MemberRead old{*s.reading, s.offsets};
  s.do_commit({role(0)});
  ASSERT_TRUE(s.leads(role(0)));
  s.do_commit({}, {role(0)});
  s.give(old);
  EXPECT_EQ(s.told.find("lost an acknowledged commit"), s.told.npos) << s.told;
}

/// It asks again four times a second.
TEST_F(Roles, R4AStaleAnswerIsLoggedOnceAMinute) {
  s.join({record_of(1), nonce_of(1), farewell_of(1)});
  int reads = 0;
  for (const auto until = s.now + 9s; s.now < until; s.pass(250ms)) {
    if (s.sent) s.accept();
    s.offset(nonce_of(1)).reset();
    if (s.reading) s.read(), ++reads;
  }
  EXPECT_GT(reads, 10);
  const auto first = s.told.find("stale answer");
  ASSERT_NE(first, s.told.npos);
  EXPECT_EQ(s.told.rfind("stale answer"), first) << s.told;
}

TEST_F(Roles, R4AnOwnerThatMustWaitReadsSoonAgainAndThenEverMoreSeldom) {
  s.offset(record_of(0)) = foreign({5}, "other");
  s.open();
  const auto pauses = [this](std::size_t reads) {
    std::vector<Clock::Duration> out;
    for (auto last = s.now; out.size() < reads;) {
      s.pass(1ms);
      if (!s.reading) continue;
      out.push_back(s.now - last);
      last = s.now;
      s.read();
    }
    return out;
  };
  s.assign({0, 1, 2});
  s.prove();
  EXPECT_EQ(pauses(9), (std::vector<Clock::Duration>{5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms}));
  s.rebalance({0, 1, 2}, 3);
  s.prove();
  EXPECT_EQ(pauses(2), (std::vector<Clock::Duration>{5ms, 10ms})) << "as the old owner may be ending its work now";
}

// ---- R5 ----

TEST_F(RolesThatLead, R5AClaimInALedUnitRaisesTheOffsetAndTheOthersKeepTheirTokens) {
  EXPECT_EQ(s.done().token, Token{6});
  s.do_commit({role(0, 1)});
  EXPECT_EQ(s.done().token, Token{7});
  EXPECT_EQ(s.offset(record_of(0))->offset, 7);
  const auto leads = s.look().leads;
  EXPECT_EQ(leads.at(role(0)).token, Token{6});
  EXPECT_EQ(leads.at(role(0, 1)).token, Token{7});
}

TEST_F(Roles, R5ATokenThatWasTriedIsBurned) {
  s.lead({role(1)});
  s.commit({role(0)});
  s.answer_commit(Outcome::fenced);
  s.rebalance(all_partitions, 3);
  s.prove();
  s.do_commit({role(0)});
  EXPECT_EQ(s.done().token, Token{7});
}

TEST_F(RolesThatLead, R5AClaimWhoseTokenWouldBeTooGreatIsLeftOutAndReportedOnce) {
  const auto at_least = Token{greatest_lead_token.value + 1};
  const auto claim = [this](Token least) {
    const auto stands = s.look().leads.at(role(1)).token;
    s.call(role_call::Write{{.session = SessionId{77},
                             .next = {.record = {.who = "name=me"}},
                             .claims = {{role(1), stands}},
                             .at_least = least}});
    ASSERT_TRUE(s.sent);
    EXPECT_TRUE(s.sent->commits.contains(record_of(0))) << "what is led is renewed";
    EXPECT_FALSE(s.sent->commits.contains(record_of(1)));
    s.accept();
    EXPECT_TRUE(s.done().claimed.empty());
  };
  claim(at_least);
  EXPECT_NE(s.told.find("roles of partition 3 cannot be claimed"), s.told.npos) << s.told;
  s.told.clear();
  claim(at_least);
  EXPECT_EQ(s.told, "");
  s.call(role_call::Write{{.session = SessionId{77},
                           .next = {.record = {.who = "name=me"}},
                           .claims = {{role(1), s.look().leads.at(role(1)).token}},
                           .at_least = greatest_lead_token}});
  s.accept();
  EXPECT_EQ(s.done().token, greatest_lead_token);
}

TEST_F(Roles, R5WhereTheOffsetIsTooLargeTheUnitAloneIsLostAndThatIsReported) {
  s.offset(record_of(0)) = foreign({5}, "other", true);
  s.offset(record_of(1)) = foreign({max_token}, "other", true);
  s.own();
  const auto seen = s.look();
  EXPECT_FALSE(seen.leads.contains(role(1))) << "or each process would ask for a greater token in all units";
  ASSERT_TRUE(seen.unreadable.contains(role(1)));
  EXPECT_NE(seen.unreadable.at(role(1)).message.find("roles of partition 3 cannot be claimed"), std::string::npos);
  s.do_commit({role(0), role(1)});
  EXPECT_EQ(s.done().claimed, std::vector{role(0)});
}

// ---- R6 and R7 ----

TEST_F(RolesThatLead, R6WhatLapsedIsReadAgainBeforeAnythingIsWritten) {
  s.pass(lease - margin);
  s.commit();
  EXPECT_FALSE(s.sent && s.sent->commits.contains(record_of(0)));
  EXPECT_FALSE(s.allotted(role(0)));
}

TEST_F(RolesThatLead, R6WhatLapsedIsNotRevivedByALateAnswer) {
  s.pass(lease - margin - 1ms);
  s.commit();
  s.pass(1ms);
  ASSERT_FALSE(s.allotted(role(0)));
  s.accept();
  EXPECT_FALSE(s.allotted(role(0))) << "others may have claimed meanwhile";
}

TEST_F(RolesThatLead, R6WhatLapsedIsNotRevivedByAnAnswerThatNoticesTheTimeFirst) {
  s.pass(lease - margin - 1ms);
  s.commit();
  s.now += 1ms;
  s.accept();
  EXPECT_FALSE(s.allotted(role(0)));
}

TEST_F(RolesThatLead, R7AfterAnErrorNothingIsSentForAPause) {
  s.commit();
  s.answer_commit(Outcome::failed);
  s.commit();
  s.pass(RoleMachine::retry_pause - 1ns);
  EXPECT_FALSE(s.sent);
  s.pass(1ns);
  EXPECT_TRUE(s.sent);
}

TEST_F(Roles, R7AnErrorExtendsNothing) {
  // Also if it is one partition's, as unknown_topic may be, and the rest was written.
  for (const auto outcome : {Outcome::failed, Outcome::fenced, Outcome::unknown_topic}) {
    s = Scene();
    s.lead({role(0), role(1)});
    s.pass(lease - margin - 1s);
    s.commit();
    s.answer_commit(outcome);
    EXPECT_TRUE(s.failed());
    EXPECT_EQ(s.drops, 0) << "a renewal writes the same again";
    s.pass(1s);
    EXPECT_FALSE(s.allotted(role(0)));
    EXPECT_FALSE(s.allotted(role(1)));
  }
}

TEST_F(Roles, R7AClaimOfUnknownOutcomeCostsTheHandle) {
  s.lead({role(1)});
  s.commit({role(0)});
  s.answer_commit(Outcome::failed);
  EXPECT_TRUE(s.failed());
  EXPECT_EQ(s.drops, 1);
}

TEST_F(RolesThatLead, R7ACommitThatWasSentTwiceCostsTheHandleAndKeepsRankAndTokens) {
  const auto rank = s.rank;
  const auto token = s.look().leads.at(role(0)).token;
  s.pass(1s);
  s.commit();
  s.accept(true);
  EXPECT_FALSE(s.failed());
  EXPECT_EQ(s.drops, 1);
  EXPECT_TRUE(s.leads(role(0)));
  s.commit();
  EXPECT_FALSE(s.sent) << "a copy may be handled after it";
  s.pass(1s);
  EXPECT_EQ(s.opened, 2);
  EXPECT_EQ(s.rank, rank);
  s.assign({0, 1, 2}, 3);
  s.accept();
  EXPECT_FALSE(s.failed());
  EXPECT_EQ(s.look().leads.at(role(0)).token, token);
}

TEST_F(Roles, R7AfterACommitThatWasSentTwiceTheOldRankIsKeptOnlyWhileItLeads) {
  for (const bool joined : {true, false}) {
    s = Scene();
    s.lead({role(0)});
    const auto rank = s.rank;
    s.commit();
    s.accept(true);
    if (joined) {
      s.pass(1s);
      EXPECT_EQ(s.rank, rank);
      s.pass(lease - margin - 1s);
      EXPECT_EQ(s.drops, 2) << "the old rank would take units from a healthy successor";
      s.commit();
      s.pass(1s);
    } else {
      s.pass(lease - margin);
      EXPECT_EQ(s.drops, 1);
    }
    EXPECT_NE(s.rank, rank);
  }
}

TEST_F(RolesThatLead, R7AfterARenewalOfUnknownOutcomeAClaimCostsTheHandle) {
  s.pass(1s);
  s.commit();
  s.answer_commit(Outcome::failed);
  EXPECT_EQ(s.drops, 0);
  s.pass(1s);
  s.do_commit();
  EXPECT_EQ(s.drops, 0) << "renewals go on";
  s.commit({role(0, 1)});
  EXPECT_FALSE(s.sent);
  EXPECT_TRUE(s.failed());
  EXPECT_EQ(s.drops, 1);
}

TEST_F(Roles, R7AReleaseOfUnknownOutcomeCostsTheHandle) {
  s.lead({role(0), role(1)});
  s.commit({}, {role(0)});
  s.answer_commit(Outcome::failed);
  EXPECT_EQ(s.drops, 1);
}

// ---- R8 ----

TEST_F(RolesThatLead, R8TheUnassignWaitsForTheAnswer) {
  s.commit();
  s.revoked();
  EXPECT_EQ(s.unassigns, 0);
  s.accept();
  EXPECT_EQ(s.unassigns, 1);
  s.commit();
  EXPECT_FALSE(s.sent) << "nothing is sent before the next assignment";
}

TEST_F(RolesThatLead, R8ACommitThatIsNotAnsweredCostsTheHandle) {
  s.commit();
  s.revoked();
  s.pass(500ms);
  EXPECT_EQ(s.unassigns, 0);
  EXPECT_EQ(s.drops, 1);
  EXPECT_TRUE(s.failed());
}

// ---- R9 and R10 ----

TEST_F(RolesThatLead, R9WhatIsOwnedAgainGoesOnWithItsTokenAtOnce) {
  s.revoked();
  EXPECT_TRUE(s.allotted(role(0))) << "a rebalance alone ends nothing";
  s.assign({0, 1, 2}, 3);
  EXPECT_TRUE(s.allotted(role(0)));
  s.commit();
  ASSERT_TRUE(s.sent);
  EXPECT_EQ(s.sent->commits.at(record_of(0)).offset, 6);
}

TEST_F(Roles, R9WhatIsNotOwnedIsNotRenewedAndCoreLearnsThat) {
  s.lead({role(0), role(1)});
  s.rebalance({0, 1, 2}, 3);
  EXPECT_FALSE(s.allotted(role(1)));
  s.commit();
  EXPECT_FALSE(s.sent->commits.contains(record_of(1)));
  s.accept();
  EXPECT_EQ(s.done().not_renewed, std::vector{role(1)});
}

TEST_F(Roles, R10TheLastReleaseOfALostUnitIsAFarewell) {
  s.lead({role(0), role(1), role(1, 1)});
  s.rebalance({0, 1, 2}, 3);
  s.commit({}, {role(1)});
  EXPECT_FALSE(s.sent->commits.contains(farewell_of(1))) << "the other one is still led";
  s.accept();
  s.commit({}, {role(1, 1)});
  EXPECT_TRUE(s.sent->commits.contains(farewell_of(1)));
  EXPECT_FALSE(s.sent->commits.contains(record_of(1)));
}

TEST_F(Roles, R10AFarewellThatWasSentEndsTheTenureWhateverItsAnswer) {
  s.lead({role(0), role(1)});
  s.rebalance({0, 1, 2}, 3);
  s.commit({}, {role(1)});
  s.answer_commit(Outcome::failed);
  s.revoked();
  s.offset(record_of(1)) = foreign({7}, "next");
  s.assign({3, 4, 5}, 4);
  s.pass(250ms);
  s.commit();
  EXPECT_FALSE(s.sent && s.sent->commits.contains(record_of(1))) << "the next owner leads there";
}

TEST_F(Roles, R10AFarewellFreesTheTenureThatItNamesAndNoOther) {
  for (const std::int64_t told : {5, 4}) {
    s = Scene();
    s.offset(record_of(0)) = foreign({5}, "other");
    s.offset(farewell_of(0)) = Commit{told, "v1;other"};
    s.own({0, 1, 2});
    EXPECT_EQ(s.allotted(role(0)), told == 5) << told;
  }
}

// ---- R11 and R12 ----

TEST_F(Roles, R11TheRecordSaysReleasedWithTheLastRelease) {
  s.lead({role(0), role(0, 1)});
  s.do_commit({}, {role(0)});
  EXPECT_EQ(s.done().released, std::vector{role(0)});
  EXPECT_FALSE(s.record(0).released);
  s.do_commit({}, {role(0, 1)});
  EXPECT_TRUE(s.record(0).released);
}

TEST_F(Roles, R11AReleaseThatWasSentEndsTheTenureWhateverItsAnswer) {
  s.lead({role(0), role(1)});
  s.commit({}, {role(0)});
  s.answer_commit(Outcome::fenced);
  s.revoked();
  s.offset(record_of(0)) = foreign({7}, "next");
  s.assign({0, 1, 2}, 4);
  s.pass(100ms);
  s.commit();
  EXPECT_FALSE(s.sent && s.sent->commits.contains(record_of(0))) << "the next owner leads there";
}

TEST_F(Roles, R12AStopReleasesAllInOneCommitAndLeaves) {
  s.lead({role(0), role(1)});
  const auto before = s.commits;
  s.call(role_call::End{SessionId{77}});
  s.accept();
  EXPECT_EQ(s.commits, before + 1);
  EXPECT_TRUE(s.record(0).released && s.record(1).released);
  EXPECT_EQ(s.drops, 1);
  s.give(role_fact::Left{s.handle});
  EXPECT_TRUE(s.answer);
}

TEST_F(RolesThatLead, R12AStopWaitsForTheAnswerToItsRelease) {
  s.call(role_call::End{SessionId{77}});
  s.pass(100ms);
  EXPECT_EQ(s.drops, 0) << "a handle that is dropped may not send it";
  EXPECT_FALSE(s.answer);
  s.accept();
  EXPECT_EQ(s.drops, 1);
  s.give(role_fact::Left{s.handle});
  EXPECT_TRUE(s.answer);
}

TEST_F(RolesThatLead, R12AStopWaitsForTheAnswerUpToItsLimit) {
  s.call(role_call::End{SessionId{77}});
  s.pass(2s - RoleMachine::reply_reserve - 1ns);
  EXPECT_EQ(s.drops, 0);
  s.pass(1ns);
  EXPECT_EQ(s.drops, 1);
}

TEST_F(RolesThatLead, R12ASessionThatLapsesBehindItsReleaseLeavesTheMember) {
  s.pass(lease - margin - 1s);
  s.call(role_call::End{SessionId{77}});
  s.pass(1s);
  EXPECT_TRUE(s.answer);
  s.accept();
  EXPECT_EQ(s.drops, 0);
}

TEST_F(RolesThatLead, R12ASessionThatLapsedEndsWithoutAWord) {
  s.pass(lease - margin);
  const auto before = s.commits;
  s.call(role_call::End{SessionId{77}});
  EXPECT_TRUE(s.answer);
  EXPECT_EQ(s.drops, 0);
  EXPECT_LE(s.commits, before + 1) << "a nonce at most";
}

// ---- R13 and R14 ----

TEST_F(Roles, R13ARecordOfAnotherNumberOfUnitsStopsAllClaims) {
  s.offset(record_of(0)) = foreign({5}, "other", true);
  s.offset(record_of(1)) = foreign({5}, "stranger", false, 1, 3);
  s.own({0, 1, 2});
  s.pass(lease - 1s);
  EXPECT_FALSE(s.allotted(role(0)));
  s.pass(1s);
  EXPECT_TRUE(s.allotted(role(0)));
}

TEST_F(Roles, R13ItIsReportedHowAStrangerUsesTheTopic) {
  const std::pair<Commit, const char*> ways[] = {
      {foreign({5}, "x", false, 1, 3), "\"x\" uses this group and topic with 3 units, and this process with 2 units"},
      {foreign({5}, "x", false, 1, 0), "with one election, and"},
      {{5, "v5;A;10000;comes;then"}, "with a later version of this library, and"}};
  for (const auto& [record, way] : ways) {
    s = Scene();
    s.offset(record_of(1)) = record;
    s.observe();
    EXPECT_NE(s.told.find(way), s.told.npos) << s.told;
  }
}

TEST_F(Roles, R13AnOldReadDoesNotShowThatOneIsGone) {
  s.offset(record_of(0)) = foreign({5}, "other", true);
  const auto stranger = foreign({5}, "stranger", false, 1, 3);
  s.offset(record_of(1)) = stranger;
  s.own({0, 1, 2});
  s.offset(record_of(1)) = foreign({4}, "before", true);
  s.observe();
  s.offset(record_of(1)) = stranger;
  EXPECT_FALSE(s.allotted(role(0)));
  s.pass(lease - 1s);
  EXPECT_FALSE(s.allotted(role(0)));
  s.pass(1s);
  EXPECT_TRUE(s.allotted(role(0)));
}

TEST_F(RolesThatLead, R14AProcessThatAsksNothingForALeaseLeaves) {
  s.pass(lease);
  s.pass(lease);
  EXPECT_EQ(s.drops, 1);
}

const Error forbidden{Fault::forbidden, "no READ on the topic"};

/// Time passes, and the coordinator refuses all commits.
void refuse_for(Scene& s, Clock::Duration by) {
  for (const auto until = s.now + by; s.now < until;) {
    if (const auto nonce = std::exchange(s.sent, std::nullopt))
      s.give(role_fact::Committed{nonce->id, Outcome::failed, forbidden});
    s.stay(std::min<Clock::Duration>(250ms, until - s.now));
  }
}

/// No revoke tells it. Its client joins anew, by another id.
TEST_F(Roles, R14WhoWasEvictedWhileItJoinedRanksAnewUnlessItLeads) {
  for (const bool leads : {false, true}) {
    s = Scene();
    if (leads)
      s.lead({role(0)});
    else
      s.own();
    s.revoked();
    s.assign(all_partitions, 3, "another");
    EXPECT_EQ(s.drops, leads ? 0 : 1);
    EXPECT_EQ(s.leads(role(0)), leads);
  }
}

TEST_F(Roles, R14AnOwnerWhoseCommitsAreRefusedForALeaseLeavesAndStaysOutWhileItsReadsAreToo) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "other", true);
  s.join(all_partitions);
  refuse_for(s, lease - 1ms);
  EXPECT_EQ(s.drops, 0);
  refuse_for(s, 1ms);
  EXPECT_EQ(s.drops, 1);
  s.give(role_fact::Observed{forbidden});
  for (int i = 0; i < 12; ++i) {
    s.commit();
    s.pass(250ms);
  }
  EXPECT_EQ(s.opened, 1);
  s.observe();
  EXPECT_EQ(s.opened, 2);
}

/// Time passes while another process leads unit 1.
void stay_beside_a_leader(Scene& s, Clock::Duration by) {
  static std::uint64_t seq = 1;
  for (const auto until = s.now + by; s.now < until;) {
    s.offset(record_of(1)) = foreign({5}, "other", false, ++seq);
    s.stay(std::min<Clock::Duration>(250ms, until - s.now));
  }
}

TEST_F(Roles, R14AnOwnerWhoseCommitsAloneAreRefusedStaysOutForLongerEachTime) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "other", true);
  s.open();
  int times = 0;
  for (const auto pause : {4 * lease, 8 * lease}) {
    s.assign(all_partitions);
    refuse_for(s, lease);
    EXPECT_EQ(s.drops, ++times);
    stay_beside_a_leader(s, pause - 250ms);
    EXPECT_EQ(s.opened, times);
    stay_beside_a_leader(s, 250ms);
    EXPECT_EQ(s.opened, times + 1);
  }
  s.assign(all_partitions);
  s.prove();
  s.do_commit({role(0)});
  s.assign(all_partitions, 3);
  refuse_for(s, lease);
  s.stay(4 * lease);
  EXPECT_EQ(s.opened, times + 2) << "a claim was accepted meanwhile";
}

/// As where the brokers refused them all, and do so no more.
TEST_F(Roles, R14WhereNobodyLeadsItDoesNotStayOutForLong) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "other", true);
  s.open();
  for (int times = 0; times < 3;) {
    s.assign(all_partitions);
    refuse_for(s, lease);
    s.expect_out_for(4 * lease, ++times);
  }
}

/// Time passes for a process whose member's reads fail.
void fail_reads_for(Scene& s, Clock::Duration by) {
  for (const auto until = s.now + by; s.now < until;) {
    if (const auto read = std::exchange(s.reading, std::nullopt))
      s.give(role_fact::MemberRead{*read, Error{Fault::timed_out, "no answer to a read"}});
    s.stay(std::min<Clock::Duration>(250ms, until - s.now));
  }
}

TEST_F(Roles, R14AnOwnerWhoseReadsAreNotAnsweredLeavesAndStaysOutForLongerEachTime) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "gone");
  s.open();
  int times = 0;
  for (const Clock::Duration pause : {1000ms, 10'000ms, 20'000ms}) {
    s.assign(all_partitions);
    s.accept();
    fail_reads_for(s, lease - 1ms);
    EXPECT_EQ(s.drops, times);
    fail_reads_for(s, 1ms);
    s.expect_out_for(pause, ++times);
  }
  EXPECT_NE(s.told.find("stays out of the group for 10 s"), std::string::npos) << s.told;
  EXPECT_EQ(s.told.find("stays out"), s.told.rfind("stays out")) << "told once";
  EXPECT_NE(s.told.find("no answer to a read"), std::string::npos) << s.told;
}

// As where the way to the coordinator loses large requests.
TEST_F(Roles, R14AnOwnerWhoseClaimsAloneAreNotAnsweredStaysOutForLongerEachTime) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "gone", true);
  s.open();
  int times = 0;
  for (const Clock::Duration pause : {1000ms, 10'000ms, 20'000ms}) {
    s.assign(all_partitions);
    s.prove();
    s.commit({role(0), role(1)});
    s.answer_commit(Outcome::failed);
    s.expect_out_for(pause, ++times);
  }
  s.assign(all_partitions);
  s.prove();
  s.do_commit({role(0)});
  s.commit({role(1)});
  s.answer_commit(Outcome::failed);
  s.stay(1s);
  EXPECT_EQ(s.opened, times + 2) << "a claim was accepted meanwhile";
}

TEST_F(Roles, R14AnOwnerThatLeadsAndCannotReadWhatElseItOwnsLeaves) {
  s.offset(record_of(0)) = foreign({5}, "gone", true);
  s.offset(record_of(1)) = foreign({5}, "other");
  s.own({0, 1, 2});
  s.do_commit({role(0)});
  s.rebalance(all_partitions);
  for (const auto until = s.now + lease; s.now < until; s.pass(250ms)) {
    ASSERT_EQ(s.drops, 0);
    if (s.sent) s.accept();
    s.commit();
    if (s.sent) s.accept();
    if (const auto read = std::exchange(s.reading, std::nullopt))
      s.give(role_fact::MemberRead{*read, Error{Fault::timed_out, "no answer"}});
  }
  EXPECT_EQ(s.drops, 1);
}

TEST_F(RolesThatLead, R14WhatIsLedIsLedToItsEndThoughCommitsAreRefused) {
  s.commit();
  s.give(role_fact::Committed{std::exchange(s.sent, std::nullopt)->id, Outcome::failed, {Fault::forbidden, "no"}});
  s.pass(lease - margin - 1ms);
  EXPECT_TRUE(s.leads(role(0)));
  EXPECT_EQ(s.drops, 0);
}

// ---- R14: rule 21, a stranger in the group ----

/// A process that owns unit 0. The lease of unit 1's last leader is over for a lease.
void see_unit_1_unled(Scene& s) {
  s.offset(record_of(0)) = foreign({5}, "other", true);
  s.offset(record_of(1)) = foreign({5}, "gone");
  s.own({0, 1, 2});
  s.stay(2 * lease - 250ms);
  ASSERT_EQ(s.searches, 0);
  s.stay(250ms);
  ASSERT_EQ(s.searches, 1);
}

TEST_F(Roles, R14AStrangerThatKeepsAUnitFromAllIsNamedOnce) {
  see_unit_1_unled(s);
  s.found_owner(record_of(1), "console-consumer");
  EXPECT_EQ(
      s.told,
      "some roles have no leader: partition 3 is owned by \"console-consumer\" at /10.0.0.7, which is no process of "
      "these roles. It leads too, if it takes an owner for a leader, as goNELI does. Stop it, or give the "
      "roles a group of their own");
  s.stay(5 * lease);
  EXPECT_EQ(s.searches, 1);
}

/// Nobody commits for it, so that no commit is refused if it is gone.
TEST_F(Roles, R14WhereAUnitIsUnledTheTopicIsLookedAt) {
  see_unit_1_unled(s);
  EXPECT_TRUE(s.checks);
  s.stay(500ms);
  EXPECT_FALSE(s.checks);
}

TEST_F(Roles, R14ACandidateOfASingleElectionIsAStrangerHere) {
  see_unit_1_unled(s);
  s.found_owner(record_of(1), "!tenure.1.2.x");
  EXPECT_NE(s.told.find("\"!tenure.1.2.x\""), s.told.npos) << s.told;
}

TEST_F(Roles, R14AProcessOfOursIsNoStranger) {
  see_unit_1_unled(s);
  s.found_owner(record_of(1), role_member_name(1, "other"));
  EXPECT_EQ(s.told, "");
  s.stay(lease);
  EXPECT_EQ(s.searches, 2) << "another one may own the unit by now";
  s.found_owner(record_of(0), "console-consumer");
  EXPECT_EQ(s.told, "") << "what is ours by now was asked for in vain";
}

TEST_F(Roles, R14AStrangerIsNamedAgainAfterTheUnitWasLed) {
  see_unit_1_unled(s);
  s.found_owner(record_of(1), "console-consumer");
  s.offset(record_of(1)) = foreign({6}, "next");
  s.told.clear();
  s.stay(2 * lease + 250ms);
  ASSERT_EQ(s.searches, 2);
  s.found_owner(record_of(1), "console-consumer");
  EXPECT_NE(s.told, "");
}

TEST_F(Roles, R14AGroupThatAStrangerConvertedIsReportedWithTheRemedy) {
  see_unit_1_unled(s);
  s.give(role_fact::OwnersFound{Owners{.partitions = {}, .converted = true}});
  EXPECT_NE(s.told.find("group.consumer.migration.policy=disabled"), s.told.npos) << s.told;
}

TEST_F(Roles, R14AUnitThatIsAssignedToNobodyIsReportedOnceTheGroupIsStable) {
  see_unit_1_unled(s);
  const PartitionOwner we{record_of(0), role_member_name(1, "me"), "/10.0.0.8"};
  s.give(role_fact::OwnersFound{Owners{.partitions = {we}}});
  EXPECT_EQ(s.told, "") << "in a rebalance nobody has anything";
  s.stay(lease);
  ASSERT_EQ(s.searches, 2);
  s.give(role_fact::OwnersFound{Owners{.partitions = {we}, .stable = true}});
  EXPECT_NE(s.told.find("partition 3 is assigned to no member"), s.told.npos) << s.told;
  s.stay(5 * lease);
  EXPECT_EQ(s.searches, 2);
}

TEST_F(Roles, R14NobodyIsSearchedForWhereAllIsLedOrOurs) {
  Scene owner;
  owner.lead({role(0), role(1)});
  Scene other;
  other.open();
  other.assign({0, 1, 2});
  other.prove();
  for (std::uint64_t i = 0; i < 60; ++i) {
    owner.commit();
    owner.accept();
    owner.pass(500ms);
    other.offset(record_of(1)) = foreign({6}, "led", false, i);
    other.stay(500ms);
  }
  EXPECT_EQ(owner.searches, 0);
  EXPECT_EQ(other.searches, 0);
}

TEST_F(Roles, R14WhoNamedTheOwnerOfAUnitClaimsALeaseAfterItsNextAssignment) {
  for (const bool stranger : {false, true}) {
    s = Scene();
    see_unit_1_unled(s);
    s.found_owner(record_of(1), stranger ? "sarama" : role_member_name(1, "other"));
    s.rebalance(all_partitions, 3);
    s.prove();
    for (const auto until = s.now + lease - 250ms; s.now < until; s.stay(250ms))
      EXPECT_EQ(s.allotted(role(1)), !stranger) << "it may lead by a protocol of its own, and not know yet";
    s.stay(250ms);
    EXPECT_TRUE(s.allotted(role(1)));
  }
}

TEST_F(Roles, R14WhatWasGivenUpHasNoLeaderSoWhoKeepsItIsSearchedForALeaseLater) {
  s.lead({role(0), role(1)});
  s.rebalance({0, 1, 2}, 3);
  s.do_commit({}, {role(1)});
  for (const auto until = s.now + lease; s.now < until; s.pass(250ms)) {
    EXPECT_EQ(s.searches, 0);
    s.observe();
    s.do_commit();
  }
  EXPECT_EQ(s.searches, 1);
}

// ---- R16 ----

/// Core publishes that it may lead so many elections. Time passes.
void stay_able_to_lead(Scene& s, std::uint32_t most, Clock::Duration by) {
  s.most = most;
  s.stay(by);
}

TEST_F(Roles, R16WhoMayLeadNothingForALeaseLeavesAndStaysOutAsLongAsThatLasts) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "other", true);
  s.own();
  stay_able_to_lead(s, 0, lease - 1s);
  stay_able_to_lead(s, 1, 1s);
  stay_able_to_lead(s, 0, lease - 250ms);
  EXPECT_EQ(s.drops, 0) << "a hook returned meanwhile";
  s.stay(500ms);
  EXPECT_EQ(s.drops, 1);
  EXPECT_NE(s.told.find("stays out of the group for 10 s"), s.told.npos) << s.told;
  EXPECT_NE(s.told.find("Its hooks hang, or all its elections pause"), s.told.npos) << s.told;
  s.stay(5 * lease);
  EXPECT_EQ(s.opened, 1);
  stay_able_to_lead(s, 4, 500ms);
  EXPECT_EQ(s.opened, 2);
}

TEST_F(RolesThatLead, R16WhoStillLeadsSomethingStays) {
  s.most = 0;
  for (const auto until = s.now + 3 * lease; s.now < until; s.pass(250ms)) {
    s.do_commit();
  }
  EXPECT_EQ(s.drops, 0) << "it may be a stop whose hooks take long";
  s.give(role_fact::Broken{s.handle, {Fault::unreachable, "lost"}});
  s.stay(1s);
  EXPECT_EQ(s.opened, 2) << "and needs its renewals";
}

/// It is dealt its units, leads a role for so long, and may then lead nothing for a lease.
void hang_after(Scene& s, Clock::Duration by) {
  s.assign(all_partitions);
  s.prove();
  s.most = 4;
  s.do_commit({role(0)});
  for (const auto until = s.now + by; s.now < until; s.pass(250ms)) {
    s.do_commit();
  }
  s.most = 0;
  s.do_commit({}, {role(0)});
  s.stay(lease);
  s.most = 4;
}

TEST_F(Roles, R16ItStaysOutForLongerEachTimeUntilItWasInForAsLong) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "other", true);
  s.open();
  int times = 0;
  for (const Clock::Duration pause : {10'000ms, 20'000ms, 40'000ms}) {
    hang_after(s, 1s);
    s.expect_out_for(pause, ++times);
  }
  hang_after(s, 40s);
  s.expect_out_for(lease, ++times);
}

// ---- want of memory ----

TEST_F(Roles, AReadThatWasLostForWantOfMemoryIsAskedForAgain) {
  see_unit_1_unled(s);
  s.pass(500ms);
  const auto before = s.observations;
  s.pass(500ms);
  ASSERT_EQ(s.observations, before) << "one is under way";
  s.give(role_fact::Broken{any_handle, {Fault::unreachable, "std::bad_alloc"}});
  EXPECT_EQ(s.drops, 1);
  EXPECT_EQ(s.observations, before + 1);
  s.stay(1s);
  s.assign({0, 1, 2}, 3);
  s.prove();
  s.stay(2 * lease);
  EXPECT_EQ(s.searches, 2);
}

// ---- R15: the number of units grows ----

constexpr int more = 2 * count;

/// A role that such growth moves from the unit to another one, or not.
std::string grown_role(int unit, bool moves) {
  for (int i = 0;; ++i)
    if (auto name = role(unit, i); (unit_of(name, more) != unit) == moves) return name;
}

struct Growth : RoleScene {
  explicit Growth(int units = count, bool first_claim_waits = false)
      : RoleScene(std::make_unique<kafka::Roles>(RoleConfig{.units = units,
                                                            .lease = lease,
                                                            .margin = margin,
                                                            .observe_every = 500ms,
                                                            .incarnation = "me",
                                                            .first_claim_waits = first_claim_waits})) {
    offsets.resize(static_cast<std::size_t>(partitions_of(more)));
    for (int unit = 0; unit < count; ++unit)
      for (const bool moves : {false, true}) give(role_fact::Joined{grown_role(unit, moves)});
  }
  void look_at_topic(int units) { give(role_fact::Observed{offsets, partitions_of(units)}); }
  /// It owns these units, has proved its place, and unit 0 tells the number.
  void own_units(const std::vector<int>& units) {
    open();
    std::vector<int> partitions;
    for (const int unit : units)
      for (int i = 0; i < 3; ++i) partitions.push_back(3 * unit + i);
    assign(std::move(partitions));
    prove();
    if (sent) accept();
  }
  /// It leads these, all of one unit. What it does not own is another's.
  void lead(int unit, const std::vector<std::string>& names) {
    offset(record_of(0)) = foreign({5}, "other", unit == 0);
    offset(record_of(1)) = foreign({5}, "other", unit == 1);
    own_units({unit});
    do_commit(names);
    ASSERT_EQ(done().claimed.size(), names.size());
  }
  /// Another process has told this number in unit 0, and the one before.
  void tell(std::int64_t at, int units, int before) {
    auto record = decode(foreign({5}, "other", true, 1, units).metadata).value();
    record.grown_from = before;
    offset(0) = {at, encode(record)};
  }
  void tell_more() { tell(9, more, count); }
  /// Time passes, and all commits are acknowledged.
  void lead_on(Clock::Duration by) {
    for (const auto until = now + by; now < until;) {
      observe();
      commit();
      accept();
      pass(250ms);
    }
  }
  /// Time passes for an owner that leads nothing yet, and whose reads are answered.
  void wait(Clock::Duration by) {
    for (const auto until = now + by; now < until;) {
      stay(250ms);
      if (reading) read();
    }
  }
  int told_by(int unit) { return record(unit).units; }
};

struct RolesThatGrow : testing::Test {
  Growth s;
};

TEST_F(RolesThatGrow, R15NothingIsClaimedBeforeUnit0HasOurNumber) {
  s.offset(record_of(1)) = foreign({5}, "other", true);
  s.own_units({1});
  EXPECT_FALSE(s.allotted(role(1))) << "nobody has told a number";
  s.offset(record_of(0)) = foreign({5}, "other");
  s.read_on();
  EXPECT_TRUE(s.allotted(role(1)));
}

TEST_F(RolesThatGrow, R15TheOwnerOfUnit0WritesTheNumberWhereItLeadsNothing) {
  s.offset(record_of(0)) = foreign({5}, "other", true, 1, 1);
  s.offset(record_of(1)) = foreign({5}, "other", true, 1, 1);
  s.own_units({0, 1});
  EXPECT_EQ(s.told_by(0), count);
  EXPECT_TRUE(s.record(0).released);
  EXPECT_EQ(s.record(0).grown_from, 1);
}

TEST_F(RolesThatGrow, R15TheOwnerOfUnit0WritesTheNumberAgainIfTheRecordsAreGone) {
  for (int i = 0; i < 40; ++i) s.give(role_fact::Quit{"role" + std::to_string(i)});
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "other", true, 1, 1);
  s.own_units({0});
  ASSERT_EQ(s.told_by(0), count);
  std::fill(s.offsets.begin(), s.offsets.end(), std::nullopt);
  s.rebalance({0, 1, 2}, 3);
  s.prove();
  s.wait(lease);
  s.accept();
  EXPECT_EQ(s.told_by(0), count);
}

TEST_F(RolesThatGrow, R15TheOwnerOfUnit0GrowsWhenTheTopicHasHadMoreRoomForTwoLooks) {
  s.lead(0, {grown_role(0, false)});
  s.look_at_topic(count);
  s.look_at_topic(more);
  s.lead_on(2 * role_topic_pause - 1s);
  EXPECT_TRUE(s.allotted(grown_role(0, false)));
  s.lead_on(2s);
  EXPECT_FALSE(s.allotted(grown_role(0, false))) << "who tells the number leads nothing in unit 0";
  EXPECT_EQ(s.told_by(0), count);
  s.do_commit({}, {grown_role(0, false)});
  s.pass(100ms);
  s.accept();
  EXPECT_EQ(s.told_by(0), more);
  EXPECT_EQ(s.record(0).grown_from, count);
  EXPECT_EQ(s.roles->units(), more);
}

TEST_F(RolesThatGrow, R15WhatMovesEndsAndWhatStaysKeepsItsTokenAndTheNumberIsWritten) {
  s.lead(1, {grown_role(1, false), grown_role(1, true)});
  s.tell_more();
  s.observe();
  EXPECT_EQ(s.roles->units(), count) << "a role that moves is still led";
  EXPECT_FALSE(s.allotted(grown_role(1, true)));
  s.do_commit({}, {grown_role(1, true)});
  EXPECT_EQ(s.roles->units(), more);
  ASSERT_TRUE(s.sent) << "unit 1 tells it at once";
  s.accept();
  EXPECT_EQ(s.told_by(1), more);
  EXPECT_FALSE(s.record(1).released);
  s.pass(100ms);
  EXPECT_FALSE(s.sent) << "and tells it once";
  EXPECT_TRUE(s.leads(grown_role(1, false)));
  EXPECT_TRUE(s.allotted(grown_role(1, false)));
}

TEST_F(RolesThatGrow, R15ANewUnitIsClaimedOnceTheOneFromWhichItsRolesComeHasTheNumber) {
  s.tell_more();
  s.offset(record_of(1)) = foreign({50}, "other");
  s.observe();
  ASSERT_EQ(s.roles->units(), more);
  s.own_units({count + 1});
  const auto moved = grown_role(1, true);
  constexpr std::uint64_t high =
      2'000'000'000'000;  // Above the clock, from which tokens begin where there is no record.
  EXPECT_FALSE(s.allotted(moved)) << "somebody may lead it in unit 1";
  s.offset(record_of(1)) = foreign({high}, "other", false, 2, more);
  s.read_on();
  ASSERT_TRUE(s.sent) << "the new unit tells the number, too";
  s.accept();
  EXPECT_TRUE(s.allotted(moved)) << "no lease is waited for: a unit without a record was never led";
  s.do_commit({moved});
  ASSERT_EQ(s.done().claimed.size(), 1u);
  EXPECT_GT(s.done().token.value, high) << "tokens rise over those from before";
}

TEST_F(RolesThatGrow, R15WhoWaitsBeforeEachFirstClaimWaitsInANewUnitToo) {
  s = Growth(count, true);
  s.tell_more();
  s.offset(record_of(1)) = foreign({50}, "other", false, 2, more);
  s.observe();
  ASSERT_EQ(s.roles->units(), more);
  s.own_units({count + 1});
  s.wait(lease - 1s);
  EXPECT_FALSE(s.sent);
  EXPECT_FALSE(s.allotted(grown_role(1, true))) << "its record may have been deleted under a leader";
  s.wait(1s);
  ASSERT_TRUE(s.sent) << "the unit tells the number by the rules of a claim";
  s.accept();
  EXPECT_TRUE(s.allotted(grown_role(1, true)));
}

TEST_F(RolesThatGrow, R15AUnitThatAnotherOneMayLeadDoesNotPublishTheNumberBeforeItsLeaseIsOver) {
  s.tell_more();
  s.offset(record_of(1)) = foreign({50}, "other");
  s.own_units({1});
  s.wait(lease - 1s);
  EXPECT_EQ(s.told_by(1), count);
  s.wait(1s);
  s.accept();
  EXPECT_EQ(s.told_by(1), more);
}

TEST_F(RolesThatGrow, R15UnitsDoNotGrowAgainBeforeAllPublishThePreviousNumber) {
  s.tell(5, count, 1);
  s.offset(record_of(1)) = foreign({5}, "other", false, 1, 1);
  s.own_units({0});
  s.look_at_topic(more);
  s.wait(2 * role_topic_pause + 1s);
  EXPECT_FALSE(s.sent);
  s.offset(record_of(1)) = foreign({6}, "other", false, 3);
  s.observe();
  s.accept();
  EXPECT_EQ(s.told_by(0), more);
  EXPECT_EQ(s.record(0).grown_from, count);
  EXPECT_EQ(s.roles->units(), more);
}

TEST_F(RolesThatGrow, R15WhoKnowsALargerNumberPublishesItOnlyAfterAllPublishedThePreviousOne) {
  s = Growth(more);
  s.tell(5, count, 1);
  s.offset(record_of(1)) = foreign({5}, "other", true, 1, 1);
  s.own_units({0});
  EXPECT_EQ(s.told_by(0), count);
  s.offset(record_of(1)) = foreign({6}, "other", true);
  s.read_on();
  s.accept();
  EXPECT_EQ(s.told_by(0), more);
}

TEST_F(RolesThatGrow, R15WhoKnowsALargerNumberFinishesAGrowthThatStoppedHalfWay) {
  s = Growth(more);
  s.tell(5, count, 1);
  s.offset(record_of(1)) = foreign({5}, "other", false, 1, 1);
  s.own_units({0, 1, count + 1});
  s.wait(lease - 1s);
  EXPECT_FALSE(s.sent) << "somebody may lead in unit 1 by the number from before";
  s.wait(1s);
  ASSERT_TRUE(s.sent);
  EXPECT_EQ(s.sent->commits.size(), 1u) << "the other units tell it, or do not exist by it";
  s.accept();
  EXPECT_EQ(s.told_by(1), count);
  EXPECT_TRUE(s.record(1).released);
  EXPECT_FALSE(s.allotted(role(1))) << "unit 0 does not tell our number yet";
  s.accept();
  EXPECT_EQ(s.told_by(0), more);
  EXPECT_EQ(s.record(0).grown_from, count);
}

TEST_F(RolesThatGrow, R15TheTokensOfANewUnitGoOnWhereItsRolesWereAlsoForWhoWroteTheNumberItself) {
  s = Growth(more);
  const Token high{2'000'000'000'000};  // The clock of its last leader was ahead.
  s.offset(record_of(0)) = foreign({5}, "other", true);
  s.offset(record_of(1)) = foreign(high, "other", true);
  s.own_units({0, 1, 2, 3});
  for (int i = 0; i < 10 && s.sent; ++i) s.accept();
  ASSERT_EQ(s.told_by(0), more);
  const auto moved = grown_role(1, true);
  s.do_commit({moved});
  ASSERT_EQ(s.done().claimed, std::vector{moved});
  EXPECT_GT(s.done().token, high);
}

TEST_F(RolesThatGrow, R15ANumberOfUnknownOutcomeCostsTheHandle) {
  s.tell_more();
  s.own_units({1, count + 1});
  s.wait(lease);
  ASSERT_TRUE(s.sent);
  const auto before = s.drops;
  s.answer_commit(Outcome::failed);
  EXPECT_EQ(s.drops, before + 1);
}

TEST_F(RolesThatGrow, R15AfterARenewalOfUnknownOutcomeANumberCostsTheHandle) {
  s.lead(1, {grown_role(1, false)});
  s.commit();
  s.answer_commit(Outcome::failed);
  s.tell_more();
  s.observe();
  ASSERT_EQ(s.roles->units(), more);
  const auto before = s.drops;
  s.pass(RoleMachine::retry_pause);
  EXPECT_EQ(s.drops, before + 1) << "the renewal tells the old number, and may come later";
}

TEST_F(RolesThatGrow, R15WhoLostUnit0ForgetsWhatItWouldPublishThere) {
  s.offset(record_of(0)) = s.offset(record_of(1)) = foreign({5}, "other", true);
  s.own_units({0, 1});
  const auto stays = grown_role(0, false), moves = grown_role(1, true);
  s.do_commit({stays});
  s.look_at_topic(more);
  s.lead_on(2 * role_topic_pause + 1s);
  ASSERT_FALSE(s.allotted(moves)) << "it would move";
  s.rebalance({3, 4, 5}, 3);
  s.prove();
  EXPECT_TRUE(s.allotted(moves)) << "also while the observer's reads fail";
}

TEST_F(RolesThatGrow, R15ATopicThatGrowsByNoMultipleIsReported) {
  s.own_units({0, 1});
  s.look_at_topic(count);
  s.give(role_fact::Observed{s.offsets, partitions_of(count) + 1});
  EXPECT_NE(s.told.find("grows to a multiple of 6 partitions"), s.told.npos) << s.told;
}

}  // namespace rules_of_roles
}  // namespace
}  // namespace tenure::kafka
