// SPDX-License-Identifier: Apache-2.0
// Goal: what the table costs and what it leaves behind: one statement a renewal and one flush, in place; nothing
// written by those who wait, and few reads; a push to all who wait; no setting and no subscription left in a session
// that a pooler hands on; the same answers whatever a session's settings are. Method: the server's own counters.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <thread>

#include <tenure/kit/wait.hpp>
#include <tenure/leader_manager.hpp>

#include "checkup.hpp"
#include "connection.hpp"
#include "follower_reads.hpp"
#include "lateness.hpp"
#include "support.hpp"

namespace tenure::postgres::test {
namespace {

using testing::HasSubstr;

std::string lsn_now(const std::string& conninfo) {
  return sql(conninfo, "select pg_current_wal_insert_lsn()")[0][0].as<std::string>();
}

/// Every statement that sessions of that application_name executed, in order, as the server noted it before it ran.
std::vector<std::string> executed(const Server& server, const std::string& application) {
  std::ifstream log(server.directory() / "server.log");
  std::vector<std::string> out;
  for (std::string line; std::getline(log, line);) {
    if (!line.starts_with(application + "|LOG:")) continue;
    for (const auto* what : {"  execute ", "  statement: "})
      if (const auto at = line.find(what); at != line.npos) out.push_back(line.substr(at));
  }
  return out;
}

/// A server that notes every statement before it runs it. Its statistics would also count what others ask.
Server::How noting_statements() { return {.settings = {"log_statement=all", "log_line_prefix=%a|"}}; }

Options calling_itself(const std::string& application, Options options) {
  options.conninfo += " application_name=" + application;
  return options;
}

class PostgresStore : public PostgresTest {
 protected:
  /// Statements on that table so far.
  static std::int64_t calls(const std::string& table, const std::string& server) {
    sql(server, "create extension if not exists pg_stat_statements");
    return sql(server, "select coalesce(sum(calls), 0) from pg_stat_statements where query like '%public." + table +
                           " as %'")[0][0]
        .as<std::int64_t>();
  }

  /// A record that stands, of a leader that says nothing more.
  void let_stand(Clock::Duration term = 1h) {
    ASSERT_TRUE(applied(store()->compare_and_set(std::nullopt, record(1, 1, term), within(10s))));
  }
};

// ---- what a renewal costs ----

TEST_F(PostgresStore, ARenewalIsOneStatementInPlace) {
  // Of our own, because any snapshot in the same database keeps old rows, and then their page is full some day.
  Server server;
  const auto options = fresh_table(server.conninfo());
  constexpr std::uint64_t renewals = 1000;
  {
    const auto leader = store(options);
    ASSERT_TRUE(applied(leader->compare_and_set(std::nullopt, record(1, 1), within(10s))));
    const auto before = calls(options.table, server.by_socket());
    const auto began = boot_clock().now();
    for (std::uint64_t beat = 2; beat < renewals + 2; ++beat)
      ASSERT_TRUE(applied(leader->compare_and_set(Expected{{1}, {beat - 1}}, record(1, beat), within(10s))));
    const auto each = (boot_clock().now() - began) / renewals;
    EXPECT_EQ(calls(options.table, server.by_socket()) - before, renewals);
    std::cout << "renewal: " << std::chrono::duration_cast<std::chrono::microseconds>(each).count() << " us\n";
  }  // The session's end makes its counts known.
  pqxx::result counts;
  ASSERT_TRUE(eventually([&] {
    counts = sql(server.by_socket(),
                 "select n_tup_upd, n_tup_hot_upd, pg_relation_size(relid) from pg_stat_user_tables where relname = '" +
                     options.table + "'");
    return counts[0][0].as<std::uint64_t>() == renewals;
  }));
  EXPECT_EQ(counts[0][1].as<std::uint64_t>(), renewals) << "heap-only";
  EXPECT_LE(counts[0][2].as<int>(), 8192 * 2) << "the table grows";
}

TEST_F(PostgresStore, AWriteIsFlushedWhenItIsAnsweredButForARelease) {
  // Nobody else flushes anything here for a while.
  Server server(Server::How{.settings = {"wal_writer_delay=10s", "synchronous_commit=off", "bgwriter_delay=10s"}});
  const auto options = fresh_table(server.conninfo());
  const auto flushed = [&](const std::string& since) {
    return sql(server.by_socket(), "select pg_current_wal_flush_lsn() > '" + since + "'")[0][0].as<bool>();
  };
  const auto table = postgres::store(options, "jobs");
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  auto before = lsn_now(server.by_socket());
  ASSERT_TRUE(applied(table->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(10s))));
  EXPECT_TRUE(flushed(before));
  before = lsn_now(server.by_socket());
  ASSERT_TRUE(applied(table->compare_and_set(Expected{{1}, {2}}, released(record(1, 3)), within(10s))));
  EXPECT_FALSE(flushed(before)) << "whoever takes over need not wait for that";
  ASSERT_TRUE(applied(table->compare_and_set(Expected{{1}, {3}}, record(2, 4), within(10s))));
  EXPECT_TRUE(flushed(before)) << "a claim is, and all before it";
  before = lsn_now(server.by_socket());
  sql(server.by_socket(), "update " + options.table + " set beat = beat");
  EXPECT_FALSE(flushed(before)) << "this test could not tell";
}

// ---- what a connection costs ----

/// PL/pgSQL prepares a session in one round trip. Not every role may use it, and not every database has it.
TEST_F(PostgresStore, WithoutPlpgsqlASessionIsPreparedStepByStep) {
  Server server(noting_statements());
  const auto by_admin = [&](const std::string& statement) { return sql(server.by_socket(), statement); };
  by_admin("create role plain login password '" + canary + "'; revoke usage on language plpgsql from public");
  for (const std::string called : {"forbidden", "missing"}) {
    SCOPED_TRACE(called);
    if (called == "missing") by_admin("drop extension plpgsql");
    auto options = calling_itself(called, fresh_table(server.conninfo()));
    by_admin("grant select, insert, update on " + options.table + " to plain");
    options.user = "plain";
    options.password = canary;
    const auto table = store(options);
    ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
    by_admin("select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = '" + called + "'");
    EXPECT_EQ(value(table->read(within(10s))).record->beat, 1u);
    using testing::StartsWith;
    const auto introduction = StartsWith("  statement: with trusted as");
    const auto preparations = StartsWith("  statement: deallocate all; set lock_timeout");
    const auto asked = HasSubstr("execute tenure_");
    EXPECT_THAT(executed(server, called), testing::ElementsAre(StartsWith("  statement: do $tenure$"), introduction,
                                                               preparations, asked, introduction, preparations, asked));
  }
}

/// To compile a query of catalogues takes seconds, and nobody would lead.
TEST_F(PostgresStore, NothingOfOursIsCompiledWhateverThePlannersSettingsAre) {
  Server server(Server::How{.settings = {"pg_stat_statements.track=all"}});  // within a block, too
  const auto by_admin = [&](const std::string& statement) { return sql(server.by_socket(), statement); };
  if (!by_admin("select pg_jit_available()")[0][0].as<bool>()) GTEST_SKIP() << "this server cannot compile queries";
  const auto options = fresh_table(server.conninfo());
  by_admin("create extension pg_stat_statements");
  by_admin("alter database postgres set jit_above_cost = 0; alter database postgres set enable_nestloop = off");
  const auto compiled = [&](const std::string& part) {
    return by_admin("select coalesce(sum(jit_functions), 0) from pg_stat_statements where query like '%" + part +
                    "%'")[0][0]
        .as<int>();
  };
  const auto table = store(options);
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(20s))));
  by_admin("select count(*) from pg_class as could_tell");
  EXPECT_EQ(compiled("with trusted as"), 0);
  EXPECT_EQ(compiled("public." + options.table + " as"), 0);
  EXPECT_GT(compiled("could_tell"), 0) << "this test could not tell";
}

// ---- what waiting costs ----

TEST_F(PostgresStore, FollowersWriteNothing) {
  // Nor does the server by itself: for a follower it would note every 15 s who is at work.
  Server server(Server::How{.settings = {"autovacuum=off", "wal_level=minimal", "max_wal_senders=0"}});
  options_ = fresh_table(server.conninfo());
  let_stand();
  std::vector<std::shared_ptr<Backend>> backends;
  for (const auto* name : {"a", "b", "c"}) backends.push_back(backend(name));
  const auto contend = [&] {
    for (const auto& waits : backends) {
      EXPECT_TRUE(std::holds_alternative<Denied>(waits->acquire(within(10s))));
      EXPECT_TRUE(std::holds_alternative<Incumbent>(waits->observe(within(10s))));
      waits->await_change(Vacant{}, within(5ms));
      EXPECT_EQ(waits->release(within(10s)), std::nullopt);
    }
  };
  contend();
  sql(server.by_socket(), "checkpoint");
  const auto before = lsn_now(server.by_socket());
  for (int i = 0; i < 20; ++i) contend();
  EXPECT_EQ(lsn_now(server.by_socket()), before);
  ASSERT_TRUE(applied(store()->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(10s))));
  EXPECT_NE(lsn_now(server.by_socket()), before) << "this test could not tell";
  options_.table.clear();
}

/// A session that begins does what it can before its first claim.
TEST_F(PostgresStore, ASessionThatBeginsWritesNothingAndItsFirstClaimIsPlanned) {
  // Nor does the server by itself: every 15 s it would note who is at work.
  Server server(Server::How{.settings = {"autovacuum=off", "wal_level=minimal", "max_wal_senders=0"}});
  options_ = fresh_table(server.conninfo());
  let_stand();
  sql(server.by_socket(), "create extension pg_stat_statements");
  const auto state = [&] {
    const auto found = sql(server.by_socket(), "select pg_current_wal_insert_lsn(), txid_current_snapshot()");
    return found[0][0].as<std::string>() + ' ' + found[0][1].as<std::string>();
  };
  const auto updates = [&] {
    return sql(server.by_socket(),
               "select coalesce(sum(calls), 0) from pg_stat_statements where query like '%execute tenure\\_1(%'")[0][0]
        .as<int>();
  };
  value(store()->read(within(10s)));
  const auto asked = updates();
  sql(server.by_socket(), "checkpoint");
  const auto before = state();
  for (int i = 0; i < 10; ++i) value(store()->read(within(10s)));
  EXPECT_EQ(state(), before);
  EXPECT_EQ(updates() - asked, 10);
  const auto stands = value(store()->read(within(10s))).record;
  ASSERT_TRUE(stands);
  EXPECT_EQ((Version{stands->token, stands->beat}), (Version{{1}, 1}));
  ASSERT_TRUE(applied(store()->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(10s))));
  EXPECT_NE(state(), before) << "this test could not tell";
  options_.table.clear();
}

TEST_F(PostgresStore, AnObserverWithSelectAloneCausesNoErrorInTheServersLog) {
  const auto refusals = [this] {
    std::ifstream log(shared("TENURE_POSTGRES_DIR") + "/server.log");
    const std::string all{std::istreambuf_iterator<char>(log), {}};
    int count = 0;
    for (auto at = all.find("ERROR:"), next = at; at != all.npos; at = next) {  // its line, and its statement's, if any
      next = all.find("ERROR:", at + 1);
      count += all.find(options_.table, at) < std::min(next, all.find('\n', all.find('\n', at) + 1));
    }
    return count;
  };
  let_stand();
  for (const auto* settings : {"", "set default_transaction_read_only = on"}) {
    const auto watches = store(role("select", settings));
    EXPECT_TRUE(value(watches->read(within(10s))).record);
  }
  EXPECT_TRUE(value(store(role("select, update", "set default_transaction_read_only = on"))->read(within(10s))).record);
  EXPECT_EQ(refusals(), 0);
  error_of(store(role("select"))->compare_and_set(Expected{{1}, {1}}, record(2, 2), within(10s)));
  EXPECT_EQ(refusals(), 1) << "this test could not tell";
}

TEST_F(PostgresStore, RenewalsMakeNoFollowerRead) {
  Server server(noting_statements());
  const auto table = fresh_table(server.conninfo());
  const auto leader = open(calling_itself("leads", table), "jobs", {"leader", ""});
  const auto token = contract::lead(*leader, contract::quiet_timing);
  ASSERT_TRUE(token);
  const auto watched = store(calling_itself("stands_by", table));
  begin_to_listen(*watched);
  const auto led = executed(server, "leads").size();
  const auto stood_by = executed(server, "stands_by").size();
  ASSERT_GT(led, 0u) << "this test could not tell";
  ASSERT_GT(stood_by, 0u) << "this test could not tell";
  const auto quiet = contract::watch_a_follower(*leader, *token, watched);
  const auto by_leader = executed(server, "leads");
  const auto by_follower = executed(server, "stands_by");
  EXPECT_EQ(by_leader.size() - led, static_cast<std::size_t>(quiet.renewals)) << testing::PrintToString(by_leader);
  EXPECT_EQ(by_follower.size() - stood_by, static_cast<std::size_t>(quiet.reads))
      << testing::PrintToString(by_follower);
}

TEST_F(PostgresStore, NinetyContendersElectOne) {
  constexpr int contenders = 90;
  constexpr auto connects = 3s;  // the limit of each
  const tenure::test::Lateness lateness;
  std::atomic<int> granted{0}, denied{0};
  std::barrier start(contenders);
  std::atomic<Clock::rep> slowest{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < contenders; ++i)
      threads.emplace_back([&, i] {
        const auto contender = backend("c" + std::to_string(i));
        // Ninety connect at once: on a busy machine not all of them within connect_timeout.
        EXPECT_TRUE(eventually(
            [&] {
              const auto sight = contender->observe(within(30s));
              if (const auto* none = std::get_if<tenure::Unknown>(&sight)) {
                EXPECT_EQ(none->error.fault, Fault::unreachable);
              }
              return std::holds_alternative<Vacant>(sight);
            },
            60s));
        start.arrive_and_wait();
        const auto began = boot_clock().now();
        const auto answer = contender->acquire(within(30s));
        const auto took = (boot_clock().now() - began).count();
        for (auto most = slowest.load(); took > most && !slowest.compare_exchange_weak(most, took);) {
        }
        granted += std::holds_alternative<Granted>(answer);
        denied += std::holds_alternative<Denied>(answer);
        if (const auto* unknown = std::get_if<tenure::Unknown>(&answer)) {
          ADD_FAILURE() << unknown->error.message;
          lateness.starved(connects);
        }
      });
  }
  EXPECT_LE(granted, 1) << TENURE_PROMISE;
  EXPECT_EQ(granted, 1);
  EXPECT_EQ(denied, contenders - 1);
  std::cout << "all of " << contenders << " answered within " << slowest / 1000 << " us\n";
}

// ---- the push ----

TEST_F(PostgresStore, RenewalsWakeNobodyAndAReleaseAllHoweverTheySpellTheTable) {
  const auto leader = store();
  ASSERT_TRUE(applied(leader->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  auto other = options_;
  other.table = "public." + options_.table;
  const auto waits = store(), waits_too = store(other);
  for (const auto& one : {waits, waits_too}) {
    begin_to_listen(*one);
    value(one->read(within(10s)));
  }
  const auto limit = within(300ms);
  auto sleeps = std::async(std::launch::async, [&] { waits->await_change(Version{{1}, 1}, limit); });
  for (std::uint64_t beat = 2; beat < 6; ++beat)
    ASSERT_TRUE(applied(leader->compare_and_set(Expected{{1}, {beat - 1}}, record(1, beat), within(10s))));
  sleeps.get();
  EXPECT_TRUE(limit.passed()) << "a renewal woke it";

  const auto began = boot_clock().now();
  std::vector<std::future<void>> all;
  for (const auto& one : {waits, waits_too})
    all.push_back(std::async(std::launch::async, [one] { one->await_change(Version{{1}, 5}, within(20s)); }));
  ASSERT_TRUE(applied(leader->compare_and_set(Expected{{1}, {5}}, released(record(1, 6)), within(10s))));
  for (auto& one : all) one.get();
  EXPECT_LT(boot_clock().now() - began, 5s);
}

TEST_F(PostgresStore, AnotherElectionsReleaseWakesNobody) {
  let_stand();
  const auto waits = store();
  begin_to_listen(*waits);
  value(waits->read(within(10s)));
  const auto other = postgres::store(options_, "others");
  ASSERT_TRUE(applied(other->compare_and_set(std::nullopt, released(record(1, 1)), within(10s))));
  const auto limit = within(200ms);
  waits->await_change(Version{{1}, 1}, limit);
  EXPECT_TRUE(limit.passed());
}

TEST_F(PostgresStore, APushedHandOverCostsTheFollowerOneStatement) {
  const auto timing = Timing::of(10s);
  Server server(noting_statements());
  const auto table = fresh_table(server.conninfo());
  const auto leader = open(calling_itself("leads", table), "jobs", {"leader", ""});
  const auto follower = open(calling_itself("follows", table), "jobs", {"follower", ""});
  const auto asked = [&] { return std::pair(executed(server, "leads").size(), executed(server, "follows").size()); };
  for (const auto& one : {leader, follower}) ASSERT_EQ(one->accepts(timing), std::nullopt);
  ASSERT_TRUE(std::holds_alternative<Granted>(leader->acquire(within(10s))));
  follower->await_change(Vacant{}, within(10s));  // It listens from here on.
  ASSERT_TRUE(std::holds_alternative<Denied>(follower->acquire(within(10s))));
  const auto before = asked();
  ASSERT_EQ(leader->release(within(10s)), std::nullopt);
  const auto limit = within(10s);
  follower->await_change(Vacant{}, limit);
  ASSERT_FALSE(limit.passed());
  ASSERT_TRUE(std::holds_alternative<Granted>(follower->acquire(within(10s))));
  EXPECT_EQ(asked(), std::pair(before.first + 1, before.second + 1)) << "the release and the claim";
}

/// Any role that may connect may notify, and one that may select knows the version that stands.
TEST_F(PostgresStore, AForgedOrGarbledNoticeElectsNobody) {
  const auto timing = Timing::of(60s);
  const auto leader = backend("leader"), follower = backend("follower");
  for (const auto& one : {leader, follower}) ASSERT_EQ(one->accepts(timing), std::nullopt);
  const auto granted = leader->acquire(within(10s));
  ASSERT_TRUE(std::holds_alternative<Granted>(granted));
  const auto listens = store();
  const auto version = [&] {
    const auto found = value(listens->read(within(10s)));
    return Version{found.record->token, found.record->beat};
  };
  begin_to_listen(*listens);
  follower->await_change(Vacant{}, within(10s));  // It listens from here on, too.
  const auto channel = channel_of("public", options_.table, "jobs");
  for (const auto& [notice, is_one] : std::vector<std::pair<std::string, bool>>{{"token || ' ' || beat", true},
                                                                                {"token::text", false},
                                                                                {"token || ' ' || beat || ' '", false},
                                                                                {"'99999999999999999999 1'", false},
                                                                                {"' '", false},
                                                                                {"repeat('x', 7000)", false}}) {
    SCOPED_TRACE(notice);
    ASSERT_TRUE(std::holds_alternative<Denied>(follower->acquire(within(10s))));
    ASSERT_TRUE(std::holds_alternative<Granted>(leader->renew(std::get<Granted>(granted).token, within(10s))));
    const auto stands = version();
    admin("select pg_notify('" + channel + "', " + notice + ") from " + options_.table);
    EXPECT_EQ(listens->await_change(Version{}, within(10s)), is_one ? std::optional(stands) : std::nullopt);
    const auto limit = within(10s);
    follower->await_change(Vacant{}, limit);
    EXPECT_FALSE(limit.passed());
    EXPECT_TRUE(std::holds_alternative<Denied>(follower->acquire(within(10s))));
  }
  EXPECT_TRUE(std::holds_alternative<Granted>(leader->renew(std::get<Granted>(granted).token, within(10s))));
}

// ---- poolers ----

TEST_F(PostgresStore, NothingIsLeftInAPooledSession) {
  const PgBouncer pool(shared("TENURE_POSTGRES_DIR"), 1);
  auto options = options_;
  options.conninfo = pool.conninfo();
  const auto table = store(options);
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  ASSERT_TRUE(applied(table->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(10s))));
  ASSERT_EQ(table->request_step_down({Token{1}, "ops", ""}, within(10s)), std::nullopt);
  const auto limit = within(100ms);
  table->await_change(Version{{1}, 2}, limit);
  EXPECT_TRUE(limit.passed()) << "nothing is pushed here, and nothing changed";
  const auto left =
      sql(pool.conninfo(),
          "select current_setting('lock_timeout'), current_setting('synchronous_commit'),"
          " (select count(*) from pg_listening_channels()), (select count(*) from pg_prepared_statements)");
  EXPECT_EQ(left[0][0].as<std::string>(), "0");
  EXPECT_EQ(left[0][1].as<std::string>(), "on");
  EXPECT_EQ(left[0][2].as<int>(), 0);
  EXPECT_EQ(left[0][3].as<int>(), 0);
}

TEST_F(PostgresStore, ThatNothingIsPushedBehindAPoolerIsWarnedOfOnce) {
  const PgBouncer pool(shared("TENURE_POSTGRES_DIR"), 1);
  auto options = options_;
  options.conninfo = pool.conninfo();
  std::vector<std::string> warnings;
  const auto waits = open(options, "jobs", {"a", ""}, [&](const LogLine& line) {
    if (line.level >= Level::warning) warnings.push_back(line.message);
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::holds_alternative<Vacant>(waits->observe(within(10s))));
    waits->await_change(Vacant{}, within(20ms));
  }
  EXPECT_THAT(warnings, testing::ElementsAre(HasSubstr("nothing is pushed, because a pooler stands between")));
}

TEST_F(PostgresStore, AReleaseThroughAPoolerReachesThoseWhoListen) {
  const PgBouncer pool(shared("TENURE_POSTGRES_DIR"), 1);
  auto options = options_;
  options.conninfo = pool.conninfo();
  const auto pooled = store(options);
  ASSERT_TRUE(applied(pooled->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  const auto listens = store();
  begin_to_listen(*listens);
  value(listens->read(within(10s)));
  ASSERT_TRUE(applied(pooled->compare_and_set(Expected{{1}, {1}}, released(record(1, 2)), within(10s))));
  const auto limit = within(20s);
  listens->await_change(Version{{1}, 1}, limit);
  EXPECT_FALSE(limit.passed());
}

// ---- whatever a session's settings are ----

TEST_F(PostgresStore, TimeZonesAndFormatsOfSessionsChangeNothing) {
  std::vector<std::shared_ptr<ConditionalStore>> stores;
  for (const auto* settings :
       {"set timezone = 'Pacific/Kiritimati'", "set timezone = 'America/St_Johns'", "set datestyle = 'German, DMY'",
        "set intervalstyle = 'sql_standard'", "set bytea_output = 'escape'", "set standard_conforming_strings = off",
        "set client_encoding = 'LATIN1'", "set extra_float_digits = -15", "set transform_null_equals = on"})
    stores.push_back(store(role("select, insert, update", settings)));
  std::uint64_t token = 0;
  const auto written = [&](const std::shared_ptr<ConditionalStore>& by) {
    auto next = record(token + 1, token + 1);
    next.who += ";later=\\x\\'";
    const auto expected = token ? std::optional(Expected{{token}, {token}}) : std::nullopt;
    ++token;
    return value(by->compare_and_set(expected, next, within(10s))).applied;
  };
  for (const auto& writer : stores) {
    const auto from = boot_clock().unix_ms();
    ASSERT_TRUE(written(writer));
    for (const auto& reader : stores) {
      const auto read = value(reader->read(within(10s)));
      const auto to = boot_clock().unix_ms();
      ASSERT_TRUE(read.record);
      EXPECT_EQ(read.record->who, record(1, 1).who + ";later=\\x\\'");
      EXPECT_EQ(read.record->token, Token{token});
      EXPECT_GE(read.record->written_ms, from - 1) << "where this host rounds otherwise than the server";
      EXPECT_LE(read.record->written_ms, read.now_ms);
      EXPECT_LE(read.now_ms, to + 1);
    }
  }
}

TEST_F(PostgresStore, AnEmptySearchPathNeedsTheSchema) {
  auto options = role("select, insert, update", "set search_path = ''");
  EXPECT_THAT(error_of(store(options)->read(within(10s))).message, HasSubstr("but there is public." + options.table));
  options.table = "public." + options.table;
  EXPECT_TRUE(applied(store(options)->compare_and_set(std::nullopt, record(1, 1), within(10s))));
}

/// There a statement that waited for a row that changed is an error and no answer: it is to be a refusal all the same.
TEST_F(PostgresStore, AStricterIsolationLevelMakesRefusalsOfItsErrors) {
  for (const auto* level : {"repeatable read", "serializable"}) {
    admin("truncate " + options_.table);
    const auto options =
        role("select, insert, update", std::string("set default_transaction_isolation = '") + level + "'");
    const auto slow = store(options);
    ASSERT_TRUE(applied(slow->compare_and_set(std::nullopt, record(1, 1), within(10s))));
    pqxx::connection fast(shared("TENURE_POSTGRES_SOCKET"));
    pqxx::work work(fast);
    work.exec("update " + options.table + " set token = 2, beat = 2");
    auto swap = std::async(std::launch::async, [&] {
      return value(slow->compare_and_set(Expected{{1}, {1}}, record(1, 3), within(20s)));
    });
    EXPECT_TRUE(eventually(
        [&] { return !admin("select 1 from pg_locks where not granted and locktype = 'transactionid'").empty(); }));
    work.commit();
    const auto refused = swap.get();
    EXPECT_FALSE(refused.applied) << level;
    ASSERT_TRUE(refused.found.record) << level;
    EXPECT_EQ(refused.found.record->token, Token{2}) << level;

    std::atomic<int> wins{0}, losses{0}, errors{0};
    std::vector<std::jthread> racers;
    for (std::uint64_t racer = 0; racer < 8; ++racer)
      racers.emplace_back([&, racer] {
        const auto own = store(options);
        for (std::uint64_t round = 0; round < 20; ++round) {
          const auto found = own->read(within(20s));
          if (!found) {
            ++errors;
            continue;
          }
          const auto result =
              own->compare_and_set(Expected{found->record->token, {found->record->beat}},
                                   record(found->record->token.value + 1, racer * 100 + round), within(20s));
          errors += !result;
          wins += applied(result);
          losses += !applied(result);
        }
      });
    racers.clear();
    EXPECT_EQ(errors, 0) << level;
    EXPECT_GT(losses, 0) << level << ": nobody raced";
    EXPECT_EQ(value(slow->read(within(10s))).record->token.value, 2u + static_cast<std::uint64_t>(wins)) << level;
  }
}

// ---- what is left behind ----

TEST_F(PostgresStore, ThePagesOfTheListNameEachElectionOnce) {
  admin("insert into " + options_.table +
        " select convert_to('e' || to_char(n, 'FM0000'), 'UTF8'), n, 1, 'name=ann', false, 60000, 1, "
        "clock_timestamp() from generate_series(1, 1100) n");
  const auto list = list_of(settings_of(options_));
  std::vector<std::string> names;
  for (bool last = false; !last && names.size() < 2000;) {
    const auto page = value(list(within(20s)));
    for (const auto& found : page.elections) names.push_back(found.election);
    last = page.last;
  }
  EXPECT_EQ(names.size(), 1100u);
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end(), std::greater_equal<>()), names.end()) << "ascending";
}

/// Which no number of milliseconds tells.
TEST_F(PostgresStore, ARowWrittenInAllEternityIsUnreadableAndSpoilsNoList) {
  const auto table = store();
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  for (const std::string never : {"infinity", "-infinity"}) {
    admin("update " + options_.table + " set written_at = '" + never + "'");
    EXPECT_TRUE(value(table->read(within(10s))).unreadable) << never;
    EXPECT_EQ(value(list_of(settings_of(options_))(within(10s))).elections.size(), 1u) << never;
  }
}

TEST_F(PostgresStore, NothingIsLeftOfABackend) {
  const auto entries = [](const char* directory) {
    const std::filesystem::directory_iterator all(directory);
    return std::distance(begin(all), end(all));
  };
  const auto descriptors = [&] { return entries("/proc/self/fd"); };
  const auto threads = [&] { return entries("/proc/self/task"); };
  admin("select 1");
  const auto before = descriptors(), threads_before = threads();
  const auto options = named(options_.table);
  for (int i = 0; i < 5; ++i) {
    LeaderManager manager(open(options, "jobs", {"a", ""}), lock_table_presets().fast, {});
    manager.start();
    ASSERT_TRUE(manager.await_leadership(10s));
    manager.stop();
  }
  EXPECT_TRUE(eventually([&] { return threads() == threads_before; }));
  EXPECT_EQ(descriptors(), before);
  EXPECT_TRUE(eventually([&] {
    return admin("select 1 from pg_stat_activity where application_name = '" + options_.table + "'").empty();
  }));
}

}  // namespace
}  // namespace tenure::postgres::test
