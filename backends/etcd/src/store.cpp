// SPDX-License-Identifier: Apache-2.0
// The functions of the ConditionalStore, and the watch for news.
#include "store.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <tenure/kit/jitter.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>

#include "record.hpp"

namespace tenure::etcd {
namespace {

/// The longest pause from a watch that failed to the next attempt, if anybody still waits.
constexpr Clock::Duration watch_again = std::chrono::seconds(1);

/// etcd does not show its members' clocks, so each process takes its own. It is a hint, here as everywhere.
Read stamped(Read read, const Limit& limit) {
  read.now_ms = limit.clock.unix_ms();
  return read;
}

}  // namespace

Store::Store(const Options& options, const std::string& election, Log log)
    : options_(checked(options)),
      election_(election),
      keys_(keys_of(options, election)),
      log_(std::move(log)),
      connection_(std::make_shared<Connection>(options)),
      cell_(std::make_shared<Cell>(connection_, keys_)),
      commands_(connection_) {}

Result<Read> Store::read(const Limit& limit) {
  auto found = commands_.ask([cell = cell_, until = Until(limit)](auto&) { return cell->read(until); }, limit);
  if (!found) return found;
  return stamped(*std::move(found), limit);
}

Result<Swap> Store::compare_and_set(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  auto written = next;
  written.written_ms = limit.clock.unix_ms();
  auto swap = commands_.ask([cell = cell_, expected, written, pushed = std::exchange(pushed_, std::nullopt),
                             until = Until(limit)](auto&) { return cell->replace(expected, written, pushed, until); },
                            limit);
  if (!swap) return swap;
  return Swap{swap->applied, stamped(std::move(swap->found), limit)};
}

std::optional<Error> Store::request_step_down(const StepDown& request, const Limit& limit) {
  const auto done = commands_.ask(
      [cell = cell_, request, until = Until(limit)](auto&) -> Result<bool> {
        if (auto error = cell->request_step_down(request, until)) return *error;
        return true;
      },
      limit);
  if (!done) return done.error();
  return std::nullopt;
}

// ---- news ----

std::optional<Version> Store::await_change(const std::optional<Version>& seen, const Limit& limit) {
  while (!limit.passed()) {
    const auto began = limit.clock.now();
    const auto heard = listen(limit);
    if (!heard) {
      warn_once(heard.error());
      const bool passes = heard.error().fault == Fault::unreachable || heard.error().fault == Fault::timed_out;
      commands_.wait_out(
          {limit.clock, passes ? std::min(limit.by, limit.clock.now() + jittered(watch_again)) : limit.by, limit.stop});
      continue;
    }
    last_warning_.clear();
    const auto before = std::exchange(known_, *heard);
    if (known_.ceased) rest(began + jittered(watch_again), limit);
    if (known_.watches != before.watches || !known_.value) return std::nullopt;
    const auto told = read_of(known_.value, std::nullopt, keys_.news);
    if (!told || !told->record) return std::nullopt;
    const auto& record = *told->record;
    const Version version{record.token, record.beat};
    if (version == seen) continue;
    if (!record.released) return std::nullopt;
    pushed_ = known_.value;
    return version;
  }
  return std::nullopt;
}

/// An answer that the limit cuts off is no error here.
Result<Connection::News> Store::listen(const Limit& limit) {
  try {
    if (!watch_) watch_.emplace(options_);
  } catch (const std::system_error& e) {
    return no_connection_left(e);
  }
  auto news = watch_->thread.ask([connection = watch_->connection, key = keys_.news, known = known_](
                                     CallThread::Socket& socket) { return connection->await_news(key, known, socket); },
                                 limit);
  if (!news && limit.passed()) return known_;
  return news;
}

void Store::rest(Clock::Time until, const Limit& limit) {
  commands_.wait_out({limit.clock, std::min(limit.by, until), limit.stop});
}

void Store::warn_once(const Error& error) {
  if (error.message == std::exchange(last_warning_, error.message)) return;
  tell(log_, Level::warning, "this candidate cannot watch, so it will notice a release late: " + error.message,
       {{"election", election_}, {"store", "etcd"}});
}

}  // namespace tenure::etcd
