// SPDX-License-Identifier: Apache-2.0
// Parses and checks what libpq would refuse late, or would repeat with a secret in it.
#include "settings.hpp"

#include <libpq-fe.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>

#include <tenure/kit/c_handle.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::postgres {
namespace {

constexpr std::size_t max_identifier_bytes = 63;

using Pairs = std::map<std::string, std::string>;

bool identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name.size() <= max_identifier_bytes && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

/// libpq's message is not repeated: it quotes what it does not understand, and that can be a piece of a password.
Pairs parsed(const std::string& conninfo) {
  char* why = nullptr;
  const auto options = owned<PQconninfoFree>(PQconninfoParse(conninfo.c_str(), &why));
  PQfreemem(why);
  if (!options || conninfo.find('\0') != conninfo.npos)
    throw std::invalid_argument(
        "postgres: conninfo is neither a URI (postgresql://user@host:5432/database?sslmode=...) nor key=value pairs "
        "that libpq takes; a special character in a URI is written as %XX, a value with a blank in quotes. It is not "
        "repeated here, since it may hold a password: try it with psql");
  Pairs out;
  for (const auto* option = options.get(); option->keyword; ++option)
    if (option->val) out[option->keyword] = option->val;
  return out;
}

std::string joined(const Pairs& pairs) {
  std::string out;
  for (const auto& [key, value] : pairs) {
    out += key + "='";
    for (const char c : value) {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
    out += "' ";
  }
  return out;
}

std::string effective(const Pairs& pairs, const std::string& key, const char* variable) {
  if (const auto found = pairs.find(key); found != pairs.end()) return found->second;
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): libpq reads them too
  return value ? value : "";
}

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("postgres: " + what); }

/// libpq ends a password at the first '@', unless a '/' stands before it, and takes what stands before a '/' for host
/// and port. It would print the rest of the password as a host, a port or a database.
void check_uri(std::string_view conninfo) {
  const auto begin = conninfo.find("://");
  if (!conninfo.starts_with("postgres") || begin == conninfo.npos) return;
  auto rest = conninfo.substr(begin + 3);
  if (const auto at = rest.find_first_of("@/"); at != rest.npos && rest[at] == '@') rest.remove_prefix(at + 1);
  if (rest.substr(0, rest.find('?')).find('@') == rest.npos) return;
  refuse(
      "in conninfo an '@' stands where a URI has none. In a user, a password or a database's name '@' is written as "
      "%40, '/' as %2F, ':' as %3A, '?' as %3F and '%' as %25. It is not repeated here, since it may hold a password");
}

/// libpq skips blanks behind a '=': of "host= password=x" it makes a host.
void check_blanks(const Pairs& pairs) {
  for (const auto& [key, value] : pairs)
    if (key != "password" && key != "sslpassword" && key != "options" && value.find("password=") != value.npos)
      refuse(
          "the value of " + key +
          " is the next key and its value, because a blank stands behind '=': write '' for an empty value. It is not "
          "repeated here, since it is a password");
  for (const auto* key : {"host", "hostaddr", "port"})
    if (const auto found = pairs.find(key); found != pairs.end() && found->second.find('=') != std::string::npos)
      refuse(std::string(key) + " has a '=' in it: does a blank stand behind its own one?");
}

/// Of a value that libpq takes as a list.
std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// These are the servers that conninfo and the environment name. A service file may name others.
std::vector<Host> hosts_of(const Pairs& pairs) {
  const auto names = parts(effective(pairs, "host", "PGHOST"), ',');
  const auto addresses = parts(effective(pairs, "hostaddr", "PGHOSTADDR"), ',');
  const auto ports = parts(effective(pairs, "port", "PGPORT"), ',');
  std::vector<Host> out(std::max(names.size(), addresses.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i].port = ports[ports.size() == out.size() ? i : 0];
  for (std::size_t i = 0; i < names.size(); ++i) out[i].name = names[i];
  for (std::size_t i = 0; i < addresses.size(); ++i) out[i].address = addresses[i];
  return out;
}

bool by_service(const Pairs& pairs) { return !effective(pairs, "service", "PGSERVICE").empty(); }

/// libpq gives up such a connection when the server has shown its certificate.
void check_names(const Pairs& pairs) {
  if (by_service(pairs) || effective(pairs, "sslmode", "PGSSLMODE") != "verify-full") return;
  for (const auto& [name, address, port] : hosts_of(pairs))
    if (name.empty() && !address.empty())
      refuse("sslmode=verify-full compares the certificate with host, and hostaddr has no host beside it: set both");
}

bool number_up_to(int most, const std::string& text) {
  const auto value = number<int>(text);
  return value && *value > 0 && *value <= most;
}

void check_choice(const Pairs& pairs, const std::string& key, const char* variable, const std::string& choices) {
  const auto value = effective(pairs, key, variable);
  if (value.empty() || std::ranges::count(parts(choices, ' '), value) > 0) return;
  refuse(key + " must be one of: " + choices);
}

void check_file(const Pairs& pairs, const std::string& key, const char* variable) {
  const auto file = effective(pairs, key, variable);
  if (file.empty() || file == "system" || file.find(':') != file.npos || ::access(file.c_str(), R_OK) == 0) return;
  refuse(key + ": the file " + printable(file, 200) + " is not there, or cannot be read");
}

/// Refuses what libpq would refuse only when it connects, and would then repeat.
void check_values(const Pairs& pairs) {
  for (const auto& [key, variable] : {std::pair("host", "PGHOST"), std::pair("dbname", "PGDATABASE")})
    if (effective(pairs, key, variable).find("://") != std::string::npos)
      refuse(std::string(key) +
             " is a URI: give that as the whole of conninfo. It is not repeated here, since it may hold a password");
  check_choice(pairs, "sslmode", "PGSSLMODE", "disable allow prefer require verify-ca verify-full");
  check_choice(pairs, "target_session_attrs", "PGTARGETSESSIONATTRS",
               "any read-write read-only primary standby prefer-standby");
  for (const auto& host : parts(effective(pairs, "host", "PGHOST"), ','))
    if (host.find('@', 1) != host.npos)
      refuse("a host has an '@' in it. It is not repeated here, since it may be a piece of a password");
  for (const auto& port : parts(effective(pairs, "port", "PGPORT"), ','))
    if (!port.empty() && !number_up_to(65535, port))
      refuse(
          "a port must be a number from 1 to 65535. It is not repeated here: it may be a piece of a password, in which "
          "a URI has '/' as %2F and ':' as %3A");
  if (effective(pairs, "sslmode", "PGSSLMODE").starts_with("verify")) check_file(pairs, "sslrootcert", "PGSSLROOTCERT");
  check_names(pairs);
  check_file(pairs, "sslcert", "PGSSLCERT");
  // What a document says must run no code.
  if (const auto key = pairs.find("sslkey"); key != pairs.end() && key->second.find(':') != std::string::npos)
    refuse("sslkey names an engine of OpenSSL, which is code that is loaded: name a file, or set PGSSLKEY");
  check_file(pairs, "sslkey", "PGSSLKEY");
}

std::vector<std::string> unverified(const Pairs& pairs) {
  const auto mode = effective(pairs, "sslmode", "PGSSLMODE");
  std::vector<std::string> out;
  if (mode == "verify-full" || mode == "verify-ca" || by_service(pairs)) return out;
  for (const auto& [name, address, port] : hosts_of(pairs))
    if (!loopback(address.empty() ? name : address)) out.push_back(name.empty() ? address : name);
  return out;
}

std::string target_of(const Pairs& pairs) {
  const auto or_else = [](const std::string& value, const char* other) { return value.empty() ? other : value; };
  const auto host = or_else(effective(pairs, "host", "PGHOST"), effective(pairs, "hostaddr", "PGHOSTADDR").c_str());
  return printable(or_else(host, "local socket") + ":" + or_else(effective(pairs, "port", "PGPORT"), "5432") + "/" +
                   effective(pairs, "dbname", "PGDATABASE"));
}

}  // namespace

std::string quoted_table(const std::string& table) {
  const auto dot = table.find('.');
  const auto name = dot == table.npos ? table : table.substr(dot + 1);
  const auto schema = dot == table.npos ? "" : table.substr(0, dot);
  if (!identifier(name) || (dot != table.npos && !identifier(schema)))
    throw std::invalid_argument(
        "postgres: table \"" + printable(table, 80) +
        "\" is no table's name; write NAME or SCHEMA.NAME, each of which begins with a letter or "
        "'_', and has at most 62 further letters, digits or '_'");
  return schema.empty() ? '"' + name + '"' : '"' + schema + "\".\"" + name + '"';
}

std::string one_at_a_time(const std::string& tables) {
  return "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('tenure schema')::bigint);\n" + tables;
}

std::string application_name(std::string_view election, std::string_view candidate) {
  const auto plain = [](std::string_view text, std::size_t cap) {
    std::string out;
    for (const char c : text.substr(0, cap)) out += c > ' ' && c <= '~' ? c : '?';
    return out;
  };
  const auto room = max_identifier_bytes - std::string_view("tenure  ").size();
  const auto name = plain(candidate, std::max(room - std::min(room, election.size()), room / 2));
  return "tenure " + plain(election, room - name.size()) + (name.empty() ? "" : " " + name);
}

namespace {

Settings settings_with(Schema schema, const Options& options, const std::string& called) {
  check_uri(options.conninfo);
  auto pairs = parsed(options.conninfo);
  if (!options.user.empty()) pairs["user"] = options.user;
  if (!options.password.empty()) pairs["password"] = options.password;
  pairs.emplace("fallback_application_name", called);
  check_blanks(pairs);
  // An older libpq would read a file of that name, if there is one, and then verify nothing.
  if (effective(pairs, "sslrootcert", "PGSSLROOTCERT") == "system" && effective(pairs, "sslmode", "PGSSLMODE").empty())
    pairs["sslmode"] = "verify-full";
  check_values(pairs);
  // By the system's own settings, who only listens notices after two hours that the other end has gone.
  if (!by_service(pairs))
    pairs.insert({{"keepalives_idle", "15"}, {"keepalives_interval", "5"}, {"keepalives_count", "3"}});

  return {.conninfo = joined(pairs),
          .target = target_of(pairs),
          .own_timeout = !effective(pairs, "connect_timeout", "PGCONNECT_TIMEOUT").empty(),
          .needs_writer = effective(pairs, "target_session_attrs", "PGTARGETSESSIONATTRS") == "read-write",
          .schema = std::move(schema),
          .hosts = by_service(pairs) ? std::vector<Host>() : hosts_of(pairs),
          .credentials = options.credentials,
          .secrets = {effective(pairs, "password", "PGPASSWORD"), effective(pairs, "sslpassword", "PGSSLPASSWORD"), ""},
          .unverified_hosts = unverified(pairs)};
}

std::string missing_made(const Options& options, const std::string& tables) {
  return options.create_table ? one_at_a_time(tables) : std::string();
}

Table table_of(const std::string& name, const char* rights) { return {name, quoted_table(name), rights}; }

}  // namespace

Settings settings_of(const Options& options, const std::string& called) {
  return settings_with({{table_of(options.table, "select, insert, update")},
                        "tenure_elections.sql",
                        "create_schema()",
                        missing_made(options, schema(options.table))},
                       options, called);
}

Settings group_settings_of(const Options& options, const std::string& called) {
  return settings_with({{table_of(options.sessions, "select, insert, update, delete"),
                         table_of(options.leads, "select, insert, update")},
                        "tenure_groups.sql",
                        "create_group_schema()",
                        missing_made(options, group_schema(options.sessions, options.leads))},
                       options, called);
}

const Table& Settings::table(std::string_view message) const {
  for (const auto& one : schema.tables)
    if (message.find(one.name.substr(one.name.find('.') + 1)) != message.npos) return one;
  return schema.tables.front();
}

/// libpq counts in whole seconds, of which the first may be short.
std::string Settings::conninfo_within(Clock::Duration patience) const {
  using std::chrono::seconds;
  if (own_timeout) return conninfo;
  return conninfo + "connect_timeout='" + std::to_string(std::chrono::ceil<seconds>(patience).count() + 1) + '\'';
}

std::string Settings::beginning_with(std::size_t host, const std::vector<std::string>& addresses) const {
  if (hosts.size() < 2 && addresses.empty()) return {};
  auto all = hosts;
  std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(host), all.end());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (i > 0) all.insert(all.begin() + static_cast<std::ptrdiff_t>(i), all.front());
    all[i].address = addresses[i];
  }
  Pairs lists;
  for (const auto& one : all)
    for (const auto& [key, value] : {std::pair("host", one.name), {"hostaddr", one.address}, {"port", one.port}})
      lists[key] += (&one == &all.front() ? "" : ",") + value;
  std::erase_if(lists, [](const auto& list) { return list.second.find_first_not_of(',') == std::string::npos; });
  return joined(lists);
}

std::string Settings::login() {
  if (!credentials) return {};
  const auto found = credentials_by(credentials, Redactor(secrets));
  secrets.back() = found.password;
  Pairs pairs;
  if (!found.user.empty()) pairs["user"] = found.user;
  if (!found.password.empty()) pairs["password"] = found.password;
  return joined(pairs);
}

void Settings::warn(const Log& log, const char* what, const std::string& name) const {
  for (const auto& host : unverified_hosts)
    tell(log, Level::warning, unprotected("server " + host, "Set sslmode=verify-full in conninfo"),
         {{what, name}, {"store", "postgres"}});
}

std::string Settings::redacted(std::string_view text) const {
  std::string line;
  for (const char c : Redactor(secrets)(text)) {
    const bool blank = c == '\n' || c == '\t' || c == ' ';
    if (!blank || (!line.empty() && line.back() != ' ')) line += blank ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  return printable(line, 500);
}

}  // namespace tenure::postgres
