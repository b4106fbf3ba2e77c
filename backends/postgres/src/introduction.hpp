// SPDX-License-Identifier: Apache-2.0
// The SQL by which a connection introduces itself. What stands in {braces} is filled in by filled_sql().
#pragma once
#include <string_view>

namespace tenure::postgres {

/// What a new connection is asked: whether a pooler stands between (it shows its clients process ids of its own),
/// whether the tables can be trusted with an election, whether we may write to them, and whether all was prepared. The
/// server tells how long it has worked so far, which is no part of a round trip.
///
/// A table is looked for first where it was found before, by this session or by this process. Its owner can run code as
/// whoever uses it. Where everybody may create, he may be anybody; and so may be who made a trigger. A schema that is
/// called like our role comes first in its search_path: whoever may create schemas may have made it.
///
/// Who names the schema has chosen: no other table of that name counts then.
constexpr std::string_view introduction = R"(
with trusted as materialized (
  select a.oid from pg_catalog.pg_roles as a
  where a.rolsuper or a.rolname {=} current_user or a.rolname {=} 'pg_database_owner'::pg_catalog.name
  union all
  select d.datdba from pg_catalog.pg_database as d where d.datname {=} pg_catalog.current_database())
select pg_catalog.pg_backend_pid() as pid, pg_catalog.pg_is_in_recovery() as recovers, n.nspname, c.relname,
  c.relkind as kind, c.relpersistence as persistence,
  (select pg_catalog.bool_and(pg_catalog.has_table_privilege(c.oid, needed))
    from pg_catalog.unnest(pg_catalog.string_to_array(named.rights, ', ')) as needed) as may,
  pg_catalog.current_setting('transaction_read_only')::boolean as only_reads,
  coalesce(pg_catalog.current_setting('tenure.prepared', true), '') {=} 'on' as prepared,
  (extract(epoch from pg_catalog.clock_timestamp() {-} pg_catalog.statement_timestamp()) {*} 1000000)::bigint
    as worked_us,
  pg_catalog.concat(pg_catalog.quote_ident(n.nspname::pg_catalog.text), '.',
    pg_catalog.quote_ident(c.relname::pg_catalog.text)) as place,
  pg_catalog.pg_get_userbyid(c.relowner) as owner,
  case
    when (c.relowner {=} any (select oid from trusted)) is not false then null
    when c.relowner {<>} n.nspowner and pg_catalog.has_schema_privilege('public'::pg_catalog.name, n.oid, 'create')
      then 'schema'
    when n.nspowner {=} any (select oid from trusted) then null
    when pg_catalog.has_database_privilege('public'::pg_catalog.name, base.name, 'create')
        or not named.chosen and n.nspname {=} current_user
          and pg_catalog.has_database_privilege(n.nspowner, base.name, 'create')
      then 'database'
    end as squatted,
  (select t.tgname
    from pg_catalog.pg_trigger as t join pg_catalog.pg_proc as p on p.oid {=} t.tgfoid
    where t.tgrelid {=} c.oid and not t.tgisinternal
      and not (p.proowner {=} c.relowner or p.proowner {=} n.nspowner or p.proowner {=} any (select oid from trusted))
    limit 1) as foreign_trigger,
  (select pg_catalog.string_agg(pg_catalog.concat(m.nspname, '.', o.relname), ', ')
    from pg_catalog.pg_class as o join pg_catalog.pg_namespace as m on m.oid {=} o.relnamespace
    where not named.chosen and o.relname {=} named.plain::pg_catalog.name and o.relkind {=} 'r' and o.relpersistence {<>} 't'
      and o.oid {<>} coalesce(c.oid, '0'::pg_catalog.oid)) as elsewhere,
  coalesce(pg_catalog.has_function_privilege(
    pg_catalog.to_regprocedure('pg_catalog.pg_notify(pg_catalog.text, pg_catalog.text)')::pg_catalog.oid,
    'execute'), false) as notifies,
  named.number
from rows from (
    pg_catalog.unnest(pg_catalog.string_to_array({tables}, ';')),
    pg_catalog.unnest(pg_catalog.string_to_array({rights}, ';')),
    pg_catalog.unnest(pg_catalog.string_to_array({plain_names}, ';')),
    pg_catalog.unnest(pg_catalog.string_to_array({chosen}, ';')::boolean[]),
    pg_catalog.unnest(pg_catalog.string_to_array(
      coalesce(pg_catalog.current_setting('tenure.tables', true), {places}), ';')))
  with ordinality as named(name, rights, plain, chosen, found_before, number)
cross join (select pg_catalog.current_database()::pg_catalog.text as name) as base
left join pg_catalog.pg_class as c
  on c.oid {=} coalesce(pg_catalog.to_regclass(named.found_before), pg_catalog.to_regclass(named.name))
left join pg_catalog.pg_namespace as n on n.oid {=} c.relnamespace
order by named.number)";
constexpr int introduction_columns = 17;

/// Prepares a session of our own, and does nothing in any other or where the tables will not do. The server itself
/// decides that: we do not know yet whose session it is, and would pay a round trip to learn it. Compiling a query of
/// catalogues takes seconds where a server's planner thinks that it is worth while.
constexpr std::string_view preparing_block = R"(
do $tenure$
declare
  fit boolean;
  writes boolean;
  notify pg_catalog.text;
  tables pg_catalog.text[];
begin
  perform pg_catalog.set_config('jit', 'off', true);
  select pg_catalog.bool_and((pid {=} {own_pid} and not recovers and kind {=} 'r' and persistence {=} 'p'
      and squatted is null and foreign_trigger is null) is true),
    pg_catalog.bool_and((may and not only_reads) is true),
    case when pg_catalog.bool_and(notifies) then 'pg_catalog.pg_notify' else 'pg_catalog.concat' end,
    pg_catalog.array_agg(one.place order by one.number)
  into fit, writes, notify, tables
  from ({introduction}) as one;
  if fit then
    perform pg_catalog.set_config('tenure.tables', pg_catalog.array_to_string(tables, ';'), false);{preparations}
  end if;
  if fit and writes then{rehearsals}
  end if;
end
$tenure$;
{introduction})";

}  // namespace tenure::postgres
