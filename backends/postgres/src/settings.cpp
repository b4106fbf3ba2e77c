// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>

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
  struct Free {
    void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
  };
  char* why = nullptr;
  const std::unique_ptr<PQconninfoOption, Free> options(PQconninfoParse(conninfo.c_str(), &why));
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

bool loopback(std::string_view host) {
  return host.empty() || host.front() == '/' || host.front() == '@' || host == "localhost" || host == "::1" ||
         host.starts_with("127.");
}

/// As far as conninfo and the environment tell; a service file keeps its own counsel.
std::vector<std::string> unverified(const Pairs& pairs) {
  const auto mode = effective(pairs, "sslmode", "PGSSLMODE");
  std::vector<std::string> out;
  if (mode == "verify-full" || mode == "verify-ca" || pairs.contains("service")) return out;
  const auto hosts = effective(pairs, "host", "PGHOST");
  for (std::size_t at = 0; at <= hosts.size();) {
    const auto end = std::min(hosts.find(',', at), hosts.size());
    if (const auto host = hosts.substr(at, end - at); !loopback(host)) out.push_back(host);
    at = end + 1;
  }
  return out;
}

std::string target_of(const Pairs& pairs) {
  const auto or_else = [](std::string value, const char* other) { return value.empty() ? other : value; };
  return printable(or_else(effective(pairs, "host", "PGHOST"), "local socket") + ":" +
                   or_else(effective(pairs, "port", "PGPORT"), "5432") + "/" +
                   effective(pairs, "dbname", "PGDATABASE"));
}

}  // namespace

std::string quoted_table(const std::string& table) {
  const auto dot = table.find('.');
  const auto name = dot == table.npos ? table : table.substr(dot + 1);
  const auto schema = dot == table.npos ? "" : table.substr(0, dot);
  if (!identifier(name) || (dot != table.npos && !identifier(schema)))
    throw std::invalid_argument("postgres: table \"" + printable(table, 80) +
                                "\": a name, or schema.name, each a letter or '_' and then at most 62 letters, digits "
                                "or '_'");
  return schema.empty() ? '"' + name + '"' : '"' + schema + "\".\"" + name + '"';
}

Settings settings_of(const Options& options) {
  auto pairs = parsed(options.conninfo);
  if (!options.user.empty()) pairs["user"] = options.user;
  if (!options.password.empty()) pairs["password"] = options.password;
  pairs.emplace("fallback_application_name", "tenure");

  Settings out{.conninfo = joined(pairs),
               .target = target_of(pairs),
               .own_timeout = !effective(pairs, "connect_timeout", "PGCONNECT_TIMEOUT").empty(),
               .table = options.table,
               .quoted = quoted_table(options.table),
               .secrets = {},
               .unverified_hosts = unverified(pairs)};
  for (const auto& secret :
       {effective(pairs, "password", "PGPASSWORD"), effective(pairs, "sslpassword", "PGSSLPASSWORD")})
    if (!secret.empty()) out.secrets.push_back(secret);
  return out;
}

/// libpq counts in whole seconds, of which the first may be short.
std::string Settings::conninfo_within(Clock::Duration patience) const {
  using std::chrono::seconds;
  if (own_timeout) return conninfo;
  return conninfo + "connect_timeout='" + std::to_string(std::chrono::ceil<seconds>(patience).count() + 1) + '\'';
}

std::string Settings::redacted(std::string_view text) const {
  std::string out(text);
  for (const auto& secret : secrets)
    for (auto at = out.find(secret); at != out.npos; at = out.find(secret, at + 3))
      out.replace(at, secret.size(), "***");
  std::string line;  // of several
  for (const char c : out) {
    const bool blank = c == '\n' || c == '\t' || c == ' ';
    if (!blank || (!line.empty() && line.back() != ' ')) line += blank ? ' ' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  return printable(line, 500);
}

}  // namespace tenure::postgres
