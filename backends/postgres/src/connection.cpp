// SPDX-License-Identifier: Apache-2.0
// Makes a connection, introduces it, and runs statements within their limits.
#include "connection.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

#include "faults.hpp"

namespace tenure::postgres {
namespace {

std::atomic<std::uint64_t> connections{0};  ///< Of this process, so far.

/// More notices than anybody would read one by one.
constexpr std::size_t many_news = 100;

/// Reads of what has come, before a statement. Whoever may connect can notify without end.
constexpr int many_reads = 100;

/// Whoever waits for a lock on the whole table waits on in the server when we are gone; this ends it there.
constexpr const char* table_lock_timeout = "2s";

std::string text(const char* part) { return part ? part : ""; }

std::string place(pqxx::connection& connection) {
  return " (" +
         printable(text(connection.hostname()) + ":" + text(connection.port()) + "/" + text(connection.dbname())) + ")";
}

std::map<std::string, std::string> names_of(const Purpose& purpose) {
  std::map<std::string, std::string> out;
  for (const auto& statement : purpose.prepared) out.emplace(statement.text, "tenure_" + std::to_string(out.size()));
  return out;
}

/// The first, and behind it each of the others with the separator before it.
std::string joined(std::string first, const char* separator, const std::vector<std::string>& others) {
  for (const auto& other : others) first.append(separator).append(other);
  return first;
}

/// Empty if it is none of IP.
std::string numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const bool ip = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  return ip && ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0 ? text.data()
                                                                                                       : "";
}

std::string peer_of(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  auto* address = reinterpret_cast<sockaddr*>(&peer);
  return ::getpeername(socket, address, &size) == 0 ? numeric(address, size) : "";
}

/// Each address once, in the order in which libpq would try them. Nothing if it cannot be resolved.
std::vector<std::string> resolved(const std::string& name) {
  if (name.empty() || name[0] == '/' || name[0] == '@') return {};  // a Unix socket
  addrinfo hints{}, *raw = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &raw) != 0) return {};
  const auto all = owned<::freeaddrinfo>(raw);
  std::vector<std::string> out;
  for (const auto* one = all.get(); one; one = one->ai_next)
    if (auto text = numeric(one->ai_addr, one->ai_addrlen); !text.empty() && std::ranges::count(out, text) == 0)
      out.push_back(std::move(text));
  return out;
}

bool readable(int socket) {
  pollfd one{socket, POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

// ---- the SQL by which a connection introduces itself. What stands in {braces} is filled in by filled_sql(). ----

/// What a new connection is asked: whether a pooler stands between (it shows its clients process ids of its own),
/// whether the tables can be trusted with an election, whether we may write to them, and whether all was prepared. The
/// server tells how long it has worked so far, which is no part of a round trip.
///
/// A table is looked for first where it was found before, by this session or by this process. Its owner can run code as
/// whoever uses it. Where everybody may create, he may be anybody; and so may be who made a trigger. A schema that is
/// called like our role comes first in its search_path: whoever may create schemas may have made it. Who made a rule is
/// not known, and a former owner may have: so there may be none.
///
/// Who names the schema has chosen: no other table of that name counts then.
constexpr std::string_view introduction = R"(
with trusted as materialized (
  select a.oid from pg_catalog.pg_roles as a
  where a.rolsuper or a.rolname {=} current_user or a.rolname {=} 'pg_database_owner'::pg_catalog.name
  union all
  select d.datdba from pg_catalog.pg_database as d where d.datname {=} pg_catalog.current_database())
select pg_catalog.pg_backend_pid() as pid, pg_catalog.pg_is_in_recovery() as recovers, n.nspname, c.relname,
  c.relkind as kind, c.relpersistence as persistence,
  (select pg_catalog.bool_and(pg_catalog.has_table_privilege(c.oid, needed))
    from pg_catalog.unnest(pg_catalog.string_to_array(named.rights, ', ')) as needed) as may,
  pg_catalog.current_setting('transaction_read_only')::boolean as only_reads,
  coalesce(pg_catalog.current_setting('tenure.prepared', true), '') {=} 'on' as prepared,
  (extract(epoch from pg_catalog.clock_timestamp() {-} pg_catalog.statement_timestamp()) {*} 1000000)::bigint
    as worked_us,
  pg_catalog.concat(pg_catalog.quote_ident(n.nspname::pg_catalog.text), '.',
    pg_catalog.quote_ident(c.relname::pg_catalog.text)) as place,
  pg_catalog.pg_get_userbyid(c.relowner) as owner,
  case
    when (c.relowner {=} any (select oid from trusted)) is not false then null
    when c.relowner {<>} n.nspowner and pg_catalog.has_schema_privilege('public'::pg_catalog.name, n.oid, 'create')
      then 'schema'
    when n.nspowner {=} any (select oid from trusted) then null
    when pg_catalog.has_database_privilege('public'::pg_catalog.name, base.name, 'create')
        or not named.chosen and n.nspname {=} current_user
          and pg_catalog.has_database_privilege(n.nspowner, base.name, 'create')
      then 'database'
    end as squatted,
  coalesce(
    (select pg_catalog.concat('trigger ', pg_catalog.quote_ident(t.tgname::pg_catalog.text))
      from pg_catalog.pg_trigger as t join pg_catalog.pg_proc as p on p.oid {=} t.tgfoid
      where t.tgrelid {=} c.oid and not t.tgisinternal
        and not (p.proowner {=} c.relowner or p.proowner {=} n.nspowner or p.proowner {=} any (select oid from trusted))
      limit 1),
    (select pg_catalog.concat('rule ', pg_catalog.quote_ident(r.rulename::pg_catalog.text))
      from pg_catalog.pg_rewrite as r where r.ev_class {=} c.oid
      limit 1)) as foreign_code,
  (select pg_catalog.string_agg(pg_catalog.concat(m.nspname, '.', o.relname), ', ')
    from pg_catalog.pg_class as o join pg_catalog.pg_namespace as m on m.oid {=} o.relnamespace
    where not named.chosen and o.relname {=} named.plain::pg_catalog.name and o.relkind {=} 'r' and o.relpersistence {<>} 't'
      and o.oid {<>} coalesce(c.oid, '0'::pg_catalog.oid)) as elsewhere,
  coalesce(pg_catalog.has_function_privilege(
    pg_catalog.to_regprocedure('pg_catalog.pg_notify(pg_catalog.text, pg_catalog.text)')::pg_catalog.oid,
    'execute'), false) as notifies,
  pg_catalog.row_security_active(c.oid) as hides,
  named.number
from rows from (
    pg_catalog.unnest(pg_catalog.string_to_array({tables}, ';')),
    pg_catalog.unnest(pg_catalog.string_to_array({rights}, ';')),
    pg_catalog.unnest(pg_catalog.string_to_array({plain_names}, ';')),
    pg_catalog.unnest(pg_catalog.string_to_array({chosen}, ';')::boolean[]),
    pg_catalog.unnest(pg_catalog.string_to_array(
      coalesce(pg_catalog.current_setting('tenure.tables', true), {places}), ';')))
  with ordinality as named(name, rights, plain, chosen, found_before, number)
cross join (select pg_catalog.current_database()::pg_catalog.text as name) as base
left join pg_catalog.pg_class as c
  on c.oid {=} coalesce(pg_catalog.to_regclass(named.found_before), pg_catalog.to_regclass(named.name))
left join pg_catalog.pg_namespace as n on n.oid {=} c.relnamespace
order by named.number)";
constexpr int introduction_columns = 18;

/// Prepares a session of our own, and does nothing in any other or where the tables will not do. The server itself
/// decides that: we do not know yet whose session it is, and would pay a round trip to learn it. Compiling a query of
/// catalogues takes seconds where a server's planner thinks that it is worth while.
constexpr std::string_view preparing_block = R"(
do $tenure$
declare
  fit boolean;
  writes boolean;
  notify pg_catalog.text;
  tables pg_catalog.text[];
begin
  perform pg_catalog.set_config('jit', 'off', true);
  select pg_catalog.bool_and((pid {=} {own_pid} and not recovers and kind {=} 'r' and persistence {=} 'p'
      and squatted is null and foreign_code is null and not hides) is true),
    pg_catalog.bool_and((may and not only_reads) is true),
    case when pg_catalog.bool_and(notifies) then 'pg_catalog.pg_notify' else 'pg_catalog.concat' end,
    pg_catalog.array_agg(one.place order by one.number)
  into fit, writes, notify, tables
  from ({introduction}) as one;
  if fit then
    perform pg_catalog.set_config('tenure.tables', pg_catalog.array_to_string(tables, ';'), false);{preparations}
  end if;
  if fit and writes then{rehearsals}
  end if;
end
$tenure$;
{introduction})";

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

Connection::Connection(Settings settings, Purpose purpose)
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
    left_ = notes() ? notes()->left() : 0;
    const auto login = settings_.login();
    connection_ = std::make_unique<pqxx::connection>(settings_.conninfo_within(attempt.patience()) +
                                                     settings_.beginning_with(host_, addresses()) + login);
    where_ = place(*connection_);
    remember_host();
    number_ = ++connections;
    std::optional<Error> error;
    if (!attempt.step("postgres" + where_, "introduction", connection_->sock()))
      error = Error{Fault::unreachable, "postgres" + where_ + ": not introduced"};
    else
      error = introduce(attempt);
    if (error) leave_host();
    if (error) drop();
    return error;
  } catch (const NoCredentials& e) {
    drop();
    return Error{Fault::forbidden, "postgres" + where_ + ": " + e.what()};
  } catch (const std::exception& e) {
    if (connection_ || a_server_answered(e)) leave_host();
    auto error = failed(e);
    drop();
    return error;
  }
}

/// A server that does not answer would cost each connection its share of the time before the next one is tried.
void Connection::remember_host() {
  const auto is = [&](const Host& host) {
    return text(connection_->hostname()) == (host.name.empty() ? host.address : host.name) &&
           text(connection_->port()) == (host.port.empty() ? "5432" : host.port);
  };
  const auto found = std::ranges::find_if(settings_.hosts, is);
  if (found == settings_.hosts.end()) return;
  host_ = static_cast<std::size_t>(found - settings_.hosts.begin());
  address_ = found->address.empty() ? peer_of(connection_->sock()) : "";
}

/// It does not serve us: a standby, one that is full, a pooler without a server. Behind one that answers, whatever it
/// says, libpq would try no other. If none answered it has tried them all, and the best one to begin with is the same.
void Connection::leave_host() {
  if (settings_.hosts.size() > 1) {
    host_ = (host_ + 1) % settings_.hosts.size();
    address_.clear();
  } else if (settings_.hosts.size() == 1 && settings_.hosts[0].address.empty()) {
    const auto all = address_.empty() ? resolved(settings_.hosts[0].name) : addresses();
    if (all.size() > 1) address_ = all[1];
  }
}

/// Of the server that answered last, beginning with the address that did. Nothing if libpq is to resolve the name.
std::vector<std::string> Connection::addresses() const {
  if (address_.empty()) return {};
  auto out = resolved(settings_.hosts[host_].name);
  const auto last = std::ranges::find(out, address_);
  if (last == out.end()) return {};
  std::rotate(out.begin(), last, out.end());
  return out;
}

bool Connection::stands() {
  if (connection_ && ((notes() && notes()->left() != left_) || !alive())) drop();
  return connection_ != nullptr;
}

/// One round trip. Two more where the server refuses to do it all at once, as to a role that may not use PL/pgSQL. If
/// such a role is the reason, or a server without the block, the next connection does not try.
std::optional<Error> Connection::introduce(CallThread::Attempt& attempt) {
  auto found = look_and_prepare(attempt);
  if (!settings_.schema.sql.empty() && stands_elsewhere_alone(found)) found = look_and_prepare(attempt);
  if (!settings_.schema.sql.empty() && may_make_tables(found)) {
    run(settings_.schema.sql);
    note(Level::info, "postgres: a table was missing, and " + settings_.schema.file + " was run, as create_table says");
    found = look_and_prepare(attempt);
    if (auto error = made_beside_another(found)) return error;
  }
  read_only_.reset();
  for (std::size_t i = 0; i < settings_.schema.tables.size(); ++i)
    if (auto error = inspect(settings_.schema.tables[i], found[static_cast<pqxx::result::size_type>(i)])) return error;
  note_tables(found);
  const auto first = found[0];
  channel_ = channel_of(first["nspname"].as<std::string>(), first["relname"].as<std::string>(), purpose_.name);
  own_ = first["pid"].as<int>() == connection_->backendpid();
  may_listen_ = own_;
  if (!own_) return std::nullopt;
  if (!first["prepared"].as<bool>())
    run(here(joined("deallocate all", "; ", preparations()), notifies_) +
        (read_only_ ? "" : joined("", "; ", rehearsals())));
  prepared_ = true;
  return std::nullopt;
}

pqxx::result Connection::look_and_prepare(CallThread::Attempt& attempt) {
  const auto at_once = at_once_ ? prepare_at_once(attempt) : std::nullopt;
  return at_once ? *at_once : ask_what_stands(introducing(), attempt);
}

/// So it also seems if another process makes the table during that look.
bool Connection::stands_elsewhere_alone(const pqxx::result& found) {
  return std::any_of(found.begin(), found.end(),
                     [](const auto& row) { return row["relname"].is_null() && !row["elsewhere"].is_null(); });
}

/// Where there is a table of that name that this role does not find, a second one would elect a second leader. So it
/// would where one that was there has vanished, while candidates run that may find it again.
bool Connection::may_make_tables(const pqxx::result& found) const {
  if (!places_.empty()) return false;
  if (stands_elsewhere_alone(found) || found[0]["recovers"].as<bool>()) return false;
  return std::any_of(found.begin(), found.end(), [](const auto& row) { return row["relname"].is_null(); });
}

/// Another role with another search_path may have made its own at the same moment.
std::optional<Error> Connection::made_beside_another(const pqxx::result& found) const {
  for (const auto& row : found)
    if (!row["elsewhere"].is_null())
      return explained("42P07",
                       printable(row["place"].as<std::string>(std::string()), 140) + " was made, but there is also " +
                           printable(row["elsewhere"].as<std::string>(), 140) +
                           ", where others may elect already. Name the table with its schema, and drop the empty one",
                       settings_, where_);
  return std::nullopt;
}

/// Nothing: it was refused, by whatever code. If a table is the reason, the steps one by one tell which.
std::optional<pqxx::result> Connection::prepare_at_once(CallThread::Attempt& attempt) {
  const auto block = filled_sql(preparing_block, {{"{own_pid}", std::to_string(connection_->backendpid())},
                                                  {"{introduction}", introducing()},
                                                  {"{preparations}", executed(preparations())},
                                                  {"{rehearsals}", executed(rehearsals())}});
  try {
    return ask_what_stands(block, attempt);
  } catch (const pqxx::sql_error& e) {
    if (!connection_->is_open()) throw;
    const auto sqlstate = sqlstate_of(e);
    at_once_ = sqlstate != "42501" && sqlstate != "42704" && sqlstate != "0A000";
    return std::nullopt;
  }
}

/// `statements` end with the introduction. The server says by its wall clock how long it worked. That clock may be
/// stepped meanwhile, so its word is believed within what we measured.
pqxx::result Connection::ask_what_stands(const std::string& statements, CallThread::Attempt& attempt) {
  const auto asked = boot_clock().now();
  auto found = run(statements);
  const auto waited = boot_clock().now() - asked;
  if (found.columns() != introduction_columns || std::size_t(found.size()) != settings_.schema.tables.size())
    throw NoAnswer("an introduction of another shape");
  const Clock::Duration worked = std::chrono::microseconds(found[0]["worked_us"].as<std::int64_t>());
  attempt.round_trip(waited - std::clamp(worked, Clock::Duration::zero(), waited));
  return found;
}

std::string Connection::introducing() const {
  const auto listed = [&](auto text) {
    std::string out;
    for (const auto& table : settings_.schema.tables) out += (out.empty() ? "" : ";") + text(table);
    return connection_->quote(out);
  };
  const auto tables = listed([](const Table& table) { return table.quoted; });
  std::string places;
  for (const auto& place : places_) places += (places.empty() ? "" : ";") + place;
  return filled_sql(introduction,
                    {{"{tables}", tables},
                     {"{rights}", listed([](const Table& table) { return table.rights; })},
                     {"{plain_names}", listed([](const Table& table) { return table.plain(); })},
                     {"{chosen}", listed([](const Table& table) { return std::string(table.chosen() ? "t" : "f"); })},
                     {"{places}", places.empty() ? tables : connection_->quote(places)}});
}

Error Connection::refused(const Table& table, const pqxx::row& found, const std::string& what) const {
  return {Fault::misconfigured, "postgres" + where_ + ": table " +
                                    (found["nspname"].is_null() ? table.name : printable(found["place"].c_str(), 140)) +
                                    what};
}

/// What the owner of a table could do, and what ends that.
std::string Connection::squatting(const std::string& open_to_others, const pqxx::row& found) const {
  const auto schema = printable(found["nspname"].as<std::string>(), 140);
  if (open_to_others == "schema")
    return ", and in its schema everybody may create one, so that its owner could run code as you: revoke create on "
           "schema " +
           schema +
           " from public, and unless that role is the one that you meant, drop the table and run share/tenure/" +
           settings_.schema.file;
  return ", in a schema that a stranger could have made, so that its owner could run code as you: revoke create on "
         "database " +
         printable(text(connection_->dbname()), 140) + " from public, and from the owner of the schema " + schema +
         "; or, if that table is the one that you meant, name it with its schema";
}

/// Whether the table will do. Whoever may not write to it may still observe.
std::optional<Error> Connection::inspect(const Table& table, const pqxx::row& found) {
  const auto text = [&](const char* column) { return printable(found[column].as<std::string>(std::string()), 140); };
  if (found["recovers"].as<bool>()) return explained("25006", "the server is in recovery", settings_, where_);
  if (found["relname"].is_null())
    return explained(
        "42P01",
        "table " + table.name + " was not found" +
            (found["elsewhere"].is_null() ? "" : " where this role looks, but there is " + text("elsewhere")),
        settings_, where_);
  if (text("kind") != "r")
    return refused(table, found, " is not an ordinary table: create it with share/tenure/" + settings_.schema.file);
  if (text("persistence") != "p")
    return refused(table, found,
                   " is UNLOGGED or temporary, so a crash would empty it: alter table " + table.name + " set logged");
  if (const auto open_to_others = text("squatted"); !open_to_others.empty())
    return refused(table, found, " belongs to the role " + text("owner") + squatting(open_to_others, found));
  if (!found["foreign_code"].is_null())
    return refused(table, found,
                   " has a trigger or a rule that may be by somebody else than its owner, and whose code runs as you: "
                   "drop " +
                       text("foreign_code") + " on " + text("place"));
  if (found["hides"].as<bool>())
    return explained("42501", "row-level security may hide rows of " + table.name + " from this role", settings_,
                     where_);
  if (found["only_reads"].as<bool>()) read_only_ = explained("25006", "the session may only read", settings_, where_);
  if (!found["may"].as<bool>())
    read_only_ = explained("42501", "a privilege on " + table.name + " is missing", settings_, where_);
  return std::nullopt;
}

/// Two roles whose search_path differs would find two tables, and elect two leaders.
void Connection::note_tables(const pqxx::result& found) {
  places_.clear();
  for (std::size_t i = 0; i < settings_.schema.tables.size(); ++i) {
    const auto row = found[static_cast<pqxx::result::size_type>(i)];
    const auto& table = settings_.schema.tables[i];
    places_.push_back(row["place"].as<std::string>());
    note(Level::info, "postgres: " + table.name + " is the table " + places_.back());
    if (!row["elsewhere"].is_null())
      note(Level::warning, "postgres: " + table.name + " is the table " + places_.back() + " here, but there is also " +
                               row["elsewhere"].as<std::string>() +
                               ": a role with another search_path finds that one and elects another leader there. Name "
                               "the table with its schema, for all candidates, or drop the other one");
  }
  notifies_ = found[0]["notifies"].as<bool>();
  if (!notifies_) note_silence("this role may not execute pg_notify, or the server has none");
}

/// What that costs: see Options.
void Connection::note_silence(const std::string& why) const {
  note(Level::warning, "postgres: nothing is pushed, because " + why +
                           ". So when a leader resigns, the others learn of it only when they look next");
}

void Connection::note(Level level, const std::string& message) const {
  if (notes()) notes()->add(level, settings_.redacted(message));
}

/// The text with the tables that this connection found. Where notices are refused, a function of no effect takes them.
std::string Connection::here(std::string_view text, bool notifies) const {
  Parts parts{{"@notify@", notifies ? "pg_catalog.pg_notify" : "pg_catalog.concat"}};
  for (std::size_t i = 0; i < places_.size(); ++i) parts.emplace_back(i == 0 ? "@0@" : "@1@", places_[i]);
  return filled(text, parts);
}

/// What is asked while electing is parsed and planned once: that costs the server more than the asking does. Only in a
/// session of our own, which a pooler's is not.
std::vector<std::string> Connection::preparations() const {
  std::vector<std::string> out{std::string("set lock_timeout = '") + table_lock_timeout + '\'',
                               "set plan_cache_mode = force_generic_plan",
                               "set tenure.prepared = on",
                               "set jit = off",
                               "set row_security = off",  // Then rows that are hidden from us are an error.
                               "set search_path = pg_catalog, pg_temp"};
  out.insert(out.end(), purpose_.settings.begin(), purpose_.settings.end());
  for (const auto& [text, name] : names_) out.push_back(joined("prepare " + name, " as ", {text}));
  return out;
}

/// Who only observes may not write, and would be refused.
std::vector<std::string> Connection::rehearsals() const {
  std::vector<std::string> out;
  for (const auto& nothing : purpose_.rehearsed) out.push_back(execution(names_.at(nothing.text), nothing.values));
  return out;
}

/// Statements of PL/pgSQL that execute these of SQL, with what the block has found filled in as by here().
std::string Connection::executed(const std::vector<std::string>& statements) const {
  const auto replaced = [](const std::string& text, const std::string& part, const std::string& by) {
    return "pg_catalog.replace(" + text + ", '" + part + "', " + by + ')';
  };
  std::string out;
  for (const auto& statement : statements) {
    auto text = replaced(connection_->quote(statement), "@notify@", "notify");
    for (std::size_t i = 0; i < settings_.schema.tables.size(); ++i)
      text = replaced(text, '@' + std::to_string(i) + '@', "tables[" + std::to_string(i + 1) + ']');
    out += "\n    execute " + text + ';';
  }
  return out;
}

std::string Connection::execution(const std::string& name, const std::vector<std::string>& values) const {
  std::string out = "execute " + name;
  const char* before = "(";
  for (const auto& value : values) out += std::exchange(before, ",") + connection_->quote(value);
  return out + ')';
}

/// The text with the tables, as by here(), and with the values in place of $1, $2 and so on.
std::string Connection::with_values(const Statement& statement, bool notifies) const {
  std::string out;
  std::string_view rest = statement.text;
  for (auto at = rest.find('$'); at != rest.npos; at = rest.find('$')) {
    out += here(rest.substr(0, at), notifies);
    rest.remove_prefix(at + 1);
    const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    out += connection_->quote(statement.values.at(tenure::number<std::size_t>(rest.substr(0, digits)).value_or(0) - 1));
    rest.remove_prefix(digits);
  }
  return out + here(rest, notifies);
}

namespace {

/// Whether the server did nothing because it would not notify. Then it certainly rolled back.
bool only_notices_refused(std::string_view sqlstate, std::string_view text) {
  if (sqlstate == "54000") return true;  // The queue of notices is full.
  return (sqlstate == "0A000" || sqlstate == "42501" || sqlstate == "42883") &&
         (text.find("notify") != text.npos || text.find("NOTIFY") != text.npos);
}

/// libpq holds the whole answer by then; this bounds our copy of it. One row tells the snapshot, which names all that
/// runs.
std::size_t most_bytes(const Rows& rows) {
  constexpr std::size_t of_snapshot = 1 << 20, of_row = 8 << 10, of_all = 256 << 20;
  return std::min(of_snapshot + rows.most * of_row, of_all);
}

std::size_t bytes_of_all(const pqxx::result& found) {
  std::size_t out = 0;
  for (const auto& row : found)
    for (const auto& field : row) out += static_cast<std::size_t>(field.size());
  return out;
}

}  // namespace

pqxx::result Connection::execute(const Statement& statement) {
  auto found = ask(statement);
  const auto rows = static_cast<std::size_t>(found.size());
  if (static_cast<int>(found.columns()) < statement.columns || rows < statement.rows.least ||
      rows > statement.rows.most)
    throw NoAnswer(std::to_string(rows) + " rows of " + std::to_string(found.columns()) + " columns");
  if (const auto bytes = bytes_of_all(found); bytes > most_bytes(statement.rows))
    throw NoAnswer(std::to_string(bytes) + " bytes, more than all that we ever wrote");
  return found;
}

void Connection::must_write(bool only_reads) const {
  if (only_reads && settings_.needs_writer) throw pqxx::sql_error("the session may only read by now", "", "25006");
}

pqxx::result Connection::ask(const Statement& statement) {
  const bool notifies = notifies_ && statement.text.find("@notify@") != statement.text.npos;
  try {
    return ask(statement, notifies_);
  } catch (const pqxx::sql_error& e) {
    if (!notifies || !connection_->is_open() || !only_notices_refused(sqlstate_of(e), e.what())) throw;
    note_silence(std::string("the server refuses it: ") + e.what() +
                 "; if its queue is full, end the session that listens and never reads, which "
                 "pg_notification_queue_usage() and the server's log tell of");
    return ask(statement, false);
  }
}

pqxx::result Connection::ask(const Statement& statement, bool notifies) {
  // A pooler's session keeps no setting of ours, and a statement that waits for its table has run nothing of itself.
  if (!own_)
    return run(std::string("select pg_catalog.set_config('lock_timeout', '") + table_lock_timeout +
               "', true), pg_catalog.set_config('row_security', 'off', true); " + with_values(statement, notifies));
  pqxx::nontransaction transaction(*connection_);
  // libpqxx 6 itself executes what it has prepared, with one round trip each.
  // We do not use exec(): in libpqxx 6.4 it loses the memory of a result when the connection breaks.
  if (const auto known = names_.find(statement.text); prepared_ && notifies == notifies_ && known != names_.end()) {
    const auto prepared = execution(known->second, statement.values);
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 710
    return transaction.exec_params(prepared);
#else
    return transaction.exec(prepared, pqxx::params{});
#endif
  }
  const auto text = here(statement.text, notifies);
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 706
  const auto all = pqxx::prepare::make_dynamic_params(statement.values);
#else
  pqxx::params all;
  for (const auto& value : statement.values) all.append(value);
#endif
#if PQXX_VERSION_MAJOR * 100 + PQXX_VERSION_MINOR < 710
  return transaction.exec_params(text, all);
#else
  return transaction.exec(text, all);
#endif
}

pqxx::result Connection::run(const std::string& statements) {
  return pqxx::nontransaction(*connection_).exec(statements);
}

/// Takes in what has come, up to the end of the stream that may stand behind a parting word. libpqxx 6 would
/// quietly replace a closed connection by one that nobody has introduced: so ask before every use.
bool Connection::alive() {
  try {
    int reads = 0;
    do {
      if (!connection_->is_open()) return false;
      connection_->get_notifs();
    } while (++reads < many_reads && readable(connection_->sock()));
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
  try {
    listener_ = std::make_unique<Listener>(*connection_, channel_, *this);
    miss_news();
  } catch (const pqxx::sql_error& e) {
    if (!connection_->is_open()) throw;
    may_listen_ = false;
    note_silence(std::string("the server refuses to let us listen: ") + e.what());
  }
}

Connection::Wait Connection::await_news(const Exchange& exchange, const std::function<void(News&)>& none_of_it) {
  if (!own_) note_silence("a pooler stands between, and a session of its own is needed to listen");
  if (!may_listen_) return Wait::impossible;
  if (!listener_) return Wait::deaf;
  for (;;) {
    none_of_it(news_);
    if (!news_.empty()) return Wait::news;
    if (exchange.over()) return Wait::ended;
    exchange.wait(POLLIN);
    if (!alive()) return Wait::broken;
  }
}

namespace {

/// Another session may do better: this server may only read by now, though conninfo may name one that writes; or what
/// was found and prepared here is gone.
bool another_may_do(std::string_view sqlstate) {
  constexpr std::array<std::string_view, 6> codes{"25006", "0A000", "55000", "26000", "42P01", "3F000"};
  return std::ranges::count(codes, sqlstate) > 0;
}

}  // namespace

Error Connection::failed(const std::exception& thrown) {
  if (!dynamic_cast<const pqxx::failure*>(&thrown)) {
    drop();  // What else comes on this connection nobody knows.
    if (dynamic_cast<const std::bad_alloc*>(&thrown))
      return {Fault::unreachable, "postgres" + where_ + ": this process has no memory left for the answer"};
    return corrupt(
        "what was answered is none of PostgreSQL's answers to what we asked: " + settings_.redacted(thrown.what()) +
        ". Another program answers at this address, or a pooler is broken");
  }
  const auto sqlstate = sqlstate_of(thrown);
  if (another_may_do(sqlstate)) {
    drop();
    if (notes()) notes()->leave();
  }
  if (!connection_ || connection_->is_open()) return explained(sqlstate, thrown.what(), settings_, where_);
  drop();
  // libpqxx 6 does not tell the server's last words.
  if (!sqlstate.starts_with("57P")) return explained("08003", "the connection broke", settings_, where_);
  return explained(sqlstate, thrown.what(), settings_, where_);
}

}  // namespace tenure::postgres
