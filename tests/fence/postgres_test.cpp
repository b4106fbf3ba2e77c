// SPDX-License-Identifier: Apache-2.0
// Goal: in PostgreSQL no transaction of a former leader commits after the next claim, whatever it touches. Method: a
// user's transactions on connections of its own beside claims and renewals of the real store, in a real server, on each
// isolation level; and fences that are built wrongly, each of which lets a former leader commit or holds up its
// renewal.
#include <tenure/fence/postgres.hpp>

#include <gmock/gmock.h>

#include <future>

#include <tenure/fake_leadership.hpp>
#include <tenure/kit/wait.hpp>

#include "page_sql.hpp"
#include "support.hpp"

/// examples/fencing.cpp, which the page shows.
bool add_to_shard(const tenure::Leadership& leadership, pqxx::connection& db, int sum);
bool add_to_totals(const tenure::Leadership& leadership, pqxx::connection& db, int sum);

namespace tenure::fence {
namespace {

using namespace std::chrono_literals;
using postgres::test::applied;
using postgres::test::sql;
using postgres::test::within;
using tenure::test::record;
using testing::HasSubstr;

constexpr Token former{1}, successor{2};
constexpr auto soon = 1500ms;  // a claim that waits does not wait longer

class PostgresFence : public postgres::test::PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    table_ = options_.table;
    admin("create table " + table_ + "_work (value int)");
    elections_ = store();
    ASSERT_TRUE(applied(elections_->compare_and_set(std::nullopt, record(former.value, 1), within(10s))));
  }
  void TearDown() override {
    if (!table_.empty()) admin("drop table " + table_ + "_work");
    PostgresTest::TearDown();
  }

  bool swap(std::uint64_t token, std::uint64_t beat, Token next, std::uint64_t next_beat, Clock::Duration limit = 10s) {
    const Expected expected{.token = {token}, .beats = {beat}};
    return applied(elections_->compare_and_set(expected, record(next.value, next_beat), within(limit)));
  }
  bool renew(std::uint64_t beat, Clock::Duration limit = 10s) {
    return swap(former.value, beat, former, beat + 1, limit);
  }
  bool claim(Clock::Duration limit = 10s) { return swap(former.value, 1, successor, 1, limit); }

  std::unique_ptr<pqxx::connection> connect() const {
    return std::make_unique<pqxx::connection>(postgres::test::shared());
  }
  bool held(pqxx::dbtransaction& tx, Token token = former, std::chrono::milliseconds at_most = 30s) const {
    return hold(tx, "jobs", token, at_most, table_);
  }
  void work(pqxx::transaction_base& tx, int value = 1) const {
    tx.exec("insert into " + table_ + "_work values (" + std::to_string(value) + ")");
  }
  int worked() const { return admin("select count(*) from " + table_ + "_work")[0][0].as<int>(); }
  void drop_index() const { admin("alter table " + table_ + " drop constraint " + table_ + "_election_token_key"); }

  std::string table_;
  std::shared_ptr<ConditionalStore> elections_;
};

template <pqxx::isolation_level level>
using Transaction = pqxx::transaction<level>;

TEST_F(PostgresFence, AClaimWaitsForTheLeadersTransaction) {
  const auto db = connect();
  pqxx::work tx(*db);
  work(tx);
  ASSERT_TRUE(held(tx));
  EXPECT_FALSE(claim(soon)) << "the transaction is open";
  auto claimed = std::async(std::launch::async, [&] { return claim(20s); });
  tx.commit();
  EXPECT_TRUE(claimed.get() || claim());
  EXPECT_EQ(worked(), 1);
}

TEST_F(PostgresFence, ARenewalDoesNotWaitForTheLeadersTransaction) {
  const auto db = connect();
  pqxx::work tx(*db);
  ASSERT_TRUE(held(tx));
  EXPECT_TRUE(renew(1, soon));
  EXPECT_TRUE(renew(2, soon));
  EXPECT_TRUE(held(tx)) << "as often as one likes";
  EXPECT_FALSE(swap(former.value, 3, successor, 1, soon)) << "the row that was renewed is held, too";
  tx.commit();
}

TEST_F(PostgresFence, AFormerLeadersTransactionIsRefused) {
  ASSERT_TRUE(claim());
  const auto db = connect();
  pqxx::work tx(*db);
  work(tx);
  EXPECT_FALSE(held(tx));
  EXPECT_TRUE(held(tx, successor));
}

TEST_F(PostgresFence, WhereNothingRemainsOfTheLeaseNothingIsHeld) {
  const auto db = connect();
  pqxx::work tx(*db);
  EXPECT_FALSE(held(tx, former, 0ms));
  EXPECT_FALSE(held(tx, former, -1ms));
  EXPECT_TRUE(claim()) << "the row is free";
}

TEST_F(PostgresFence, AnElectionThatTheTableDoesNotKnowIsRefused) {
  const auto db = connect();
  pqxx::work tx(*db);
  EXPECT_FALSE(hold(tx, "other\xff", former, 1s, table_));
  EXPECT_THROW(hold(tx, "jobs", former, 1s, table_ + "_none"), pqxx::undefined_table);
}

// ---- each isolation level: the claim comes after the transaction's snapshot, and before it holds the row ----

template <class Tx>
bool refused_after_its_snapshot(pqxx::connection& db, const std::function<bool()>& claim,
                                const std::function<bool(pqxx::dbtransaction&)>& held) {
  Tx tx(db);
  tx.exec("select 1");
  EXPECT_TRUE(claim());
  try {
    return !held(tx);
  } catch (const pqxx::serialization_failure&) {
    return true;
  }
}

template <class Level>
class PostgresFenceLevels : public PostgresFence {};
using Levels = testing::Types<Transaction<pqxx::read_committed>, Transaction<pqxx::repeatable_read>,
                              Transaction<pqxx::serializable>>;
TYPED_TEST_SUITE(PostgresFenceLevels, Levels);

TYPED_TEST(PostgresFenceLevels, AFormerLeaderWithAnOldSnapshotIsRefused) {
  const auto db = this->connect();
  EXPECT_TRUE(refused_after_its_snapshot<TypeParam>(
      *db, [this] { return this->claim(); }, [this](auto& tx) { return this->held(tx); }));
}

TYPED_TEST(PostgresFenceLevels, ALeaderWhoseRecordWasRenewedAfterItsSnapshotIsNotRefused) {
  const auto db = this->connect();
  TypeParam tx(*db);
  tx.exec("select 1");
  ASSERT_TRUE(this->renew(1));
  EXPECT_TRUE(this->held(tx));
  this->work(tx);
  tx.commit();
  EXPECT_EQ(this->worked(), 1);
}

// ---- how long a transaction may hold up the next leader ----

TEST_F(PostgresFence, AProcessThatIsFrozenInItsTransactionHoldsTheNextLeaderUpNoLongerThanItSaid) {
  const auto db = connect();
  pqxx::work tx(*db);
  work(tx);
  ASSERT_TRUE(held(tx, former, 700ms));
  EXPECT_TRUE(claim(20s)) << "the server ends the session after 700 ms";
  EXPECT_THROW(tx.commit(), std::exception);
  EXPECT_EQ(worked(), 0);
}

TEST_F(PostgresFence, AStatementThatTakesLongerThanTheBoundIsEnded) {
  const auto db = connect();
  pqxx::work tx(*db);
  ASSERT_TRUE(held(tx, former, 700ms));
  EXPECT_THROW(tx.exec("select pg_sleep(60)"), std::exception);
}

TEST_F(PostgresFence, From17OnATransactionOfShortStatementsIsEndedToo) {
  const auto db = connect();
  if (db->server_version() < 170000) GTEST_SKIP() << "needs PostgreSQL 17 or newer, as Debian 13 has it";
  pqxx::work tx(*db);
  ASSERT_TRUE(held(tx, former, 700ms));
  const auto limit = within(20s);
  EXPECT_THROW(while (!limit.passed()) tx.exec("select pg_sleep(0.01)"), std::exception);
  EXPECT_TRUE(claim());
}

/// The server does not begin the timer anew while that of the longer one runs.
TEST_F(PostgresFence, From17OnALongerBoundOfTheUsersOwnForTransactionsIsReplaced) {
  const auto db = connect();
  if (db->server_version() < 170000) GTEST_SKIP() << "needs PostgreSQL 17 or newer, as Debian 13 has it";
  pqxx::nontransaction(*db).exec("set transaction_timeout = '1h'");
  pqxx::work tx(*db);
  ASSERT_TRUE(held(tx, former, 700ms));
  EXPECT_TRUE(claim(20s)) << "the server ends the session after 700 ms";
  EXPECT_THROW(tx.commit(), std::exception);
}

TEST_F(PostgresFence, ABoundOfTheUsersOwnStaysIfItIsShorterAndComesBackAfterTheTransaction) {
  const auto db = connect();
  const auto bounds = [](pqxx::transaction_base& tx) {
    return tx.exec("show statement_timeout")[0][0].as<std::string>() + ' ' +
           tx.exec("show idle_in_transaction_session_timeout")[0][0].as<std::string>();
  };
  {
    pqxx::work tx(*db);
    tx.exec("set statement_timeout = '7s'; set idle_in_transaction_session_timeout = '2min'");
    tx.commit();
  }
  {
    pqxx::work tx(*db);
    ASSERT_TRUE(held(tx, former, 20s));
    EXPECT_EQ(bounds(tx), "7s 20s");
  }
  pqxx::work tx(*db);
  EXPECT_EQ(bounds(tx), "7s 2min");
}

TEST_F(PostgresFence, TheCallIsRefusedWhereItCouldPromiseNothing) {
  const auto db = connect();
  pqxx::work tx(*db);
  EXPECT_THROW(held(tx, former, 25h), std::invalid_argument);
  pqxx::subtransaction part(tx);
  EXPECT_THROW(held(part), std::invalid_argument);
}

TEST_F(PostgresFence, WhatIsHeldStaysSoWhenALaterSavepointIsRolledBack) {
  const auto db = connect();
  pqxx::work tx(*db);
  ASSERT_TRUE(held(tx));
  tx.exec("savepoint later");
  work(tx);
  ASSERT_TRUE(held(tx));
  tx.exec("rollback to savepoint later");
  EXPECT_FALSE(claim(soon));
}

TEST_F(PostgresFence, ARollbackToASavepointThatStoodBeforeGivesTheRowBack) {
  const auto db = connect();
  pqxx::work tx(*db);
  tx.exec("savepoint before");
  ASSERT_TRUE(held(tx));
  tx.exec("rollback to savepoint before");
  EXPECT_TRUE(claim()) << "this is why the page says where to call it";
}

TEST_F(PostgresFence, APreparedTransactionHoldsTheNextLeaderUpUntilItIsDecided) {
  postgres::test::Server server({.settings = {"max_prepared_transactions=2"}});
  const auto options = postgres::test::fresh_table(server.conninfo());
  const auto elections = store(options);
  ASSERT_TRUE(applied(elections->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  const auto claim_there = [&](Clock::Duration limit) {
    return applied(elections->compare_and_set(Expected{.token = {1}, .beats = {1}}, record(2, 1), within(limit)));
  };
  {
    pqxx::connection db(server.conninfo());
    pqxx::work tx(db);
    ASSERT_TRUE(hold(tx, "jobs", former, 30s, options.table));
    tx.exec("prepare transaction 'in two phases'");
  }
  EXPECT_FALSE(claim_there(soon));
  server.crash();
  server.restart();
  EXPECT_FALSE(claim_there(soon)) << "the row is held after a crash, too";
  pqxx::connection db(server.conninfo());
  pqxx::nontransaction(db).exec("rollback prepared 'in two phases'");
  EXPECT_TRUE(claim_there(10s));
}

#ifdef TENURE_WITH_EXAMPLE
TEST_F(PostgresFence, TheExampleOfThePageWritesForTheLeaderAndNotForAFormerOne) {
  const postgres::test::Server server;
  postgres::Options there;
  there.conninfo = server.conninfo();
  ASSERT_EQ(postgres::create_schema(there, within(20s)), std::nullopt);
  const auto elections = store(there);
  ASSERT_TRUE(applied(elections->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  sql(there.conninfo, "create table totals (sum int); insert into totals values (0)");
  pqxx::connection db(there.conninfo);
  FakeLeadership leadership;
  EXPECT_FALSE(add_to_totals(leadership.leadership(), db, 1)) << "it does not lead";
  leadership.lead(former, 1min);
  EXPECT_TRUE(add_to_totals(leadership.leadership(), db, 10));
  ASSERT_TRUE(applied(elections->compare_and_set(Expected{.token = former, .beats = {1}}, record(2, 1), within(10s))));
  EXPECT_FALSE(add_to_totals(leadership.leadership(), db, 100)) << "it believes that it leads";
  EXPECT_EQ(sql(there.conninfo, "select sum from totals")[0][0].as<int>(), 10);
}

TEST_F(PostgresFence, TheExampleOfAGroupWritesForTheLeaderAndNotForAFormerOne) {
  const postgres::test::Server server;
  postgres::Options there;
  there.conninfo = server.conninfo();
  ASSERT_EQ(postgres::create_group_schema(there, within(20s)), std::nullopt);
  sql(there.conninfo, "create table totals (sum int); insert into totals values (0)");
  const auto lead = [&](Token token) {
    sql(there.conninfo,
        "delete from tenure_leads; insert into tenure_leads (grp, election, token, session, released, changed) values "
        "('shards', 'jobs', " +
            std::to_string(token.value) + ", 1, false, pg_current_xact_id())");
  };
  pqxx::connection db(there.conninfo);
  FakeLeadership leadership;
  leadership.lead(former, 1min);
  lead(former);
  EXPECT_TRUE(add_to_shard(leadership.leadership(), db, 10));
  lead(successor);
  EXPECT_FALSE(add_to_shard(leadership.leadership(), db, 100)) << "it believes that it leads";
  EXPECT_EQ(sql(there.conninfo, "select sum from totals")[0][0].as<int>(), 10);
}
#endif

// ---- other clients ----

class PostgresFenceOfThePage : public PostgresFence, public testing::WithParamInterface<const char*> {};

TEST_P(PostgresFenceOfThePage, ServesOtherClientsToo) {
  const auto as_leader = [&](Token token) {
    return by_client(GetParam(), table_ + "_work",
                     "single 42=" + std::to_string(token.value) + " public.tenure_elections=" + table_);
  };
  const auto first = as_leader(former);
  if (!first) GTEST_SKIP() << needs(GetParam());
  EXPECT_EQ(*first, "committed\n");
  ASSERT_TRUE(claim());
  EXPECT_EQ(as_leader(former), "refused\n");
  EXPECT_EQ(as_leader(successor), "committed\n");
  EXPECT_EQ(worked(), 2);
}

INSTANTIATE_TEST_SUITE_P(Quick, PostgresFenceOfThePage, testing::Values("psycopg"), client_of);
INSTANTIATE_TEST_SUITE_P(Long, PostgresFenceOfThePage, testing::Values("jdbc", "go"), client_of);

// ---- fences that are built wrongly ----

TEST_F(PostgresFence, WithoutTheIndexAClaimDoesNotWaitAndTheDoctorSaysSo) {
  const auto doctor = [&] {
    std::string all;
    const auto checks = postgres::check_url(
        {.url = postgres::test::shared("TENURE_POSTGRES_URL"), .properties = {{"table", table_}}}, within(10s));
    for (const auto& check : *checks) all += check.what + ": " + check.remedy + '\n';
    return all;
  };
  EXPECT_THAT(doctor(), HasSubstr("the strict fence is there"));
  drop_index();
  EXPECT_THAT(doctor(), HasSubstr("create unique index on " + table_ + " (election, token)"));
  {
    const auto db = connect();
    pqxx::work tx(*db);
    ASSERT_TRUE(held(tx));
    EXPECT_TRUE(claim()) << "this is what the index is for";
  }
  admin("create unique index on " + table_ + " (election, token)");
  EXPECT_THAT(doctor(), HasSubstr("the strict fence is there"));
}

TEST_F(PostgresFence, APlainPredicateLetsAFormerLeaderCommit) {
  const auto db = connect();
  pqxx::transaction<pqxx::repeatable_read> tx(*db);
  work(tx);
  ASSERT_TRUE(claim());
  const auto still = "select 1 from " + table_ + " where election = 'jobs' and token = 1";
  EXPECT_EQ(tx.exec(still).size(), 1u);
  tx.commit();
  EXPECT_EQ(worked(), 1) << "this is why the row is locked";
}

TEST_F(PostgresFence, AShareLockHoldsUpTheRenewal) {
  const auto db = connect();
  pqxx::work tx(*db);
  tx.exec("select 1 from " + table_ + " where election = 'jobs' and token = 1 for share");
  EXPECT_FALSE(renew(1, soon)) << "this is why it is a key share lock";
}

}  // namespace
}  // namespace tenure::fence
