// SPDX-License-Identifier: Apache-2.0
// The store of one election, and the public functions: they check the options and put the parts together.
#include <tenure/postgres.hpp>

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/kit/wait.hpp>
#include <tenure/lock_table.hpp>

#include "checkup.hpp"
#include "client.hpp"
#include "faults.hpp"
#include "settings.hpp"
#include "statements.hpp"

namespace tenure::postgres {
namespace {

Purpose purpose_of(const std::string& election, const Log& log) {
  const std::string name = bytea(election), no_channel;
  const Writing writing{name, no_channel, lock_wait({})};
  const auto nothing = replacing(writing, Expected{}, {});  // for no beat is expected
  return {.name = election,
          .prepared = {reading(name), nothing, replacing(writing, std::nullopt, {})},
          .rehearsed = {nothing},
          .notes = std::make_shared<Notes>(log, "election", election)};
}

Result<Read> read_now(Connection& connection, const std::string& election) {
  connection.forget_news();
  const auto row = connection.execute(reading(election))[0];
  connection.must_write(only_reads(row));
  auto read = read_of(row);
  if (read.record && !may_be_followed(read.record->token))
    return connection.corrupt(
        "the row's token is " + std::to_string(static_cast<std::int64_t>(read.record->token.value)) +
        "; no leader wrote it, and no greater one can follow. Set the greatest token that a leader "
        "ever had: update " +
        connection.settings().table().name + " set token = ..., released = true where election = '" + election + "'");
  read.read_only = connection.read_only();
  return read;
}

/// Only a write that certainly had no effect is followed by a read.
Result<Swap> swap_now(Connection& connection, const std::string& election, const std::optional<Expected>& expected,
                      const Record& next, const std::string& wait) {
  const auto statement = replacing({election, connection.channel(), wait}, expected, next);
  try {
    connection.forget_news();
    const auto applied = connection.execute(statement);
    if (!applied.empty()) return Swap{true, read_of(applied[0])};
  } catch (const std::exception& e) {
    if (!lost_a_race(sqlstate_of(e))) throw;
  }
  auto found = read_now(connection, election);
  if (!found) return std::move(found).error();
  return Swap{false, *std::move(found)};
}

/// One election's row: read, replaced on condition, announced.
class Store final : public ConditionalStore {
 public:
  Store(const Settings& settings, const std::string& election, const Log& log)
      : election_(bytea(election)), client_(settings, purpose_of(election, log)) {}

  Result<Read> read(const Limit& limit) override {
    return client_.ask<Read>([election = election_](Connection& connection) { return read_now(connection, election); },
                             limit);
  }

  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    return client_.ask<Swap>(
        [=, election = election_, until = by_boot_clock(limit)](Connection& connection) {
          return swap_now(connection, election, expected, next, lock_wait(until));
        },
        limit);
  }

  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    const auto heard = client_.await_news(
        [seen](Connection::News& news) {
          if (!news.empty() && seen && released_by(news.back()) == seen) news.clear();
        },
        limit);
    return heard ? released_by(heard->back()) : std::nullopt;
  }

  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override {
    const auto done = client_.ask<bool>(
        [request, election = election_, until = by_boot_clock(limit)](Connection& connection) {
          const Writing writing{election, connection.channel(), lock_wait(until)};
          const auto statement = requesting_step_down(writing, request);
          connection.execute(statement);
          return true;
        },
        limit);
    if (!done) return done.error();
    return std::nullopt;
  }

 private:
  const std::string election_;  ///< As a bytea literal.
  Client client_;
};

// ---- the elections of the table ----

constexpr std::size_t page = 500;

Result<ElectionPage> read_page(Connection& connection, const std::string& after) {
  const auto rows = connection.execute(listing(after, page));
  const auto now = boot_clock().now();
  ElectionPage out{.elections = {}, .last = static_cast<std::size_t>(rows.size()) < page};
  for (const auto& row : rows) out.elections.push_back(listed(election_of(row), read_of(row), now));
  return out;
}

// ---- schemas ----

/// The schema is handed out as it is shipped, unless a table is called otherwise.
std::string called(const std::string& table, const char* usually) {
  const auto quoted = quoted_table(table);
  return table == usually ? table : quoted;
}

/// One attempt may take all the time that there is.
std::optional<Error> create(Settings settings, const std::string& tables, const Limit& limit) {
  settings.schema.sql = one_at_a_time(tables);
  const auto patience = std::max<Clock::Duration>(limit.by - limit.clock.now(), std::chrono::seconds(1));
  const auto done =
      Client(std::move(settings), Purpose{.name = {}}, patience).ask<bool>([](Connection&) { return true; }, limit);
  return done ? std::nullopt : std::optional(done.error());
}

// ---- URLs ----

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

/// `tables`: the properties that name tables, and what they name.
Options options_of(const Opening& opening,
                   std::initializer_list<std::pair<std::string_view, std::string Options::*>> tables) {
  if (!opening.url.starts_with("postgres://") && !opening.url.starts_with("postgresql://"))
    throw std::invalid_argument("postgres: the URL must begin with postgres:// or postgresql://");
  Options options{.conninfo = opening.url, .user = opening.user, .password = opening.password};
  options.credentials = opening.credentials;
  Opening ours{.url = "postgres://h", .properties = opening.properties};
  char before = '?';
  for (const std::string name : {"create_table", "table", "sessions", "leads"})
    if (const auto value = take(options.conninfo, name)) ours.url += std::exchange(before, '&') + name + '=' + *value;
  auto asked = parse_url(ours);
  options.create_table = asked.take_second("create_table", "false", "true");
  for (const auto& [name, table] : tables) asked.take(name, options.*table);
  try {
    asked.expect_no_more();
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(std::string(e.what()) + "; put a parameter of libpq into the URL itself");
  }
  return options;
}

}  // namespace

std::shared_ptr<ConditionalStore> store_of(const Settings& settings, const std::string& election, const Log& log) {
  return std::make_shared<Store>(settings, election, log);
}

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election) {
  check_election(election);
  return store_of(settings_of(options, application_name(election)), election);
}

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  check_election(election);
  const auto settings = settings_of(options, application_name(election, candidate.name));
  settings.warn(log, "election", election);
  auto store = store_of(settings, election, log);
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

/// Every election has another channel, and no election is called "", so nothing is ever heard.
ElectionList list_of(const Settings& settings) {
  const auto client = std::make_shared<Client>(settings, Purpose{.name = {}});
  return [client, last = std::string()](const Limit& limit) mutable {
    auto found = client->ask<ElectionPage>(
        [after = bytea(last)](Connection& connection) { return read_page(connection, after); }, limit);
    if (found && !found->elections.empty()) last = found->elections.back().election;
    return found;
  };
}

ElectionList list_url(const Opening& opening) {
  const auto settings = settings_of(options_of(opening, {{"table", &Options::table}}), application_name("(all)"));
  settings.warn(opening.log, "election", "(all)");
  return list_of(settings);
}

OpenedGroup open_group_url(const Opening& opening) {
  const auto options = options_of(opening, {{"sessions", &Options::sessions}, {"leads", &Options::leads}});
  return {open_group(options, opening.election, opening.log), presets()};
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
  return create(settings_of(options), schema(options.table), limit);
}

std::optional<Error> create_group_schema(const Options& options, const Limit& limit) {
  return create(group_settings_of(options), group_schema(options.sessions, options.leads), limit);
}

}  // namespace tenure::postgres
