// SPDX-License-Identifier: Apache-2.0
// Goal: a role that may only create in a schema runs nothing as whoever uses the store, and no table of its own is
// taken for ours. Method: a schema before PostgreSQL's own one, in which all that a statement could name raises an
// error; tables and triggers of a stranger.
#include <tenure/check.hpp>

#include "checkup.hpp"
#include "support.hpp"

namespace tenure::postgres::test {
namespace {

using testing::HasSubstr;

constexpr const char* trojans = R"(
create schema trojan;
do $$
declare
  types pg_catalog.text[] := '{bigint,integer,numeric,double precision,text,name,"char",bytea,boolean,timestamptz,
    interval,xid8,pg_snapshot,oid,regclass}';
  body pg_catalog.text := ' language plpgsql as $f$ begin raise exception ''trojan''; end $f$';
  l pg_catalog.text;
  r pg_catalog.text;
  f record;
  n integer := 0;
begin
  foreach l in array types loop foreach r in array types loop
    n := n + 1;
    execute format('create function trojan.yes%s(%s, %s) returns boolean', n, l, r) || body;
    execute format('create function trojan.sum%s(%s, %s) returns numeric', n, l, r) || body;
    execute format('create function trojan.add%s(%s, %s) returns text', n, l, r) || body;
    for f in select * from (values ('=', 'yes'), ('<>', 'yes'), ('<', 'yes'), ('<=', 'yes'), ('>', 'yes'),
        ('>=', 'yes'), ('||', 'add'), ('*', 'sum'), ('-', 'sum'), ('+', 'sum'), ('/', 'sum')) as v(operator, function)
    loop
      execute format('create operator trojan.%s (leftarg = %s, rightarg = %s, function = trojan.%s%s)', f.operator, l,
        r, f.function, n);
    end loop;
  end loop; end loop;
  for f in
    select p.proname, pg_get_function_identity_arguments(p.oid) as arguments, p.prorettype::regtype::text as result
    from pg_proc as p
    where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind in ('f', 'a') and not p.proretset
      and not exists (
        select from unnest(p.proargtypes::oid[] || p.prorettype) as u(t) join pg_type as y on y.oid = u.t
        where y.typtype = 'p' and y.typname <> 'void')
      and p.proname in ('set_config', 'current_setting', 'clock_timestamp', 'statement_timestamp', 'encode', 'decode',
        'octet_length', 'pg_notify', 'count', 'max', 'min', 'bool_and', 'left', 'pg_walfile_name', 'pg_current_wal_lsn',
        'pg_current_snapshot', 'pg_snapshot_xmin', 'pg_snapshot_xmax', 'pg_visible_in_snapshot', 'pg_current_xact_id',
        'to_regclass', 'quote_ident', 'pg_backend_pid', 'pg_is_in_recovery', 'has_table_privilege', 'current_database',
        'has_schema_privilege', 'has_function_privilege', 'pg_get_userbyid', 'string_agg', 'replace', 'hashtext',
        'pg_advisory_xact_lock', 'to_regprocedure', 'convert_to', 'getdatabaseencoding', 'has_database_privilege', 'age',
        'row_security_active', 'isfinite')
  loop
    execute format('create function trojan.%I(%s) returns %s', f.proname, f.arguments, f.result) || body;
  end loop;
  foreach l in array '{text,name,bytea,xid8,pg_snapshot,oid,timestamptz,int8,bool}'::pg_catalog.text[] loop
    execute format('create type trojan.%I as enum ()', l);
  end loop;
end $$;
grant usage on schema trojan to public;
create view trojan.pg_class as select 1 as oid;
create view trojan.pg_roles as select 1 as oid;
create view trojan.pg_replication_slots as select 1 as xmin;
alter database postgres set search_path = trojan, pg_catalog, public)";

class PostgresTrojan : public PostgresTest {
 protected:
  /// Every statement of single elections.
  static void elects(const Options& options) {
    const auto table = postgres::store(options, unique_name("jobs"));
    value(table->read(within(10s)));
    ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
    ASSERT_TRUE(applied(table->compare_and_set(Expected{{1}, {1}}, record(1, 2), within(10s))));
    EXPECT_EQ(table->request_step_down({Token{1}, "ops", "why"}, within(10s)), std::nullopt);
    ASSERT_TRUE(applied(table->compare_and_set(Expected{{1}, {2}}, released(record(1, 3)), within(10s))));
    EXPECT_TRUE(value(table->read(within(10s))).step_down);
    EXPECT_FALSE(value(list_of(settings_of(options))(within(10s))).elections.empty());
    EXPECT_TRUE(check_up(settings_of(options), within(10s), quoted_table(options.leads)));
    EXPECT_FALSE(create_schema(options, within(10s)));
  }

  /// And of groups.
  static void elects_many(const Options& options) {
    const auto name = unique_name("group");
    const auto store = open_group(options, name, no_log);
    const Session next{.record = {.beat = 1, .who = "name=holder", .term = 10s}};
    const SessionId id{7};
    ASSERT_TRUE(value(store->open(id, next, within(10s))).granted);
    Commit commit{.session = id, .beats = {1}, .next = next, .claims = {{"a"}, {"b"}}, .ended = {SessionId{9}}};
    const auto claimed = value(store->commit(commit, within(10s)));
    ASSERT_EQ(claimed.claimed.size(), 2u);
    commit = {.session = id, .beats = {1}, .next = next, .releases = {{"a", claimed.token}}};
    commit.cursor = claimed.look.cursor;
    EXPECT_EQ(value(store->commit(commit, within(10s))).released.size(), 1u);
    EXPECT_EQ(store->request_step_down("b", {claimed.token, "ops", "why"}, within(10s)), std::nullopt);
    EXPECT_EQ(value(store->look({}, within(10s))).leads.size(), 2u);
    EXPECT_FALSE(value(store->end(id, {5}, 6, within(10s)))) << "another beat";
    EXPECT_TRUE(value(store->end(id, {1}, 2, within(10s))));
    EXPECT_EQ(value(store->sweep(within(10s))), 0);
    EXPECT_EQ(value(store->sweep(within(10s))), 1) << "what it led is released by now";
    EXPECT_EQ(value(store->retire({{"a", claimed.token}}, within(10s))).size(), 1u);
    EXPECT_FALSE(create_group_schema(options, within(10s)));
  }
};

TEST_F(PostgresTrojan, EveryStatementMeansPostgresqlsOwnFunctionsOperatorsAndTypes) {
  Server server;
  auto options = fresh_table(server.by_socket());
  const auto group = fresh_group(server.by_socket());
  for (const auto& [name, given] : {std::pair(&Options::table, options.table),
                                    {&Options::sessions, group.sessions},
                                    {&Options::leads, group.leads}})
    options.*name = given;
  sql(server.by_socket(), trojans);
  EXPECT_THROW(sql(server.by_socket(), "select 1::bigint = 2"), pqxx::sql_error) << "this test could not tell";
  const PgBouncer pool(server.directory());
  for (const auto& conninfo : {server.by_socket(), pool.conninfo()}) {
    SCOPED_TRACE(conninfo);
    options.conninfo = conninfo;
    elects(options);
    elects_many(options);
  }
  sql(server.by_socket(), "drop extension plpgsql cascade");
  options.conninfo = server.by_socket();
  elects(options);
  elects_many(options);
}

/// Who makes a table of ours first may put a trigger on it at any time.
TEST_F(PostgresTrojan, ATableThatAnybodyCouldHaveMadeIsNotTakenForOurs) {
  const auto stranger = role(), candidate = role();
  const auto schema = unique_name("open");
  admin("create schema " + schema + "; grant create, usage on schema " + schema + " to public");
  auto options = candidate;
  options.table = schema + ".elections";
  sql(stranger.conninfo + " user=" + stranger.user + " password=" + canary,
      tenure::postgres::schema(options.table) + "; grant select, insert, update on " + options.table + " to public");
  auto owner = options;
  owner.user = owner.password = "";
  const auto by_setup = create_schema(owner, within(10s));
  ASSERT_TRUE(by_setup) << "setup takes it for ours";
  for (const auto& error : {seen(*by_setup), error_of(store(options)->read(within(10s))),
                            error_of(check_up(settings_of(options), within(10s)))}) {
    EXPECT_EQ(error.fault, Fault::misconfigured);
    EXPECT_THAT(error.message, HasSubstr("belongs to the role " + stranger.user));
    EXPECT_THAT(error.message, HasSubstr("revoke create on schema " + schema + " from public"));
  }
  auto by_owner = options;
  by_owner.user = stranger.user;
  value(store(by_owner)->read(within(10s)));
  admin("alter table " + options.table + " owner to postgres");
  value(store(options)->read(within(10s)));
  const auto doubts = value(check_up(settings_of(options), within(10s)));
  EXPECT_TRUE(std::ranges::any_of(doubts, [&](const Check& check) {
    return check.remedy.find("revoke create on schema " + schema) != check.remedy.npos;
  }));
  admin("drop schema " + schema + " cascade");
}

/// It comes first in the search_path of whoever is called like it. Who may create schemas makes it.
TEST_F(PostgresTrojan, ASchemaThatAStrangerCalledLikeOurRoleIsNotTakenForOurs) {
  Server server;
  const auto admin = [&](const std::string& statements) { sql(server.by_socket(), statements); };
  admin(
      "create role stranger login; create role victim login password '" + canary +
      "'; grant all on database postgres to stranger; set role stranger; create schema victim; set schema 'victim'; " +
      tenure::postgres::schema() + "; grant usage on schema victim to public; grant select, insert, update on " +
      "tenure_elections to public");
  Options options{.conninfo = server.conninfo(), .user = "victim", .password = canary};
  for (const auto& error :
       {error_of(store(options)->read(within(10s))), error_of(check_up(settings_of(options), within(10s)))}) {
    EXPECT_EQ(error.fault, Fault::misconfigured);
    EXPECT_THAT(error.message, HasSubstr("victim.tenure_elections belongs to the role stranger"));
    EXPECT_THAT(error.message, HasSubstr("from the owner of the schema victim; or"));
  }
  auto chosen = options;
  chosen.table = "victim.tenure_elections";
  value(store(chosen)->read(within(10s)));
  admin("grant create on database postgres to public");
  expect_error(error_of(store(chosen)->read(within(10s))), Fault::misconfigured,
               {"revoke create on database postgres from public"});
  admin("revoke create on database postgres from public, stranger");
  value(store(options)->read(within(10s)));
}

TEST_F(PostgresTrojan, ATriggerOfSomebodyElseThanTheOwnerIsRefused) {
  const auto stranger = role("trigger"), candidate = role();
  const auto schema = unique_name("loot");
  admin("create schema " + schema + " authorization " + stranger.user);
  sql(stranger.conninfo + " user=" + stranger.user + " password=" + canary,
      "create function " + schema + ".runs() returns trigger language plpgsql as $$ begin return new; end $$;" +
          "create trigger loots before insert or update on " + options_.table + " for each row execute function " +
          schema + ".runs()");
  expect_error(error_of(store(candidate)->read(within(10s))), Fault::misconfigured,
               {"drop trigger loots on public." + options_.table});
  admin("drop schema " + schema + " cascade");
  value(store(candidate)->read(within(10s)));
}

/// A former owner may have made it.
TEST_F(PostgresTrojan, ARuleIsRefused) {
  const auto candidate = role();
  admin("create rule \"Stays\" as on update to " + options_.table + " do also select 1");
  expect_error(error_of(store(candidate)->read(within(10s))), Fault::misconfigured,
               {"drop rule \"Stays\" on public." + options_.table});
  admin("drop rule \"Stays\" on " + options_.table);
  value(store(candidate)->read(within(10s)));
}

/// Who does not see the record of a leader would lead beside it.
TEST_F(PostgresTrojan, ATableWhosePoliciesMayHideRowsIsRefused) {
  const auto candidate = role();
  const auto early = store(candidate);
  ASSERT_TRUE(applied(early->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  admin("create policy \"Hides\" on " + options_.table + " using (false); alter table " + options_.table +
        " enable row level security");
  const std::string remedy = "alter table " + options_.table + " disable row level security";
  expect_error(error_of(early->read(within(10s))), Fault::misconfigured, {remedy});
  expect_error(error_of(store(candidate)->read(within(10s))), Fault::misconfigured, {"row-level security", remedy});
  EXPECT_TRUE(value(store()->read(within(10s))).record) << "the policies do not hold for this role";
  admin("alter table " + options_.table + " disable row level security");
  EXPECT_TRUE(value(early->read(within(10s))).record);
}

// ---- two tables of one name ----

TEST_F(PostgresTrojan, ATableOfThatNameElsewhereIsNamed) {
  const auto schema = unique_name("other");
  admin("create schema " + schema + "; grant usage on schema " + schema + " to public");
  const auto here = role(), there = role("", "set search_path = " + schema);
  expect_error(error_of(store(there)->read(within(10s))), Fault::misconfigured,
               {"there is public." + options_.table, "run share/tenure"});
  auto maker = options_;
  maker.conninfo = shared("TENURE_POSTGRES_SOCKET") + " options=-csearch_path=" + schema + ",public";
  EXPECT_EQ(create_schema(maker, within(10s)), std::nullopt) << "it is there, though not first";
  maker.conninfo = shared("TENURE_POSTGRES_SOCKET") + " options=-csearch_path=" + schema;
  expect_error(seen(create_schema(maker, within(10s)).value_or(Error{})), Fault::misconfigured,
               {"there is public." + options_.table, "name the table with its schema"});
  EXPECT_TRUE(admin("select from pg_tables where schemaname = '" + schema + "'").empty()) << "it made a second one";
  auto second = options_;
  second.table = schema + "." + options_.table;
  ASSERT_EQ(create_schema(second, within(10s)), std::nullopt);
  const auto told = [](const Options& options) {
    std::vector<std::string> out;
    const auto one = open(options, "jobs", {"a", ""}, [&](const LogLine& line) { out.push_back(line.message); });
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::holds_alternative<Vacant>(one->observe(within(10s))));
    return out;
  };
  EXPECT_THAT(told(here), testing::ElementsAre(HasSubstr("is the table public." + options_.table),
                                               HasSubstr("there is also " + second.table)));
  const auto doubts = [&](const Options& options) {
    const auto checks = value(check_up(settings_of(options), within(10s)));
    return std::ranges::count_if(checks, [&](const Check& check) {
      return check.is == Check::Is::doubtful && check.what.find("there is also ") == 0;
    });
  };
  EXPECT_EQ(doubts(here), 1);
  EXPECT_EQ(doubts(second), 0) << "its schema is named";
  second.user = here.user;
  second.password = canary;
  admin("grant select, insert, update on " + second.table + " to public");
  EXPECT_THAT(told(second), testing::ElementsAre(HasSubstr("is the table " + second.table)));
  admin("drop schema " + schema + " cascade");
}

/// Else it would elect beside those whose search_path still leads to the first one.
TEST_F(PostgresTrojan, AProcessStaysWithTheTableThatItFoundAsLongAsThatIsThere) {
  auto options = role();
  options.conninfo += " application_name=" + options_.table;
  const auto table = store(options);
  ASSERT_TRUE(applied(table->compare_and_set(std::nullopt, record(1, 1), within(10s))));
  const auto schema = unique_name("nearer");
  auto nearer = options_;
  nearer.table = schema + "." + options_.table;
  admin("create schema " + schema + "; grant usage on schema " + schema + " to public");
  ASSERT_EQ(create_schema(nearer, within(10s)), std::nullopt);
  admin("grant select, insert, update on " + nearer.table + " to public; alter role " + options.user +
        " set search_path = " + schema + ", public");
  end_sessions(options_.table);
  EXPECT_TRUE(value(table->read(within(10s))).record);
  EXPECT_FALSE(value(store(options)->read(within(10s))).record) << "this test could not tell";
  admin("drop table " + options_.table);
  end_sessions(options_.table);
  EXPECT_FALSE(value(table->read(within(10s))).record);
  admin("drop schema " + schema + " cascade");
}

}  // namespace
}  // namespace tenure::postgres::test
