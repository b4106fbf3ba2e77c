// SPDX-License-Identifier: Apache-2.0
#include "checkup.hpp"

#include <string>
#include <utility>

#include <tenure/kit/logging.hpp>

#include "client.hpp"

namespace tenure::postgres {
namespace {

/// $1: the quoted table.
constexpr const char* question = R"(
select current_setting('server_version_num')::int, current_setting('server_version'),
  current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean,
  (select count(*) from pg_stat_replication), current_setting('synchronous_standby_names') <> '',
  has_table_privilege($1::text, 'select'), has_table_privilege($1::text, 'insert'),
  has_table_privilege($1::text, 'update'), current_user)";

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
  return Check::doubtful(what + ", and none of them is synchronous: one that is promoted may lack the last token",
                         "set synchronous_standby_names, or fence your writes by the token");
}

}  // namespace

Result<Checks> check_up(const Settings& settings, const Limit& limit) {
  return Client(settings).ask<Checks>(
      [](Connection& connection) {
        const auto& table = connection.settings().table();
        const auto found = connection.execute({question, {table.quoted}})[0];
        return Checks{of_version(found), of_standbys(found), of_disk(found), of_rights(found, table)};
      },
      limit);
}

}  // namespace tenure::postgres
