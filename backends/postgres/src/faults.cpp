// SPDX-License-Identifier: Apache-2.0
// The table of SQLSTATEs and phrases, with their faults and remedies.
#include "faults.hpp"

#include <algorithm>
#include <array>
#include <pqxx/pqxx>

#include "sql.hpp"

namespace tenure::postgres {
namespace {

/// The remedy for 55P03, if the server names a tuple of the table. For other locks it names none.
constexpr std::string_view row_lock = "55P03 row";
/// These say why TLS was refused, for which the server has no codes.
constexpr std::string_view no_tls_asked = "28000 tls", unknown_authority = "08006 authority",
                           another_name = "08006 name", no_tls_there = "08006 tls";

constexpr std::string_view not_ours = "table {table} is not the one of share/tenure/{file}";
constexpr std::string_view another_server =
    "the server does not know what we asked for: it must be PostgreSQL 13 or newer, or speak all of its SQL";

struct Meaning {
  std::string_view sqlstate;  ///< Or the beginning of it.
  Fault fault;
  std::string_view remedy;  ///< What stands in {braces} is filled in.
  /// One code has several causes. These words of the server tell this one, if its messages are in English.
  std::string_view words = {};
};

/// The first that fits.
constexpr std::array meanings{
    Meaning{"25006", Fault::forbidden,
            "this session can only read (a standby, or default_transaction_read_only): name all servers in conninfo, "
            "with target_session_attrs=read-write"},
    Meaning{"28P01", Fault::forbidden, "check user and password (conninfo, Options, PGPASSWORD, .pgpass)"},
    Meaning{no_tls_asked, Fault::forbidden,
            "check the user, and the server's pg_hba.conf; where that has hostssl, set sslmode=verify-full"},
    Meaning{"28", Fault::forbidden, "check the user, and the server's pg_hba.conf"},
    Meaning{"42501", Fault::forbidden, "grant usage on that schema to the candidates' role", "for schema"},
    Meaning{"42501", Fault::forbidden, "grant connect on that database to the candidates' role", "for database"},
    Meaning{"42501", Fault::forbidden, "grant execute on that function to the candidates' role", "for function"},
    Meaning{"42501", Fault::misconfigured,
            "a leader whom a policy hides would have a second one beside him: alter table {table} disable row level "
            "security, or alter the candidates' role with bypassrls",
            "row-level security"},
    Meaning{"42501", Fault::forbidden,
            "run as the table's owner: grant {rights} on {table} to the candidates' role; and grant usage on "
            "its schema, connect on the database"},
    Meaning{"42P01", Fault::misconfigured,
            "name the table with its schema, for all candidates: where each finds another one, each has a leader. To "
            "make a second one all the same, run share/tenure/{file}, or tenure::postgres::{function} with its schema",
            "but there is"},
    Meaning{"42P01", Fault::misconfigured,
            "there is no table {table}: run share/tenure/{file}, or tenure::postgres::{function}"},
    Meaning{"3F000", Fault::misconfigured, "create the schema of table {table} first"},
    Meaning{"3D000", Fault::misconfigured, "create the database, or name another one in conninfo (dbname)"},
    Meaning{"42703", Fault::misconfigured, not_ours},
    Meaning{"42804", Fault::misconfigured, not_ours},
    Meaning{"42P10", Fault::misconfigured, not_ours},
    Meaning{"42883", Fault::misconfigured, not_ours, "operator"},
    Meaning{"42", Fault::misconfigured, another_server},
    Meaning{"53300", Fault::unreachable,
            "the server has no connection left: raise max_connections or the role's limit, or use a pooler"},
    Meaning{row_lock, Fault::timed_out,
            "another transaction holds the lock on this row of {table}: pg_locks and pg_stat_activity tell whose; end "
            "it"},
    Meaning{
        "55P03", Fault::timed_out,
        "another transaction holds the lock on table {table}, or the server's one lock on notices, for which all "
        "commits "
        "queue that notify (\"object 0 of class 1262\" in its log): pg_locks and pg_stat_activity tell whose; after a "
        "start of many elections it passes by itself"},
    Meaning{"0A000", Fault::unreachable,
            "table {table} was altered: the next call prepares its statements anew, on a new connection",
            "cached plan"},
    Meaning{"0A000", Fault::misconfigured, another_server},
    Meaning{"55000", Fault::forbidden,
            "on a standby nobody can lead: name all servers in conninfo, with target_session_attrs=read-write",
            "recovery"},
    Meaning{"55000", Fault::unreachable, "see the server's log"},
    Meaning{"54000", Fault::unreachable,
            "if the server's queue of notices is full, end the session that listens and never reads: see "
            "pg_notification_queue_usage() and the server's log",
            "NOTIFY"},
    Meaning{"26000", Fault::unreachable,
            "somebody removed our prepared statements; if a pooler does, let it pool transactions"},
    Meaning{"57014", Fault::timed_out, "the server cancelled the statement: is statement_timeout too short?"},
    Meaning{"57P01", Fault::unreachable, "an administrator ended the session"},
    Meaning{"57P03", Fault::unreachable, "the server is starting, stopping or recovering"},
    Meaning{"57P05", Fault::unreachable,
            "idle_session_timeout ended the session: set it to 0 for this role, or above the longest term"},
    Meaning{"XX001", Fault::corrupt, "the server's storage is damaged: see its log"},
    Meaning{"XX002", Fault::corrupt, "rebuild the table's index: reindex table {table}"},
    Meaning{"08003", Fault::unreachable,
            "the network broke it, or the server stopped or ended the session: idle_session_timeout, an administrator"},
    Meaning{unknown_authority, Fault::unreachable,
            "sslrootcert must name a file with the certificate of the authority that signed the server's"},
    Meaning{
        another_name, Fault::unreachable,
        "connect by a name that the certificate has (host; hostaddr may give its address), or renew the certificate"},
    Meaning{no_tls_there, Fault::unreachable,
            "set ssl = on at the server; if it is on, another server answers at this address"},
    Meaning{"08", Fault::unreachable, ""},
    Meaning{"40001", Fault::unreachable,
            "nothing was written, since another transaction was faster: where default_transaction_isolation is 'read "
            "committed', that is no error"},
    Meaning{"40", Fault::unreachable, ""},
    Meaning{"53", Fault::unreachable, "the server lacks a resource: see its log"},
    Meaning{"57", Fault::unreachable, ""},
    Meaning{"58", Fault::unreachable, "the server's operating system reported an error: see the server's log"},
    Meaning{"XX", Fault::unreachable, "see the server's log"},
    Meaning{"", Fault::misconfigured, ""},
};

struct Phrase {
  std::string_view text, sqlstate;
};

/// For a refused connection libpq tells no code, but the server's words. If these are in another language than
/// English, they are shown, and the server counts as unreachable.
constexpr std::array phrases{
    Phrase{"password authentication failed", "28P01"},
    Phrase{"no password supplied", "28P01"},
    Phrase{"no encryption", no_tls_asked},
    Phrase{"SSL off", no_tls_asked},
    Phrase{"certificate verify failed", unknown_authority},
    Phrase{"root certificate file", unknown_authority},
    Phrase{"does not match host name", another_name},
    Phrase{"does not support SSL", no_tls_there},
    Phrase{"no pg_hba.conf entry", "28000"},
    Phrase{"authentication failed", "28000"},
    Phrase{"not permitted to log in", "28000"},
    Phrase{"permission denied for database", "42501"},
    Phrase{"too many connections", "53300"},
    Phrase{"too many clients", "53300"},
    Phrase{"remaining connection slots", "53300"},
    Phrase{"the database system is", "57P03"},
    Phrase{"idle-session timeout", "57P05"},
    Phrase{"administrator command", "57P01"},
};

std::string_view guessed(std::string_view text) {
  for (const auto& phrase : phrases)
    if (text.find(phrase.text) != text.npos) return phrase.sqlstate;
  if (text.find("does not exist") == text.npos) return "08006";
  if (text.find("role \"") != text.npos) return "28000";
  return text.find("database \"") != text.npos ? "3D000" : "08006";
}

}  // namespace

std::string sqlstate_of(const std::exception& thrown) {
  if (const auto* sql = dynamic_cast<const pqxx::sql_error*>(&thrown); sql && !sql->sqlstate().empty())
    return sql->sqlstate();
  // For some errors libpqxx 6 has types and no codes.
  if (dynamic_cast<const pqxx::insufficient_privilege*>(&thrown)) return "42501";
  if (dynamic_cast<const pqxx::insufficient_resources*>(&thrown)) return "53000";
  if (dynamic_cast<const pqxx::serialization_failure*>(&thrown)) return "40001";
  if (dynamic_cast<const pqxx::deadlock_detected*>(&thrown)) return "40P01";
  if (dynamic_cast<const pqxx::transaction_rollback*>(&thrown)) return "40000";
  if (dynamic_cast<const pqxx::too_many_connections*>(&thrown)) return "53300";
  return dynamic_cast<const pqxx::failure*>(&thrown) ? std::string(guessed(thrown.what())) : "XX000";
}

bool a_server_answered(const std::exception& thrown) {
  const std::string_view text = thrown.what();
  const auto has = [&](std::string_view words) { return text.find(words) != text.npos; };
  const auto sqlstate = sqlstate_of(thrown);
  if (sqlstate == "57P03") return false;  // libpq has tried the others.
  return sqlstate != "08006" || has("FATAL") || has("ERROR") || has("closed the connection unexpectedly");
}

bool lost_a_race(std::string_view sqlstate) { return sqlstate == "40001" || sqlstate == "40P01"; }

Error explained(std::string_view sqlstate, std::string_view text, const Settings& settings, const std::string& where) {
  const auto& table = settings.table(text);
  if (sqlstate == "55P03" && text.find(table.plain()) != text.npos) sqlstate = row_lock;
  const auto& meaning = *std::find_if(meanings.begin(), meanings.end(), [&](const Meaning& m) {
    return sqlstate.starts_with(m.sqlstate) && text.find(m.words) != text.npos;
  });
  // The rest repeats our own statement.
  auto message = "postgres" + where + ": " + settings.redacted(text.substr(0, text.find("\nLINE ")));
  if (!meaning.remedy.empty())
    message += " (" +
               filled(meaning.remedy, {{"{table}", table.name},
                                       {"{rights}", table.rights},
                                       {"{file}", settings.schema.file},
                                       {"{function}", settings.schema.function}}) +
               ")";
  return {meaning.fault, std::move(message)};
}

}  // namespace tenure::postgres
