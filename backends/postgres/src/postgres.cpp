// SPDX-License-Identifier: Apache-2.0
// The public functions: they check the options and put the parts together.
#include <tenure/postgres.hpp>

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/suggest.hpp>
#include <tenure/lock_table.hpp>

#include "checkup.hpp"
#include "group.hpp"
#include "schema_text.hpp"
#include "store.hpp"

namespace tenure::postgres {
namespace {

/// `what`: an "election" or a "group".
void warn(const Log& log, const Settings& settings, const char* what, const std::string& name) {
  for (const auto& host : settings.unverified_hosts)
    tell(log, Level::warning, unprotected("server " + host, "Set sslmode=verify-full in conninfo"),
         {{what, name}, {"store", "postgres"}});
}

/// The schema is handed out as it is shipped, unless a table is called otherwise.
std::string called(const std::string& table, const char* usually) {
  const auto quoted = quoted_table(table);
  return table == usually ? table : quoted;
}

/// Elections work without a fence, and the doctor tells of it. So a refusal is none of the caller's business.
bool run_if_permitted(Connection& connection, const std::string& statement) {
  try {
    connection.run(statement);
  } catch (const pqxx::insufficient_privilege&) {
  }
  return true;
}

/// A table that was made before the strict fence was gets its index, if it is ours.
bool add_fence(Connection& connection) {
  const auto& place = connection.places().front();
  const auto there = filled_sql(
      "select {in_a_key} from pg_catalog.pg_class as c where c.oid {=} pg_catalog.to_regclass($1::pg_catalog.text)",
      {{"{in_a_key}", in_a_key("token")}});
  if (connection.execute({there, {place}, 1, Rows::one})[0][0].as<bool>()) return true;
  return run_if_permitted(connection, "create unique index on " + place + " (election, token)");
}

/// What finds the changes of a group was a unique constraint once, by which releases wait for a user's transactions.
bool free_releases(Connection& connection) {
  const auto& leads = connection.places()[1];
  const auto wrong = filled_sql(R"(
select pg_catalog.quote_ident(k.conname)
from pg_catalog.pg_constraint as k join pg_catalog.pg_attribute as a on a.attrelid {=} k.conrelid
where k.conrelid {=} pg_catalog.to_regclass($1::pg_catalog.text) and k.contype {=} 'u'
  and a.attname {=} 'changed'::pg_catalog.name and a.attnum {=} any (k.conkey))",
                                {});
  const auto found = connection.execute({wrong, {leads}, 1, Rows::at_most_one});
  return found.empty() ||
         run_if_permitted(connection, "alter table " + leads + " drop constraint " + found[0][0].as<std::string>() +
                                          ", add exclude using btree (grp with =, changed with =, election with =)");
}

/// `then` is done once the tables stand. One attempt may take all the time that there is.
std::optional<Error> create(Settings settings, const std::string& tables, const Limit& limit,
                            bool (*then)(Connection&)) {
  settings.schema.sql = one_at_a_time(tables);
  const auto patience = std::max<Clock::Duration>(limit.by - limit.clock.now(), std::chrono::seconds(1));
  const auto done = Client(std::move(settings), Purpose{.name = {}}, patience).ask<bool>(then, limit);
  if (!done) return done.error();
  return std::nullopt;
}

/// Takes it out of a URL, the rest of which is libpq's.
std::optional<std::string> take(std::string& url, const std::string& name) {
  std::optional<std::string> out;
  for (auto at = url.find('?'); at < url.size();) {
    const auto end = std::min(url.find('&', at + 1), url.size());
    if (url.compare(at + 1, name.size() + 1, name + '=') != 0) {
      at = end;
      continue;
    }
    if (out) throw std::invalid_argument("postgres: the URL has " + name + " twice; give it once");
    out = url.substr(at + name.size() + 2, end - at - name.size() - 2);
    const bool first = url[at] == '?';
    url.erase(at, end - at);
    if (first && at < url.size()) url[at] = '?';
  }
  return out;
}

bool yes(const std::string& name, const std::string& value) {
  if (value == "true" || value == "false") return value == "true";
  throw std::invalid_argument("postgres: " + name + " is true or false, not \"" + printable(value, 40) + '"');
}

/// `tables`: the properties that name tables, and what they name.
Options options_of(const Opening& opening,
                   std::initializer_list<std::pair<std::string_view, std::string Options::*>> tables) {
  if (!opening.url.starts_with("postgres://") && !opening.url.starts_with("postgresql://"))
    throw std::invalid_argument("postgres: the URL must begin with postgres:// or postgresql://");
  Options options{.conninfo = opening.url, .user = opening.user, .password = opening.password};
  options.credentials = opening.credentials;
  const std::string create = "create_table";
  if (const auto value = take(options.conninfo, create)) options.create_table = yes(create, *value);
  for (const auto& [name, value] : opening.properties) {
    if (name == create) {
      options.create_table = yes(create, value);
      continue;
    }
    const auto found =
        std::find_if(tables.begin(), tables.end(), [&name = name](const auto& table) { return table.first == name; });
    if (found == tables.end()) {
      std::string known;
      for (const auto& table : tables) known += '"' + std::string(table.first) + "\", ";
      known += '"' + create + '"';
      throw std::invalid_argument("postgres: there is no property \"" + printable(name, 80) + "\", only " + known +
                                  "; put a parameter of libpq into the URL");
    }
    options.*found->second = value;
  }
  return options;
}

}  // namespace

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election) {
  check_election(election);
  return std::make_shared<Store>(settings_of(options, application_name(election)), election);
}

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  check_election(election);
  const auto settings = settings_of(options, application_name(election, candidate.name));
  warn(log, settings, "election", election);
  auto store = std::make_shared<Store>(settings, election, log);
  return lock_table(std::move(store), election, std::move(candidate), std::move(log));
}

Presets presets() { return lock_table_presets(); }

Opened open_url(const Opening& opening) {
  const auto options = options_of(opening, {{"table", &Options::table}});
  return {open(options, opening.election, opening.candidate, opening.log), presets()};
}

Result<Checks> check_url(const Opening& opening, const Limit& limit) {
  const auto options = options_of(opening, {{"table", &Options::table}, {"leads", &Options::leads}});
  return check_up(settings_of(options, application_name("(doctor)")), limit, quoted_table(options.leads));
}

ElectionList list_url(const Opening& opening) {
  const auto settings = settings_of(options_of(opening, {{"table", &Options::table}}), application_name("(all)"));
  warn(opening.log, settings, "election", "(all)");
  return list_of(settings);
}

OpenedGroup open_group_url(const Opening& opening) {
  const auto options = options_of(opening, {{"sessions", &Options::sessions}, {"leads", &Options::leads}});
  return {open_group(options, opening.election, opening.log), presets()};
}

std::shared_ptr<GroupStore> open_group(const Options& options, const std::string& group, const Log& log) {
  check_election(group);
  const auto settings = group_settings_of(options, application_name(group));
  warn(log, settings, "group", group);
  return std::make_shared<Group>(settings, group, log);
}

std::string schema(const std::string& table) {
  return filled(schema_text, {{"tenure_elections", called(table, "tenure_elections")}});
}

/// In two steps, since one table may be called as the other usually is.
std::string group_schema(const std::string& sessions, const std::string& leads) {
  const auto open = filled(group_schema_text, {{"tenure_sessions", "{sessions}"}, {"tenure_leads", "{leads}"}});
  return filled(open,
                {{"{sessions}", called(sessions, "tenure_sessions")}, {"{leads}", called(leads, "tenure_leads")}});
}

std::optional<Error> create_schema(const Options& options, const Limit& limit) {
  return create(settings_of(options), schema(options.table), limit, add_fence);
}

std::optional<Error> create_group_schema(const Options& options, const Limit& limit) {
  return create(group_settings_of(options), group_schema(options.sessions, options.leads), limit, free_releases);
}

}  // namespace tenure::postgres
