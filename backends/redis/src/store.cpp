// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <algorithm>
#include <chrono>

#include "options.hpp"

namespace tenure::redis {
namespace {

/// From a subscription that failed to the next attempt, if anybody still waits.
constexpr Clock::Duration subscribe_again = std::chrono::seconds(1);

constexpr int most_redirections = 4;

}  // namespace

Store::Store(const Options& options, const std::string& election, Log log)
    : options_((check(options), options)),
      election_((check_election(election), election)),
      key_(key_of(options, election)),
      log_(std::move(log)),
      commands_(options, Connection::Use::commands) {}

Result<Read> Store::read(const Limit& limit) {
  const auto answer = run(read_script, {}, limit);
  if (const auto* error = std::get_if<Error>(&answer)) return *error;
  return read_of(std::get<Reply>(answer), key_);
}

Result<Swap> Store::compare_and_set(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  const auto answer = run(swap_script, swap_arguments(expected, next), limit, options_.replicas);
  if (const auto* error = std::get_if<Error>(&answer)) return *error;
  return swap_of(std::get<Reply>(answer), key_);
}

std::optional<Error> Store::recall(const Recall& request, const Limit& limit) {
  const auto answer = run(recall_script, recall_arguments(request), limit);
  if (const auto* error = std::get_if<Error>(&answer)) return *error;
  return recalled(std::get<Reply>(answer), key_);
}

Result<Reply> Store::run(const Script& script, std::vector<std::string> arguments, const Limit& limit, int replicas) {
  for (int redirections = 0;; ++redirections) {
    const auto ask = [connection = commands_.connection, &script, key = key_, arguments, until = by_boot_clock(limit),
                      replicas, follow = redirections < most_redirections](auto&) -> Result<std::optional<Reply>> {
      auto answer = connection->run(script, key, arguments, follow);
      const auto* reply = std::get_if<std::optional<Reply>>(&answer);
      if (replicas > 0 && reply && *reply && !(*reply)->list.empty() && (*reply)->list[0].integer == 1)
        if (auto error = connection->await_replicas(until)) return *error;
      return answer;
    };
    auto answer = commands_.thread.ask(ask, limit);
    const auto* error = std::get_if<Error>(&answer);
    if (error && error->fault == Fault::timed_out) return *error;  // something may still run
    if (const auto warning = commands_.connection->take_warning()) warn(*warning);
    if (error) return *error;
    if (auto& reply = std::get<1>(answer)) return std::move(*reply);
  }
}

/// A leader needs no notices, so they are subscribed to by the first wait. That one returns at once: what came before
/// was not heard, and its caller reads again.
std::optional<Version> Store::await_change(const std::optional<Version>& seen, const Limit& limit) {
  if (!notices_) notices_.emplace(options_, Connection::Use::notices);
  while (!limit.passed()) {
    const auto heard = listen(seen, limit);
    const auto* deaf = std::get_if<Error>(&heard);
    if (!deaf) return std::get<1>(heard);
    if (deaf->message != deaf_) warn("a release will be noticed late, since nothing is told of it: " + deaf->message);
    deaf_ = deaf->message;
    const bool passes = deaf->fault == Fault::unreachable || deaf->fault == Fault::timed_out;
    notices_->thread.wait_out(
        {limit.clock, passes ? std::min(limit.by, limit.clock.now() + subscribe_again) : limit.by, limit.stop});
  }
  return std::nullopt;
}

/// Until there is news or the limit; an error if it cannot listen.
Result<std::optional<Version>> Store::listen(const std::optional<Version>& seen, const Limit& limit) {
  const auto wait = [connection = notices_->connection, channel = key_,
                     seen](CallThread::Socket& socket) -> Result<std::optional<Version>> {
    if (!connection->subscribed()) {
      if (auto error = connection->subscribe(channel)) return *error;
      return std::nullopt;
    }
    for (;;) {
      const auto message = connection->next_message(socket);
      const auto* text = std::get_if<std::optional<std::string>>(&message);
      if (!text || !*text) return std::nullopt;  // the subscription broke, or the limit passed
      const auto notice = notice_of(**text);
      if (notice && notice->version == seen) continue;
      return notice && notice->released ? std::optional(notice->version) : std::nullopt;
    }
  };
  auto heard = notices_->thread.ask(wait, limit);
  if (limit.passed()) return std::nullopt;
  return heard;
}

void Store::warn(const std::string& message) const {
  tell(log_, Level::warning, message, {{"election", election_}, {"store", "redis"}});
}

}  // namespace tenure::redis
