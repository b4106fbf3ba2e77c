// SPDX-License-Identifier: Apache-2.0
// Elections in a table of PostgreSQL (13 or newer), through libpqxx.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include <tenure/backend.hpp>
#include <tenure/candidate.hpp>
#include <tenure/check.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/credentials.hpp>
#include <tenure/election_list.hpp>
#include <tenure/group_store.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>
#include <tenure/postgres_export.hpp>

namespace tenure::postgres {

/// The server, the user, and the tables.
struct Options {
  /// libpq's connection string: a URI, or key/value pairs. It may be empty. PG* variables, services and .pgpass count
  /// as they do for psql. To follow a fail-over, name all servers and target_session_attrs=read-write.
  ///
  /// Unless it sets connect_timeout, an attempt to connect ends after 3 s per server. If that was too little, the next
  /// attempts take longer, up to 9 s. Unless it sets application_name, the server knows the connection as
  /// "tenure ELECTION CANDIDATE". Unless it sets keepalives_idle and the like, an idle one without a peer ends in 30 s.
  std::string conninfo{};
  std::string user{}, password{};          ///< If not empty, they replace those of conninfo.
  std::string table = "tenure_elections";  ///< It may be "schema.table": letters, digits and '_'. Case counts.
  std::string sessions = "tenure_sessions", leads = "tenure_leads";  ///< The tables of groups, named likewise.
  bool create_table{};           ///< A connection that never found a table makes it, as create_schema() does.
  AskCredentials credentials{};  ///< It is called at each login. What it leaves empty keeps its value. libpq reads
                                 ///< .pgpass and the files of TLS anew at each login, too.
};

/// Returns a backend, for one LeaderManager or one Observer. It has one thread and one connection. It connects at the
/// first verb, and again when the connection broke.
///
/// Time: to connect takes five round trips: TCP's, three of a password, and one of ours. TLS takes two more, or three
/// before PostgreSQL 18, and a role that may not use PL/pgSQL takes one or two. Verbs wait for it, each to its own
/// limit, and it goes on when they have left. A renewal is one statement, one round trip and one fsync. Timing::call
/// must be longer than that: `fast` elects at a round trip of 40 ms, `balanced` at 150 ms, also over TLS.
///
/// Load: claims and releases notify; renewals do not. In the whole server, PostgreSQL commits such statements one
/// at a time. If 100 elections begin at once, expect some 300 ms until all have leaders (two cores, 3 ms an fsync).
///
/// Push: a release is pushed by NOTIFY to those who wait. A connection begins to listen with its first wait, which then
/// returns at once. Behind a pooler a session cannot listen, and is left as it was; elsewhere LISTEN or NOTIFY may be
/// refused. Then followers wait for the end of the lease that they saw, and a warning says so once.
///
/// Rights: a candidate's role needs SELECT, INSERT and UPDATE on the table, an observer's SELECT. Row-level security
/// must hide no row from it. A candidate that may not write is warned. A table's owner can run SQL as whoever uses it,
/// so a table that anybody could have made is refused: revoke create on schema public from public, as PostgreSQL 15
/// does. Without a schema the table is looked for in the role's search_path, once. Another role may find, and lead by,
/// another one: a warning says so. One is refused in a schema that a stranger may have called like the role.
///
/// What is safe: an answered write is on disk, because synchronous_commit=off is overruled for our writes. A release is
/// the exception. If a crash of the server loses one, the successor waits for the rest of the lease. An UNLOGGED table
/// is refused, and so is a server in recovery, because it shows old records. An asynchronous standby that is
/// promoted may lack the last writes, and with them the last token. So send the token with every write, or replicate
/// synchronously. Delete no row: a missing row means that nobody ever led, so a newcomer could lead beside its leader.
///
/// Throws std::invalid_argument for a conninfo, a table or a name that can never work. The verbs return as an Error,
/// with the remedy, what is wrong at the server, for instance that the table is missing.
TENURE_POSTGRES_EXPORT std::shared_ptr<Backend> open(const Options& options, const std::string& election,
                                                     Candidate candidate = {}, Log log = {});

/// Returns the store on which such a backend is built, for backends of your own. Throws as open() does.
TENURE_POSTGRES_EXPORT std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election);

/// Opens a backend by libpq's own URI: postgres://... or postgresql://... The properties are "table" and
/// "create_table" (true or false), also in the URL. Throws std::invalid_argument for others, and as open() does.
TENURE_POSTGRES_EXPORT Opened open_url(const Opening& opening);

/// The elections of the table, for tenure::list_elections(). The role needs SELECT. Throws as open_url().
TENURE_POSTGRES_EXPORT ElectionList list_url(const Opening& opening);

/// For tenure::check_up(); property "leads" names that table of groups. Throws as open_url().
TENURE_POSTGRES_EXPORT Result<Checks> check_url(const Opening& opening, const Limit& limit);

/// The terms are 3, 10 and 30 s: see lock_table_presets().
TENURE_POSTGRES_EXPORT Presets presets();

/// Returns the SQL that creates the table if it is missing. The same is installed as share/tenure/tenure_elections.sql.
/// Throws std::invalid_argument for a name that Options does not take.
TENURE_POSTGRES_EXPORT std::string schema(const std::string& table = Options().table);

/// Runs that SQL as the user of `options`, unless he finds the table. Where one of that name stands elsewhere, it
/// makes a second one only if the name has a schema. It blocks at most until the limit. Nothing here runs DDL but
/// this, create_group_schema() and Options::create_table. Throws as open() does.
TENURE_POSTGRES_EXPORT std::optional<Error> create_schema(const Options& options, const Limit& limit);

/// Many elections in one process, at the price of one: for Elections. A renewal is one statement, whatever the number
/// of elections, with one round trip and one fsync; claims are in it. Releases go before it in a statement of their
/// own. Others see a release before it is on disk, but behind a pooler only afterwards. There are two connections and
/// two threads: the second waits for pushes, and is made at the first wait. The server knows both as "tenure GROUP".
///
/// What is said of open() holds here too, with two differences: there are two tables, Options::sessions and
/// Options::leads, and the role needs DELETE on the first, too. Releases, ends and requests to step down notify;
/// renewals and claims do not. No answered write is lost in a crash of the server, and the marker is 0. A promoted
/// asynchronous standby lacks what it had not received: a leader whose last claim was lost is refused at its next
/// renewal. So is every leader after a restore of older sessions: stop the group for a term. Observers need SELECT.
///
/// Where default_transaction_isolation is above read committed, and a pooler stands between, a commit that meets
/// another one is rolled back. It is repeated a few times within its limit before it becomes an Error.
TENURE_POSTGRES_EXPORT std::shared_ptr<GroupStore> open_group(const Options& options, const std::string& group,
                                                              const Log& log = {});

/// Opens a group by URL, as open_url(). The properties are "sessions", "leads" and "create_table".
TENURE_POSTGRES_EXPORT OpenedGroup open_group_url(const Opening& opening);

/// They do as schema() and create_schema(), for the tables of groups: share/tenure/tenure_groups.sql.
TENURE_POSTGRES_EXPORT std::string group_schema(const std::string& sessions = Options().sessions,
                                                const std::string& leads = Options().leads);
/// See group_schema().
TENURE_POSTGRES_EXPORT std::optional<Error> create_group_schema(const Options& options, const Limit& limit);

}  // namespace tenure::postgres
