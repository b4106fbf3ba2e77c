// SPDX-License-Identifier: Apache-2.0
// The functions of the ConditionalStore.
#include "store.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "handshake.hpp"
#include "options.hpp"
#include "record.hpp"

namespace tenure::redis {
namespace {

/// The longest time of a read and the claim that follows it. What Sentinels answered longer ago is out of date.
constexpr Clock::Duration longest_attempt = std::chrono::seconds(1);

}  // namespace

/// A leader needs no notices, so that connection is made by the first wait.
Store::Store(const Options& options, const std::string& election, const std::string& candidate, Log log)
    : options_(checked(options)),
      key_(key_of(options, election)),
      client_(client_name(election, candidate)),
      warn_(warnings(std::move(log), "election", election)),
      sentinels_(sentinels_of(options, client_)),
      commands_({options, Connection::Use::commands, client_}, sentinels_, warn_, Link::Made::now),
      notices_({options, Connection::Use::notices, client_}, sentinels_, warn_, Link::Made::when_needed) {}

Call Store::call(const Script& script, std::vector<std::string> arguments) const {
  return {&script, {key_}, std::move(arguments)};
}

Result<Read> Store::read(const Limit& limit) {
  if (sentinels_) attempt_ = sentinels_->ask();
  const auto answer = commands_.run(call(read_script, {}), {}, limit);
  if (!answer) return answer.error();
  auto found = read_of(*answer, key_);
  if (found) found->absence_certain = options_.first_claim == FirstClaim::at_once;
  return found;
}

/// A claim needs a Sentinel's word, during that very attempt, that this is the master. A master that stood still while
/// it was replaced does not know of it. A renewal needs no such word, or an outage of the Sentinels would end tenures.
/// For a far store the attempt began with a read, in the call before.
Result<Swap> Store::compare_and_set(const std::optional<Expected>& expected, const Record& next, const Limit& limit) {
  const auto now = boot_clock().now();
  const auto attempt = std::max(std::exchange(attempt_, std::nullopt).value_or(now), now - longest_attempt);
  const bool claims = !next.released && (!expected || expected->token != next.token);
  const auto answer = commands_.run(call(swap_script, swap_arguments(expected, next)),
                                    {claims ? attempt : Clock::Time::min(), options_.replicas}, limit);
  if (!answer) return answer.error();
  auto swap = swap_of(*answer, key_);
  if (swap) swap->found.absence_certain = options_.first_claim == FirstClaim::at_once;
  if (swap && swap->applied && claims && !expected && options_.first_claim == FirstClaim::wait)
    warn_("this election has no record yet, or Redis has lost it: its first leader begins a term (" +
          std::to_string(std::chrono::ceil<std::chrono::milliseconds>(next.term).count()) +
          " ms) later. Where no record is ever lost, first_claim=at_once spares that");
  return swap;
}

std::optional<Error> Store::request_step_down(const StepDown& request, const Limit& limit) {
  const auto answer = commands_.run(call(step_down_script, step_down_arguments(request)), {}, limit);
  if (!answer) return answer.error();
  return step_down_kept(*answer, key_);
}

std::optional<Version> Store::await_change(const std::optional<Version>& seen, const Limit& limit) {
  attempt_.reset();
  const auto news = [seen](const std::string& message) {
    const auto notice = notice_of(message);
    return !notice || notice->version != seen;
  };
  const auto message = notices_.await_message(key_, news, commands_, limit);
  const auto notice = message ? notice_of(*message) : std::nullopt;
  return notice && notice->released ? std::optional(notice->version) : std::nullopt;
}

}  // namespace tenure::redis
