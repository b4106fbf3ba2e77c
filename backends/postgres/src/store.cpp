// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <exception>
#include <utility>

#include <tenure/wait.hpp>

#include "faults.hpp"
#include "statements.hpp"

namespace tenure::postgres {
namespace {

/// A session that ends as soon as it idles is not made again more often than this.
constexpr Clock::Duration calm = std::chrono::seconds(1);

/// Of what is left of a call: the rest is for the answer, so that the server ends the wait and not we the connection.
Clock::Duration lock_wait(const Limit& limit) { return (limit.by - limit.clock.now()) / 2; }

Read read_now(Session& session, const std::string& election) {
  const auto question = reading(session.settings().quoted, election);
  session.forget_news();
  return read_of(session.ask(question.statement, question.values)[0]);
}

/// Only a write that certainly had no effect is followed by a read.
Swap swap_now(Session& session, const std::string& election, const std::optional<Expected>& expected,
              const Record& next, Clock::Duration wait) {
  const auto question = replacing({session.settings().quoted, election, session.channel(), wait}, expected, next);
  try {
    session.forget_news();
    const auto applied = session.ask(question.statement, question.values);
    if (!applied.empty()) return {true, read_of(applied[0])};
  } catch (const std::exception& e) {
    if (!lost_a_race(sqlstate_of(e))) throw;
  }
  return {false, read_now(session, election)};
}

}  // namespace

Store::Store(Settings settings, const std::string& election)
    : session_(std::make_shared<Session>(std::move(settings), election)), election_(bytea(election)) {}

template <class Value, class Work>
Result<Value> Store::on_the_session(Work work, const Limit& limit) {
  auto answer = thread_.ask(
      [session = session_, work](CallThread::Socket& socket) -> Result<Value> {
        try {
          if (auto error = session->ready(socket)) return std::move(*error);
          return work(*session);
        } catch (const std::exception& e) {
          return session->failed(e);
        }
      },
      limit);
  if (!answer || (std::holds_alternative<Error>(*answer) && limit.passed()))
    return Error{Fault::timed_out, "postgres: no answer by the call's limit"};
  return std::move(*answer);
}

Result<Read> Store::read(const Limit& limit) {
  return on_the_session<Read>([election = election_](Session& session) { return read_now(session, election); }, limit);
}

Result<Swap> Store::compare_and_set(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  return on_the_session<Swap>([=, election = election_, wait = lock_wait(limit)](
                                  Session& session) { return swap_now(session, election, expected, next, wait); },
                              limit);
}

std::optional<Version> Store::await_change(const std::optional<Version>& seen, const Limit& limit) {
  using Wait = Session::Wait;
  const auto began = limit.clock.now();
  const auto heard = thread_.ask(
      [session = session_, seen](CallThread::Socket& socket) {
        const auto waited = session->await_news(socket, seen);
        return std::pair(waited, waited == Wait::news ? session->news().released : std::nullopt);
      },
      limit);
  if (!heard) return std::nullopt;
  if (heard->first == Wait::deaf) wait_out(limit);
  if (heard->first == Wait::broken) wait_out({limit.clock, std::min(limit.by, began + calm), limit.stop});
  return heard->second;
}

std::optional<Error> Store::recall(const Recall& request, const Limit& limit) {
  const auto done = on_the_session<bool>(
      [request, election = election_, wait = lock_wait(limit)](Session& session) {
        const auto question = recalling({session.settings().quoted, election, session.channel(), wait}, request);
        session.ask(question.statement, question.values);
        return true;
      },
      limit);
  if (const auto* error = std::get_if<Error>(&done)) return *error;
  return std::nullopt;
}

}  // namespace tenure::postgres
