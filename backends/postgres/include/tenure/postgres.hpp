// SPDX-License-Identifier: Apache-2.0
// Elections in a table of PostgreSQL (13 or newer), through libpqxx.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/group_store.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>
#include <tenure/postgres_export.hpp>

namespace tenure::postgres {

struct Options {
  /// libpq's connection string, a URI or key/value pairs, or empty: PG* variables, services and .pgpass count as in
  /// psql. Name all servers and target_session_attrs=read-write to follow a fail-over. Unless it sets connect_timeout,
  /// a connect is given up after 3 s a server, and after more (up to 9 s) if that was too little. The server knows the
  /// connection as "tenure ELECTION CANDIDATE", unless it sets application_name.
  std::string conninfo{};
  std::string user{}, password{};          ///< Instead of those in conninfo, if not empty.
  std::string table = "tenure_elections";  ///< Or "schema.table": letters, digits and '_', case counts.
  std::string sessions = "tenure_sessions", leads = "tenure_leads";  ///< Of groups, named likewise.
};

/// A backend for a LeaderManager or an Observer of its own. One connection, made at the first verb and again after it
/// broke, and one thread. A connection takes seven round trips (nine with TLS): it is made beside the verbs, which wait
/// for it to their limits, and outlives them. Renewals are one statement, one round trip and one fsync each;
/// Timing::call must be longer than that: `fast` elects at a round trip of 40 ms, `balanced` at 150 ms.
///
/// Claims and releases notify, and PostgreSQL commits what notifies one after the other, the whole cluster over: where
/// 100 elections begin at once, expect some 300 ms in place of 15 (two cores, 3 ms a fsync), and with `fast` lock
/// timeouts that are tried again. Renewals do not.
///
/// A release is pushed to those who wait, by NOTIFY; behind a pooler such as PgBouncer, where a session cannot listen,
/// they wait for the end of the term that they saw. Nothing is left behind in a pooled session.
///
/// The role needs SELECT, INSERT and UPDATE on the table; to observe, SELECT. The table must not be UNLOGGED, and a
/// server in recovery is refused: what it shows is late. synchronous_commit=off is overruled, for our writes alone:
/// what is answered is on disk, but for a release, whose loss in a crash of the server costs the successor the lease's
/// rest. What an asynchronous standby had not received is lost when it is promoted, the last token with it: send the
/// token with every write, or replicate synchronously. What cannot work there, a missing table for instance, comes as
/// an Error from the verbs, with the remedy; a candidate that may not write is warned of while it still stands by.
///
/// Rows are never deleted: a missing one counts as an election that nobody ever held. Whoever deletes one by hand (as
/// the owner: candidates need no DELETE) lets a newcomer lead beside its leader, until that one's next renewal.
///
/// Throws std::invalid_argument for a conninfo, a table or a name that can never work.
TENURE_POSTGRES_EXPORT std::shared_ptr<Backend> open(const Options& options, const std::string& election,
                                                     Candidate candidate = {}, Log log = {});

/// The store below it, to build upon. Throws as open() does.
TENURE_POSTGRES_EXPORT std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election);

/// postgres://... or postgresql://..., libpq's own URI. Property: "table".
TENURE_POSTGRES_EXPORT Opened open_url(const Opening& opening);

/// Terms of 3, 10 and 30 s: lock_table_presets().
TENURE_POSTGRES_EXPORT Presets presets();

/// The SQL that creates the table, if it is not there; installed as share/tenure/tenure_elections.sql too.
/// Throws std::invalid_argument for a name that Options would not take.
TENURE_POSTGRES_EXPORT std::string schema(const std::string& table = Options().table);

/// Runs it, with the privileges of whoever `options` says. Nothing else here ever runs DDL. Blocks until the limit.
TENURE_POSTGRES_EXPORT std::optional<Error> create_schema(const Options& options, const Limit& limit);

/// Many elections in one process, at the price of one: for Elections. One statement a renewal, whatever the number of
/// elections, and one round trip and one fsync; claims and releases are in it. Two connections and two threads: the
/// second waits for pushes, and is made when somebody first waits. The server knows both as "tenure GROUP".
///
/// What is said above holds here too, but for this: two tables, Options::sessions and Options::leads, and DELETE on the
/// first besides. Releases, ends and requests to step down notify; renewals and claims do not. No write is lost in a
/// crash of the server, and the marker is 0. What an asynchronous standby had not received is lost when it is promoted:
/// a leader whose last claim was lost is refused at its next renewal. So is every leader after a restore, which brings
/// back older sessions: stop all processes of the group, and start them a term later. Delete no lead by hand.
///
/// Where default_transaction_isolation is above read committed, and a pooler stands between, a commit that meets
/// another one is an Error, and nothing was written.
TENURE_POSTGRES_EXPORT std::shared_ptr<GroupStore> open_group(const Options& options, const std::string& group,
                                                              const Log& log = {});

/// As schema() and create_schema(), for the tables of groups: share/tenure/tenure_groups.sql.
TENURE_POSTGRES_EXPORT std::string group_schema(const std::string& sessions = Options().sessions,
                                                const std::string& leads = Options().leads);
TENURE_POSTGRES_EXPORT std::optional<Error> create_group_schema(const Options& options, const Limit& limit);

}  // namespace tenure::postgres
