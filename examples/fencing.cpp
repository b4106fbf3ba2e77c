// SPDX-License-Identifier: Apache-2.0
// A write that carries its token, so that the database can refuse a former leader. Built if libpqxx is there.
#include <pqxx/pqxx>

#include <tenure/fence.hpp>
#include <tenure/fence/postgres.hpp>
#include <tenure/leadership.hpp>

using namespace std::chrono_literals;

pqxx::result write_total(const tenure::Leadership& leadership, pqxx::transaction_base& db, int sum, int id);
bool add_to_totals(const tenure::Leadership& leadership, pqxx::connection& db, int sum);
bool add_to_shard(const tenure::Leadership& leadership, pqxx::connection& db, int sum);

pqxx::result write_total(const tenure::Leadership& leadership, pqxx::transaction_base& db, int sum, int id) {
  pqxx::result written;
  //! [write]
  // create table totals (id int primary key, sum int, fence bigint not null default 0)
  if (const auto token = leadership.guard(200ms))  // leader, for at least as long as this write takes
    written = db.exec_params(tenure::fence::sql_update("totals", "sum = $2", "id = $3"), token->value, sum, id);
  // update totals set sum = $2, fence = $1 where (id = $3) and fence <= $1
  //! [write]
  return written;
}

bool add_to_totals(const tenure::Leadership& leadership, pqxx::connection& db, int sum) {
  //! [strict]
  const auto token = leadership.guard(100ms);
  if (!token) return false;
  pqxx::work tx(db);
  tx.exec("update totals set sum = sum + " + std::to_string(sum));
  const auto remaining = std::chrono::floor<std::chrono::milliseconds>(leadership.remaining());
  if (!tenure::fence::hold(tx, "jobs", *token, remaining)) return false;  // a later leader exists
  tx.commit();
  return true;
  //! [strict]
}

bool add_to_shard(const tenure::Leadership& leadership, pqxx::connection& db, int sum) {
  const auto token = leadership.guard(100ms);  // of one election of the group "shards"
  if (!token) return false;
  pqxx::work tx(db);
  tx.exec("update totals set sum = sum + " + std::to_string(sum));
  const auto remaining = std::chrono::floor<std::chrono::milliseconds>(leadership.remaining());
  //! [group]
  if (!tenure::fence::hold(tx, "shards", "jobs", *token, remaining)) return false;
  //! [group]
  tx.commit();
  return true;
}
