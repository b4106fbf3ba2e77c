// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "faults.hpp"

namespace tenure::postgres {
namespace {

std::atomic<std::uint64_t> connections{0};  ///< Of this process, so far.

/// More notices than anybody would read one by one.
constexpr std::size_t many_news = 100;

/// Whoever waits for a lock on the whole table waits on in the server when we are gone; this ends it there.
constexpr const char* table_lock_timeout = "2s";

/// What a new connection is asked: whether a pooler stands between (it shows its clients process ids of its own),
/// whether the tables can be trusted with an election, whether we may write to them, and whether all was prepared. The
/// server tells how long it has worked so far, which is no part of a round trip.
constexpr std::string_view introduction = R"(
select pg_backend_pid() as pid, pg_is_in_recovery() as recovers, n.nspname, c.relname, c.relkind as kind,
  c.relpersistence as persistence,
  (select bool_and(has_table_privilege(c.oid, needed)) from unnest(string_to_array(named.rights, ', ')) as needed)
    as may,
  current_setting('transaction_read_only')::boolean as only_reads,
  coalesce(current_setting('tenure.prepared', true), '') = 'on' as prepared,
  (extract(epoch from clock_timestamp() - statement_timestamp()) * 1000000)::bigint as worked_us
from unnest(string_to_array({tables}, ';'), string_to_array({rights}, ';')) with ordinality
  as named(name, rights, place)
left join pg_class c on c.oid = to_regclass(named.name) left join pg_namespace n on n.oid = c.relnamespace
order by named.place)";

/// Prepares a session of our own, and does nothing in any other or where the tables will not do. The server itself
/// decides that: we do not know yet whose session it is, and would pay a round trip to learn it.
constexpr std::string_view preparing_block = R"(
do $tenure$
declare
  fit boolean;
  writes boolean;
begin
  select bool_and((pid = {own_pid} and not recovers and kind = 'r' and persistence = 'p') is true),
    bool_and((may and not only_reads) is true)
  into fit, writes
  from ({introduction}) as found;
  if fit then{preparations}
  end if;
  if fit and writes then{rehearsals}
  end if;
end
$tenure$;
{introduction})";

std::string place(pqxx::connection& connection) {
  const auto text = [](const char* part) { return std::string(part ? part : ""); };
  return " (" +
         printable(text(connection.hostname()) + ":" + text(connection.port()) + "/" + text(connection.dbname())) + ")";
}

std::map<std::string, std::string> names_of(const std::optional<Purpose>& purpose) {
  std::map<std::string, std::string> out;
  if (purpose)
    for (const auto& statement : purpose->prepared) out.emplace(statement.text, "tenure_" + std::to_string(out.size()));
  return out;
}

/// The first, and behind it each of the others with the separator before it.
std::string joined(std::string first, const char* separator, const std::vector<std::string>& others) {
  for (const auto& other : others) first.append(separator).append(other);
  return first;
}

bool readable(int socket) {
  pollfd one{socket, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

/// As short as an identifier must be, whatever the names; the same for all who spell the table differently. Two
/// names that meet on one channel only wake each other for nothing.
std::string channel_of(const std::string& schema, const std::string& table, const std::string& name) {
  const auto all = schema + '\0' + table + '\0' + name;
  std::string out = "tenure_";
  for (const std::uint64_t seed : {0xcbf29ce484222325u, 0x9ae16a3b2f90404fu})
    for (auto bits = fnv1a(all, seed), left = std::uint64_t{16}; left-- > 0; bits >>= 4)
      out += "0123456789abcdef"[bits & 15];
  return out;
}

#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 710
/// libpqxx hands a notice's text to nothing else.
class Connection::Listener final : public pqxx::notification_receiver {
 public:
  Listener(pqxx::connection& connection, const std::string& channel, Connection& ours)
      : pqxx::notification_receiver(connection, channel), ours_(ours) {}
  void operator()(const std::string& notice, int) override { ours_.on_notice(notice); }

 private:
  Connection& ours_;
};
#else
class Connection::Listener final {
 public:
  Listener(pqxx::connection& connection, const std::string& channel, Connection& ours) {
    connection.listen(channel, [&ours](pqxx::notification notice) { ours.on_notice(std::string(notice.payload)); });
  }
};
#endif

Connection::Connection(Settings settings, std::optional<Purpose> purpose)
    : settings_(std::move(settings)),
      purpose_(std::move(purpose)),
      names_(names_of(purpose_)),
      where_(" (" + settings_.target + ")") {}

Connection::~Connection() { drop(); }

std::optional<Error> Connection::connect(CallThread::Attempt& attempt) {
  drop();
  try {
    if (!attempt.step("postgres (" + settings_.target + ")", "resolving, TCP, TLS, password"))
      return Error{Fault::unreachable, "postgres" + where_ + ": it is not connected, because the store is closed"};
    connection_ = std::make_unique<pqxx::connection>(settings_.conninfo_within(attempt.patience()));
    where_ = place(*connection_);
    number_ = ++connections;
    std::optional<Error> error;
    if (!attempt.step("postgres" + where_, "introduction", connection_->sock()))
      error = Error{Fault::unreachable, "postgres" + where_ + ": not introduced"};
    else if (purpose_)
      error = introduce(attempt);
    if (error) drop();
    return error;
  } catch (const std::exception& e) {
    auto error = failed(e);
    drop();
    return error;
  }
}

bool Connection::stands() {
  if (connection_ && !alive()) drop();
  return connection_ != nullptr;
}

/// One round trip. Two more where the server refuses to do it all at once, as to a role that may not use PL/pgSQL; the
/// next connection does not try then.
std::optional<Error> Connection::introduce(CallThread::Attempt& attempt) {
  const auto at_once = at_once_ ? prepare_at_once(attempt) : std::nullopt;
  const auto found = at_once ? *at_once : ask_what_stands(introducing(), attempt);
  read_only_.reset();
  for (std::size_t i = 0; i < settings_.schema.tables.size(); ++i)
    if (auto error = inspect(settings_.schema.tables[i], found[static_cast<pqxx::result::size_type>(i)])) return error;
  channel_ = channel_of(found[0][2].as<std::string>(), found[0][3].as<std::string>(), purpose_->name);
  own_ = found[0][0].as<int>() == connection_->backendpid();
  if (!own_) return std::nullopt;
  if (!found[0][8].as<bool>()) {
    run(joined("deallocate all", "; ", preparations()) + (read_only_ ? "" : joined("", "; ", rehearsals())));
    at_once_ = at_once.has_value();
  }
  prepared_ = true;
  return std::nullopt;
}

/// Nothing: it was refused. If a table is the reason, the steps one by one tell which.
std::optional<pqxx::result> Connection::prepare_at_once(CallThread::Attempt& attempt) {
  const auto block = filled(preparing_block, {{"{own_pid}", std::to_string(connection_->backendpid())},
                                              {"{introduction}", introducing()},
                                              {"{preparations}", executed(preparations())},
                                              {"{rehearsals}", executed(rehearsals())}});
  try {
    return ask_what_stands(block, attempt);
  } catch (const std::exception& e) {
    if (!sqlstate_of(e).starts_with("42")) throw;
    return std::nullopt;
  }
}

/// `statements` end with the introduction. The server says by its wall clock how long it worked. That clock may be
/// stepped meanwhile, so its word is believed within what we measured.
pqxx::result Connection::ask_what_stands(const std::string& statements, CallThread::Attempt& attempt) {
  const auto asked = boot_clock().now();
  auto found = run(statements);
  const auto waited = boot_clock().now() - asked;
  const Clock::Duration worked = std::chrono::microseconds(found[0][9].as<std::int64_t>());
  attempt.round_trip(waited - std::clamp(worked, Clock::Duration::zero(), waited));
  return found;
}

std::string Connection::introducing() const {
  std::string names, rights;
  for (const auto& table : settings_.schema.tables) {
    names += (names.empty() ? "" : ";") + table.quoted;
    rights += (rights.empty() ? "" : ";") + table.rights;
  }
  return filled(introduction, {{"{tables}", connection_->quote(names)}, {"{rights}", connection_->quote(rights)}});
}

/// Whether the table will do. Whoever may not write to it may still observe.
std::optional<Error> Connection::inspect(const Table& table, const pqxx::row& found) {
  const auto misconfigured = [&](const std::string& what) {
    return Error{Fault::misconfigured, "postgres" + where_ + ": table " + table.name + what};
  };
  if (found[1].as<bool>()) return explained("25006", "the server is in recovery", settings_, where_);
  if (found[3].is_null()) return explained("42P01", "table " + table.name + " was not found", settings_, where_);
  if (found[4].as<std::string>() != "r")
    return misconfigured(" is not an ordinary table: create it with share/tenure/" + settings_.schema.file);
  if (found[5].as<std::string>() != "p")
    return misconfigured(" is UNLOGGED or temporary, so a crash would empty it: alter table " + table.name +
                         " set logged");
  if (found[7].as<bool>()) read_only_ = explained("25006", "the session may only read", settings_, where_);
  if (!found[6].as<bool>())
    read_only_ = explained("42501", "a privilege on " + table.name + " is missing", settings_, where_);
  return std::nullopt;
}

/// What is asked while electing is parsed and planned once: that costs the server more than the asking does. Only in a
/// session of our own, which a pooler's is not.
std::vector<std::string> Connection::preparations() const {
  std::vector<std::string> out{std::string("set lock_timeout = '") + table_lock_timeout + '\'',
                               "set plan_cache_mode = force_generic_plan", "set tenure.prepared = on"};
  out.insert(out.end(), purpose_->settings.begin(), purpose_->settings.end());
  for (const auto& [text, name] : names_) out.push_back(joined("prepare " + name, " as ", {text}));
  return out;
}

/// Who only observes may not write, and would be refused.
std::vector<std::string> Connection::rehearsals() const {
  std::vector<std::string> out;
  for (const auto& nothing : purpose_->rehearsed) out.push_back(execution(names_.at(nothing.text), nothing.values));
  return out;
}

/// Statements of PL/pgSQL that execute these of SQL.
std::string Connection::executed(const std::vector<std::string>& statements) const {
  std::string out;
  for (const auto& statement : statements) out += "\n    execute " + connection_->quote(statement) + ';';
  return out;
}

std::string Connection::execution(const std::string& name, const std::vector<std::string>& values) const {
  std::string out = "execute " + name;
  const char* before = "(";
  for (const auto& value : values) out += std::exchange(before, ",") + connection_->quote(value);
  return out + ')';
}

pqxx::result Connection::execute(const Statement& statement) {
  pqxx::nontransaction transaction(*connection_);
  // libpqxx 6 itself executes what it has prepared, with one round trip each.
  // We do not use exec(): in libpqxx 6.4 it loses the memory of a result when the connection breaks.
  if (const auto known = names_.find(statement.text); prepared_ && known != names_.end()) {
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

pqxx::result Connection::run(const std::string& statements) {
  return pqxx::nontransaction(*connection_).exec(statements);
}

/// Takes in all that has come, up to the end of the stream that may stand behind a parting word. libpqxx 6 would
/// quietly replace a closed connection by one that nobody has introduced: so ask before every use.
bool Connection::alive() {
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

void Connection::drop() {
  // Closed first, or the listener would ask the server to be told nothing more.
#if PQXX_VERSION_MAJOR < 7
  if (connection_) connection_->disconnect();
#else
  if (connection_) connection_->close();
#endif
  listener_.reset();
  connection_.reset();
  own_ = prepared_ = false;
  news_.clear();
}

void Connection::on_notice(const std::string& notice) {
  if (news_.size() == many_news) miss_news();
  news_.push_back(notice);
}

void Connection::miss_news() { news_ = {"# " + std::to_string(++missed_)}; }

/// What came before it, nobody told us.
void Connection::listen() {
  if (!own_ || listener_) return;
  listener_ = std::make_unique<Listener>(*connection_, channel_, *this);
  miss_news();
}

Connection::Wait Connection::await_news(const Exchange& exchange, const std::function<void(News&)>& none_of_it) {
  if (!own_) return Wait::impossible;
  if (!listener_) return Wait::deaf;
  for (;;) {
    none_of_it(news_);
    if (!news_.empty()) return Wait::news;
    if (exchange.over()) return Wait::ended;
    exchange.wait(POLLIN);
    if (!alive()) return Wait::broken;
  }
}

Error Connection::failed(const std::exception& thrown) {
  const auto sqlstate = sqlstate_of(thrown);
  if (sqlstate == "0A000") drop();  // The table was altered after the statement was prepared.
  if (!connection_ || connection_->is_open()) return explained(sqlstate, thrown.what(), settings_, where_);
  drop();
  // libpqxx 6 does not tell the server's last words.
  if (!sqlstate.starts_with("57P")) return explained("08003", "the connection broke", settings_, where_);
  return explained(sqlstate, thrown.what(), settings_, where_);
}

}  // namespace tenure::postgres
