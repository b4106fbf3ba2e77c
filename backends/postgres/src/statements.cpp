// SPDX-License-Identifier: Apache-2.0
// The text of the SQL, and the parameters of each statement.
#include "statements.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <tenure/candidate.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

namespace tenure::postgres {
namespace {

using std::chrono::milliseconds;

// What stands in {braces} in a statement is filled in by filled_sql().

constexpr std::string_view read_statement = R"(
select {row}, pg_catalog.current_setting('transaction_read_only')::boolean
from (values (1)) as one
left join @0@ as r on r.election {=} $1::pg_catalog.bytea)";

constexpr std::string_view list_statement = R"(
select {row}, pg_catalog.encode(r.election, 'hex')
from @0@ as r
where r.election {>} $1::pg_catalog.bytea and pg_catalog.octet_length(r.election) {<=} 200
order by r.election
limit $2::bigint)";

/// Of claims at the same moment one is the first. Another one may meet it in either index: at its election, or at its
/// token.
constexpr std::string_view first_claim_statement = R"(
{settings},
r as (
  insert into @0@ as new (
    election, token, beat, who, released, term_ms, asked_ns, written_at)
  select $2::pg_catalog.bytea, $3::bigint, $4::bigint, $5::pg_catalog.text, $6::boolean, $7::bigint, $8::bigint,
    pg_catalog.clock_timestamp()
  from s
  where {settings_hold}
  on conflict do nothing
  returning new.*)
select {row}, {notify} from r)";

/// $11: the expected token; $12: the beats of which one is expected; $13: whether the row must be released.
constexpr std::string_view replace_statement = R"(
{settings},
r as (
  update @0@ as old
  set token = $3::bigint, beat = $4::bigint, who = $5::pg_catalog.text, released = $6::boolean, term_ms = $7::bigint,
    asked_ns = $8::bigint, written_at = pg_catalog.clock_timestamp()
  from s
  where {settings_hold}
    and old.election {=} $2::pg_catalog.bytea
    and old.token {=} $11::bigint
    and old.beat {=} any($12::bigint[])
    and (old.released or not $13::boolean)
  returning old.*)
select {row}, {notify} from r)";

constexpr std::string_view step_down_statement = R"(
{settings}
update @0@ as old
set step_down_token = $3::bigint, step_down_by = $4::pg_catalog.bytea, step_down_why = $5::pg_catalog.bytea
from s
where {settings_hold}
  and old.election {=} $2::pg_catalog.bytea
  and old.token {=} $3::bigint)";

/// In the order of read_of().
std::string row() {
  return "r.token, r.beat, " + hex_of_text("r.who") +
         ", r.released, r.term_ms, r.asked_ns, case when pg_catalog.isfinite(r.written_at)"
         " then (extract(epoch from r.written_at) {*} 1000)::bigint end,"
         " r.step_down_token, " +
         hex_of("r.step_down_by") + ", " + hex_of("r.step_down_why") +
         ", (extract(epoch from pg_catalog.clock_timestamp()) {*} 1000)::bigint";
}
constexpr int row_columns = 11;

/// $9: the channel; $10: whether this is news. A renewal is none: it wakes nobody, and its commit does not wait for
/// the server's lock for notices. Of a release the notice names the version that it left.
constexpr std::string_view notify =
    "case when $10::boolean then"
    " @notify@($9::pg_catalog.text,"
    " case when r.released then pg_catalog.concat(r.token, ' ', r.beat) else '' end)::pg_catalog.text end";

/// `may_be_lost`: a condition on what is written. If a crash loses such a write, it is as if it had never been made.
std::string whole(std::string_view statement, std::string_view may_be_lost = "false") {
  return filled_sql(statement, {{"{settings}", std::string(with_settings)},
                                {"{settings_hold}", std::string(settings_hold)},
                                {"{lock_wait}", "$1"},
                                {"{may_be_lost}", std::string(may_be_lost)},
                                {"{row}", row()},
                                {"{notify}", std::string(notify)}});
}

}  // namespace

Statement reading(const std::string& election) {
  return {whole(read_statement), {election}, row_columns + 1, Rows::one};
}

Statement listing(const std::string& after, std::size_t most) {
  return {whole(list_statement), {after, std::to_string(most)}, row_columns + 1, {0, most}};
}

Statement replacing(const Writing& writing, const std::optional<Expected>& expected, const Record& next) {
  const auto term = std::chrono::ceil<milliseconds>(next.term).count();
  const bool news = !expected || expected->token != next.token || next.released;
  std::vector<std::string> values{
      writing.lock_wait, writing.election,          bigint(next.token.value), bigint(next.beat),
      next.who,          next.released ? "t" : "f", std::to_string(term),     std::to_string(next.asked.count()),
      writing.channel,   news ? "t" : "f"};
  if (expected) {
    values.push_back(bigint(expected->token.value));
    values.push_back(bigints(expected->beats));
    values.emplace_back(expected->released ? "t" : "f");
  }
  // A release that a crash loses makes its successor wait, no more. Whoever takes over writes behind it in the log.
  return {whole(expected ? replace_statement : first_claim_statement, "$6::boolean"), std::move(values),
          row_columns + 1, Rows::at_most_one};
}

Statement requesting_step_down(const Writing& writing, const StepDown& request) {
  return {whole(step_down_statement),
          {writing.lock_wait, writing.election, bigint(request.token.value),
           bytea(printable(request.by, max_candidate_bytes)), bytea(printable(request.why))}};
}

std::optional<Version> released_by(std::string_view notice) {
  const auto blank = std::min(notice.find(' '), notice.size());
  const auto token = number<std::int64_t>(notice.substr(0, blank));
  const auto beat = number<std::int64_t>(notice.substr(std::min(blank + 1, notice.size())));
  if (!token || !beat) return std::nullopt;
  return Version{{static_cast<std::uint64_t>(*token)}, static_cast<std::uint64_t>(*beat)};
}

bool may_be_followed(Token token) {
  const auto value = static_cast<std::int64_t>(token.value);
  return value >= 0 && value < std::numeric_limits<std::int64_t>::max() - 1;
}

Read read_of(const pqxx::row& r) {
  Read out;
  out.now_ms = r[10].as<std::int64_t>();
  out.absence_certain = true;
  if (r[0].is_null()) return out;
  const auto term_ms = r[4].as<std::int64_t>(0);
  const auto bytes = [&r](int column) { return bytes_of(r[column].as<std::string>(std::string())); };
  out.unreadable = term_ms <= 0 || term_ms > max_term / milliseconds(1);  // somebody else wrote it
  for (int column = 1; column < 7; ++column) out.unreadable = out.unreadable || r[column].is_null();
  out.record = Record{.token = {unsigned_of(r[0])},
                      .beat = unsigned_of(r[1]),
                      .who = bytes(2),
                      .released = r[3].as<bool>(false),
                      .term = milliseconds(out.unreadable ? 0 : term_ms),
                      .asked = Clock::Duration(r[5].as<std::int64_t>(0)),
                      .written_ms = r[6].as<std::int64_t>(0)};
  if (!r[7].is_null()) out.step_down = StepDown{{unsigned_of(r[7])}, bytes(8), bytes(9)};
  return out;
}

bool only_reads(const pqxx::row& r) { return r[11].as<bool>(false); }

std::string election_of(const pqxx::row& r) { return bytes_of(r[11].as<std::string>()); }

}  // namespace tenure::postgres
