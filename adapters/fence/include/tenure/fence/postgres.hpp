// SPDX-License-Identifier: Apache-2.0
// The strict fence of PostgreSQL: the election's row takes part in your own transaction, on your own connection,
// through libpqxx. ../../../README.md says what it promises, and gives the SQL for other clients.
#pragma once
#include <algorithm>
#include <chrono>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tenure/token.hpp>

namespace tenure::fence {

/// The statement of hold(). $1: the election's name as bytea; $2: the token; $3: the bound in milliseconds. `more`: a
/// further condition, with its operators.
///
/// A claim locks the row FOR UPDATE, in a group because it says so, else because it writes another token, which a
/// unique index has. That waits for FOR KEY SHARE. Neither a renewal nor a release does. A shorter bound of your own
/// stays. PostgreSQL 17 keeps the timer of a longer one running, unless that is switched off first.
inline std::string hold_sql(std::string_view table, std::string_view more = {}) {
  return std::string(R"(
with t as materialized (
  select one.name, pg_catalog.current_setting(one.name, true)::pg_catalog.interval as present,
    $3::pg_catalog.int8 operator(pg_catalog.*) '1 ms'::pg_catalog.interval as ours
  from (values ('idle_in_transaction_session_timeout'), ('statement_timeout'), ('transaction_timeout')) as one(name)
  where pg_catalog.current_setting(one.name, true) is not null),
off as materialized (
  select pg_catalog.set_config(t.name, '0', true) as value from t
  where t.name operator(pg_catalog.=) 'transaction_timeout' and t.present operator(pg_catalog.>) t.ours),
bound as materialized (
  select pg_catalog.set_config(t.name, pg_catalog.concat((extract(epoch from
      case when t.present operator(pg_catalog.>) '0'::pg_catalog.interval then least(t.present, t.ours) else t.ours end)
      operator(pg_catalog.*) 1000)::pg_catalog.int8, 'ms'), true) as value
  from t where (select pg_catalog.count(off.value) from off) operator(pg_catalog.>=) 0)
select 1 from )")
      .append(table)
      .append(R"( as held
where held.election operator(pg_catalog.=) $1::pg_catalog.bytea and held.token operator(pg_catalog.=) $2::pg_catalog.int8
  and (select pg_catalog.count(bound.value) from bound) operator(pg_catalog.>) 0)")
      .append(more)
      .append("\nfor key share of held");
}

namespace detail {

inline std::string as_bytea(std::string_view name) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\\x";
  for (const char c : name) out.append({digits[static_cast<unsigned char>(c) / 16], digits[c & 15]});
  return out;
}

/// `values`: of the statement, beside the bound.
template <class... Values>
bool hold(pqxx::dbtransaction& tx, const std::string& statement, std::chrono::milliseconds at_most,
          const std::string& election, Token token, const Values&... values) {
  using namespace std::chrono_literals;
  if (dynamic_cast<const pqxx::subtransaction*>(&tx) != nullptr)
    throw std::invalid_argument("hold: a subtransaction can be rolled back alone; give the transaction around it");
  if (at_most > 24h) throw std::invalid_argument("hold: at_most is above a day; give what remains of the lease");
  if (at_most < 1ms) return false;
  const auto number = std::to_string(token.value), bound = std::to_string(at_most.count());
#if PQXX_VERSION_MAJOR > 7 || (PQXX_VERSION_MAJOR == 7 && PQXX_VERSION_MINOR >= 10)
  return !tx.exec(statement, pqxx::params{election, number, bound, values...}).empty();
#else
  return !tx.exec_params(statement, election, number, bound, values...).empty();
#endif
}

}  // namespace detail

/// Makes `tx` one that commits only while no later leader has claimed the election. Call it anywhere before the commit,
/// with the token that you lead by. It costs one round trip. False: a later leader has claimed, there is no such
/// election in the table, or `at_most` is below 1 ms, as where nothing remains of the lease. Then abort `tx`. Above
/// read committed it throws pqxx::serialization_failure in place of saying false, if the claim came after the
/// transaction's snapshot: abort then, too.
///
/// Until `tx` ends, the next leader waits. So the server ends it: once it was idle for `at_most`, or a statement of it
/// took longer, and from PostgreSQL 17 on when it is older than `at_most`, counted from this call. Give what
/// Leadership::remaining() tells. Before 17 nothing bounds a process that keeps sending short statements. No version
/// ends one that hangs in a COPY or while it reads a long result. So call it last, just before the commit.
///
/// The election's table needs the index that create_schema() and the SQL file make; `tenure doctor` says if it is
/// missing. The role needs SELECT and UPDATE on the table, as candidates have.
///
/// REQUIRES: `tx` is not rolled back to a savepoint that stood before this call, because that gives the lock back.
/// `table` is your program's own text, as SQL writes it: what Options::table says, in quotes if it has capitals, and
/// with its schema if roles have different search paths.
/// Throws std::invalid_argument for a subtransaction, and for an `at_most` above a day.
inline bool hold(pqxx::dbtransaction& tx, std::string_view election, Token token, std::chrono::milliseconds at_most,
                 std::string_view table = "tenure_elections") {
  return detail::hold(tx, hold_sql(table), at_most, detail::as_bytea(election), token);
}

/// The same for an election of a group, by the token of its own tenure. A claim does not wait there: it passes the lead
/// by, and comes again once per Timing::retry. `leads` is what Options::leads says; that table needs no index of its
/// own.
inline bool hold(pqxx::dbtransaction& tx, std::string_view group, std::string_view election, Token token,
                 std::chrono::milliseconds at_most, std::string_view leads = "tenure_leads") {
  const auto statement = hold_sql(leads, " and held.grp operator(pg_catalog.=) $4::pg_catalog.bytea");
  return detail::hold(tx, statement, at_most, detail::as_bytea(election), token, detail::as_bytea(group));
}

}  // namespace tenure::fence
