// SPDX-License-Identifier: Apache-2.0
// The text of the SQL, and the parameters of each statement.
#include "group_statements.hpp"

#include <algorithm>
#include <utility>

#include <tenure/kit/text.hpp>
#include <tenure/timing.hpp>

#include "statements.hpp"

namespace tenure::postgres {
namespace {

// What stands in {braces} is filled in: tables, pieces of SQL, and parameters by their names.

// ---- the look: it is the end of every statement that answers one ----

/// A look tells what the snapshot of the last one did not show. That has the number of the oldest transaction which ran
/// then, its `horizon`, or a greater one. Without such a look it tells everything, or no lead. A row with a number that
/// no transaction has had yet comes from another server, by a restore or a replication: it is no change.
constexpr std::string_view since_a_look = R"(
at as materialized (
  select pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) as timeline,
    pg_catalog.pg_current_snapshot() as snapshot),
told as materialized (
  select cursor.known,
    case when cursor.known then pg_catalog.pg_snapshot_xmin({snapshot})
      when {everything} then '0'::pg_catalog.xid8 else {no_lead} end as horizon,
    case when cursor.known then pg_catalog.pg_snapshot_xmax(cursor.snapshot) else {no_lead} end as bound
  from (
    select at.snapshot, at.timeline {=} {timeline}
      and pg_catalog.pg_snapshot_xmin({snapshot}) {<=} pg_catalog.pg_snapshot_xmin(at.snapshot) as known
    from at) as cursor))";

constexpr std::string_view answer_row =
    "select 'answer' as kind, at.timeline as name, (extract(epoch from clock_timestamp()) * 1000)::bigint, {token},"
    " not told.known, null, null, at.snapshot::text,"
    " case when pg_catalog.current_setting('transaction_read_only')::boolean then 1::bigint end,"
    " null::bigint, null::bigint, null::bigint, null::bigint, null::bigint, null::bigint from at, told";

/// Of t.
constexpr std::string_view session_row =
    "t.place::text, t.session, t.beat, t.ended, encode(t.who, 'hex'), null, null, t.term_ms, t.asked_ns,"
    " case when pg_catalog.isfinite(t.written_at) then (extract(epoch from t.written_at) * 1000)::bigint end, "
    "t.joined, t.names, "
    "t.weight, t.most";

/// Of l.
constexpr std::string_view lead_row =
    "encode(l.election, 'hex'), l.session, l.token, l.released, encode(l.step_down_by, 'hex'),"
    " encode(l.step_down_why, 'hex'), l.changed::text, l.heir, l.step_down_token, null, null, null,"
    " null, null";

/// With an upper bound, a plan that does not know the parameters expects few rows, and takes the index.
constexpr std::string_view what_stands = R"(
{what_changed}
union all
select 'session', {session_row} from {sessions} as t where t.grp {=} {group})";

/// All that a granted commit tells besides what it did. While any transaction stays open, the server keeps each version
/// of each session since then, and whoever reads the others' sessions walks over all of these.
constexpr std::string_view what_changed = R"(
{answer_row}
union all
select 'lead', {lead_row} from {leads} as l
where l.grp {=} {group}
  and l.changed {>=} (select told.horizon from told) and l.changed {<} (select told.bound from told)
  and pg_catalog.octet_length(l.election) {<=} 200
  and not ((select told.known from told)
    and (l.changed {=} {own} or pg_catalog.pg_visible_in_snapshot(l.changed, {snapshot})))
union all
select 'lead', {lead_row} from
  pg_catalog.unnest({joined_names}) as w(name),
  lateral (
    select l.* from {leads} as l
    where l.grp {=} {group} and l.election {>=} pg_catalog.decode(w.name, 'hex')
      and l.election {<=} pg_catalog.decode(w.name, 'hex')
    order by l.grp, l.election
    limit 1) as l)";

constexpr std::string_view look_statement = R"(
with {since_a_look}
{what_stands}
limit {most_rows})";

// ---- writes of our own session ----

constexpr std::string_view open_statement = R"(
{settings},
{since_a_look},
me as (
  insert into {sessions} as t (
    grp, session, place, beat, ended, who, term_ms, asked_ns, joined, names, weight, most, written_at)
  select {group}, {id}, 0, {beat}, {released}, {who}, {term}, {asked}, {joined}, {names}, {weight}, {most},
    clock_timestamp()
  from s
  where {settings_hold}
    and not exists (select from {sessions} as z where z.grp {=} {group} and z.session {=} {id})
  on conflict do nothing
  returning t.*)
{what_stands}
union all
select 'me', {session_row} from me as t
limit {most_rows})";

/// The session's row is locked first, leads after it.
constexpr std::string_view renewed = R"(
me as (
  update {sessions} as t
  set place = {to}, beat = {beat}, ended = {released}, who = {who}, term_ms = {term}, asked_ns = {asked},
    joined = {joined}, names = {names}, weight = {weight}, most = {most}, written_at = clock_timestamp()
  from s
  where {settings_hold}
    and t.grp {=} {group}
    and t.session {=} {id}
    and t.place {>=} {place} and t.place {<=} ({place} {+} 1)
    and t.beat {=} any({beats})
    and not t.ended
  returning t.*))";

/// Nobody deadlocks, since the locks of a statement have an order: the session; then the leads that are claimed, of
/// which a locked one is left alone; then new ones, sorted. Releases lock the leads that they are about, sorted, and
/// nothing else. Whoever ends a session locks nothing else either.
///
/// It is planned once, perhaps for an empty table, and carries hundreds of changes later. So its text leaves no plan
/// that reads the group for each of them: a lead is looked for in the order of the primary key, which no other index
/// has, and is written by "on conflict", which goes by that key. What conflicts is locked already, so nothing is new.
///
/// A user's transaction may hold a lead FOR KEY SHARE, by the strict fence. A release changes no column of a unique
/// index and locks no key: so it does not wait for that. A claim locks FOR UPDATE, and passes such a lead by.
///
/// A commit says only what it is about: each part costs the server time, also where it has nothing to do.
constexpr std::string_view giving_back_statement = R"(
{settings},
mine as materialized (
  select l.election, l.token, w.heir
  from (
      select pg_catalog.decode(w.name, 'hex') as election, w.token, w.heir
      from s, unnest({given_back}, {tokens}, {heirs}) as w(name, token, heir)
      where {settings_hold}
        and exists (
          select from {sessions} as t
          where t.grp {=} {group} and t.session {=} {id} and t.place {>=} {place} and t.place {<=} ({place} {+} 1)
            and t.beat {=} any({beats}) and not t.ended)
      order by 1) as w,
    lateral (
      select l.election, l.token
      from {leads} as l
      where l.grp {=} {group} and l.election {>=} w.election and l.election {<=} w.election
        and l.token {=} w.token and l.session {=} {id} and not l.released
      order by l.grp, l.election
      limit 1
      for no key update of l) as l),
back as (
  insert into {leads} as l (grp, election, token, session, released, heir, changed)
  select {group}, mine.election, mine.token, {id}, true, mine.heir, pg_catalog.pg_current_xact_id()
  from mine
  on conflict (grp, election) do update
  set released = true, heir = excluded.heir, changed = excluded.changed
  returning l.election, l.token, l.heir)
select 'released', pg_catalog.encode(back.election, 'hex') from back
union all
select 'notified', {notified} from back having pg_catalog.count(*) {>} 0)";

/// The lead with an empty name is the floor: the greatest token of all that was retired. Its lock is shared, so that no
/// lead is retired between the read of it and a claim of what is absent. Who is not renewed asks for no lock.
constexpr std::string_view claiming = R"(
floor as materialized (
  select f.token from {leads} as f, s
  where {settings_hold} and exists (select from me)
    and f.grp {=} {group} and f.election {=} '' and f.token {<=} {greatest}
  for share of f),
now as materialized (
  select greatest({at_least}, (extract(epoch from clock_timestamp()) {*} 1000)::bigint,
    (select floor.token {+} 1 from floor)) as token),
wanted as materialized (
  select pg_catalog.decode(w.name, 'hex') as election, w.token
  from unnest({claimed}, {expected}) as w(name, token)
  where exists (select from me)
  order by 1),
gone as (
  select e.session from pg_catalog.unnest({ended}) as e(session)
  where not exists (
    select from {sessions} as z where z.grp {=} {group} and z.session {=} e.session and not z.ended)),
free as materialized (
  select l.election
  from wanted as w,
    lateral (
      select l.election
      from {leads} as l
      where l.grp {=} {group} and l.election {>=} w.election and l.election {<=} w.election
        and l.token {=} w.token
        and (l.released or l.session {=} {id} or l.session {=} any (select gone.session from gone))
      order by l.grp, l.election
      limit 1
      for update of l skip locked) as l),
took as (
  insert into {leads} as l (grp, election, token, session, released, changed)
  select {group}, free.election, now.token, {id}, false, pg_catalog.pg_current_xact_id()
  from free, now
  on conflict (grp, election) do update
  set token = excluded.token, session = excluded.session, released = false, heir = null,
    step_down_token = null, step_down_by = null, step_down_why = null, changed = excluded.changed
  returning l.*),
made as (
  insert into {leads} as l (grp, election, token, session, released, changed)
  select {group}, w.election, now.token, {id}, false, pg_catalog.pg_current_xact_id()
  from wanted as w, now
  where (w.token is null or w.token {<=} (select floor.token from floor)) and (
    select l.election from {leads} as l
    where l.grp {=} {group} and l.election {>=} w.election and l.election {<=} w.election
    order by l.grp, l.election
    limit 1) is null
  on conflict do nothing
  returning l.*))";

constexpr std::string_view claimed_rows = R"(
union all
select 'claimed', {lead_row} from took as l
union all
select 'claimed', {lead_row} from made as l)";

/// Without claims it is a renewal, which takes no lock but its own row's.
std::string renewal_statement(bool claims) {
  std::string out = "{settings},\n{since_a_look},\n{renewed}";
  if (claims) out.append(",").append(claiming);
  out += "\n{what_changed}\nunion all\nselect 'me', {session_row} from me as t";
  if (claims) out += claimed_rows;
  out += "\nlimit {most_rows}";
  return out;
}

/// A single release is named, so that its heir need not look: transaction, token, heir, election.
constexpr std::string_view release_notice =
    "@notify@({channel}, pg_catalog.concat(pg_catalog.pg_current_xact_id(), case when pg_catalog.count(*) {=} 1 then"
    " pg_catalog.concat(' ', pg_catalog.max(token), ' ', coalesce(pg_catalog.max(heir), 0), ' ',"
    " pg_catalog.max(pg_catalog.encode(election, 'hex'))) end))::pg_catalog.text";

constexpr std::string_view other_notice =
    "@notify@({channel}, pg_catalog.concat(pg_catalog.pg_current_xact_id()))::pg_catalog.text";

// ---- other writes ----

constexpr std::string_view end_statement = R"(
{settings},
r as (
  update {sessions} as t
  set ended = true, beat = {beat}, written_at = clock_timestamp()
  from s
  where {settings_hold}
    and t.grp {=} {group}
    and t.session {=} {id}
    and t.beat {=} any({beats})
    and not t.ended
  returning t.session)
select {notified} from r)";

constexpr std::string_view ended_statement =
    "select pg_catalog.count(*) from {sessions} as t where t.grp {=} {group} and t.session {=} {id} and t.ended";

/// What a sweep is about: sessions that have ended and that no unreleased lead names, and leads that name one that has.
constexpr std::string_view past_statement = R"(
(select t.session, null
  from {sessions} as t
  where t.grp {=} {group} and t.session {>} {session} and t.ended and not exists (
    select from {leads} as l where l.grp {=} {group} and l.session {=} t.session and not l.released)
  order by t.session
  limit {most})
union all
(select null, pg_catalog.encode(l.election, 'hex')
  from {leads} as l
  where l.grp {=} {group} and l.election {>} {election} and pg_catalog.octet_length(l.election) {<=} 200
    and not l.released
    and l.session {=} any (select t.session from {sessions} as t where t.grp {=} {group} and t.ended)
  order by l.grp, l.election
  limit {most}))";

/// Nothing can begin to name a session that has ended: its commits are refused.
constexpr std::string_view sweep_statement = R"(
{settings},
r as (
  delete from {sessions} as t
  using s
  where {settings_hold}
    and t.grp {=} {group}
    and t.session {=} any ({ids})
    and t.ended
    and not exists (
      select from {leads} as l where l.grp {=} {group} and l.session {=} t.session and not l.released)
  returning t.session)
select pg_catalog.count(*) from r)";

/// What still names such a session is as good as released, and is made so: the next sweep then removes the session. So
/// nothing stays of it for ever.
constexpr std::string_view left_behind_statement = R"(
{settings},
found as materialized (
  select l.election
  from (
      select pg_catalog.decode(w.name, 'hex') as election
      from s, pg_catalog.unnest({names}) as w(name)
      where {settings_hold}
      order by 1) as w,
    lateral (
      select l.election
      from {leads} as l
      where l.grp {=} {group} and l.election {>=} w.election and l.election {<=} w.election and not l.released
        and l.session {=} any (select t.session from {sessions} as t where t.grp {=} {group} and t.ended)
      order by l.grp, l.election
      limit 1
      for no key update of l skip locked) as l)
update {leads} as l
set released = true, changed = pg_catalog.pg_current_xact_id()
from found
where l.grp {=} {group} and l.election {=} found.election)";

/// A claim that is under way locks its lead first. Then that has another token by now.
constexpr std::string_view retire_statement = R"(
{settings},
idle as materialized (
  select l.election, l.token
  from (
      select pg_catalog.decode(w.name, 'hex') as election, w.token
      from s, unnest({names}, {tokens}) as w(name, token)
      where {settings_hold}
      order by 1) as w,
    lateral (
      select l.election, l.token
      from {leads} as l
      where l.grp {=} {group} and l.election {>=} w.election and l.election {<=} w.election
        and l.election {<>} '' and l.token {=} w.token
        and (l.released or exists (
          select from {sessions} as t where t.grp {=} {group} and t.session {=} l.session and t.ended))
      order by l.grp, l.election
      limit 1
      for update of l) as l),
kept as (
  insert into {leads} as l (grp, election, token, session, released, changed)
  select {group}, '', pg_catalog.max(idle.token), 0, true, pg_catalog.pg_current_xact_id()
  from idle having pg_catalog.count(*) {>} 0
  on conflict (grp, election) do update
  set token = greatest(l.token, excluded.token), changed = excluded.changed
  returning l.token),
gone as (
  delete from {leads} as l
  using idle, kept
  where l.grp {=} {group} and l.election {=} idle.election
  returning l.election)
select pg_catalog.encode(gone.election, 'hex') from gone)";

constexpr std::string_view step_down_of_a_lead = R"(
{settings},
r as (
  update {leads} as l
  set step_down_token = {token}, step_down_by = {by}, step_down_why = {why}, changed = pg_catalog.pg_current_xact_id()
  from s
  where {settings_hold}
    and l.grp {=} {group}
    and l.election {=} {election}
    and l.token {=} {token}
  returning l.election)
select {notified} from r)";

constexpr std::string_view lead_statement =
    "select pg_catalog.count(*) from {leads} as l where l.grp {=} {group} and l.election {=} {election}";

// ---- filling in ----

using Parameters = std::vector<std::pair<std::string_view, std::string_view>>;  // names and types, in order

Parameters operator+(Parameters left, const Parameters& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const Parameters& of_a_look() {
  static const Parameters all{{"{group}", "bytea"}, {"{timeline}", "text"},      {"{snapshot}", "pg_snapshot"},
                              {"{own}", "xid8"},    {"{everything}", "boolean"}, {"{joined_names}", "text[]"}};
  return all;
}

Parameters of_an_open() {
  return of_a_look() + Parameters{{"{lock_wait}", "text"},   {"{id}", "bigint"},     {"{beat}", "bigint"},
                                  {"{released}", "boolean"}, {"{who}", "text"},      {"{term}", "bigint"},
                                  {"{asked}", "bigint"},     {"{joined}", "bigint"}, {"{names}", "bigint"},
                                  {"{weight}", "bigint"},    {"{most}", "bigint"}};
}

Parameters of_a_renewal() {
  return of_an_open() + Parameters{{"{beats}", "bigint[]"}, {"{place}", "bigint"}, {"{to}", "bigint"}};
}

Parameters of_claims() {
  return {{"{at_least}", "bigint"}, {"{claimed}", "text[]"}, {"{expected}", "bigint[]"}, {"{ended}", "bigint[]"}};
}

Parameters of_releases() {
  return {{"{group}", "bytea"},    {"{lock_wait}", "text"}, {"{may_be_lost}", "boolean"}, {"{id}", "bigint"},
          {"{beats}", "bigint[]"}, {"{channel}", "text"},   {"{given_back}", "text[]"},   {"{tokens}", "bigint[]"},
          {"{heirs}", "bigint[]"}, {"{place}", "bigint"}};
}

Parameters of_an_end() {
  return {{"{group}", "bytea"},    {"{lock_wait}", "text"}, {"{id}", "bigint"},
          {"{beats}", "bigint[]"}, {"{beat}", "bigint"},    {"{channel}", "text"}};
}

Parameters of_a_step_down() {
  return {{"{group}", "bytea"}, {"{lock_wait}", "text"}, {"{election}", "bytea"}, {"{token}", "bigint"},
          {"{by}", "bytea"},    {"{why}", "bytea"},      {"{channel}", "text"}};
}

/// The rows are written without schemas, and without a limit for what others wrote.
const Parts& of_rows() {
  static const Parts all{{"encode(t.who, 'hex')", hex_of_text("t.who")},
                         {"encode(l.step_down_by, 'hex')", hex_of("l.step_down_by")},
                         {"encode(l.step_down_why, 'hex')", hex_of("l.step_down_why")},
                         {" encode(l.election", " pg_catalog.encode(l.election"},
                         {"clock_timestamp()", "pg_catalog.clock_timestamp()"},
                         {"::text", "::pg_catalog.text"},
                         {") * 1000", ") {*} 1000"}};
  return all;
}

/// The words of the grammar are always PostgreSQL's own types.
std::string with_schema(std::string_view type) {
  return (type.starts_with("bigint") || type == "boolean" ? "" : "pg_catalog.") + std::string(type);
}

/// `token`: of the claims, in the answer. `notice`: what is notified.
std::string for_group(std::string_view statement, const Parameters& parameters, std::string_view token = "null::bigint",
                      std::string_view notice = other_notice) {
  Parts parts{{"{settings}", std::string(with_settings)},
              {"{since_a_look}", std::string(since_a_look.substr(1))},
              {"{renewed}", std::string(renewed.substr(1))},
              {"{settings_hold}", std::string(settings_hold)},
              {"{what_stands}", std::string(what_stands.substr(1))},
              {"{what_changed}", std::string(what_changed.substr(1))},
              {"{answer_row}", std::string(answer_row)},
              {"{no_lead}", "'18446744073709551615'::pg_catalog.xid8"},
              {"{most_rows}", std::to_string(Rows::any.most + 1)},
              {"{greatest}", std::to_string(greatest_lead_token.value)},
              {"{session_row}", std::string(session_row)},
              {"{lead_row}", std::string(lead_row)},
              {"{notified}", std::string(notice)},
              {"{sessions}", "@0@"},
              {"{leads}", "@1@"}};
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parts.emplace_back(parameters[i].first, '$' + std::to_string(i + 1) + "::" + with_schema(parameters[i].second));
  parts.emplace_back("{token}", token);
  parts.emplace_back("{may_be_lost}", "false");  // unless it is a parameter
  for (const auto& part : of_rows()) parts.push_back(part);
  return filled_sql(statement, parts);
}

std::string renewal_for(bool claims) {
  auto parameters = of_a_renewal();
  if (claims) parameters = parameters + of_claims();
  return for_group(renewal_statement(claims), parameters, claims ? "(select now.token from now)" : "null::bigint");
}

/// As many as are read of each row of an answer.
constexpr int answer_columns = 15;

// ---- values ----

template <class Range, class Text>
std::string array_of(const Range& range, Text text) {
  std::string out = "{";
  for (const auto& one : range) out += (out.size() > 1 ? "," : "") + text(one);
  return out + '}';
}

template <class Changes>
std::string elections_of(const Changes& changes) {
  return array_of(changes, [](const auto& one) { return hex(std::string_view(one.election)); });
}

/// Without a cursor only what is joined is told, and what was retired, if anything was joined.
std::vector<std::string> of_a_cursor(const std::string& group, const std::string& text, Unknown unknown,
                                     std::vector<std::string> joined = {}) {
  const auto cursor = cursor_of(text);
  const bool by_name = text.empty() && !joined.empty();
  if (by_name) joined.emplace_back();
  const auto name = [](const std::string& one) { return '"' + hex(std::string_view(one)) + '"'; };
  return {group,
          cursor.timeline,
          cursor.snapshot,
          std::to_string(cursor.own),
          unknown == Unknown::tells_everything && !by_name ? "t" : "f",
          by_name ? array_of(joined, name) : "{}"};
}

void append(std::vector<std::string>& values, SessionId id, const Session& session, const std::string& wait) {
  const auto& record = session.record;
  for (auto value : {wait, bigint(id.value), bigint(record.beat), std::string(record.released ? "t" : "f"), record.who,
                     std::to_string(std::chrono::ceil<std::chrono::milliseconds>(record.term).count()),
                     std::to_string(record.asked.count()), std::to_string(session.joined), bigint(session.names),
                     std::to_string(session.weight), std::to_string(session.most)})
    values.push_back(std::move(value));
}

void append(std::vector<std::string>& values, Token at_least, const std::vector<Claim>& claims,
            const std::vector<SessionId>& ended) {
  values.push_back(bigint(at_least.value));
  values.push_back(elections_of(claims));
  values.push_back(
      array_of(claims, [](const Claim& claim) { return claim.expected ? bigint(claim.expected->value) : "null"; }));
  values.push_back(array_of(ended, [](SessionId id) { return bigint(id.value); }));
}

// ---- answers ----

std::string bytes_at(const pqxx::row& row, int column) { return bytes_of(row[column].as<std::string>(std::string())); }

/// Whoever wrote a term that cannot be is waited for as long as one can.
Session session_of(const pqxx::row& row) {
  const auto term = std::chrono::milliseconds(row[8].as<std::int64_t>(0));
  const bool possible = term.count() > 0 && term.count() <= max_term / std::chrono::milliseconds(1);
  return {.record = {.beat = unsigned_of(row[3]),
                     .who = bytes_at(row, 5),
                     .released = row[4].as<bool>(false),
                     .term = possible ? Clock::Duration(term) : Clock::Duration(max_term),
                     .asked = Clock::Duration(row[9].as<std::int64_t>(0)),
                     .written_ms = row[10].as<std::int64_t>(0)},
          .joined = static_cast<std::uint32_t>(row[11].as<std::int64_t>(0)),
          .names = unsigned_of(row[12]),
          .weight = static_cast<std::uint32_t>(row[13].as<std::int64_t>(1)),
          .most = static_cast<std::uint32_t>(row[14].as<std::int64_t>(UINT32_MAX))};
}

Lead lead_of(const pqxx::row& row) {
  Lead out{.token = {unsigned_of(row[3])}, .session = {unsigned_of(row[2])}, .released = row[4].as<bool>(false)};
  if (!row[8].is_null()) out.heir = SessionId{unsigned_of(row[8])};
  if (!row[9].is_null()) out.step_down = StepDown{{unsigned_of(row[9])}, bytes_at(row, 5), bytes_at(row, 6)};
  return out;
}

/// What is wrong with a lead that no process of ours wrote.
std::optional<std::string> trouble_of(const pqxx::row& row) {
  if (row[3].is_null()) return "it has no token";
  if (unsigned_of(row[3]) > greatest_lead_token.value) return "its token is " + row[3].as<std::string>();
  if (row[2].is_null()) return "it names no session";
  if (row[2].as<std::int64_t>() < 0) return "its session is " + row[2].as<std::string>();
  return std::nullopt;
}

std::uint64_t transaction_of(const std::string& text) { return number<std::uint64_t>(text).value_or(0); }

/// The words of a text, as many as there are separators and one.
std::vector<std::string_view> words_of(std::string_view text, char separator = ' ') {
  std::vector<std::string_view> out;
  for (;;) {
    const auto end = std::min(text.find(separator), text.size());
    out.push_back(text.substr(0, end));
    if (end == text.size()) return out;
    text.remove_prefix(end + 1);
  }
}

/// "oldest:end:running,running": what PostgreSQL would take.
bool read_snapshot(std::string_view text, Cursor& out) {
  const auto words = words_of(text, ':');
  if (words.size() != 3) return false;
  const auto oldest = number<std::uint64_t>(words[0]), end = number<std::uint64_t>(words[1]);
  if (!oldest || !end || *oldest == 0 || *end < *oldest) return false;
  auto least = *oldest;
  if (!words[2].empty())
    for (const auto word : words_of(words[2], ',')) {
      const auto one = number<std::uint64_t>(word);
      if (!one || *one < least || *one >= *end) return false;
      out.running.push_back(*one);
      least = *one + 1;
    }
  out.snapshot = text;
  out.end = *end;
  return true;
}

}  // namespace

Cursor cursor_of(std::string_view text) {
  const auto words = words_of(text);
  if (words.size() != 4) return {};
  const auto own = number<std::uint64_t>(words[2]), connection = number<std::uint64_t>(words[3]);
  Cursor out{.timeline = std::string(words[0]), .own = own.value_or(0), .connection = connection.value_or(0)};
  return own && connection && read_snapshot(words[1], out) ? out : Cursor{};
}

std::string text_of(const Cursor& cursor) {
  return cursor.timeline + ' ' + cursor.snapshot + ' ' + std::to_string(cursor.own) + ' ' +
         std::to_string(cursor.connection);
}

bool told_by(const Cursor& cursor, std::string_view notice) {
  const auto transaction = number<std::uint64_t>(words_of(notice)[0]);
  if (!transaction) return false;
  return *transaction == cursor.own ||
         (*transaction < cursor.end && !std::ranges::binary_search(cursor.running, *transaction));
}

std::optional<Release> release_of(std::string_view notice) {
  const auto words = words_of(notice);
  if (words.size() != 4) return std::nullopt;
  const auto token = number<std::int64_t>(words[1]), heir = number<std::int64_t>(words[2]);
  auto election = bytes_of(words[3]);
  if (!number<std::uint64_t>(words[0]) || !token || !heir || *token < 0 || *heir < 0 || election.empty() ||
      hex(std::string_view(election)) != words[3])
    return std::nullopt;
  Release out{.election = std::move(election), .token = {static_cast<std::uint64_t>(*token)}};
  if (*heir) out.heir = SessionId{static_cast<std::uint64_t>(*heir)};
  return out;
}

GroupStatements::GroupStatements(const std::string& group)
    : group_(bytea(group)),
      look_(for_group(look_statement, of_a_look())),
      open_(for_group(open_statement, of_an_open())),
      renewal_(renewal_for(false)),
      claims_(renewal_for(true)),
      releases_(for_group(giving_back_statement, of_releases(), {}, release_notice)),
      end_(for_group(end_statement, of_an_end())),
      ended_(for_group(ended_statement, {{"{group}", "bytea"}, {"{id}", "bigint"}})),
      past_(for_group(past_statement,
                      {{"{group}", "bytea"}, {"{session}", "bigint"}, {"{election}", "bytea"}, {"{most}", "bigint"}})),
      sweep_(for_group(sweep_statement, {{"{group}", "bytea"}, {"{lock_wait}", "text"}, {"{ids}", "bigint[]"}})),
      left_behind_(
          for_group(left_behind_statement, {{"{group}", "bytea"}, {"{lock_wait}", "text"}, {"{names}", "text[]"}})),
      retire_(
          for_group(retire_statement,
                    {{"{group}", "bytea"}, {"{lock_wait}", "text"}, {"{names}", "text[]"}, {"{tokens}", "bigint[]"}})),
      step_down_(for_group(step_down_of_a_lead, of_a_step_down())),
      lead_(for_group(lead_statement, {{"{group}", "bytea"}, {"{election}", "bytea"}})) {}

Statement GroupStatements::look(const std::string& cursor, Unknown unknown, const Names& joined) const {
  return {look_, of_a_cursor(group_, cursor, unknown, joined), answer_columns};
}

Statement GroupStatements::open(SessionId id, const Session& session, const Bearings& at, const Names& joined) const {
  auto values = of_a_cursor(group_, {}, Unknown::tells_everything, joined);
  append(values, id, session, at.lock_wait);
  return {open_, std::move(values), answer_columns};
}

Statement GroupStatements::renewal(const Commit& commit, const Bearings& at, const Place& place) const {
  auto values = of_a_cursor(group_, commit.cursor, Unknown::tells_no_lead);
  append(values, commit.session, commit.next, at.lock_wait);
  values.push_back(bigints(commit.beats));
  values.push_back(bigint(place.now));
  values.push_back(bigint(place.next));
  if (commit.claims.empty()) return {renewal_, std::move(values), answer_columns};
  append(values, commit.at_least, commit.claims, commit.ended);
  return {claims_, std::move(values), answer_columns};
}

Statement GroupStatements::giving_back(const Commit& commit, const Bearings& at, const Place& place,
                                       bool may_be_lost) const {
  const auto& all = commit.releases;
  return {releases_,
          {group_, at.lock_wait, may_be_lost ? "t" : "f", bigint(commit.session.value), bigints(commit.beats),
           at.channel, elections_of(all), array_of(all, [](const Release& one) { return bigint(one.token.value); }),
           array_of(all, [](const Release& one) { return one.heir ? bigint(one.heir->value) : "null"; }),
           bigint(place.now)},
          2,
          {0, all.size() + 1}};
}

Statement GroupStatements::end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                               const Bearings& at) const {
  return {end_, {group_, at.lock_wait, bigint(id.value), bigints(beats), bigint(new_beat), at.channel}, 1};
}

Statement GroupStatements::ended(SessionId id) const { return {ended_, {group_, bigint(id.value)}, 1, Rows::one}; }

Statement GroupStatements::past(const SweepPass& pass) const {
  return {past_,
          {group_, bigint(pass.session.value), bytea(pass.election), std::to_string(SweepPass::page)},
          2,
          {0, 2 * SweepPass::page}};
}

Statement GroupStatements::sweep(const std::vector<SessionId>& ended, const Bearings& at) const {
  return {sweep_, {group_, at.lock_wait, array_of(ended, [](SessionId id) { return bigint(id.value); })}, 1, Rows::one};
}

Statement GroupStatements::retire(const Leads& leads, const Bearings& at) const {
  return {retire_,
          {group_, at.lock_wait, array_of(leads, [](const auto& one) { return hex(std::string_view(one.first)); }),
           array_of(leads, [](const auto& one) { return bigint(one.second.value); })},
          1,
          {0, leads.size()}};
}

Statement GroupStatements::request_step_down(const std::string& election, const StepDown& request,
                                             const Bearings& at) const {
  return {step_down_,
          {group_, at.lock_wait, bytea(election), bigint(request.token.value), bytea(request.by), bytea(request.why),
           at.channel},
          1};
}

Statement GroupStatements::lead(const std::string& election) const {
  return {lead_, {group_, bytea(election)}, 1, Rows::one};
}

Statement GroupStatements::release_left_behind(const Names& elections, const Bearings& at) const {
  return {
      left_behind_,
      {group_, at.lock_wait, array_of(elections, [](const std::string& one) { return hex(std::string_view(one)); })},
      0};
}

Past past_in(const pqxx::result& rows) {
  Past out;
  for (const auto& row : rows)
    if (row[1].is_null())
      out.sessions.push_back({unsigned_of(row[0])});
    else
      out.leads.push_back(bytes_at(row, 1));
  return out;
}

std::set<std::string> retired_in(const pqxx::result& rows) {
  std::set<std::string> out;
  for (const auto& row : rows) out.insert(bytes_at(row, 0));
  return out;
}

std::vector<std::string> released_in(const pqxx::result& rows) {
  std::vector<std::string> out;
  for (const auto& row : rows)
    if (row[0].as<std::string>() == "released") out.push_back(bytes_at(row, 1));
  return out;
}

/// What was written by the statement itself its snapshot shows as it was before. So it goes before what the look shows.
Answer answer_of(const pqxx::result& rows, std::uint64_t connection,
                 const std::function<Error(const std::string& election, const std::string& wrong)>& spoilt) {
  Answer out;
  Cursor cursor;
  cursor.connection = connection;
  int answers = 0;
  bool retired = false;
  for (const auto& row : rows) {
    const auto kind = row[0].as<std::string>();
    if (kind == "answer") {
      ++answers;
      cursor.timeline = row[1].as<std::string>();
      cursor.snapshot = row[7].as<std::string>();
      out.look.now_ms = row[2].as<std::int64_t>();
      out.token = {unsigned_of(row[3])};
      out.look.whole = row[4].as<bool>();
      out.only_reads = !row[8].is_null();
    } else if (kind == "session") {
      out.places[{unsigned_of(row[2])}] = transaction_of(row[1].as<std::string>(std::string()));
      out.look.sessions.emplace(SessionId{unsigned_of(row[2])}, session_of(row));
    } else if (kind == "me") {
      out.granted = true;
      out.places[{unsigned_of(row[2])}] = transaction_of(row[1].as<std::string>(std::string()));
      out.look.sessions.insert_or_assign(SessionId{unsigned_of(row[2])}, session_of(row));
    } else if (kind == "lead") {
      auto election = bytes_at(row, 1);
      if (election.empty())
        retired = true, out.look.retired = {row[3].is_null() ? 0 : unsigned_of(row[3])};
      else if (const auto trouble = trouble_of(row))
        out.look.unreadable.emplace(election, spoilt(election, *trouble));
      else
        out.look.leads.emplace(std::move(election), lead_of(row));
    } else if (kind != "claimed") {
      throw NoAnswer("a row of an unknown kind");
    } else {
      out.claimed.push_back(bytes_at(row, 1));
      out.look.leads.insert_or_assign(bytes_at(row, 1), lead_of(row));
      cursor.own = transaction_of(row[7].as<std::string>());
    }
  }
  if (answers != 1) throw NoAnswer("not one row that begins it");
  for (const auto& [election, error] : out.look.unreadable)
    if (out.look.leads.contains(election)) throw NoAnswer("a lead that stands there twice");
  // A cursor tells what stands, and not what is gone: whoever learns by it of a retirement looks at everything anew.
  if (out.look.whole || !retired) out.look.cursor = text_of(cursor);
  return out;
}

}  // namespace tenure::postgres
