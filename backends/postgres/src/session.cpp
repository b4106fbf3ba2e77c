// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <poll.h>

#include <cstdint>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "faults.hpp"

namespace tenure::postgres {
namespace {

/// A statement that waits for a lock on the whole table waits on in the server when we are gone. This ends it there.
constexpr const char* table_lock_timeout = "2s";

/// A new connection is asked three things. Does a pooler stand between? (It shows its clients process ids of its own.)
/// Can the table be trusted with an election? May we write to it?
constexpr const char* introduction =
    "select pg_backend_pid(), pg_is_in_recovery(), n.nspname, c.relname, c.relkind, c.relpersistence,"
    " has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'update')"
    " and has_table_privilege(c.oid, 'insert'), current_setting('transaction_read_only')::boolean"
    " from (select to_regclass($1::text) as id) as named"
    " left join pg_class c on c.oid = named.id left join pg_namespace n on n.oid = c.relnamespace";

std::string place(pqxx::connection& connection) {
  const auto text = [](const char* part) { return std::string(part ? part : ""); };
  return " (" +
         printable(text(connection.hostname()) + ":" + text(connection.port()) + "/" + text(connection.dbname())) + ")";
}

bool readable(int socket) {
  pollfd one{socket, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

/// The channel's name is as short as an identifier must be, whatever the names. It is the same for all who spell the
/// table differently. Two elections that meet on one channel only wake each other for nothing.
std::string channel_of(const std::string& schema, const std::string& table, const std::string& election) {
  const auto all = schema + '\0' + table + '\0' + election;
  std::string out = "tenure_";
  for (const std::uint64_t seed : {0xcbf29ce484222325u, 0x9ae16a3b2f90404fu})
    for (auto bits = fnv1a(all, seed), left = std::uint64_t{16}; left-- > 0; bits >>= 4)
      out += "0123456789abcdef"[bits & 15];
  return out;
}

#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 710
/// Only through this does libpqxx hand out a notice's text.
class Session::Listener final : public pqxx::notification_receiver {
 public:
  Listener(pqxx::connection& connection, const std::string& channel, Session& session)
      : pqxx::notification_receiver(connection, channel), session_(session) {}
  void operator()(const std::string& notice, int) override { session_.on_notice(notice); }

 private:
  Session& session_;
};
#else
class Session::Listener final {
 public:
  Listener(pqxx::connection& connection, const std::string& channel, Session& session) {
    connection.listen(channel, [&session](pqxx::notification notice) { session.on_notice(notice.payload); });
  }
};
#endif

Session::Session(Settings settings, std::optional<std::string> election)
    : settings_(std::move(settings)), election_(std::move(election)), where_(" (" + settings_.target + ")") {}

Session::~Session() { drop(); }

std::optional<Error> Session::connect(CallThread::Attempt& attempt) {
  drop();
  try {
    if (!attempt.step("postgres (" + settings_.target + ")", "resolving, TCP, TLS, password"))
      return Error{Fault::unreachable, "postgres" + where_ + ": it is not connected, because the store is closed"};
    connection_ = std::make_unique<pqxx::connection>(settings_.conninfo_within(attempt.patience()));
    where_ = place(*connection_);
    std::optional<Error> error;
    if (!attempt.step("postgres" + where_, "introduction", connection_->sock()))
      error = Error{Fault::unreachable, "postgres" + where_ + ": not introduced"};
    else if (election_)
      error = introduce(attempt);
    if (error) drop();
    return error;
  } catch (const std::exception& e) {
    auto error = failed(e);
    drop();
    return error;
  }
}

bool Session::stands() {
  if (connection_ && !alive()) drop();
  return connection_ != nullptr;
}

/// It takes at most three round trips: what stands there, the wish to hear of news, and all the rest.
std::optional<Error> Session::introduce(CallThread::Attempt& attempt) {
  auto asked = boot_clock().now();
  const auto found = execute({introduction, {settings_.quoted}})[0];
  attempt.round_trip(boot_clock().now() - asked);
  if (auto error = unsuitable(found)) return error;
  channel_ = channel_of(found[2].as<std::string>(), found[3].as<std::string>(), *election_);
  news_.any = true;
  read_only_.reset();
  if (found[7].as<bool>()) read_only_ = explained("25006", "the session may only read", settings_, where_);
  if (!found[6].as<bool>()) read_only_ = explained("42501", "a privilege is missing", settings_, where_);
  if (found[0].as<int>() != connection_->backendpid()) return std::nullopt;
  asked = boot_clock().now();
  listener_ = std::make_unique<Listener>(*connection_, channel_, *this);
  attempt.round_trip(boot_clock().now() - asked);
  run(preparations(!read_only_));
  return std::nullopt;
}

std::optional<Error> Session::unsuitable(const pqxx::row& table) const {
  const auto misconfigured = [&](const std::string& what) {
    return Error{Fault::misconfigured, "postgres" + where_ + ": table " + settings_.table + what};
  };
  if (table[1].as<bool>()) return explained("25006", "the server is in recovery", settings_, where_);
  if (table[3].is_null()) return explained("42P01", "the table was not found", settings_, where_);
  if (table[4].as<std::string>() != "r")
    return misconfigured(" is not an ordinary table: create it with share/tenure/tenure_elections.sql");
  if (table[5].as<std::string>() != "p")
    return misconfigured(" is UNLOGGED or temporary, so a crash would empty it: alter table " + settings_.table +
                         " set logged");
  return std::nullopt;
}

/// Statements of an election are parsed and planned once, because that costs the server more than to run them. This is
/// done only in a session of our own, which a pooler's is not.
///
/// A new server process fills its caches of the table's catalogue, and plans, with its first write. That takes some
/// milliseconds, which a fail-over should not pay. So we send a write that can find nothing, since it expects no beat.
/// It locks no row, takes no transaction id and leaves nothing in the log. A process that only observes may not write,
/// and would be refused.
std::string Session::preparations(bool may_write) {
  const auto election = bytea(*election_);
  const Writing writing{settings_.quoted, election, channel_, {}};
  const auto nothing = replacing(writing, Expected{}, {});
  std::string out =
      std::string("set lock_timeout = '") + table_lock_timeout + "'; set plan_cache_mode = force_generic_plan";
  for (const auto& statement : {reading(settings_.quoted, election), nothing, replacing(writing, std::nullopt, {})}) {
    const auto name = "tenure_" + std::to_string(prepared_.size());
    out += "; prepare " + name + " as " + statement.text;
    prepared_.emplace(statement.text, name);
  }
  if (may_write) out += "; " + execution(prepared_.at(nothing.text), nothing.values);
  return out;
}

std::string Session::execution(const std::string& name, const std::vector<std::string>& values) const {
  std::string out = "execute " + name;
  const char* before = "(";
  for (const auto& value : values) out += std::exchange(before, ",") + connection_->quote(value);
  return out + ')';
}

pqxx::result Session::execute(const Statement& statement) {
  pqxx::nontransaction transaction(*connection_);
  // libpqxx 6 itself executes what it has prepared, with one round trip each.
  // We do not use exec(): in libpqxx 6.4 it loses the memory of a result when the connection breaks.
  if (const auto known = prepared_.find(statement.text); known != prepared_.end()) {
    const auto text = execution(known->second, statement.values);
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 710
    return transaction.exec_params(text);
#else
    return transaction.exec(text, pqxx::params{});
#endif
  }
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 706
  const auto all = pqxx::prepare::make_dynamic_params(statement.values);
#else
  pqxx::params all;
  for (const auto& value : statement.values) all.append(value);
#endif
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 710
  return transaction.exec_params(statement.text, all);
#else
  return transaction.exec(statement.text, all);
#endif
}

void Session::run(const std::string& statements) { pqxx::nontransaction(*connection_).exec(statements); }

/// Takes in all that has come, up to the end of the stream, which may follow the server's last words. libpqxx 6 would
/// quietly replace a closed connection by one that nobody has set up. So ask before every use.
bool Session::alive() {
  try {
    do {
      if (!connection_->is_open()) return false;
      connection_->get_notifs();
    } while (readable(connection_->sock()));
  } catch (const std::exception&) {
    return false;
  }
  return connection_->is_open();
}

void Session::drop() {
  // It is closed first. Otherwise the listener would ask the server to tell it nothing more.
#if PQXX_VERSION_MAJOR < 7
  if (connection_) connection_->disconnect();
#else
  if (connection_) connection_->close();
#endif
  listener_.reset();
  connection_.reset();
  news_ = {};
  prepared_.clear();
}

void Session::on_notice(std::string_view notice) { news_ = {true, released_by(notice)}; }

Session::Wait Session::await_news(CallThread::Socket& socket, const std::optional<Version>& seen) {
  if (!listener_) return Wait::impossible;
  for (;;) {
    if (news_.released && news_.released == seen) news_ = {};
    if (news_.any) return Wait::news;
    if (!socket.wait()) return Wait::ended;
    if (!alive()) return Wait::broken;
  }
}

Error Session::failed(const std::exception& thrown) {
  const auto sqlstate = sqlstate_of(thrown);
  if (sqlstate == "0A000") drop();  // The table was altered after the statement was prepared.
  if (!connection_ || connection_->is_open()) return explained(sqlstate, thrown.what(), settings_, where_);
  drop();
  // libpqxx 6 does not tell the server's last words.
  if (!sqlstate.starts_with("57P")) return explained("08003", "the connection broke", settings_, where_);
  return explained(sqlstate, thrown.what(), settings_, where_);
}

}  // namespace tenure::postgres
