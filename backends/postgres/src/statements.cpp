// SPDX-License-Identifier: Apache-2.0
#include "statements.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include <tenure/candidate.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/log.hpp>
#include <tenure/timing.hpp>

namespace tenure::postgres {
namespace {

using std::chrono::milliseconds;

/// In the order of read_of().
constexpr const char* row =
    "r.token, r.beat, encode(r.holder, 'hex'), encode(r.incarnation, 'hex'), encode(r.address, 'hex'), r.released,"
    " r.term_ms, r.asked_ns, (extract(epoch from r.written_at) * 1000)::bigint,"
    " r.recall_token, encode(r.recall_by, 'hex'), encode(r.recall_why, 'hex'),"
    " (extract(epoch from clock_timestamp()) * 1000)::bigint";

/// Settings for one statement, made inside it: no second round trip, and nothing is left in a pooled session. Each is
/// named in a condition, so that it stands before the row is locked. Only what may be lost in a crash, as if it had
/// never been written, is not waited for until it is on disk.
std::string settings(const char* may_be_lost) {
  return std::string(
             "with s as materialized (select set_config('lock_timeout', $1, true) as waits,"
             " set_config('synchronous_commit', case when ") +
         may_be_lost +
         " then 'off' when current_setting('synchronous_commit') = 'off' then 'on'"
         " else current_setting('synchronous_commit') end, true) as durable)";
}
constexpr const char* settled = "s.waits is not null and s.durable is not null";

/// $2 to $10: the row's values.
constexpr const char* columns = "election, token, beat, holder, incarnation, address, released, term_ms, asked_ns";
constexpr const char* values =
    "$2::bytea, $3::bigint, $4::bigint, $5::bytea, $6::bytea, $7::bytea, $8::boolean, $9::bigint, $10::bigint";

std::string bigint(std::uint64_t value) { return std::to_string(static_cast<std::int64_t>(value)); }

std::string lock_timeout(Clock::Duration wait) {
  return std::to_string(std::max<std::int64_t>(wait / milliseconds(1), 1));
}

std::string array_of(const std::vector<std::uint64_t>& beats) {
  std::string out = "{";
  for (const auto beat : beats) out += (out.size() > 1 ? "," : "") + bigint(beat);
  return out + '}';
}

std::string bytes_of(std::string_view hex) {
  std::string out;
  for (; hex.size() > 1; hex.remove_prefix(2))
    out += static_cast<char>(number<unsigned char>(hex.substr(0, 2), 16).value_or(0));
  return out;
}

std::uint64_t unsigned_of(const pqxx::field& field) { return static_cast<std::uint64_t>(field.as<std::int64_t>(0)); }

}  // namespace

std::string bytea(std::string_view bytes) { return "\\x" + hex(bytes); }

Question reading(const std::string& table, const std::string& election) {
  return {
      std::string("select ") + row + " from (values (1)) as one left join " + table + " as r on r.election = $1::bytea",
      {election}};
}

Question replacing(const Writing& writing, const std::optional<Expected>& expected, const Record& next) {
  const auto term = (next.term + milliseconds(1) - Clock::Duration(1)) / milliseconds(1);
  const bool news = !expected || expected->token != next.token || next.released;
  std::vector<std::string> given{lock_timeout(writing.lock_wait),
                                 writing.election,
                                 bigint(next.token.value),
                                 bigint(next.beat),
                                 bytea(next.holder),
                                 bytea(next.incarnation),
                                 bytea(next.address),
                                 next.released ? "t" : "f",
                                 std::to_string(term),
                                 std::to_string(next.asked.count()),
                                 writing.channel,
                                 news ? "t" : "f"};
  std::string write;
  if (expected) {
    write = "update " + writing.table + " as old set (" + columns + ", written_at) = row(" + values +
            ", clock_timestamp()) from s where " + settled +
            " and old.election = $2::bytea and old.token = $13::bigint and old.beat = any($14::bigint[])"
            " and (old.released or not $15::boolean) returning old.*";
    given.push_back(bigint(expected->token.value));
    given.push_back(array_of(expected->beats));
    given.emplace_back(expected->released ? "t" : "f");
  } else {
    write = "insert into " + writing.table + " as new (" + columns + ", written_at) select " + values +
            ", clock_timestamp() from s where " + settled + " on conflict (election) do nothing returning new.*";
  }
  // Renewals are no news: nobody is woken, and no commit queues up behind the server's lock for notices.
  // A release that is lost costs its successor a wait, no more; and whoever takes over writes behind it in the log.
  return {settings("$8::boolean") + ", r as (" + write + ") select " + row +
              ", case when $12::boolean then pg_notify($11::text, case when r.released"
              " then r.token || ' ' || r.beat else '' end)::text end from r",
          std::move(given)};
}

Question recalling(const Writing& writing, const Recall& request) {
  return {settings("false") + " update " + writing.table +
              " as old set recall_token = $3::bigint, recall_by = $4::bytea, recall_why = $5::bytea from s where " +
              settled + " and old.election = $2::bytea and old.token = $3::bigint",
          {lock_timeout(writing.lock_wait), writing.election, bigint(request.token.value),
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
  out.now_ms = r[12].as<std::int64_t>();
  out.absence_certain = true;
  if (r[0].is_null()) return out;
  const auto term_ms = r[6].as<std::int64_t>(0);
  const auto bytes = [&r](int column) { return bytes_of(r[column].as<std::string>(std::string())); };
  out.unreadable = term_ms <= 0 || term_ms > max_term / milliseconds(1);  // somebody else wrote it
  for (int column = 1; column < 9; ++column) out.unreadable = out.unreadable || r[column].is_null();
  out.record = Record{.token = {unsigned_of(r[0])},
                      .beat = unsigned_of(r[1]),
                      .holder = bytes(2),
                      .incarnation = bytes(3),
                      .address = bytes(4),
                      .released = r[5].as<bool>(false),
                      .term = milliseconds(out.unreadable ? 0 : term_ms),
                      .asked = Clock::Duration(r[7].as<std::int64_t>(0)),
                      .written_ms = r[8].as<std::int64_t>(0)};
  if (!r[9].is_null()) out.recall = Recall{{unsigned_of(r[9])}, bytes(10), bytes(11)};
  return out;
}

}  // namespace tenure::postgres
