// SPDX-License-Identifier: Apache-2.0
// Options checked and turned into what libpq is told, with every secret in them known.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/postgres.hpp>

namespace tenure::postgres {

/// A table's name, quoted. Throws std::invalid_argument for one that Options would not take.
std::string quoted_table(const std::string& table);

struct Table {
  std::string name;    ///< As the user wrote it, for messages.
  std::string quoted;  ///< For statements.
  std::string rights;  ///< What a candidate needs: "select, insert, update".
  std::string plain() const { return name.substr(name.find('.') + 1); }  ///< Without its schema.
  bool chosen() const { return name != plain(); }                        ///< The schema is named.
};

/// The files of sql/, word for word. CMake writes them.
extern const char schema_text[], group_schema_text[];

/// Tables that are made together, and what makes them.
struct Schema {
  std::vector<Table> tables;
  std::string file;      ///< In share/tenure.
  std::string function;  ///< In tenure::postgres.
  std::string sql{};     ///< What makes them where they are missing. Empty: somebody else is to.
};

/// SQL that makes tables, fit for several sessions at once: "if not exists" does not see what another one is about to
/// create.
std::string one_at_a_time(const std::string& tables);

/// One of several servers.
struct Host {
  std::string name;     ///< The certificate is compared with it. It may be empty.
  std::string address;  ///< The connection leads there. If it is empty, the name tells where.
  std::string port;
};

struct Settings {
  std::string conninfo;  ///< Key/value pairs: those of the user, and those that were left to us.
  std::string target;    ///< "host:port/database" as far as it is known before connecting, for messages.
  bool own_timeout{};    ///< The user says how long a connect may take.
  bool needs_writer{};   ///< The user wants no server that only reads.
  Schema schema;
  std::vector<Host> hosts;  ///< In the order of conninfo. Empty if a service file may name others.
  AskCredentials credentials;
  std::vector<std::string> secrets;
  std::vector<std::string> unverified_hosts;  ///< The hosts that are reached over a network while TLS verifies nothing.

  /// The table that a message is about, as far as it names one; else the first.
  const Table& table(std::string_view message = {}) const;

  /// conninfo, with about so long for each server.
  std::string conninfo_within(Clock::Duration patience) const;

  /// What stands behind conninfo so that the servers are tried from this one on, and this one at these addresses if
  /// there are any. Nothing if there is only one thing to try.
  std::string beginning_with(std::size_t host, const std::vector<std::string>& addresses = {}) const;

  /// Asks `credentials` anew. Returns what stands behind conninfo, and knows the password as a secret from now on.
  /// Throws NoCredentials if `credentials` throws.
  std::string login();

  /// Warns of those hosts. `what`: an "election" or a "group", of that name.
  void warn(const Log& log, const char* what, const std::string& name) const;

  /// The text without our secrets, on one line, fit for a log.
  std::string redacted(std::string_view text) const;
};

/// By the name `called` the server knows the connection, unless conninfo sets another one.
/// Throws std::invalid_argument for what can never work.
Settings settings_of(const Options& options, const std::string& called = "tenure");

/// The same with the tables of groups.
Settings group_settings_of(const Options& options, const std::string& called = "tenure");

/// "tenure ELECTION CANDIDATE", as much as PostgreSQL keeps of it.
std::string application_name(std::string_view election, std::string_view candidate = {});

}  // namespace tenure::postgres
