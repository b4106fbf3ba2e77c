// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <exception>
#include <utility>

#include <tenure/kit/jitter.hpp>
#include <tenure/kit/wait.hpp>

#include "faults.hpp"
#include "statements.hpp"

namespace tenure::postgres {
namespace {

/// The longest pause before a broken session is made again by one who waits. It may end as soon as it idles.
constexpr Clock::Duration calm = std::chrono::seconds(1);

/// The wait for a lock gets half of what is left of a call, so that the server ends it before we end the connection.
/// `until` is a time of boot_clock().
Clock::Duration lock_wait(Clock::Time until) { return (until - boot_clock().now()) / 2; }

Result<Read> read_now(Session& session, const std::string& election) {
  const auto statement = reading(session.settings().quoted, election);
  session.forget_news();
  auto read = read_of(session.execute(statement)[0]);
  if (read.record && !may_be_followed(read.record->token))
    return session.corrupt("the row's token is " + std::to_string(static_cast<std::int64_t>(read.record->token.value)) +
                           "; no leader wrote it, and no greater one can follow. Set the greatest token that a leader "
                           "ever had: update " +
                           session.settings().table + " set token = ..., released = true where election = '" +
                           election + "'");
  read.read_only = session.read_only();
  return read;
}

/// Only a write that certainly had no effect is followed by a read.
Result<Swap> swap_now(Session& session, const std::string& election, const std::optional<Expected>& expected,
                      const Record& next, Clock::Duration wait) {
  const auto statement = replacing({session.settings().quoted, election, session.channel(), wait}, expected, next);
  try {
    session.forget_news();
    const auto applied = session.execute(statement);
    if (!applied.empty()) return Swap{true, read_of(applied[0])};
  } catch (const std::exception& e) {
    if (!lost_a_race(sqlstate_of(e))) throw;
  }
  auto found = read_now(session, election);
  if (!found) return std::move(found).error();
  return Swap{false, *std::move(found)};
}

}  // namespace

Store::Store(Settings settings, const std::string& election)
    : session_(std::make_shared<Session>(std::move(settings), election)),
      election_(bytea(election)),
      thread_(session_) {}

template <class Value, class Work>
Result<Value> Store::on_the_session(Work work, const Limit& limit) {
  return thread_.ask(
      [session = session_, work](auto&) -> Result<Value> {
        try {
          return work(*session);
        } catch (const std::exception& e) {
          return session->failed(e);
        }
      },
      limit);
}

Result<Read> Store::read(const Limit& limit) {
  return on_the_session<Read>([election = election_](Session& session) { return read_now(session, election); }, limit);
}

Result<Swap> Store::compare_and_set(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  return on_the_session<Swap>(
      [=, election = election_, until = by_boot_clock(limit)](Session& session) {
        return swap_now(session, election, expected, next, lock_wait(until));
      },
      limit);
}

std::optional<Version> Store::await_change(const std::optional<Version>& seen, const Limit& limit) {
  using Wait = Session::Wait;
  using Heard = std::pair<Wait, std::optional<Version>>;
  const auto began = limit.clock.now();
  const auto heard = thread_.ask(
      [session = session_, seen](CallThread::Socket& socket) -> Result<Heard> {
        const auto waited = session->await_news(socket, seen);
        return Heard(waited, waited == Wait::news ? session->news().released : std::nullopt);
      },
      limit);
  if (heard && heard->first == Wait::impossible) thread_.wait_out(limit);
  if (!heard || heard->first == Wait::broken)
    thread_.wait_out({limit.clock, std::min(limit.by, began + jittered(calm)), limit.stop});
  return heard ? heard->second : std::nullopt;
}

std::optional<Error> Store::request_step_down(const StepDown& request, const Limit& limit) {
  const auto done = on_the_session<bool>(
      [request, election = election_, until = by_boot_clock(limit)](Session& session) {
        const Writing writing{session.settings().quoted, election, session.channel(), lock_wait(until)};
        const auto statement = requesting_step_down(writing, request);
        session.execute(statement);
        return true;
      },
      limit);
  if (!done) return done.error();
  return std::nullopt;
}

}  // namespace tenure::postgres
