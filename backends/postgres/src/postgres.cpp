// SPDX-License-Identifier: Apache-2.0
#include <tenure/postgres.hpp>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/suggest.hpp>
#include <tenure/lock_table.hpp>

#include "store.hpp"

namespace tenure::postgres {

extern const char schema_text[];  // sql/tenure_elections.sql

namespace {

void warn(const Log& log, const Settings& settings, const std::string& election) {
  for (const auto& host : settings.unverified_hosts)
    tell(log, Level::warning, unprotected("server " + host, "Set sslmode=verify-full in conninfo"),
         {{"election", election}, {"store", "postgres"}});
}

Options options_of(const Opening& opening) {
  if (!opening.url.starts_with("postgres://") && !opening.url.starts_with("postgresql://"))
    throw std::invalid_argument("postgres: the URL must begin with postgres:// or postgresql://");
  Options options{opening.url, opening.user, opening.password};
  for (const auto& [name, value] : opening.properties) {
    if (name != "table")
      throw std::invalid_argument("postgres: there is no property \"" + printable(name, 80) +
                                  "\", only \"table\"; put a parameter of libpq into the URL");
    options.table = value;
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
  auto settings = settings_of(options, application_name(election, candidate.name));
  warn(log, settings, election);
  return lock_table(std::make_shared<Store>(std::move(settings), election), election, std::move(candidate),
                    std::move(log));
}

Presets presets() { return lock_table_presets(); }

Opened open_url(const Opening& opening) {
  return {open(options_of(opening), opening.election, opening.candidate, opening.log), presets()};
}

std::string schema(const std::string& table) {
  const auto quoted = quoted_table(table);
  std::string out = schema_text;
  if (table == Options().table) return out;
  const std::string_view name = "tenure_elections";
  for (auto at = out.find(name); at != out.npos; at = out.find(name, at + quoted.size()))
    out.replace(at, name.size(), quoted);
  return out;
}

std::optional<Error> create_schema(const Options& options, const Limit& limit) {
  auto settings = settings_of(options);
  // The lock lets one session do it after the other: "if not exists" does not see what another one is about to create.
  const auto statements = "select pg_advisory_xact_lock(hashtext('tenure schema'));\n" + schema(options.table);
  const auto session = std::make_shared<Session>(std::move(settings), std::nullopt);
  // There is one attempt, so that it may take all the time that there is.
  const auto patience = std::max<Clock::Duration>(limit.by - limit.clock.now(), std::chrono::seconds(1));
  const auto done = CallThread(session, patience)
                        .ask(
                            [=](auto&) -> Result<bool> {
                              try {
                                session->run(statements);
                                return true;
                              } catch (const std::exception& e) {
                                return session->failed(e);
                              }
                            },
                            limit);
  if (!done) return done.error();
  return std::nullopt;
}

}  // namespace tenure::postgres
