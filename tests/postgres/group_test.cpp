// SPDX-License-Identifier: Apache-2.0
// Goal: a group's two tables keep what GroupStore promises, also where statements wait for each other, and a renewal
// costs one write in place whatever the number of elections. Method: a real server; other transactions hold locks while
// a statement is on its way.
#include <algorithm>
#include <future>
#include <numeric>
#include <random>
#include <thread>

#include <tenure/group_store.hpp>
#include <tenure/kit/who.hpp>

#include "group_statements.hpp"
#include "lateness.hpp"
#include "support.hpp"

namespace tenure::postgres::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

constexpr SessionId one{11}, two{22};

Session session(std::uint64_t beat, const std::string& holder = "holder") {
  return {.record = {.beat = beat,
                     .who = who_text({holder, "address"}, "incarnation"),
                     .term = 10s,
                     .asked = boot_clock().now().time_since_epoch()},
          .joined = 3,
          .names = 0xffff'ffff'ffff'fff0};
}

/// Of a session whose beat is one less than the next.
Commit renewal(SessionId id, std::uint64_t next) { return {.session = id, .beats = {next - 1}, .next = session(next)}; }

Commit claiming(SessionId id, std::uint64_t next, std::vector<Claim> claims, std::vector<SessionId> ended = {}) {
  auto out = renewal(id, next);
  out.claims = std::move(claims);
  out.ended = std::move(ended);
  return out;
}

Commit releasing(SessionId id, std::uint64_t next, std::vector<Release> releases) {
  auto out = renewal(id, next);
  out.releases = std::move(releases);
  return out;
}

std::vector<Claim> first_claims(const std::vector<std::string>& names) {
  std::vector<Claim> out;
  for (const auto& name : names) out.push_back({name});
  return out;
}

class PostgresGroup : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    const auto tables = fresh_group(shared());
    options_.sessions = tables.sessions;
    options_.leads = tables.leads;
    options_.conninfo += " application_name=" + options_.sessions;
  }
  void TearDown() override {
    if (!options_.table.empty()) admin("drop table if exists " + options_.sessions + ", " + options_.leads);
    PostgresTest::TearDown();
  }

  std::shared_ptr<GroupStore> group() const { return open_group(options_, "group"); }
  static std::shared_ptr<GroupStore> group(const Options& options) { return open_group(options, "group"); }

  /// A store in which this session stands with beat 1.
  std::shared_ptr<GroupStore> with(SessionId id) const { return with(options_, id); }
  static std::shared_ptr<GroupStore> with(const Options& options, SessionId id) {
    auto out = group(options);
    EXPECT_TRUE(value(out->open(id, session(1), within(10s))).granted);
    return out;
  }

  static Committed done(GroupStore& store, const Commit& commit) { return value(store.commit(commit, within(20s))); }
  static Committed done(GroupStore& store, Commit commit, const std::string& cursor) {
    commit.cursor = cursor;
    return done(store, commit);
  }
  static Look all(GroupStore& store) { return value(store.look({}, within(10s))); }

  /// Until a statement of ours waits for a lock.
  bool somebody_waits(const std::string& server = shared("TENURE_POSTGRES_SOCKET")) const {
    return eventually([&] {
      return !sql(server, "select 1 from pg_stat_activity where wait_event_type = 'Lock' and application_name = '" +
                              options_.sessions + "'")
                  .empty();
    });
  }

  Options role(const std::string& sessions, const std::string& leads, const std::string& settings = "") {
    auto out = PostgresTest::role("", settings);
    if (!sessions.empty()) admin("grant " + sessions + " on " + options_.sessions + " to " + out.user);
    if (!leads.empty()) admin("grant " + leads + " on " + options_.leads + " to " + out.user);
    return out;
  }
};

// ---- what no other store has ----

TEST_F(PostgresGroup, AMarkerIsNotItsAndRefusesACommit) {
  const auto a = with(one);
  auto commit = claiming(one, 2, {{"a"}});
  commit.marker = 5;
  const auto refused = done(*a, commit);
  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.look.sessions.at(one).record.beat, 1u);
  EXPECT_THAT(refused.look.leads, IsEmpty());
}

// ---- the cursor ----

TEST_F(PostgresGroup, OurOwnWritesAreShownInTheirAnswerAndNotAgain) {
  const auto a = with(one), b = with(two);
  const auto first = done(*a, claiming(one, 2, first_claims({"a", "b"})), all(*a).cursor);
  EXPECT_THAT(first.look.leads, ElementsAre(Key("a"), Key("b")));
  const auto quiet = done(*a, renewal(one, 3), first.look.cursor);
  EXPECT_FALSE(quiet.look.whole);
  EXPECT_THAT(quiet.look.leads, IsEmpty()) << "its own writes it was told at once";
  done(*b, claiming(two, 2, first_claims({"c"})));
  EXPECT_THAT(done(*a, renewal(one, 4), quiet.look.cursor).look.leads, ElementsAre(Key("c")));
  for (const std::string garbled :
       {"", "x", "1 2", "00000001 99999999999:99999999999: 0", "00000002 1:1: 0", "00000001 -1:1: 0", "00000001 1:1 0",
        "00000001 5:4: 0", "00000001 4:9:3 0", "00000001 4:9:6,5 0", "a b c"})
    EXPECT_TRUE(value(a->look(garbled, within(10s))).whole) << garbled;
}

TEST_F(PostgresGroup, ACommitWithoutACursorThatCountsShowsItsOwnClaimsAndSaysThatItIsNotAll) {
  const auto a = with(one), b = with(two);
  done(*b, claiming(two, 2, first_claims({"of b"})));
  auto beat = std::uint64_t{1};
  for (const auto& cursor : {std::string(), std::string("x"), all(*b).cursor}) {
    ++beat;
    const auto blind = done(*a, claiming(one, beat, first_claims({"a" + std::to_string(beat)})), cursor);
    EXPECT_TRUE(blind.granted);
    EXPECT_FALSE(blind.look.whole) << cursor;
    EXPECT_EQ(blind.look.cursor, "") << cursor;
    EXPECT_THAT(blind.look.leads, ElementsAre(Key("a" + std::to_string(beat)))) << cursor;
    EXPECT_THAT(blind.look.sessions, ElementsAre(Key(one))) << cursor;
  }
  EXPECT_THAT(all(*a).leads, testing::SizeIs(4));
}

TEST_F(PostgresGroup, ALongTransactionOfOthersLosesNoChangeAndRepeatsNone) {
  const auto a = with(one), b = with(two);
  auto cursor = value(b->look({}, within(10s))).cursor;
  Elsewhere slow("select pg_current_xact_id()");
  Elsewhere writes("insert into " + options_.leads +
                   " values ('group', 'late', 7, 11, false, null, null, null, null, pg_current_xact_id())");
  const auto look = [&] {
    auto found = value(b->look(cursor, within(10s)));
    EXPECT_FALSE(found.whole);
    cursor = found.cursor;
    return std::move(found.leads);
  };
  done(*a, claiming(one, 2, first_claims({"a"})));
  EXPECT_THAT(look(), ElementsAre(Key("a")));
  EXPECT_THAT(look(), IsEmpty());
  writes.commit();
  EXPECT_THAT(look(), ElementsAre(Key("late")));
  EXPECT_THAT(look(), IsEmpty());
  slow.commit();
  EXPECT_THAT(look(), IsEmpty());
}

/// As after a dump and a restore into a new cluster, which counts its transactions from the beginning.
TEST_F(PostgresGroup, WhatAnotherServerNumberedIsShownOnceAndNotWithEachRenewal) {
  const auto a = with(one);
  const auto first = done(*a, claiming(one, 2, first_claims({"a", "b", "c"})));
  done(*a, releasing(one, 3, {{"a", first.token}, {"b", first.token}}));
  admin("update " + options_.leads + " set changed = '99999999999'");
  const auto look = all(*a);
  EXPECT_THAT(look.leads, testing::SizeIs(3));
  const auto quiet = done(*a, renewal(one, 4), look.cursor);
  EXPECT_THAT(quiet.look.leads, IsEmpty());
  const auto again = done(*a, claiming(one, 5, {{"a", first.token}}), quiet.look.cursor);
  EXPECT_THAT(again.claimed, ElementsAre("a"));
  const auto b = with(two);
  EXPECT_THAT(value(b->look({}, within(10s))).leads, testing::SizeIs(3));
}

TEST_F(PostgresGroup, OfASessionThatEndedWhileItLedNothingStays) {
  const auto a = with(one), b = with(two);
  const auto led = done(*a, claiming(one, 2, first_claims({"a", "b"})));
  ASSERT_TRUE(value(b->end(one, {2}, 9, within(10s))));
  const auto before = value(b->look({}, within(10s)));
  EXPECT_EQ(value(b->sweep(within(10s))), 0) << "somebody may still know it only by its leads";
  const auto changed = value(b->look(before.cursor, within(10s)));
  EXPECT_TRUE(changed.leads.at("a").released && changed.leads.at("b").released);
  EXPECT_EQ(value(b->sweep(within(10s))), 1);
  EXPECT_THAT(all(*b).sessions, ElementsAre(Key(two)));
  EXPECT_THAT(done(*b, claiming(two, 2, {{"a", led.token}})).claimed, ElementsAre("a"));
}

TEST_F(PostgresGroup, WhoJoinedReadsNothingElse) {
  const auto a = with(one), b = with(two);
  done(*a, claiming(one, 2, first_claims({"in", "other", "out"})));
  b->joined("in");
  EXPECT_THAT(value(b->look({}, within(10s))).leads, ElementsAre(Key("in")));
}

TEST_F(PostgresGroup, AReleaseThatCannotBeWrittenCostsItsOwnElectionAlone) {
  const auto a = with(one);
  const std::vector<std::string> all{"a", "b", "c", "d", "e"};
  const auto led = done(*a, claiming(one, 2, first_claims(all)));
  admin("alter table " + options_.leads + " add constraint kept_b check (election <> 'b' or not released)");
  auto commit = renewal(one, 3);
  for (const auto& name : all) commit.releases.push_back({name, led.token});
  const auto found = done(*a, commit);
  EXPECT_TRUE(found.granted) << "the session is renewed";
  EXPECT_THAT(found.released, testing::UnorderedElementsAre("a", "c", "d", "e"));
  ASSERT_THAT(found.refused, ElementsAre(Key("b")));
  EXPECT_THAT(found.refused.at("b").message, HasSubstr("kept_b"));
}

TEST_F(PostgresGroup, ALeadThatASweepCannotReleaseKeepsNoOtherOneAndIsNamed) {
  tenure::test::Lines lines;
  const auto a = with(one), b = open_group(options_, "group", lines.log());
  with(two);
  with({3});
  const auto led = done(*a, claiming(one, 2, first_claims({"a", "b", "c", "d", "e"})));
  admin("alter table " + options_.leads + " add constraint kept_b check (election <> 'b' or not released)");
  ASSERT_TRUE(value(b->end(one, {2}, 9, within(10s))));
  ASSERT_TRUE(value(b->end({3}, {1}, 9, within(10s))));
  EXPECT_EQ(value(b->sweep(within(10s))), 1);
  const auto look = all(*b);
  EXPECT_THAT(look.sessions, testing::UnorderedElementsAre(Key(one), Key(two)));
  for (const auto& [name, lead] : look.leads) EXPECT_EQ(lead.released, name != "b") << name;
  EXPECT_THAT(lines.all(), testing::Contains(testing::AllOf(HasSubstr("the lead of b"), HasSubstr("kept_b"))));
  EXPECT_THAT(done(*with({4}), claiming({4}, 2, {{"e", led.token}})).claimed, ElementsAre("e"));
}

TEST_F(PostgresGroup, ASessionThatCannotBeRemovedKeepsNoOtherOne) {
  const auto a = with(one);
  for (const std::uint64_t id : {3u, 4u, 5u}) {
    with({id});
    ASSERT_TRUE(value(a->end({id}, {1}, 9, within(10s))));
  }
  admin("create table " + options_.table +
        "_keeps (grp bytea, session bigint, place bigint, foreign key (grp, session, place) references " +
        options_.sessions + "); insert into " + options_.table + "_keeps select grp, session, place from " +
        options_.sessions + " where session = 4");
  EXPECT_EQ(value(a->sweep(within(10s))), 2);
  EXPECT_THAT(all(*a).sessions, testing::UnorderedElementsAre(Key(one), Key(SessionId{4})));
  admin("drop table " + options_.table + "_keeps");
  EXPECT_EQ(value(a->sweep(within(10s))), 1);
}

/// More than a sweep looks at in one step, and than it has time for.
TEST_F(PostgresGroup, ManyLeadsThatCannotBeReleasedHideNoOtherOne) {
  const auto a = with(one), b = with(two);
  ASSERT_TRUE(value(b->end(two, {1}, 9, within(10s))));
  const auto many = std::to_string(SweepPass::page + 1);
  admin("insert into " + options_.leads +
        " select 'group', convert_to('kept' || n, 'UTF8'), n, 22, false, null, null, null, null, "
        "pg_current_xact_id() from generate_series(1, " +
        many + ") as n; insert into " + options_.leads +
        " values ('group', 'other', 7, 22, false, null, null, null, null, pg_current_xact_id())");
  admin("alter table " + options_.leads +
        " add constraint kept check (session <> 22 or not released or election = 'other')");
  EXPECT_TRUE(eventually([&] { return a->sweep(within(100ms)) && all(*a).leads.at("other").released; }));
}

TEST_F(PostgresGroup, ALeadThatCannotBeRetiredKeepsNoOtherOne) {
  const auto a = with(one);
  const std::vector<std::string> names{"a", "b", "c", "d"};
  const auto led = done(*a, claiming(one, 2, first_claims(names)));
  ASSERT_TRUE(value(a->end(one, {2}, 9, within(10s))));
  admin("create table " + options_.table +
        "_keeps (grp bytea, election bytea, foreign key (grp, election) references " + options_.leads +
        "); insert into " + options_.table + "_keeps values ('group', 'c')");
  std::map<std::string, Token> all_of;
  for (const auto& name : names) all_of.emplace(name, led.token);
  EXPECT_THAT(seen(error_of(a->retire(all_of, within(10s)))).message, HasSubstr("_keeps"));
  EXPECT_THAT(all(*a).leads, ElementsAre(Key("c")));
  admin("drop table " + options_.table + "_keeps");
  EXPECT_THAT(value(a->retire({{"c", led.token}}, within(10s))), ElementsAre("c"));
}

TEST_F(PostgresGroup, ALeadThatCannotBeWrittenCostsItsOwnElectionAlone) {
  const auto a = with(one);
  admin("alter table " + options_.leads + " add constraint no_b check (election <> 'b')");
  std::vector<std::string> claimed, spoilt, wanted{"a", "b", "c", "d", "e"};
  for (std::uint64_t beat = 2; !wanted.empty(); ++beat) {
    ASSERT_LT(beat, 10u);
    const auto found = done(*a, claiming(one, beat, first_claims(wanted)));
    ASSERT_TRUE(found.granted) << "the session is renewed";
    for (const auto& name : found.claimed) claimed.push_back(name);
    for (const auto& [name, error] : found.refused) spoilt.push_back(name + seen(error).message);
    std::erase_if(wanted, [&](const auto& name) {
      return std::ranges::count(found.claimed, name) || found.refused.contains(name);
    });
  }
  EXPECT_THAT(claimed, testing::UnorderedElementsAre("a", "c", "d", "e"));
  EXPECT_THAT(spoilt, ElementsAre(testing::AllOf(testing::StartsWith("b"), HasSubstr("no_b"))));
}

// ---- statements that wait for each other ----

TEST_F(PostgresGroup, AClaimWhoseSessionIsEndedWhileItWaitsTakesNothing) {
  const auto a = with(one);
  Elsewhere kills("update " + options_.sessions + " set ended = true, beat = 5 where session = 11");
  auto claim = std::async(std::launch::async, [&] { return done(*a, claiming(one, 2, first_claims({"a"}))); });
  ASSERT_TRUE(somebody_waits());
  kills.commit();
  const auto refused = claim.get();
  EXPECT_FALSE(refused.granted);
  EXPECT_THAT(refused.claimed, IsEmpty());
  EXPECT_TRUE(refused.look.sessions.at(one).record.released) << "what stands after it";
  EXPECT_THAT(value(a->look({}, within(10s))).leads, IsEmpty());
}

TEST_F(PostgresGroup, AKillOnABeatFromBeforeTheCommitChangesNothing) {
  const auto a = with(one), b = with(two);
  Elsewhere renews("update " + options_.sessions + " set beat = 2 where session = 11");
  auto kill = std::async(std::launch::async, [&] { return value(b->end(one, {1}, 9, within(20s))); });
  ASSERT_TRUE(somebody_waits());
  renews.commit();
  EXPECT_FALSE(kill.get());
  EXPECT_TRUE(done(*a, renewal(one, 3)).granted);
}

TEST_F(PostgresGroup, AClaimThatWaitedSeesWhatChangedMeanwhile) {
  const auto a = with(one), b = with(two);
  const auto first = done(*a, claiming(one, 2, first_claims({"free", "taken"})));
  done(*a, releasing(one, 3, {{"free", first.token}, {"taken", first.token}}));
  Elsewhere holds("select 1 from " + options_.sessions + " where session = 22 for update");
  auto claim = std::async(std::launch::async, [&] {
    return done(*b, claiming(two, 2, {{"free", first.token}, {"new"}, {"new too"}, {"taken", first.token}}));
  });
  ASSERT_TRUE(somebody_waits());
  auto other = claiming(one, 4, {{"new"}, {"taken", first.token}});
  other.at_least = Token{first.token.value + 1};
  ASSERT_THAT(done(*a, other).claimed, testing::UnorderedElementsAre("new", "taken"));
  holds.commit();
  const auto late = claim.get();
  EXPECT_TRUE(late.granted);
  EXPECT_THAT(late.claimed, testing::UnorderedElementsAre("free", "new too"));
  const auto stands = value(a->look({}, within(10s))).leads;
  EXPECT_EQ(stands.at("taken").session, one);
  EXPECT_EQ(stands.at("new").session, one);
  EXPECT_EQ(stands.at("free").session, two);
}

TEST_F(PostgresGroup, ALeadThatIsLockedIsLeftAloneAndALockedSessionEndsTheCall) {
  const auto a = with(one), b = with(two);
  const auto first = done(*a, claiming(one, 2, first_claims({"a", "b"})));
  done(*a, releasing(one, 3, {{"a", first.token}, {"b", first.token}}));
  {
    Elsewhere holds("select 1 from " + options_.leads + " where election = 'a' for update");
    EXPECT_THAT(done(*b, claiming(two, 2, {{"a", first.token}, {"b", first.token}})).claimed, ElementsAre("b"));
  }
  Elsewhere holds("select 1 from " + options_.sessions + " where session = 22 for update");
  const auto limit = within(6s);  // The server ends the wait after half of it: the rest is for a busy machine.
  const auto error = error_of(b->commit(renewal(two, 3), limit));
  EXPECT_LT(boot_clock().now(), limit.by);
  EXPECT_EQ(error.fault, Fault::timed_out);
  EXPECT_THAT(error.message, HasSubstr("the lock on this row of " + options_.sessions));
}

/// An operator's transaction, for instance. It costs half of the call's time, or less.
TEST_F(PostgresGroup, ALeadThatSomebodyKeepsLockedCostsItsOwnElectionAlone) {
  const auto a = with(one);
  const auto first = done(*a, claiming(one, 2, first_claims({"a", "b"})));
  {
    Elsewhere holds("select 1 from " + options_.leads + " where election = 'a' for update");
    const auto commit = releasing(one, 3, {{"a", first.token}, {"b", first.token}});
    const auto found = value(a->commit(commit, within(6s)));
    EXPECT_TRUE(found.granted) << "the session is renewed";
    EXPECT_THAT(found.released, ElementsAre("b"));
    EXPECT_THAT(found.refused, ElementsAre(Key("a")));
  }
  EXPECT_THAT(done(*a, releasing(one, 4, {{"a", first.token}})).released, ElementsAre("a"));
  Elsewhere makes("insert into " + options_.leads +
                  " (grp, election, token, session, released, changed) values "
                  "('group', 'new', 1, 0, true, pg_current_xact_id())");
  const auto claim = value(a->commit(claiming(one, 5, first_claims({"new", "other"})), within(6s)));
  EXPECT_TRUE(claim.granted) << "the session is renewed";
  ASSERT_THAT(value(a->retire({{"b", first.token}}, within(10s))), ElementsAre("b"));
  Elsewhere floor("select 1 from " + options_.leads + " where election = '' for update");
  const auto above = value(a->commit(claiming(one, 6, first_claims({"third"})), within(6s)));
  EXPECT_TRUE(above.granted) << "the session is renewed";
  EXPECT_THAT(above.refused, ElementsAre(Key("third")));
  EXPECT_TRUE(value(group()->open(two, session(1), within(10s))).granted) << "a new connection waits for nothing";
}

/// Everybody claims everything, in an order of his own; some of it is new and some was left behind.
void race(const std::vector<std::shared_ptr<GroupStore>>& stores, const std::string& leads, int errors_allowed) {
  constexpr std::size_t count = 2000, chunk = 500;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("election " + std::to_string(i * 7919));
  const auto former = SessionId{99};
  ASSERT_TRUE(value(stores[0]->open(former, session(1), within(20s))).granted);
  std::vector<std::string> left(names.begin(), names.begin() + chunk);
  std::ranges::sort(left);
  const auto before = value(stores[0]->commit(claiming(former, 2, first_claims(left)), within(20s)));
  ASSERT_EQ(before.claimed.size(), chunk);
  ASSERT_TRUE(value(stores[0]->end(former, {2}, 3, within(20s))));

  std::atomic<int> errors{0};
  std::atomic<std::size_t> won{0};
  const auto claim_all = [&](std::size_t who) {
    auto order = names;
    std::ranges::shuffle(order, std::mt19937_64(who));
    std::uint64_t beat = 1;
    for (std::size_t at = 0; at < count; at += chunk) {
      std::vector<Claim> claims;
      for (std::size_t i = at; i < at + chunk; ++i)
        claims.push_back(
            {order[i], std::ranges::binary_search(left, order[i]) ? std::optional(before.token) : std::nullopt});
      std::ranges::sort(claims, {}, &Claim::election);
      auto commit = claiming(SessionId{who + 1}, beat + 1, std::move(claims), {former});
      commit.at_least = Token{before.token.value + 1};
      for (;;) {
        const auto result = stores[who]->commit(commit, within(60s));
        if (result) {
          EXPECT_TRUE(result->granted);
          won += result->claimed.size();
          break;
        }
        ++errors;
        if (errors > errors_allowed) ADD_FAILURE() << result.error().message;
        if (errors > errors_allowed) return;
      }
      ++beat;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t who = 0; who < stores.size(); ++who) threads.emplace_back(claim_all, who);
  }
  EXPECT_EQ(won, count) << "each is led by one, and none was left: " << leads;
}

/// A deadlock would be no error, since the commit comes again. So the server counts them, and it is our own.
TEST_F(PostgresGroup, TwoProcessesThatClaimEverythingInAnotherOrderMeetNoErrorAndNoDeadlock) {
  Server server(Server::How{.settings = {"deadlock_timeout=100ms"}});
  auto options = fresh_group(server.by_socket());
  options.conninfo += " application_name=races";
  race({with(options, SessionId{1}), with(options, SessionId{2})}, options.leads, 0);
  // A session's end makes its counts known.
  ASSERT_TRUE(eventually([&] {
    return sql(server.by_socket(), "select from pg_stat_activity where application_name = 'races'").empty();
  }));
  const auto counted = sql(server.by_socket(), "select deadlocks from pg_stat_database where datname = 'postgres'");
  EXPECT_EQ(counted[0][0].as<int>(), 0);
}

// ---- whatever a session's settings are ----

TEST_F(PostgresGroup, AStricterIsolationLevelChangesNothing) {
  for (const auto* level : {"repeatable read", "serializable"}) {
    SCOPED_TRACE(level);
    admin("truncate " + options_.sessions + ", " + options_.leads);
    const auto options = role("select, insert, update, delete", "select, insert, update",
                              std::string("set default_transaction_isolation = '") + level + "'");
    race({with(options, SessionId{1}), with(options, SessionId{2})}, options_.leads, 0);
  }
}

/// There the level is not ours to set. A commit that meets another one is rolled back, and comes again.
TEST_F(PostgresGroup, BehindAPoolerAStricterLevelRefusesOnlyWhoIsOver) {
  Server server(Server::How{.settings = {"default_transaction_isolation=serializable"}});
  const PgBouncer pool(server.directory(), 4);
  auto options = fresh_group(server.by_socket());
  const auto b = with(options, two);
  options.conninfo = pool.conninfo() + " application_name=" + options_.sessions;
  const auto a = with(options, one);
  const auto first = done(*b, claiming(two, 2, first_claims({"a"})));
  done(*b, releasing(two, 3, {{"a", first.token}}));
  const auto meanwhile = [&](const Commit& commit, const std::string& change, const std::function<void()>& also) {
    Elsewhere holds(change + " where session = 11", server.by_socket());
    auto waits = std::async(std::launch::async, [&] { return a->commit(commit, within(20s)); });
    EXPECT_TRUE(somebody_waits(server.by_socket()));
    also();
    holds.commit();
    return waits.get();
  };
  const auto met =
      value(meanwhile(claiming(one, 2, {{"a", first.token}}), "update " + options.sessions + " set joined = 4", [&] {
        auto other = claiming(two, 4, {{"a", first.token}});
        other.at_least = Token{first.token.value + 1};
        EXPECT_THAT(done(*b, other).claimed, ElementsAre("a"));
      }));
  EXPECT_TRUE(met.granted) << "its session stands";
  EXPECT_THAT(met.claimed, IsEmpty()) << "the other one leads";
  EXPECT_FALSE(value(meanwhile(renewal(one, 3), "update " + options.sessions + " set ended = true", [] {})).granted);
}

TEST_F(PostgresGroup, ACommitThatLosesEachRaceIsAnErrorWithTheRemedy) {
  const auto a = with(one);
  const auto lose = options_.sessions + "_lose";
  admin("create function " + lose + "() returns trigger language plpgsql as $$ begin raise sqlstate '40001'; end $$");
  admin("create trigger lose before update on " + options_.sessions + " for each row execute function " + lose + "()");
  const auto lost = a->commit(renewal(one, 2), within(20s));
  admin("drop function " + lose + " cascade");
  EXPECT_THAT(error_of(lost).message, HasSubstr("default_transaction_isolation"));
  EXPECT_TRUE(done(*a, renewal(one, 2)).granted) << "nothing was written";
}

TEST_F(PostgresGroup, NothingIsLeftInAPooledSession) {
  const PgBouncer pool(shared("TENURE_POSTGRES_DIR"), 1);
  auto options = options_;
  options.conninfo = pool.conninfo();
  const auto pooled = with(options, one);
  const auto claimed = done(*pooled, claiming(one, 2, first_claims({"a"})));
  ASSERT_TRUE(done(*pooled, releasing(one, 3, {{"a", claimed.token}})).granted);
  const auto limit = within(100ms);
  pooled->await_change(claimed.look.cursor, limit);
  EXPECT_TRUE(limit.passed()) << "nothing is pushed here";
  const auto left =
      sql(pool.conninfo(),
          "select current_setting('lock_timeout'), current_setting('default_transaction_isolation'),"
          " (select count(*) from pg_listening_channels()), (select count(*) from pg_prepared_statements)");
  EXPECT_EQ(left[0][0].as<std::string>(), "0");
  EXPECT_EQ(left[0][1].as<std::string>(), "read committed");
  EXPECT_EQ(left[0][2].as<int>() + left[0][3].as<int>(), 0);
}

// ---- the push ----

TEST_F(PostgresGroup, AReleaseAnEndAndARequestWakeThoseWhoWaitAndNothingElseDoes) {
  const auto a = with(one), b = with(two), waits = group();
  const auto cursor = [&] { return value(waits->look({}, within(10s))).cursor; };
  const auto quiet = [&] {
    const auto limit = within(200ms);
    const auto named = waits->await_change(cursor(), limit);
    return limit.passed() && !named;
  };
  waits->await_change({}, within(10s));  // It listens from here on.
  const auto claimed = done(*a, claiming(one, 2, first_claims({"a", std::string("b\x01\xff", 3), "c"})));
  auto seen = cursor();
  EXPECT_TRUE(done(*a, renewal(one, 3)).granted);
  const auto other = done(*b, claiming(two, 2, first_claims({"d"}))).token;
  done(*a, releasing(one, 4, {{"d", Token{1}}}));
  EXPECT_TRUE(quiet()) << "claims, renewals, and a release of what is not ours";

  const auto woken = [&](const std::function<void()>& change) {
    const auto before = cursor();
    change();
    const auto limit = within(20s);
    auto named = waits->await_change(before, limit);
    EXPECT_FALSE(limit.passed());
    EXPECT_TRUE(quiet()) << "once";
    return named;
  };
  const auto single = woken([&] { done(*a, releasing(one, 5, {{std::string("b\x01\xff", 3), claimed.token, two}})); });
  ASSERT_TRUE(single);
  EXPECT_EQ(single->election, std::string("b\x01\xff", 3));
  EXPECT_EQ(single->token, claimed.token);
  EXPECT_EQ(single->heir, two);
  EXPECT_FALSE(woken([&] { done(*a, releasing(one, 6, {{"a", claimed.token}, {"c", claimed.token}})); }));
  EXPECT_FALSE(woken([&] { b->request_step_down("d", {other, "ops", ""}, within(10s)); }));
  EXPECT_FALSE(woken([&] { EXPECT_TRUE(value(b->end(two, {2}, 9, within(10s)))); }));
}

TEST_F(PostgresGroup, OneMayWaitWhileAnotherCommitsAndIsNotWokenByWhatItKnows) {
  const auto a = with(one);
  const auto claimed = done(*a, claiming(one, 2, first_claims({"a", "b"})), all(*a).cursor);
  a->await_change(claimed.look.cursor, within(10s));  // It listens from here on.
  auto sleeps = std::async(std::launch::async, [&] { return a->await_change(claimed.look.cursor, within(20s)); });
  EXPECT_TRUE(done(*a, renewal(one, 3)).granted);
  const auto released = done(*a, releasing(one, 4, {{"a", claimed.token}}));
  const auto named = sleeps.get();
  ASSERT_TRUE(named) << "that cursor had not told it";
  EXPECT_EQ(named->election, "a");
  const auto more = done(*a, releasing(one, 5, {{"b", claimed.token}}), all(*a).cursor);
  const auto limit = within(300ms);
  EXPECT_FALSE(a->await_change(more.look.cursor, limit));
  EXPECT_TRUE(limit.passed()) << "it was told of its own release in the answer";
}

// ---- what is wrong at the server ----

TEST_F(PostgresGroup, AMissingTableIsReportedWithTheRemedyAndMayComeLater) {
  auto options = options_;
  options.sessions = unique_name("missing");
  const auto store = group(options);
  auto error = error_of(store->look({}, within(10s)));
  EXPECT_EQ(error.fault, Fault::misconfigured);
  EXPECT_THAT(error.message,
              HasSubstr("there is no table " + options.sessions + ": run share/tenure/tenure_groups.sql"));
  EXPECT_THAT(error.message, HasSubstr("create_group_schema()"));
  options.sessions = options_.sessions;
  options.leads = unique_name("missing");
  EXPECT_THAT(error_of(group(options)->look({}, within(10s))).message, HasSubstr("there is no table " + options.leads));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(create_group_schema(options, within(10s)), std::nullopt);
  const auto whole = with(options, one);
  EXPECT_THAT(done(*whole, claiming(one, 2, first_claims({"a"}))).claimed, ElementsAre("a"));
  admin("drop table " + options.leads);
  error = error_of(whole->commit(renewal(one, 3), within(10s)));
  EXPECT_EQ(error.fault, Fault::misconfigured);
  EXPECT_THAT(error.message, HasSubstr("there is no table " + options.leads));
}

TEST_F(PostgresGroup, TheLeastPrivilegesAreEnoughAndAMissingOneIsReportedWithTheGrant) {
  const auto candidate = with(role("select, insert, update, delete", "select, insert, update"), one);
  const auto token = done(*candidate, claiming(one, 2, first_claims({"a"}))).token;
  EXPECT_EQ(candidate->request_step_down("a", {token, "ops", ""}, within(10s)), std::nullopt);
  EXPECT_TRUE(done(*candidate, releasing(one, 3, {{"a", token}})).granted);
  EXPECT_TRUE(value(candidate->end(one, {3}, 4, within(10s))));
  EXPECT_EQ(value(candidate->sweep(within(10s))), 1);

  const auto observer = group(role("select", "select"));
  EXPECT_THAT(value(observer->look({}, within(10s))).leads, ElementsAre(Key("a")));
  auto error = error_of(observer->open(two, session(1), within(10s)));
  EXPECT_EQ(error.fault, Fault::forbidden);
  EXPECT_THAT(error.message, HasSubstr("grant select, insert, update, delete on " + options_.sessions));
  const auto half = with(role("select, insert, update, delete", "select"), two);
  error = error_of(half->commit(claiming(two, 2, first_claims({"b"})), within(10s)));
  EXPECT_EQ(error.fault, Fault::forbidden);
  EXPECT_THAT(error.message, HasSubstr("grant select, insert, update on " + options_.leads));
}

TEST_F(PostgresGroup, ALeadThatNobodyOfOursWroteIsAnErrorOfItsOwnWithTheRemedy) {
  const auto a = with(one);
  done(*a, claiming(one, 2, first_claims({"a", "b"})));
  const std::vector<std::pair<std::string, std::string>> wrongs{
      {"token = -1", "its token is -1"},
      {"token = 4611686018427387905", "its token is 4611686018427387905"},
      {"session = -7", "its session is -7"},
      {"token = null", "it has no token"},
      {"session = null", "it names no session"}};
  admin("alter table " + options_.leads + " alter token drop not null, alter session drop not null");
  for (const auto& [change, wrong] : wrongs) {
    admin("update " + options_.leads + " set " + change + " where election = 'a'");
    auto look = value(a->look({}, within(10s)));
    EXPECT_EQ(look.leads.size(), 1u) << "the other one is told";
    ASSERT_TRUE(look.unreadable.contains("a")) << change;
    const auto error = look.unreadable.at("a");
    EXPECT_EQ(error.fault, Fault::corrupt);
    EXPECT_THAT(error.message, HasSubstr(wrong));
    const auto remedy = error.message.find("update " + options_.leads + " set token = ");
    ASSERT_NE(remedy, std::string::npos) << error.message;
    admin(error.message.substr(remedy));
    look = value(a->look(look.cursor, within(10s)));
    ASSERT_TRUE(look.leads.contains("a")) << "the remedy helps, and is told";
    EXPECT_EQ(look.leads.at("a").session, SessionId{});
    EXPECT_FALSE(look.leads.at("a").released);
  }
}

TEST_F(PostgresGroup, ATermThatCannotBeCountsAsTheLongest) {
  const auto a = with(one);
  for (const auto* term : {"-1", "0", "3600001", "9223372036854775807"}) {
    admin("update " + options_.sessions + " set term_ms = " + term);
    EXPECT_EQ(value(a->look({}, within(10s))).sessions.at(one).record.term, Clock::Duration(max_term)) << term;
  }
}

TEST_F(PostgresGroup, AfterACrashOrAPromotionACommitStandsAndTheNextLookIsWhole) {
  Server primary;
  auto options = fresh_group(primary.conninfo());
  const auto a = with(options, one);
  const auto claimed = done(*a, claiming(one, 2, first_claims({"a"})));
  primary.crash();
  EXPECT_EQ(error_of(a->look(claimed.look.cursor, within(10s))).fault, Fault::unreachable);
  primary.restart();
  const auto after = value(a->look(claimed.look.cursor, within(10s)));
  EXPECT_TRUE(after.whole) << "a crash gives the numbers of lost transactions away again, too";
  EXPECT_FALSE(value(a->look(after.cursor, within(10s))).whole);
  EXPECT_EQ(after.sessions.at(one).record.beat, 2u);

  Server standby(Server::How{.settings = {"wal_retrieve_retry_interval=100ms"}, .standby_of = &primary});
  ASSERT_TRUE(eventually([&] { return !sql(standby.by_socket(), "select 1 from " + options.leads).empty(); }));
  options.conninfo = standby.conninfo();
  const auto error = error_of(group(options)->look({}, within(10s)));
  EXPECT_EQ(error.fault, Fault::forbidden);
  primary.crash();
  standby.promote();
  const auto there = group(options);
  ASSERT_TRUE(eventually([&] { return bool(there->look({}, within(10s))); }));
  EXPECT_TRUE(value(there->look(after.cursor, within(10s))).whole) << "numbers of lost transactions are used again";
}

/// The server itself flushes every ten seconds, perhaps just then. So there are five tries.
TEST_F(PostgresGroup, AReleaseIsSeenBeforeItIsOnDiskAndAnsweredAfter) {
  Server server(Server::How{.settings = {"wal_writer_delay=10s", "bgwriter_delay=10s"}});
  const auto options = fresh_group(server.conninfo());
  const auto value_of = [&](const std::string& text) {
    return sql(server.by_socket(), "select " + text)[0][0].as<std::string>();
  };
  const auto a = with(options, one), b = with(options, two);
  bool seen_before = false;
  for (std::uint64_t beat = 2; beat < 12 && !seen_before; beat += 2) {
    const auto name = "election " + std::to_string(beat);
    const auto token = done(*a, claiming(one, beat, first_claims({name}))).token;
    Elsewhere holds("select from " + options.sessions + " for update", server.by_socket());
    const auto before = value_of("pg_current_wal_insert_lsn()");
    const auto flushed = [&] { return value_of("pg_current_wal_flush_lsn() > '" + before + "'") == "t"; };
    auto releases = std::async(std::launch::async, [&] { return done(*a, releasing(one, beat + 1, {{name, token}})); });
    EXPECT_TRUE(eventually([&] { return value(b->look({}, within(10s))).leads.at(name).released; }));
    seen_before = !flushed();
    holds.commit();
    EXPECT_EQ(releases.get().released, std::vector{name});
    EXPECT_TRUE(flushed());
  }
  EXPECT_TRUE(seen_before) << "a hand-over waits for the disk twice";
}

/// What a crash loses of that nobody may go on to believe.
TEST_F(PostgresGroup, AReleaseIsSeenBeforeItsCommitIsDoneAndNotBelievedIfACrashLosesIt) {
  // Nobody else flushes anything here for a while.
  Server server(Server::How{.settings = {"wal_writer_delay=10s", "bgwriter_delay=10s"}});
  const auto options = fresh_group(server.conninfo());
  const auto a = with(options, one), b = with(options, two);
  const auto claimed = done(*a, claiming(one, 2, first_claims({"a"})));
  auto seen = value(b->look({}, within(10s)));
  {
    const Elsewhere holds("select from " + options.sessions + " for update", server.by_socket());
    auto releases = std::async(std::launch::async, [&] {
      return a->commit(releasing(one, 3, {{"a", claimed.token, two}}), within(20s));
    });
    EXPECT_TRUE(eventually([&] {
      const auto next = value(b->look(seen.cursor, within(10s)));
      seen.cursor = next.cursor;
      return next.leads.contains("a") && next.leads.at("a").released;
    })) << "the renewal waits, but not the release";
    server.crash();
    EXPECT_FALSE(releases.get()) << "it is not told done before it is on disk";
  }
  server.restart();
  const auto stands = value(group(options)->look({}, within(10s))).leads.at("a");
  const auto told = value(b->look(seen.cursor, within(10s))).leads;
  ASSERT_TRUE(told.contains("a")) << "what was lost was believed";
  EXPECT_EQ(told.at("a").released, stands.released);
  EXPECT_TRUE(stands.released || done(*a, releasing(one, 3, {{"a", claimed.token, two}})).released.size() == 1);
}

// ---- what a commit reads ----

/// A connection plans once, here for tables that are empty, and known to be so if they were vacuumed.
class PostgresGroupGrows : public PostgresGroup, public testing::WithParamInterface<bool> {};

TEST_P(PostgresGroupGrows, ACommitReadsNoMoreForEachChangeAfterTheTableGrew) {
  constexpr std::uint64_t changes = max_changes;
  for (const auto& table : {options_.sessions, options_.leads}) {
    admin("alter table " + table + " set (autovacuum_enabled = off)");
    if (GetParam()) admin("vacuum analyze " + table);
  }
  {
    const auto a = with(one);
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < changes; ++i) names.push_back("election " + std::to_string(changes + i));
    const auto made = done(*a, claiming(one, 2, first_claims(names)));
    ASSERT_EQ(made.claimed.size(), changes);
    std::vector<Claim> claims;
    std::vector<Release> releases;
    for (const auto& name : names) claims.push_back({name, made.token});
    auto again = claiming(one, 3, claims);
    again.cursor = made.look.cursor;
    const auto took = done(*a, again);
    ASSERT_EQ(took.claimed.size(), changes);
    for (const auto& name : names) releases.push_back({name, took.token, two});
    auto release = releasing(one, 4, releases);
    release.cursor = took.look.cursor;
    ASSERT_EQ(done(*a, release).released.size(), changes);
  }  // The session's end makes its counts known.
  const auto counts = [&] {
    return admin(
        "select t.n_tup_upd, t.seq_tup_read + sum(i.idx_tup_read), sum(i.idx_scan) filter (where not k.indisprimary)"
        " from pg_stat_user_tables t join pg_stat_user_indexes i using (relid) join pg_index k using (indexrelid)"
        " where t.relname = '" +
        options_.leads + "' group by t.n_tup_upd, t.seq_tup_read")[0];
  };
  ASSERT_TRUE(eventually([&] { return counts()[0].as<std::uint64_t>() == 2 * changes; }));
  EXPECT_LT(counts()[1].as<std::uint64_t>(), 20 * changes) << "each change reads the whole group";
  // What is new is looked for in each key, and the second one excludes: so each of three writes looks there for itself.
  // Else only looks use it: to find a lead there is to read it all.
  EXPECT_LT(counts()[2].as<std::uint64_t>(), 4 * changes + changes / 2) << "each change reads a whole index";
}

INSTANTIATE_TEST_SUITE_P(FromEmptyTables, PostgresGroupGrows, testing::Bool(),
                         [](const auto& that) { return std::string(that.param ? "Vacuumed" : "NeverVacuumed"); });

// ---- what a renewal costs ----

TEST_F(PostgresGroup, ARenewalIsOneStatementInPlaceAndWritesNoLead) {
  // Of our own, because any snapshot in the same database keeps old rows, and then their page is full some day.
  Server server;
  const auto options = fresh_group(server.conninfo());
  constexpr std::uint64_t renewals = 300;
  const auto statements = [&] {
    sql(server.by_socket(), "create extension if not exists pg_stat_statements");
    return sql(server.by_socket(), "select coalesce(sum(calls), 0) from pg_stat_statements where query like '%public." +
                                       options.sessions + " as %'")[0][0]
        .as<std::uint64_t>();
  };
  {
    const auto a = with(options, one);
    std::vector<std::string> names;
    for (int i = 0; i < 100; ++i) names.push_back("election " + std::to_string(i + 100));
    auto cursor = done(*a, claiming(one, 2, first_claims(names))).look.cursor;
    const auto before = statements();
    for (std::uint64_t beat = 3; beat < renewals + 3; ++beat) {
      auto next = renewal(one, beat);
      next.cursor = cursor;
      const auto granted = done(*a, next);
      ASSERT_TRUE(granted.granted);
      ASSERT_THAT(granted.look.leads, IsEmpty());
      cursor = granted.look.cursor;
    }
    EXPECT_EQ(statements() - before, renewals);
  }  // The session's end makes its counts known.
  const auto counts = [&](const std::string& table) {
    return sql(server.by_socket(),
               "select n_tup_upd, n_tup_hot_upd, pg_relation_size(relid), n_tup_ins from "
               "pg_stat_user_tables where relname = '" +
                   table + "'")[0];
  };
  ASSERT_TRUE(eventually([&] { return counts(options.sessions)[0].as<std::uint64_t>() == renewals + 1; }));
  EXPECT_GE(counts(options.sessions)[1].as<std::uint64_t>(), renewals - renewals / 50)
      << "heap-only, but where the session takes another place";
  EXPECT_LE(counts(options.sessions)[2].as<int>(), 8192 * 2) << "the table grows";
  EXPECT_EQ(counts(options.leads)[3].as<int>(), 100) << "this test could not tell";
  EXPECT_EQ(counts(options.leads)[0].as<int>(), 0);
}

/// How many renewals, and names that nobody joins. The long form has those of a long run.
class PostgresGroupCost : public PostgresGroup, public testing::WithParamInterface<int> {
 protected:
  struct Renewing {
    std::shared_ptr<GroupStore> store;
    SessionId id;
    std::uint64_t beat{1};
    std::string cursor{all(*store).cursor};
  };
  /// So many renewals that a session takes another place once.
  static Clock::Duration renewals(Renewing& by) {
    const auto begun = boot_clock().now();
    for (int i = 0; i < 51; ++i) {
      const auto granted = done(*by.store, renewal(by.id, ++by.beat), by.cursor);
      EXPECT_TRUE(granted.granted);
      by.cursor = granted.look.cursor;
    }
    return boot_clock().now() - begun;
  }
  /// In time with another group's renewal. Of several times, in turn with the other one's, the shortest: the machine is
  /// shared.
  static void expect_alike(Renewing& late, Renewing& fresh) {
    const tenure::test::Lateness since;
    auto of_late = Clock::Duration::max(), of_fresh = Clock::Duration::max();
    for (int times = 0; times < 10; ++times) {
      of_late = std::min(of_late, renewals(late));
      of_fresh = std::min(of_fresh, renewals(fresh));
    }
    if (of_late >= 2 * of_fresh) since.starved(of_fresh), tenure::test::excuse_if_busy();
    EXPECT_LT(of_late, 2 * of_fresh) << of_late / 51us << " us a renewal, and " << of_fresh / 51us
                                     << " for a fresh one";
  }
};

TEST_P(PostgresGroupCost, OfARenewalDoesNotGrowBesideASnapshotThatStaysOpen) {
  // Of our own: beside this snapshot, the looks of every group at the server read again all that changed since.
  Server server;
  Renewing late{with(fresh_group(server.conninfo()), one), one};
  const Elsewhere open("set transaction isolation level repeatable read; select pg_current_xact_id()",
                       server.by_socket());
  while (late.beat < static_cast<std::uint64_t>(GetParam())) renewals(late);
  Renewing fresh{with(fresh_group(server.conninfo()), two), two};  // which that snapshot does not know
  expect_alike(late, fresh);
}

TEST_P(PostgresGroupCost, OfARenewalAndALookDoesNotGrowWithWhatIsPast) {
  const auto a = with(one);
  a->joined("e");
  done(*a, claiming(one, 2, first_claims({"e"})));
  admin("insert into " + options_.sessions + " select convert_to('group', 'UTF8'), 1000 + n, 0, 1, true, '', " +
        "10000, 1, clock_timestamp(), 1, 1, 1, 1 from generate_series(1, 20000) as n");
  admin("insert into " + options_.leads +
        " select convert_to('group', 'UTF8'), convert_to('old' || n, 'UTF8'), n, 1, " +
        "true, null, null, null, null, '3'::xid8 from generate_series(1, " +  // changed long ago
        std::to_string(10 * GetParam()) + ") as n");
  EXPECT_THAT(all(*a).leads, ElementsAre(Key("e")));
  Renewing late{a, one, 2};
  const auto tables = fresh_group(shared());
  auto options = options_;
  options.sessions = tables.sessions;
  options.leads = tables.leads;
  Renewing fresh{with(options, two), two};
  expect_alike(late, fresh);
  admin("drop table " + tables.sessions + ", " + tables.leads);
}

INSTANTIATE_TEST_SUITE_P(Quick, PostgresGroupCost, testing::Values(3'000), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Long, PostgresGroupCost, testing::Values(100'000), testing::PrintToStringParamName());

// ---- without a server ----

TEST(PostgresGroupStatements, HaveNothingLeftToFillIn) {
  const GroupStatements statements("group");
  const Bearings at{"1", "channel"};
  auto both = claiming(one, 2, {{"b"}});
  both.releases.push_back({"a"});
  for (const auto& statement :
       {statements.look({}), statements.open(one, {}, at), statements.renewal({}, at), statements.renewal(both, at),
        statements.giving_back(both, at, {}, true), statements.end(one, {1}, 2, at), statements.ended(one),
        statements.past({}), statements.sweep({one}, at), statements.release_left_behind({"a"}, at),
        statements.retire({{"a", {}}}, at), statements.request_step_down("a", {}, at), statements.lead("a")}) {
    EXPECT_THAT(statement.text, testing::Not(HasSubstr("{")));
    EXPECT_THAT(statement.text, HasSubstr("$" + std::to_string(statement.values.size()) + "::"));
    EXPECT_THAT(statement.text, testing::Not(HasSubstr("$" + std::to_string(statement.values.size() + 1))));
  }
}

TEST(PostgresGroupNotice, OfASingleReleaseNamesItAndOfAnythingElseNothing) {
  const auto release = release_of("5 7 22 6100ff");
  ASSERT_TRUE(release);
  EXPECT_EQ(release->election, std::string("a\0\xff", 3));
  EXPECT_EQ(release->token, Token{7});
  EXPECT_EQ(release->heir, two);
  EXPECT_EQ(release_of("5 7 0 61")->heir, std::nullopt);
  for (const auto* text : {"", "5", "# 1", "5 7 22", "5 7 22 ", "5 7 22 6", "5 7 22 6x", "5 -7 22 61", "5 7 -1 61",
                           "5 7 22 61 1", "x 7 22 61", "5 7 22 61\n", "5  7 22 61"})
    EXPECT_FALSE(release_of(text)) << text;
}

TEST(PostgresGroupNotice, IsNewsUnlessTheLookHasShownItsTransaction) {
  const auto cursor = cursor_of("00000001 10:14:10,12 15 3");
  for (const auto* old : {"9", "11", "13", "15 7 22 61"}) EXPECT_TRUE(told_by(cursor, old)) << old;
  for (const auto* news : {"10", "12 7 22 61", "14", "16", "", "x", "-1", "# 1"})
    EXPECT_FALSE(told_by(cursor, news)) << news;
  EXPECT_EQ(text_of(cursor), "00000001 10:14:10,12 15 3");
}

}  // namespace
}  // namespace tenure::postgres::test
