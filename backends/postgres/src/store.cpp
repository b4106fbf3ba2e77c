// SPDX-License-Identifier: Apache-2.0
// The functions of the ConditionalStore.
#include "store.hpp"

#include <exception>
#include <utility>

#include <tenure/kit/wait.hpp>

#include "faults.hpp"
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

}  // namespace

Store::Store(const Settings& settings, const std::string& election, const Log& log)
    : election_(bytea(election)), client_(settings, purpose_of(election, log)) {}

Result<Read> Store::read(const Limit& limit) {
  return client_.ask<Read>([election = election_](Connection& connection) { return read_now(connection, election); },
                           limit);
}

Result<Swap> Store::compare_and_set(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  return client_.ask<Swap>(
      [=, election = election_, until = by_boot_clock(limit)](Connection& connection) {
        return swap_now(connection, election, expected, next, lock_wait(until));
      },
      limit);
}

std::optional<Version> Store::await_change(const std::optional<Version>& seen, const Limit& limit) {
  const auto heard = client_.await_news(
      [seen](Connection::News& news) {
        if (!news.empty() && seen && released_by(news.back()) == seen) news.clear();
      },
      limit);
  return heard ? released_by(heard->back()) : std::nullopt;
}

std::optional<Error> Store::request_step_down(const StepDown& request, const Limit& limit) {
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

}  // namespace tenure::postgres
