// SPDX-License-Identifier: Apache-2.0
// Goal: whatever is wrong at the server comes as an Error of the right fault, with the remedy and without a secret, and
// is over as soon as it is put right; no verb outlives its limit. Method: a real server with each thing made wrong.
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>

#include "fake_server.hpp"
#include "lone_followers.hpp"
#include "resolver.hpp"
#include "scratch.hpp"
#include "support.hpp"

namespace tenure::postgres::test {
namespace {

using testing::HasSubstr;

class PostgresFaults : public PostgresTest {
 protected:
  static Error read_error(const Options& options) { return error_of(store(options)->read(within(10s))); }
};

// ---- connecting ----

TEST_F(PostgresFaults, AWrongPasswordIsForbidden) {
  auto options = role();
  options.password = std::string(canary) + "-wrong";
  expect_error(read_error(options), Fault::forbidden, {"check user and password"});
  auto url = options_;
  const auto port = shared("TENURE_POSTGRES_PORT");
  url.conninfo = "postgresql://nobody:" + std::string(canary) + "@127.0.0.1:" + port + "/postgres";
  EXPECT_EQ(read_error(url).fault, Fault::forbidden);
}

TEST_F(PostgresFaults, AnUnknownDatabaseIsNamed) {
  auto options = options_;
  options.conninfo += " dbname=nowhere";
  expect_error(read_error(options), Fault::misconfigured, {"nowhere", "create the database"});
}

TEST_F(PostgresFaults, AServerThatIsNotThereIsUnreachable) {
  auto options = options_;
  options.conninfo = "host=127.0.0.1 port=1 password=" + std::string(canary);
  EXPECT_EQ(read_error(options).fault, Fault::unreachable);
}

TEST_F(PostgresFaults, NoConnectionLeftIsUnreachableAndOverWhenThereIsOne) {
  const auto options = role("select, insert, update", "connection limit 1");
  const auto first = store(options);
  value(first->read(within(10s)));
  const auto second = store(options);
  expect_error(error_of(second->read(within(10s))), Fault::unreachable, {"no connection left"});
  admin("alter role " + options.user + " connection limit 2");
  // A call that meets an attempt from before is told how that ended.
  EXPECT_TRUE(eventually([&] { return bool(second->read(within(10s))); }));
}

TEST_F(PostgresFaults, AServerThatShutsDownIsUnreachable) {
  Server server;
  auto options = fresh_table(server.conninfo());
  const auto early = store(options);
  value(early->read(within(10s)));
  // A smart shutdown waits for those who are there, and lets nobody in.
  sql(server.by_socket(), "copy (select 1) to program 'cat >/dev/null; kill -TERM $(head -n 1 postmaster.pid)'");
  Error error;
  ASSERT_TRUE(eventually([&] {
    const auto result = store(options)->read(within(10s));
    if (!result) error = seen(result.error());
    return error.message.find("shutting down") != error.message.npos;
  }));
  EXPECT_EQ(error.fault, Fault::unreachable);
  EXPECT_THAT(error.message, HasSubstr("starting, stopping or recovering"));
  value(early->read(within(10s)));
}

TEST_F(PostgresFaults, FollowersWhoseConnectionsBrokeComeBackAtDifferentMoments) {
  auto options = options_;
  options.conninfo = "host=127.0.0.1 port=1";
  tenure::test::expect_followers_come_back_at_different_moments([&] { return store(options); });
}

/// One name resolution is left behind per connection, no more, and its end is not waited for.
TEST_F(PostgresFaults, ANameThatIsNeverResolvedHoldsNobodyUp) {
  auto options = options_;
  options.conninfo = "host=black.hole port=1 user=x password=" + canary;
  const auto lost = store(options);
  // Not held up is not wedged, as core has it: tried until this machine has the time.
  const auto back_by_its_limit = [](const std::function<void(const Limit&)>& call) {
    return eventually([&] {
      const auto limit = within(50ms);
      call(limit);
      return boot_clock().now() < limit.by + 50ms;
    });
  };
  const auto reads_in_vain = [&](const Limit& limit) {
    EXPECT_EQ(error_of(lost->read(limit)).fault, Fault::timed_out);
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(back_by_its_limit(reads_in_vain));
  EXPECT_TRUE(eventually([&] { return tenure::test::resolver().waiting() == 1; }));
  EXPECT_TRUE(back_by_its_limit(reads_in_vain));
  EXPECT_EQ(tenure::test::resolver().waiting(), 1);
  EXPECT_TRUE(back_by_its_limit([&](const Limit& limit) { lost->await_change(std::nullopt, limit); }));
  tenure::test::resolver().answer();
  const auto error = error_of(lost->read(within(10s)));
  EXPECT_EQ(error.fault, Fault::unreachable);
  EXPECT_THAT(error.message, HasSubstr("black.hole"));
}

// ---- the table ----

TEST_F(PostgresFaults, AMissingTableIsReportedWithTheRemedyAndMayComeLater) {
  auto options = options_;
  options.table = unique_name("missing");
  const auto table = store(options);
  expect_error(error_of(table->read(within(10s))), Fault::misconfigured, {options.table, "create_schema()"});
  ASSERT_EQ(create_schema(options, within(10s)), std::nullopt);
  ASSERT_EQ(create_schema(options, within(10s)), std::nullopt) << "there already";
  EXPECT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  admin("drop table " + options.table);
  expect_error(error_of(table->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(10s))), Fault::misconfigured,
               {"create_schema()"});
}

TEST_F(PostgresFaults, AMissingTableIsMadeWhereThatIsAskedFor) {
  auto options = options_;
  options.table = unique_name("made");
  options.create_table = true;
  std::vector<std::future<Result<Read>>> all;
  for (int i = 0; i < 5; ++i)
    all.push_back(std::async(std::launch::async, [&] { return store(options)->read(within(20s)); }));
  for (auto& one : all) EXPECT_EQ(value(one.get()).record, std::nullopt);
  EXPECT_TRUE(applied(store(options)->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  const auto early = store(options);
  EXPECT_TRUE(value(early->read(within(10s))).record);
  options.create_table = false;
  EXPECT_TRUE(value(store(options)->read(within(10s))).record);
  admin("drop table " + options.table);
  for (int i = 0; i < 3; ++i)
    expect_error(error_of(early->read(within(10s))), Fault::misconfigured, {options.table, "create_schema()"});
  admin("drop table if exists " + options.table);
}

TEST_F(PostgresFaults, MissingTablesOfAGroupAreMadeByItsUrl) {
  const auto sessions = unique_name("sessions"), leads = unique_name("leads");
  Opening opening{.url = shared("TENURE_POSTGRES_URL"), .election = "jobs"};
  opening.properties = {{"sessions", sessions}, {"leads", leads}, {"create_table", "maybe"}};
  EXPECT_THROW(open_group_url(opening), std::invalid_argument);
  opening.properties.erase("create_table");
  opening.url += (opening.url.find('?') == std::string::npos ? "?" : "&") + std::string("create_table=true");
  const auto group = open_group_url(opening).store;
  EXPECT_TRUE(value(group->look({}, within(20s))).leads.empty());
  admin("drop table " + sessions + ", " + leads);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(error_of(group->look({}, within(10s))).fault, Fault::misconfigured);
  group->await_change({}, within(500ms));
  EXPECT_TRUE(admin("select from pg_class where relname = '" + leads + "'").empty()) << "who listens made it anew";
  admin("drop table if exists " + sessions + ", " + leads);
}

TEST_F(PostgresFaults, ATableIsNotMadeWhereOneOfThatNameStandsElsewhere) {
  auto options = options_;
  options.table = unique_name("elsewhere");
  options.create_table = true;
  admin("create schema " + options.table + "_s; create table " + options.table + "_s." + options.table + " (x int)");
  const auto error = error_of(store(options)->read(within(10s)));
  EXPECT_EQ(error.fault, Fault::misconfigured);
  EXPECT_THAT(error.message, HasSubstr("but there is"));
  admin("drop schema " + options.table + "_s cascade");
}

TEST_F(PostgresFaults, ManyMayCreateTheTableAtOnce) {
  auto options = options_;
  options.table = unique_name("created");
  std::vector<std::future<std::optional<Error>>> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(std::async(std::launch::async, [&] { return create_schema(options, within(20s)); }));
  for (auto& one : all) {
    const auto error = one.get();
    EXPECT_FALSE(error) << error->message;
  }
  admin("drop table " + options.table);
}

TEST_F(PostgresFaults, AnUnloggedTableIsRefused) {
  admin("alter table " + options_.table + " set unlogged");
  const auto table = store();
  expect_error(error_of(table->read(within(10s))), Fault::misconfigured,
               {"alter table " + options_.table + " set logged"});
  EXPECT_EQ(error_of(table->compare_and_set(std::nullopt, record(1, 1), within(10s))).fault, Fault::misconfigured);
  EXPECT_EQ(admin("select 1 from " + options_.table).size(), 0u);
  admin("alter table " + options_.table + " set logged");
  value(table->read(within(10s)));
}

TEST_F(PostgresFaults, ATableOfAnotherKindOrShapeIsRefused) {
  auto view = options_;
  view.table = unique_name("view");
  admin("create view " + view.table + " as select * from " + options_.table);
  EXPECT_THAT(read_error(view).message, HasSubstr("not an ordinary table"));
  admin("alter table " + options_.table + " drop column beat cascade");
  expect_error(read_error(options_), Fault::misconfigured, {"beat", "is not the one of"});
}

TEST_F(PostgresFaults, ARowThatSomebodyElseWroteIsUnreadable) {
  const auto table = store();
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  for (const auto* term : {"-1", "0", "3600001", "9223372036854775807"}) {
    admin("update " + options_.table + " set term_ms = " + term);
    EXPECT_TRUE(value(table->read(within(10s))).unreadable) << term;
  }
  admin("update " + options_.table + " set term_ms = 3600000");
  EXPECT_FALSE(value(table->read(within(10s))).unreadable);
}

TEST_F(PostgresFaults, ARowWithNothingWhereSomethingBelongsStopsNoElection) {
  const auto table = store();
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  admin("update " + options_.table + " set step_down_token = token");
  const auto step_down = value(table->read(within(10s))).step_down;
  ASSERT_TRUE(step_down);
  EXPECT_EQ(step_down->by + step_down->why, "");
  admin("alter table " + options_.table + " alter who drop not null, alter released drop not null; update " +
        options_.table + " set who = null, released = null");
  EXPECT_TRUE(value(table->read(within(10s))).unreadable);
}

TEST_F(PostgresFaults, ATokenAtTheEndOfTheRangeIsAnErrorWithTheRemedy) {
  const auto table = store();
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(7, 1), within(10s))));
  for (const std::string token : {"-1", "9223372036854775807"}) {
    admin("update " + options_.table + " set token = " + token);
    expect_error(error_of(table->read(within(10s))), Fault::corrupt,
                 {"token is " + token, "update " + options_.table + " set token = ..., released = true where"});
    EXPECT_EQ(error_of(table->compare_and_set(Expected{{7}, {1}}, record(8, 2), within(10s))).fault, Fault::corrupt);
  }
  admin("update " + options_.table + " set token = 7, released = true");
  value(table->read(within(10s)));
}

TEST_F(PostgresFaults, ATableThatIsAlteredCostsOneVerb) {
  const auto table = store();
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(7, 1), within(10s))));
  admin("alter table " + options_.table + " alter token type numeric");
  EXPECT_EQ(error_of(table->read(within(10s))).fault, Fault::unreachable);
  EXPECT_EQ(value(table->read(within(10s))).record->token, Token{7});
  EXPECT_TRUE(applied(table->compare_and_set(Expected{{7}, {1}}, record(8, 2), within(10s))));
}

// ---- privileges ----

TEST_F(PostgresFaults, TheLeastPrivilegesAreEnough) {
  const auto options = role("select, insert, update");
  const auto leader = open(options, "jobs", {"leader", ""});
  const auto answer = leader->acquire(within(10s));
  ASSERT_TRUE(std::holds_alternative<Granted>(answer)) << unknown(answer).message;
  const auto token = std::get<Granted>(answer).token;
  EXPECT_TRUE(std::holds_alternative<Granted>(leader->renew(token, within(10s))));
  EXPECT_EQ(store(options)->request_step_down({token, "ops", "upgrade"}, within(10s)), std::nullopt);
  EXPECT_TRUE(std::holds_alternative<StepDownRequested>(leader->renew(token, within(10s))));
  EXPECT_EQ(leader->release(within(10s)), std::nullopt);
  const auto own = options.conninfo + " user=" + options.user + " password=" + options.password;
  EXPECT_ANY_THROW(sql(own, "delete from " + options.table));
  EXPECT_ANY_THROW(sql(own, "truncate " + options.table));
}

TEST_F(PostgresFaults, AMissingPrivilegeIsReportedWithTheGrant) {
  const auto observer = open(role("select"), "jobs", {"observer", ""});
  EXPECT_TRUE(std::holds_alternative<Vacant>(observer->observe(within(10s)))) << "to observe, SELECT is enough";
  expect_error(unknown(observer->acquire(within(10s))), Fault::forbidden,
               {"grant select, insert, update on " + options_.table});
  EXPECT_EQ(read_error(role("")).fault, Fault::forbidden);
  auto creator = role();
  creator.table = unique_name("mine");
  const auto created = create_schema(creator, within(10s));
  ASSERT_TRUE(created);
  EXPECT_EQ(seen(*created).fault, Fault::forbidden);
}

TEST_F(PostgresFaults, ASessionThatMayOnlyReadIsForbiddenToLead) {
  const auto backend =
      open(role("select, insert, update", "set default_transaction_read_only = on"), "jobs", {"a", ""});
  EXPECT_TRUE(std::holds_alternative<Vacant>(backend->observe(within(10s))));
  expect_error(unknown(backend->acquire(within(10s))), Fault::forbidden, {"target_session_attrs=read-write"});
}

TEST_F(PostgresFaults, ACandidateThatMayNotWriteHearsOfItBeforeItMustLead) {
  ASSERT_TRUE(std::holds_alternative<Granted>(backend("leader")->acquire(within(10s))));
  const auto warnings = [](const Options& options, bool contends) {
    std::vector<std::string> out;
    const auto late = open(options, "jobs", {"late", ""}, [&](const LogLine& line) {
      if (line.level >= Level::warning) out.push_back(line.message);
    });
    for (int i = 0; i < 2; ++i) {
      if (contends)
        EXPECT_TRUE(std::holds_alternative<Denied>(late->acquire(within(10s))));
      else
        EXPECT_TRUE(std::holds_alternative<Incumbent>(late->observe(within(10s))));
    }
    return out;
  };
  EXPECT_THAT(warnings(role("select"), true), testing::ElementsAre(HasSubstr("grant select, insert, update")));
  EXPECT_THAT(warnings(role("select, insert, update", "set default_transaction_read_only = on"), true),
              testing::ElementsAre(HasSubstr("target_session_attrs=read-write")));
  EXPECT_THAT(warnings(role("select"), false), testing::IsEmpty());
  EXPECT_THAT(warnings(role(), true), testing::IsEmpty());
}

TEST_F(PostgresFaults, TheServerKnowsWhoseAConnectionIs) {
  const auto one = open(options_, options_.table, {"worker-7", ""});
  ASSERT_TRUE(std::holds_alternative<Vacant>(one->observe(within(10s))));
  EXPECT_EQ(
      admin("select from pg_stat_activity where application_name = 'tenure " + options_.table + " worker-7'").size(),
      1u);
}

TEST_F(PostgresFaults, WhatATenantWritesBesidesUsNeitherFillsTheMemoryNorStopsTheElection) {
  const auto table = store();
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  const auto fill = "update " + options_.table + " set who = repeat('x', 20000000)";
  EXPECT_THROW(admin(fill), pqxx::check_violation);
  admin("do $$ declare c name; begin for c in select conname from pg_constraint where contype = 'c' and conrelid = '" +
        options_.table + "'::regclass loop execute format('alter table " + options_.table +
        " drop constraint %I', c); end loop; end $$; " + fill);
  EXPECT_TRUE(value(table->read(within(10s))).unreadable);
  EXPECT_TRUE(applied(table->compare_and_set(Expected{{1}, {1}}, record(2, 2), within(10s))));
  EXPECT_EQ(value(table->read(within(10s))).record->who, record(2, 2).who);
}

// ---- locks of others ----

TEST_F(PostgresFaults, ALockedRowEndsTheVerbAndNotTheConnection) {
  const auto table = postgres::store(named(options_.table), "jobs");
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  const auto session = [&] {
    return admin("select pid from pg_stat_activity where application_name = '" + options_.table + "'")[0][0].as<int>();
  };
  const int before = session();
  std::optional<Elsewhere> holder("select 1 from " + options_.table + " for update");
  EXPECT_TRUE(value(table->read(within(10s))).record) << "readers do not wait";
  const auto limit = within(6s);  // The server ends the wait after half of it: the rest is for a busy machine.
  const auto error = error_of(table->compare_and_set(Expected{{1}, {1}}, record(1, 2), limit));
  EXPECT_LT(boot_clock().now(), limit.by);
  EXPECT_EQ(error.fault, Fault::timed_out);
  EXPECT_THAT(error.message, HasSubstr("another transaction holds the lock on this row of " + options_.table));
  ASSERT_TRUE(table->request_step_down({Token{1}, "ops", ""}, within(200ms)));
  holder.reset();
  EXPECT_TRUE(applied(table->compare_and_set(Expected{{1}, {1}}, record(1, 3), within(10s))));
  EXPECT_EQ(session(), before);
}

/// A commit that notifies and waits for a standby that does not exist keeps the lock that is the whole cluster's.
TEST_F(PostgresFaults, AWaitForTheServersLockOnNoticesHasAMessageOfItsOwn) {
  Server server;
  const auto table = store(fresh_table(server.conninfo()));
  value(table->read(within(10s)));
  const auto admin_says = [&](const std::string& statement) { return sql(server.by_socket(), statement); };
  admin_says("alter system set synchronous_standby_names = 'nobody'");
  admin_says("select pg_reload_conf()");
  // Until the server's checkpointer has heard of the setting, a commit does not wait.
  const auto notifier = std::async(std::launch::async, [&] {
    EXPECT_TRUE(eventually([&] {
      try {
        admin_says("create table if not exists written (); insert into written default values; notify something");
        return false;
      } catch (const pqxx::failure&) {
        return true;  // It waited, and is ended.
      }
    }));
  });
  EXPECT_TRUE(
      eventually([&] { return !admin_says("select from pg_stat_activity where wait_event = 'SyncRep'").empty(); }));
  const auto error = error_of(table->compare_and_set(std::nullopt, record(1, 1), within(6s)));
  EXPECT_EQ(error.fault, Fault::timed_out);
  EXPECT_THAT(error.message, HasSubstr("the server's one lock on notices"));
  EXPECT_THAT(error.message, testing::Not(HasSubstr("this row of")));
  admin_says("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'");
}

TEST_F(PostgresFaults, AnUncommittedFirstRowEndsTheVerb) {
  Elsewhere holder("insert into " + options_.table +
                   " values ('jobs', 1, 1, '', false, 1000, 1, now(), null, null, null)");
  const auto contender = store();
  value(contender->read(within(10s)));  // connected
  const auto limit = within(6s);
  const auto error = error_of(contender->compare_and_set(std::nullopt, record(2, 2), limit));
  EXPECT_EQ(error.fault, Fault::timed_out);
  EXPECT_THAT(error.message, HasSubstr("lock")) << "the server ended the wait, not we the connection";
  EXPECT_LT(boot_clock().now(), limit.by);
  holder.commit();
  const auto swap = value(store()->compare_and_set(std::nullopt, record(2, 2), within(10s)));
  EXPECT_FALSE(swap.applied);
  EXPECT_EQ(swap.found.record->token, Token{1});
}

/// What waits for a whole table waits in the server, whatever becomes of the client: the sessions must not pile up.
TEST_F(PostgresFaults, ALockedTableEndsEveryVerbByItsLimitAndLeavesFewSessions) {
  const auto table = postgres::store(named(options_.table), "jobs");
  value(table->read(within(10s)));
  std::optional<Elsewhere> holder("lock table " + options_.table + " in access exclusive mode");
  bool in_time = false;  // for once, on a busy machine
  for (const auto all = within(5s); !all.passed();) {
    const auto limit = within(300ms);
    EXPECT_EQ(error_of(table->read(limit)).fault, Fault::timed_out);
    in_time = in_time || boot_clock().now() < limit.by + 50ms;
  }
  EXPECT_TRUE(in_time);
  const auto sessions =
      admin("select count(*) from pg_stat_activity where application_name = '" + options_.table + "'");
  EXPECT_LE(sessions[0][0].as<int>(), 8) << "of sixteen";
  holder.reset();
  value(table->read(within(10s)));
}

/// Its sessions keep no setting of ours.
TEST_F(PostgresFaults, WhoWaitsForALockedTableBehindAPoolerDoesNotStayThere) {
  Server server;
  auto options = fresh_table(server.by_socket());
  const PgBouncer pool(server.directory());
  options.conninfo = pool.conninfo();
  const auto table = postgres::store(options, "jobs");
  value(table->read(within(10s)));
  Elsewhere holder("lock table " + options.table + " in access exclusive mode", server.by_socket());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(error_of(table->read(within(300ms))).fault, Fault::timed_out);
  EXPECT_TRUE(eventually([&] {
    return sql(server.by_socket(), "select from pg_stat_activity where wait_event_type = 'Lock'").empty();
  })) << "they wait as long as somebody holds it";
}

/// Every statement must end within it, also those that introduce us, on a busy machine. It is shorter than the wait for
/// a lock, which the server ends after half of the call's ten seconds.
TEST_F(PostgresFaults, ACancelledStatementHadNoEffect) {
  const auto table = store(role("select, insert, update", "set statement_timeout = '2s'"));
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  std::optional<Elsewhere> holder("select 1 from " + options_.table + " for update");
  expect_error(error_of(table->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(10s))), Fault::timed_out,
               {"statement_timeout"});
  holder.reset();
  EXPECT_EQ(value(table->read(within(10s))).record->beat, 1u);
}

// ---- sessions that end ----

TEST_F(PostgresFaults, ASessionThatWasEndedIsReplacedByTheNextVerb) {
  const auto table = postgres::store(named(options_.table), "jobs");
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  for (std::uint64_t beat = 2; beat < 5; ++beat) {
    EXPECT_EQ(end_sessions(options_.table), 1u);
    EXPECT_TRUE(applied(table->compare_and_set(Expected{{1}, {beat - 1}}, record(1, beat), within(10s))));
  }
  begin_to_listen(*table);
  const auto began = boot_clock().now();
  auto waits = std::async(std::launch::async, [&] { table->await_change(Version{{1}, 4}, within(20s)); });
  EXPECT_EQ(end_sessions(options_.table), 1u);
  waits.get();
  EXPECT_LT(boot_clock().now() - began, 10s);
}

TEST_F(PostgresFaults, ASessionThatIsEndedInTheMidstOfAVerbIsAnError) {
  const auto table = postgres::store(named(options_.table), "jobs");
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  Elsewhere holder("select 1 from " + options_.table + " for update");
  auto write = std::async(std::launch::async, [&] {
    return error_of(table->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(20s)));
  });
  const auto waiting = "from pg_stat_activity where wait_event_type = 'Lock' and application_name = '" + options_.table;
  ASSERT_TRUE(eventually([&] { return !admin("select 1 " + waiting + "'").empty(); }));
  admin("select pg_terminate_backend(pid) " + waiting + "'");
  const auto error = write.get();
  EXPECT_EQ(error.fault, Fault::unreachable);
  EXPECT_THAT(error.message, HasSubstr("an administrator"));
}

TEST_F(PostgresFaults, ALeaderOutlivesAnIdleSessionTimeoutAndAFollowerDoesNotSpin) {
  const auto options = role("select, insert, update", "set idle_session_timeout = '300ms'");
  const auto leader = store(options), follower = store(options);
  ASSERT_TRUE(applied(leader->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  for (std::uint64_t beat = 2; beat < 6; ++beat) {
    const auto began = boot_clock().now();
    begin_to_listen(*follower);  // The former session was ended.
    value(follower->read(within(10s)));
    follower->await_change(Version{{1}, beat}, within(5s));
    EXPECT_GE(boot_clock().now() - began, 500ms) << "a session was made and ended again and again";
    EXPECT_TRUE(applied(leader->compare_and_set(Expected{{1}, {beat - 1}}, record(1, beat), within(10s))));
  }
}

// ---- what was found once may change ----

/// A server that was fenced answers on, and shows old records. conninfo names another one.
TEST_F(PostgresFaults, AServerThatTurnsReadOnlyIsLeftForOneThatWrites) {
  Server first, second;
  auto options = fresh_table(first.by_socket());
  auto other = options;
  other.conninfo = second.by_socket();
  ASSERT_EQ(create_schema(other, within(20s)), std::nullopt);
  for (const auto& one : {options, other}) ASSERT_EQ(create_group_schema(one, within(20s)), std::nullopt);
  options.conninfo = "host=127.0.0.1,127.0.0.1 target_session_attrs=read-write user=postgres dbname=postgres port=" +
                     std::to_string(first.port()) + "," + std::to_string(second.port());
  options.credentials = [&, asked = 0]() mutable {
    return Credentials{"", ++asked == 1 ? first.password() : second.password()};
  };
  const auto table = store(options), reader = store(options);
  const auto group = open_group(options, "group", no_log), watcher = open_group(options, "group", no_log);
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  ASSERT_TRUE(value(reader->read(within(10s))).record);
  const Session session{.record = {.beat = 1, .who = "name=holder", .term = 10s}};
  ASSERT_TRUE(value(group->open(SessionId{7}, session, within(10s))).granted);
  ASSERT_FALSE(value(watcher->look({}, within(10s))).sessions.empty());
  sql(first.by_socket(), "alter system set default_transaction_read_only = on");
  sql(first.by_socket(), "select pg_reload_conf()");
  std::uint64_t beat = 1;
  ASSERT_TRUE(eventually([&] {
    const auto swap = table->compare_and_set(Expected{{1}, {beat}}, record(1, beat + 1), within(10s));
    beat += applied(swap);
    return !swap;
  }));
  ASSERT_TRUE(eventually([&] { return bool(table->read(within(10s))); }));
  EXPECT_FALSE(value(table->read(within(10s))).record) << "this is the first server still";
  EXPECT_TRUE(eventually([&] {
    const auto read = reader->read(within(10s));
    return read && !read->record;
  })) << "who only reads stays with it";
  EXPECT_TRUE(eventually([&] {
    const auto look = watcher->look({}, within(10s));
    return look && look->sessions.empty();
  }));
}

TEST_F(PostgresFaults, ThePasswordMayChangeBetweenTwoLogins) {
  auto by_function = role();
  by_function.conninfo += " application_name=" + options_.table;
  std::string now = canary;
  by_function.password.clear();
  by_function.credentials = [&] { return Credentials{"", now}; };
  tenure::test::Scratch scratch;
  const auto file = (scratch.path() / "passfile").string();
  auto by_file = by_function;
  by_file.credentials = {};
  by_file.conninfo = "host=127.0.0.1 dbname=postgres port=" + shared("TENURE_POSTGRES_PORT") + " passfile=" + file +
                     " application_name=" + options_.table;
  const auto change = [&](const std::string& to) {
    now = to;
    std::ofstream(file) << "*:*:*:*:" << to << '\n';
    std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    admin("alter role " + by_function.user + " password '" + to + "'");
    end_sessions(options_.table);
  };
  change(canary);
  const auto one = store(by_function), two = store(by_file);
  for (const auto* next : {"first", "second"}) {
    for (const auto& table : {one, two}) value(table->read(within(10s)));
    change(canary + next);
  }
  now = canary + "wrong";
  expect_error(error_of(one->read(within(10s))), Fault::forbidden);
  value(two->read(within(10s)));
}

/// The first of two servers takes connections and says nothing. It costs its share of the time once.
void expect_asked_once(const tenure::test::FakeServer& silent, const Options& options) {
  const auto table = postgres::store(options, "jobs");
  value(table->read(within(20s)));
  EXPECT_EQ(silent.accepted(), 1);
  for (int i = 0; i < 2; ++i) {
    sql(shared("TENURE_POSTGRES_SOCKET"),
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = '" + options.table +
            "'");
    value(table->read(within(20s)));
  }
  EXPECT_EQ(silent.accepted(), 1);
}

tenure::test::FakeServer::Answer nothing(const std::string&) { return {}; }

TEST_F(PostgresFaults, TheHostThatAnsweredLastIsTriedFirst) {
  const tenure::test::FakeServer silent(nothing);
  auto options = named(options_.table);
  options.conninfo += " connect_timeout=2 host=127.0.0.1,127.0.0.1 port=" + std::to_string(silent.port()) + "," +
                      shared("TENURE_POSTGRES_PORT");
  expect_asked_once(silent, options);
}

std::string of_server(char kind, const std::string& body) {
  const auto size = body.size() + 4;
  return kind + std::string{'\0', '\0', static_cast<char>(size >> 8), static_cast<char>(size)} + body;
}

const auto too_many = [] {
  using namespace std::string_literals;
  return of_server('E', "SFATAL\0C53300\0Msorry, too many clients already\0\0"s);
}();

/// libpq ends its list of hosts at the first one that answers, whatever that says.
TEST_F(PostgresFaults, AHostThatAnswersAndThenFailsIsLeftForTheNext) {
  using namespace std::string_literals;
  const auto hello = of_server('R', std::string(4, '\0')) + of_server('S', "server_version\00015.1\0"s) +
                     of_server('S', "client_encoding\0UTF8\0"s) + of_server('K', std::string(8, '\1')) +
                     of_server('Z', "I");
  for (const auto& first : {too_many, std::string(), hello}) {
    const tenure::test::FakeServer fails([&](const std::string& request) {
      const bool lets_in = request[0] == 0 && first == hello;
      return tenure::test::FakeServer::Answer{request[0] == 0 ? first : "", !lets_in};
    });
    auto options = named(options_.table);
    options.conninfo +=
        " sslmode=disable gssencmode=disable host=127.0.0.1,127.0.0.1 port=" + std::to_string(fails.port()) + "," +
        shared("TENURE_POSTGRES_PORT");
    const auto table = postgres::store(options, "jobs");
    EXPECT_TRUE(eventually([&] { return bool(table->read(within(10s))); })) << testing::PrintToString(first);
    EXPECT_GE(fails.accepted(), 1);
  }
}

/// One test, since the other address has one such port.
TEST_F(PostgresFaults, OfTheAddressesOfANameTheOneThatServedLastIsTriedFirst) {
  {
    const tenure::test::FakeServer silent(nothing, std::stoi(shared("TENURE_POSTGRES_PORT")), INADDR_LOOPBACK + 1);
    auto options = named(options_.table);
    options.conninfo += " connect_timeout=2 host=server.two";
    expect_asked_once(silent, options);
  }
  const tenure::test::FakeServer full(
      [](const std::string&) {
        return tenure::test::FakeServer::Answer{too_many, true};
      },
      std::stoi(shared("TENURE_POSTGRES_PORT")), INADDR_LOOPBACK + 1);
  auto options = named(options_.table);
  options.conninfo += " sslmode=disable gssencmode=disable host=server.two";
  const auto table = postgres::store(options, "jobs");
  EXPECT_TRUE(eventually([&] { return bool(table->read(within(10s))); })) << "one that refuses is left";
  EXPECT_GE(full.accepted(), 1);
}

/// As while a primary restarts, and the standby's address is silent: libpq has tried both.
TEST_F(PostgresFaults, WhereNoHostAnswersTheNextAttemptBeginsWithTheSameOne) {
  const tenure::test::FakeServer silent(nothing);
  const auto port = tenure::test::FakeServer(nothing).port();  // where nobody listens any more
  auto options = named(options_.table);
  options.conninfo +=
      " sslmode=disable gssencmode=disable connect_timeout=2 host=127.0.0.1,127.0.0.1 port=" + std::to_string(port) +
      "," + std::to_string(silent.port());
  const auto table = postgres::store(options, "jobs");
  ASSERT_FALSE(table->read(within(20s)));
  const auto before = silent.accepted();
  ASSERT_GE(before, 1);
  const tenure::test::FakeServer full(
      [](const std::string&) {
        return tenure::test::FakeServer::Answer{too_many, true};
      },
      port);
  expect_error(error_of(table->read(within(10s))), Fault::unreachable, {"too many clients"});
  EXPECT_EQ(silent.accepted(), before);
}

/// Only the push is lost.
TEST_F(PostgresFaults, WithoutTheRightToNotifyElectionsGoOnAndOneWarningSaysWhatIsLost) {
  Server server;
  auto options = fresh_table(server.conninfo());
  sql(server.by_socket(), "revoke execute on function pg_notify from public; create role plain login password '" +
                              canary + "'; grant select, insert, update on " + options.table + " to plain");
  options.user = "plain";
  options.password = canary;
  tenure::test::Lines lines;
  const auto leader = open(options, "jobs", {"a", ""}, lines.log());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(std::holds_alternative<Granted>(leader->acquire(within(10s))));
    ASSERT_EQ(leader->release(within(10s)), std::nullopt);
  }
  const auto all = lines.all();
  EXPECT_EQ(std::ranges::count_if(all, [](const auto& line) { return line.find("nothing is pushed") != line.npos; }),
            1);
}

// ---- a standby takes over ----

TEST_F(PostgresFaults, AServerInRecoveryIsForbiddenAndAPromotedOneIsFollowed) {
  Server primary;
  auto options = fresh_table(primary.conninfo());
  ASSERT_TRUE(applied(postgres::store(options, "jobs")->compare_and_set(std::nullopt, record(7, 1), within(10s))));
  Server standby(Server::How{.settings = {"wal_retrieve_retry_interval=100ms"}, .standby_of = &primary});

  auto alone = options;
  alone.conninfo = standby.conninfo();
  ASSERT_TRUE(eventually([&] { return sql(standby.by_socket(), "select 1 from " + options.table).size() == 1; }));
  expect_error(read_error(alone), Fault::forbidden, {"target_session_attrs=read-write"});

  auto both = options;
  both.user = "postgres";
  both.password = primary.password();
  both.conninfo = "postgresql://127.0.0.1:" + std::to_string(primary.port()) +
                  ",127.0.0.1:" + std::to_string(standby.port()) + "/postgres?target_session_attrs=read-write";
  const auto table = postgres::store(both, "jobs");
  ASSERT_TRUE(applied(table->compare_and_set(Expected{{7}, {1}}, record(7, 2), within(10s))));
  ASSERT_TRUE(
      eventually([&] { return sql(standby.by_socket(), "select beat from " + options.table)[0][0].as<int>() == 2; }));
  primary.crash();
  EXPECT_EQ(error_of(table->read(within(10s))).fault, Fault::unreachable) << "nobody is a primary";
  standby.promote();
  ASSERT_TRUE(eventually([&] { return bool(table->read(within(10s))); }));
  EXPECT_TRUE(applied(table->compare_and_set(Expected{{7}, {2}}, record(7, 3), within(10s))));
}

/// As where one server after the other is updated, and the standby takes connections meanwhile.
TEST_F(PostgresFaults, AStandbyThatAnsweredLastIsNotTriedFirst) {
  Server primary;
  auto options = fresh_table(primary.conninfo());
  ASSERT_TRUE(applied(postgres::store(options, "jobs")->compare_and_set(std::nullopt, record(7, 1), within(10s))));
  Server standby(Server::How{.settings = {"wal_retrieve_retry_interval=100ms"}, .standby_of = &primary});
  ASSERT_TRUE(eventually([&] { return sql(standby.by_socket(), "select 1 from " + options.table).size() == 1; }));
  options.user = "postgres";
  options.password = primary.password();
  options.conninfo = "postgresql://127.0.0.1:" + std::to_string(primary.port()) +
                     ",127.0.0.1:" + std::to_string(standby.port()) + "/postgres";
  const auto table = postgres::store(options, "jobs");
  value(table->read(within(10s)));
  primary.crash();
  ASSERT_TRUE(eventually([&] {
    const auto read = table->read(within(10s));
    return !read && read.error().fault == Fault::forbidden;
  }));
  primary.restart();
  EXPECT_TRUE(eventually([&] { return bool(table->read(within(10s))); }));
}

TEST_F(PostgresFaults, AnAcknowledgedWriteSurvivesACrash) {
  Server server;
  const auto options = fresh_table(server.conninfo());
  const auto table = postgres::store(options, "jobs");
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  for (std::uint64_t beat = 2; beat < 5; ++beat) {
    ASSERT_TRUE(applied(table->compare_and_set(Expected{{1}, {beat - 1}}, record(1, beat), within(10s))));
    server.crash();
    EXPECT_EQ(error_of(table->read(within(10s))).fault, Fault::unreachable);
    server.restart();
    EXPECT_EQ(value(table->read(within(10s))).record->beat, beat) << TENURE_PROMISE;
  }
}

TEST_F(PostgresFaults, AReleaseThatACrashLosesLeavesTheLease) {
  Server server(Server::How{.settings = {"wal_writer_delay=10s", "bgwriter_delay=10s"}});
  const auto options = fresh_table(server.conninfo());
  const auto timing = Timing::of(3s);
  const auto leader = open(options, "jobs", {"leader", ""}), follower = open(options, "jobs", {"follower", ""});
  for (const auto& one : {leader, follower}) ASSERT_EQ(one->accepts(timing), std::nullopt);
  const auto asked = boot_clock().now();
  const auto first = leader->acquire(within(10s));
  ASSERT_TRUE(std::holds_alternative<Granted>(first));
  ASSERT_TRUE(std::holds_alternative<Denied>(follower->acquire(within(10s))));
  ASSERT_EQ(leader->release(within(10s)), std::nullopt);
  server.crash();
  server.restart();
  Answer next;
  ASSERT_TRUE(eventually([&] {
    next = follower->acquire(within(10s));
    if (std::holds_alternative<Denied>(next)) follower->await_change(Vacant{}, within(10s));
    return std::holds_alternative<Granted>(next);
  }));
  EXPECT_GE(boot_clock().now(), asked + timing.term) << "it was not lost: this test could not tell";
  EXPECT_GT(std::get<Granted>(next).token, std::get<Granted>(first).token) << TENURE_PROMISE;
}

}  // namespace
}  // namespace tenure::postgres::test
