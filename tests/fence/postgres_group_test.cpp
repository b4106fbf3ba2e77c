// SPDX-License-Identifier: Apache-2.0
// Goal: a transaction that holds a lead of a group holds up nothing but the next claim of it, and that one passes it
// by; tables that stand get what they need for that. Method: a user's transactions on connections of their own beside
// commits of the real store, in a real server; and tables and statements that are wrong, which hold up a release or let
// a former leader commit.
#include <tenure/fence/postgres.hpp>

#include <gmock/gmock.h>

#include <future>

#include "page_sql.hpp"
#include "support.hpp"

namespace tenure::fence {
namespace {

using namespace std::chrono_literals;
using postgres::test::sql;
using postgres::test::within;
using tenure::test::value;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr SessionId one{11}, two{22};
constexpr auto soon = 1500ms;  // what waits does not wait longer

class PostgresGroupFence : public postgres::test::PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    const auto made = postgres::test::fresh_group(postgres::test::shared());
    sessions_ = made.sessions, leads_ = made.leads;
    options_.sessions = sessions_, options_.leads = leads_;
    options_.conninfo += " application_name=" + leads_;
    group_ = postgres::open_group(options_, "group");
    for (const auto id : {one, two}) {
      beats_[id] = 1;
      ASSERT_TRUE(value(group_->open(id, session(1), within(10s))).granted);
    }
    token_ = claim(one, {{"jobs"}, {"other"}}).token;
    db_ = std::make_unique<pqxx::connection>(postgres::test::shared());
  }
  void TearDown() override {
    db_.reset();
    if (!leads_.empty()) admin("drop table " + sessions_ + ", " + leads_);
    PostgresTest::TearDown();
  }

  static Session session(std::uint64_t beat) { return {.record = tenure::test::record(0, beat), .joined = 2}; }
  Commit renewal(SessionId id) {
    const auto stands = beats_[id]++;
    return {.session = id, .beats = {stands}, .next = session(stands + 1)};
  }
  Committed claim(SessionId id, std::vector<Claim> claims) {
    auto commit = renewal(id);
    commit.claims = std::move(claims);
    commit.at_least = {token_.value + 1};
    return value(group_->commit(commit, within(20s)));
  }
  /// Whether one that leads renews its session and releases "jobs", within the time.
  bool releases(Clock::Duration limit = soon) {
    auto commit = renewal(one);
    commit.releases = {{"jobs", token_}};
    const auto done = group_->commit(commit, within(limit));
    return done && done->granted && done->released.size() == 1;
  }
  bool held(pqxx::dbtransaction& tx, std::chrono::milliseconds at_most = 30s) const {
    return hold(tx, "group", "jobs", token_, at_most, leads_);
  }
  std::string doctor() const {
    std::string all;
    const auto checks = postgres::check_url({.url = postgres::test::shared("TENURE_POSTGRES_URL"),
                                             .properties = {{"table", options_.table}, {"leads", leads_}}},
                                            within(10s));
    for (const auto& check : *checks) all += check.what + ": " + check.remedy + '\n';
    return all;
  }
  /// A unique index by which releases wait. That it may be deferred, or is not valid, is no difference to them.
  void spoil() const {
    admin("alter table " + leads_ + " drop constraint " + leads_ +
          "_grp_changed_election_excl, add unique (grp, changed, election) deferrable");
  }
  void mend() const {
    admin("alter table " + leads_ + " drop constraint " + leads_ +
          "_grp_changed_election_key, add exclude using btree (grp with =, changed with =, election with =)");
  }

  std::string sessions_, leads_;
  std::shared_ptr<GroupStore> group_;
  std::map<SessionId, std::uint64_t> beats_;
  Token token_{};
  std::unique_ptr<pqxx::connection> db_;
};

TEST_F(PostgresGroupFence, RenewalsAndReleasesDoNotWaitForATransactionAndAClaimPassesItsLeadBy) {
  pqxx::work tx(*db_);
  ASSERT_TRUE(held(tx));
  EXPECT_TRUE(value(group_->commit(renewal(one), within(soon))).granted);
  EXPECT_EQ(group_->request_step_down("jobs", {token_, "ops", "why"}, within(soon)), std::nullopt);
  EXPECT_TRUE(releases());
  EXPECT_TRUE(held(tx)) << "nobody has claimed it";
  ASSERT_TRUE(value(group_->end(one, {beats_[one]}, 99, within(soon))));
  const auto passed_by = claim(two, {{"jobs", token_}});
  EXPECT_TRUE(passed_by.granted) << "the session is renewed";
  EXPECT_THAT(passed_by.claimed, IsEmpty());
  tx.commit();
  EXPECT_THAT(claim(two, {{"jobs", token_}}).claimed, ElementsAre("jobs"));
}

TEST_F(PostgresGroupFence, OtherLeadsAreClaimedMeanwhile) {
  ASSERT_TRUE(value(group_->end(one, {beats_[one]}, 99, within(soon))));
  auto commit = renewal(two);
  commit.claims = {{"jobs", token_}, {"other", token_}};
  commit.ended = {one};
  commit.at_least = {token_.value + 1};
  pqxx::work tx(*db_);
  ASSERT_TRUE(held(tx));
  EXPECT_THAT(value(group_->commit(commit, within(10s))).claimed, ElementsAre("other"));
}

TEST_F(PostgresGroupFence, ASweepReleasesALeadThatIsHeld) {
  ASSERT_TRUE(value(group_->end(one, {beats_[one]}, 99, within(soon))));
  pqxx::work tx(*db_);
  ASSERT_TRUE(held(tx));
  EXPECT_EQ(value(group_->sweep(within(soon))), 0);
  EXPECT_TRUE(value(group_->look({}, within(10s))).leads.at("jobs").released);
}

TEST_F(PostgresGroupFence, AFormerLeaderIsRefusedAndSoIsOneOfARetiredElection) {
  ASSERT_TRUE(releases());
  {
    pqxx::work tx(*db_);
    EXPECT_FALSE(hold(tx, "other group", "jobs", token_, 30s, leads_));
    EXPECT_FALSE(hold(tx, "group", "none", token_, 30s, leads_));
    EXPECT_TRUE(held(tx)) << "a release alone refuses nothing";
    EXPECT_EQ(group_->retire({{"jobs", token_}}, within(soon)).error().fault, Fault::timed_out);
  }
  ASSERT_THAT(value(group_->retire({{"jobs", token_}}, within(10s))), ElementsAre("jobs"));
  pqxx::work tx(*db_);
  EXPECT_FALSE(held(tx));
  ASSERT_THAT(claim(two, {{"jobs", token_}}).claimed, ElementsAre("jobs"));
  EXPECT_FALSE(held(tx));
}

TEST_F(PostgresGroupFence, AProcessThatIsFrozenInItsTransactionHoldsTheNextLeaderUpNoLongerThanItSaid) {
  ASSERT_TRUE(releases());
  pqxx::work tx(*db_);
  ASSERT_TRUE(held(tx, 700ms));
  EXPECT_THAT(claim(two, {{"jobs", token_}}).claimed, IsEmpty());
  EXPECT_TRUE(tenure::test::eventually([&] { return claim(two, {{"jobs", token_}}).claimed.size() == 1; }));
  EXPECT_THROW(tx.commit(), std::exception);
}

TEST_F(PostgresGroupFence, SavepointsAndTwoPhasesHoldTheLeadAsASingleElectionIsHeld) {
  ASSERT_TRUE(releases());
  const auto name = "'" + leads_ + "'";
  {
    pqxx::work tx(*db_);
    tx.exec("savepoint before");
    ASSERT_TRUE(held(tx));
    tx.exec("savepoint later");
    ASSERT_TRUE(held(tx));
    tx.exec("rollback to savepoint later");
    EXPECT_THAT(claim(two, {{"jobs", token_}}).claimed, IsEmpty());
    tx.exec("prepare transaction " + name);
  }
  EXPECT_THAT(claim(two, {{"jobs", token_}}).claimed, IsEmpty()) << "nobody has decided yet";
  admin("commit prepared " + name);
  EXPECT_THAT(claim(two, {{"jobs", token_}}).claimed, ElementsAre("jobs"));
}

TEST_F(PostgresGroupFence, AHoldDuringAClaimWaitsForItsOutcome) {
  ASSERT_TRUE(releases());
  pqxx::connection elsewhere(postgres::test::shared());
  pqxx::work blocks(elsewhere);
  blocks.exec("insert into " + leads_ +
              " values ('group', 'new', 7, 11, false, null, null, null, null, pg_current_xact_id())");
  auto claimed = std::async(std::launch::async, [&] { return claim(two, {{"jobs", token_}, {"new"}}).claimed; });
  ASSERT_TRUE(tenure::test::eventually([&] {
    return !admin("select from pg_stat_activity where wait_event_type = 'Lock' and application_name = '" + leads_ + "'")
                .empty();
  }));
  {
    pqxx::work tx(*db_);
    tx.exec("set local lock_timeout = '500ms'");
    EXPECT_THROW(held(tx), pqxx::sql_error) << "the claim has the row";
  }
  blocks.abort();
  EXPECT_THAT(claimed.get(), testing::UnorderedElementsAre("jobs", "new"));
  pqxx::work tx(*db_);
  EXPECT_FALSE(held(tx));
}

class PostgresGroupFenceOfThePage : public PostgresGroupFence, public testing::WithParamInterface<const char*> {};

TEST_P(PostgresGroupFenceOfThePage, ServesOtherClientsToo) {
  admin("create table " + leads_ + "_work (value int)");
  const auto as_leader = [&](Token token) {
    return by_client(GetParam(), leads_ + "_work",
                     "group 42=" + std::to_string(token.value) + " public.tenure_leads=" + leads_ + " shards=group");
  };
  const auto first = as_leader(token_);
  const auto released = releases();
  const auto next = claim(two, {{"jobs", token_}}).token;
  const auto second = as_leader(token_), third = as_leader(next);
  const auto written = admin("select from " + leads_ + "_work").size();
  admin("drop table " + leads_ + "_work");
  if (!first) GTEST_SKIP() << needs(GetParam());
  EXPECT_EQ(*first, "committed\n");
  EXPECT_TRUE(released);
  EXPECT_EQ(second, "refused\n");
  EXPECT_EQ(third, "committed\n");
  EXPECT_EQ(written, 2u);
}

INSTANTIATE_TEST_SUITE_P(Quick, PostgresGroupFenceOfThePage, testing::Values("psycopg"), client_of);
INSTANTIATE_TEST_SUITE_P(Long, PostgresGroupFenceOfThePage, testing::Values("jdbc", "go"), client_of);

TEST_F(PostgresGroupFence, TheSqlFileAloneMakesTheTableSo) {
  admin("drop table " + sessions_ + ", " + leads_);
  admin(postgres::group_schema(sessions_, leads_));
  EXPECT_THAT(doctor(), HasSubstr("a group's lead: the strict fence is there"));
}

// ---- tables and fences that are wrong ----

TEST_F(PostgresGroupFence, AUniqueIndexHoldsReleasesUpAndTheDoctorSaysSoUntilItIsMended) {
  EXPECT_THAT(doctor(), HasSubstr("a group's lead: the strict fence is there"));
  spoil();
  EXPECT_THAT(doctor(), AllOf(HasSubstr("a release in a group waits"),
                              HasSubstr("alter table \"" + leads_ +
                                        "\" add exclude using btree (grp with =, changed with =, "
                                        "election with =)")));
  {
    pqxx::work tx(*db_);
    ASSERT_TRUE(held(tx));
    EXPECT_FALSE(releases()) << "it writes what a unique index has";
  }
  mend();
  EXPECT_THAT(doctor(), HasSubstr("a group's lead: the strict fence is there"));
  EXPECT_EQ(admin("select from pg_index where indrelid = '" + leads_ + "'::regclass").size(), 2u);
  pqxx::work tx(*db_);
  ASSERT_TRUE(held(tx));
  EXPECT_TRUE(releases());
}

TEST_F(PostgresGroupFence, AShareLockHoldsUpTheRelease) {
  pqxx::work tx(*db_);
  tx.exec("select 1 from " + leads_ + " where election = 'jobs' for share");
  EXPECT_FALSE(releases()) << "this is why it is a key share lock";
}

TEST_F(PostgresGroupFence, APlainPredicateLetsAFormerLeaderCommit) {
  ASSERT_TRUE(releases());
  pqxx::transaction<pqxx::repeatable_read> tx(*db_);
  tx.exec("select 1");
  ASSERT_THAT(claim(two, {{"jobs", token_}}).claimed, ElementsAre("jobs"));
  const auto still = "select 1 from " + leads_ + " where election = 'jobs' and token = " + std::to_string(token_.value);
  EXPECT_EQ(tx.exec(still).size(), 1u) << "this is why the row is locked";
}

TEST_F(PostgresGroupFence, WhereNoGroupsAreTheDoctorSaysNothingOfThem) {
  admin("alter table " + leads_ + " rename to " + leads_ + "_elsewhere");
  EXPECT_THAT(doctor(), Not(HasSubstr("group")));
  admin("alter table " + leads_ + "_elsewhere rename to " + leads_);
}

}  // namespace
}  // namespace tenure::fence
