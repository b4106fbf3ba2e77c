// SPDX-License-Identifier: Apache-2.0
// Asks one question about server, table and rights, and judges the answer.
#include "checkup.hpp"

#include <string>
#include <utility>

#include <tenure/kit/logging.hpp>

#include "client.hpp"

namespace tenure::postgres {
namespace {

/// $1: the table, as it was found; $2: the leads' one, which need not be there; $3: their names, if they were looked
/// for in the search_path.
constexpr std::string_view question = R"(
select pg_catalog.current_setting('server_version_num')::integer, pg_catalog.current_setting('server_version'),
  pg_catalog.current_setting('fsync')::boolean, pg_catalog.current_setting('full_page_writes')::boolean,
  (select pg_catalog.count(*) from pg_catalog.pg_stat_replication),
  pg_catalog.current_setting('synchronous_standby_names') {<>} ''
    and pg_catalog.current_setting('synchronous_commit') {<>} 'local',
  pg_catalog.has_table_privilege(c.oid, 'select'), pg_catalog.has_table_privilege(c.oid, 'insert'),
  pg_catalog.has_table_privilege(c.oid, 'update'), current_user,
  pg_catalog.pg_get_userbyid(c.relowner), n.nspname,
  pg_catalog.has_schema_privilege('public'::pg_catalog.name, n.oid, 'create'),
  (extract(epoch from pg_catalog.clock_timestamp() {-} oldest.since))::bigint,
  {has_fence},
  (select not {changed_in_a_key} from pg_catalog.pg_class as c where c.oid {=} leads.oid),
  oldest.what,
  (select pg_catalog.left(pg_catalog.string_agg(pg_catalog.concat(m.nspname, '.', o.relname), ', '), 1000)
    from pg_catalog.pg_class as o join pg_catalog.pg_namespace as m on m.oid {=} o.relnamespace
    where o.relname {=} any ($3::pg_catalog.name[]) and (o.relname {=} c.relname or leads.oid is not null)
      and o.relkind {=} 'r' and o.relpersistence {<>} 't'
      and o.oid {<>} c.oid and o.oid {<>} coalesce(leads.oid, c.oid)),
  (select r.slot_name from pg_catalog.pg_replication_slots as r
    where r.xmin is not null and (not r.active or pg_catalog.age(r.xmin) {>} 1000000)
    order by pg_catalog.age(r.xmin) desc limit 1)
from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid {=} c.relnamespace
cross join (select pg_catalog.to_regclass($2::pg_catalog.text)::pg_catalog.oid as oid) as leads
left join (
    select o.what, o.since from (
        select pg_catalog.concat('the session ', a.pid, ' (', a.application_name, ')') as what, a.xact_start as since
        from pg_catalog.pg_stat_activity as a
        where a.backend_type {=} 'client backend' and a.pid {<>} pg_catalog.pg_backend_pid()
        union all
        select pg_catalog.concat('the prepared transaction ', p.gid), p.prepared
        from pg_catalog.pg_prepared_xacts as p) as o
    where o.since is not null
    order by o.since limit 1) as oldest on true
where c.oid {=} pg_catalog.to_regclass($1::pg_catalog.text))";
constexpr int columns = 19;

Check of_version(const pqxx::row& found) {
  const auto version = "PostgreSQL " + printable(found[1].as<std::string>(), 60);
  if (found[0].as<int>() < 130000) return Check::wrong(version + " is too old", "upgrade the server to 13 or newer");
  return Check::fine("the server is " + version);
}

Check of_rights(const pqxx::row& found, const Table& table) {
  std::string missing;
  for (const auto& [column, right] : {std::pair(6, "select"), std::pair(7, "insert"), std::pair(8, "update")})
    if (!found[column].as<bool>()) missing += (missing.empty() ? "" : ", ") + std::string(right);
  const auto user = "the role " + printable(found[9].as<std::string>());
  if (missing.empty()) return Check::fine(user + " may " + table.rights + " on " + table.name);
  return Check::wrong(user + " may not " + missing + " on " + table.name,
                      "as the table's owner: grant " + table.rights + " on " + table.name +
                          " to the candidates' role; who only " + "observes needs select alone");
}

Check of_disk(const pqxx::row& found) {
  if (found[2].as<bool>() && found[3].as<bool>()) return Check::fine("fsync and full_page_writes are on");
  return Check::wrong("fsync or full_page_writes is off: a crash of the host may lose who leads",
                      "set both to on in postgresql.conf");
}

/// A standby refuses the connection, so this is none.
Check of_standbys(const pqxx::row& found) {
  const auto standbys = found[4].as<long>();
  if (standbys == 0) return Check::fine("the server is a primary without standbys");
  const auto what = "the server is a primary with " + std::to_string(standbys) + " standby server(s)";
  if (found[5].as<bool>()) return Check::fine(what + ", and commits wait for synchronous ones");
  return Check::doubtful(what + ", and our commits wait for none of them: one that is promoted may lack the last token",
                         "set synchronous_standby_names, and not synchronous_commit = local for the role; or fence "
                         "your writes by the token");
}

Check of_table(const pqxx::row& found, const Connection& connection) {
  const auto schema = printable(found[11].as<std::string>(), 63);
  const auto what = connection.settings().table().name + " is the table " +
                    printable(connection.places().front(), 140) + " of the role " +
                    printable(found[10].as<std::string>(), 63);
  if (!found[12].as<bool>()) return Check::fine(what);
  return Check::doubtful(what + ", in a schema where everybody may create tables and functions",
                         "revoke create on schema " + schema + " from public");
}

constexpr const char* slows = "meanwhile renewals become slower and slower, because nothing can be cleaned up";

/// It keeps what was overwritten from being removed, and each renewal walks over it.
Check of_old_transactions(const pqxx::row& found) {
  constexpr std::int64_t long_s = 600;
  const auto open_s = found[13].as<std::int64_t>(0);
  if (open_s < long_s) return Check::fine("no transaction is open for long");
  return Check::doubtful("a transaction of " + printable(found[16].as<std::string>(std::string()), 120) +
                             " is open for " + std::to_string(open_s / 60) + " min: " + slows,
                         "end it: pg_terminate_backend(), or rollback prepared");
}

/// So does one that nobody reads, or whose standby has a transaction open. What it keeps of the catalogue alone is no
/// matter of ours.
Check of_slots(const pqxx::row& found) {
  if (found[18].is_null()) return Check::fine("no replication slot keeps what was overwritten");
  const auto slot = printable(found[18].as<std::string>(), 63);
  return Check::doubtful("the replication slot " + slot + " keeps what was overwritten: " + slows,
                         "let its reader go on, and end what is open there; or, if nobody needs it, drop it: "
                         "select pg_drop_replication_slot('" +
                             slot + "')");
}

/// Whoever has another search_path finds that one.
Check of_other_tables(const pqxx::row& found) {
  if (found[17].is_null()) return Check::fine("no other table can be taken for ours");
  return Check::doubtful("there is also " + printable(found[17].as<std::string>(), 300) +
                             ": a role with another search_path finds that one, and elects another leader there",
                         "name the table with its schema, for all candidates, or drop the other one");
}

Check of_fence(const pqxx::row& found, const Table& table) {
  if (found[14].as<bool>()) return Check::fine("transactions of your own can hold the row: the strict fence is there");
  return Check::doubtful("the strict fence is missing: transactions that hold the row do not make a claim wait",
                         "as the table's owner: create unique index on " + table.name + " (election, token)");
}

/// Of one that is named without a schema: the place in the other one's.
std::string beside(const std::string& place, const std::string& quoted_table) {
  return quoted_table.find('.') == quoted_table.npos ? place.substr(0, place.rfind('.') + 1) + quoted_table
                                                     : quoted_table;
}

/// Nothing where there are no tables of groups.
void add_fence_of_groups(const pqxx::row& found, const std::string& leads, Checks& out) {
  if (found[15].is_null()) return;
  if (found[15].as<bool>()) {
    out.push_back(Check::fine("transactions of your own can hold a group's lead: the strict fence is there"));
  } else {
    out.push_back(Check::doubtful(
        "a release in a group waits for the transactions that hold the lead, and all elections' renewal with it",
        "as the table's owner: drop the unique index or constraint that has the column \"changed\", then alter table " +
            leads + " add exclude using btree (grp with =, changed with =, election with =)"));
  }
}

}  // namespace

/// Nobody notifies of an election called "".
Result<Checks> check_up(const Settings& settings, const Limit& limit, const std::string& leads) {
  return Client(settings, Purpose{.name = {}})
      .ask<Checks>(
          [leads](Connection& connection) {
            const auto& table = connection.settings().table();
            const auto& place = connection.places().front();
            const bool leads_chosen = leads.find('.') != leads.npos;
            const auto unchosen = table.chosen() ? "{}" : '{' + table.quoted + (leads_chosen ? "" : ',' + leads) + '}';
            const auto found = connection.execute({filled_sql(question, {{"{has_fence}", in_a_key("token")},
                                                                         {"{changed_in_a_key}", in_a_key("changed")}}),
                                                   {place, beside(place, leads), unchosen},
                                                   columns,
                                                   Rows::one})[0];
            Checks out{of_version(found),           of_standbys(found),     of_disk(found),
                       of_table(found, connection), of_other_tables(found), of_rights(found, table),
                       of_old_transactions(found),  of_slots(found),        of_fence(found, table)};
            add_fence_of_groups(found, leads, out);
            return out;
          },
          limit);
}

}  // namespace tenure::postgres
