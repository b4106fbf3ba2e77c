// SPDX-License-Identifier: Apache-2.0
#include "store.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include <tenure/kit/jitter.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/wait.hpp>

#include "handshake.hpp"
#include "options.hpp"

namespace tenure::redis {
namespace {

/// The longest pause from a subscription that failed to the next attempt, if anybody still waits.
constexpr Clock::Duration subscribe_again = std::chrono::seconds(1);

constexpr int most_redirections = 4;

/// The longest time of a read and the claim after it. What Sentinels said before that says nothing of now.
constexpr Clock::Duration longest_attempt = std::chrono::seconds(1);

/// Requested when either of two others is.
class StoppedBy {
 public:
  StoppedBy(const std::stop_token& a, const std::stop_token& b) : a_(a, Pass{source_}), b_(b, Pass{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Pass {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Pass> a_, b_;
};

}  // namespace

Store::Store(const Options& options, const std::string& election, const std::string& candidate, Log log)
    : options_(options),
      election_(election),
      key_(key_of(options, election)),
      client_(client_name(election, candidate)),
      log_(std::move(log)) {
  check(options_);
  check_election(election_);
  if (options.master.empty())
    commands_.emplace(options_, Connection::Use::commands, std::nullopt, client_);
  else
    sentinels_.emplace(options_, client_);
}

Result<Read> Store::read(const Limit& limit) {
  if (sentinels_) attempt_ = sentinels_->ask();
  const auto answer = run(read_script, {}, limit);
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
  const auto answer =
      run(swap_script, swap_arguments(expected, next), limit, claims ? attempt : Clock::Time::min(), options_.replicas);
  if (!answer) return answer.error();
  auto swap = swap_of(*answer, key_);
  if (swap) swap->found.absence_certain = options_.first_claim == FirstClaim::at_once;
  if (swap && swap->applied && claims && !expected && options_.first_claim == FirstClaim::wait)
    warn("this election has no record yet, or Redis has lost it: its first leader begins a term (" +
         std::to_string(std::chrono::ceil<std::chrono::milliseconds>(next.term).count()) +
         " ms) later. Where no record is ever lost, first_claim=at_once spares that");
  return swap;
}

std::optional<Error> Store::request_step_down(const StepDown& request, const Limit& limit) {
  const auto answer = run(step_down_script, step_down_arguments(request), limit);
  if (!answer) return answer.error();
  return step_down_kept(*answer, key_);
}

Result<Store::Target> Store::find_target(Clock::Time since, const Limit& limit) {
  if (!sentinels_) return Target{};
  auto named = sentinels_->master(std::max(since, doubted_), limit);
  if (const auto warning = sentinels_->take_warning()) warn(*warning);
  const auto known = !named && since == Clock::Time::min() ? sentinels_->known() : std::nullopt;
  if (!named && !known) return named.error();
  const auto& [master, moved] = known ? *known : *named;
  return Target{master, moved};
}

Result<Store::ThreadedConnection*> Store::connection_to(const Target& target, std::optional<ThreadedConnection>& kept,
                                                        Connection::Use use) const try {
  if (!kept || kept->master != target.master) kept.emplace(options_, use, target.master, client_);
  return &*kept;
} catch (const std::system_error& e) {
  return Error{Fault::unreachable, std::string("no further connection can be made: ") + e.what() +
                                       "; raise the limits of descriptors and threads (ulimit -n, -u)"};
}

Result<Reply> Store::run(const Script& script, const std::vector<std::string>& arguments, const Limit& limit,
                         Clock::Time named_since, int replicas) {
  const auto found = find_target(named_since, limit);
  if (!found) return found.error();
  const auto& target = *found;
  const auto made = connection_to(target, commands_, Connection::Use::commands);
  if (!made) return made.error();
  auto& commands = **made;
  const StoppedBy either(limit.stop, target.moved);
  const Limit until_moved{limit.clock, limit.by, either.token()};
  for (int redirections = 0;; ++redirections) {
    const auto ask = [connection = commands.connection, &script, key = key_, arguments, until = by_boot_clock(limit),
                      replicas, follow = redirections < most_redirections](auto&) -> Result<std::optional<Reply>> {
      auto answer = connection->run(script, key, arguments, follow);
      if (replicas > 0 && answer && *answer && !(*answer)->list.empty() && (*answer)->list[0].integer == 1)
        if (auto error = connection->await_replicas(until)) return *error;
      return answer;
    };
    auto answer = commands.thread.ask(ask, until_moved);
    if (target.moved.stop_requested())
      return Error{Fault::unreachable, "the Sentinels name another master than " + to_string(*target.master) + " now"};
    if (!answer) doubted_ = boot_clock().now();
    if (!answer && answer.error().fault == Fault::timed_out) return answer.error();  // something may still run
    if (const auto warning = commands.connection->take_warning()) warn(*warning);
    if (!answer) return answer.error();
    if (auto& reply = *answer) return std::move(*reply);
  }
}

/// A leader needs no notices, so the first wait subscribes to them. That wait returns at once: nothing was heard of
/// what came before, so its caller reads again.
std::optional<Version> Store::await_change(const std::optional<Version>& seen, const Limit& limit) {
  attempt_.reset();
  while (!limit.passed()) {
    const auto heard = listen(seen, limit);
    if (heard) return *heard;
    const auto& error = heard.error();
    if (error.message != last_warning_)
      warn("this candidate cannot subscribe, so it will notice a release late: " + error.message);
    last_warning_ = error.message;
    const bool passes = error.fault == Fault::unreachable || error.fault == Fault::timed_out;
    const Limit pause{
        limit.clock, passes ? std::min(limit.by, limit.clock.now() + jittered(subscribe_again)) : limit.by, limit.stop};
    sentinels_ ? sentinels_->wait_out(pause) : commands_->thread.wait_out(pause);
  }
  return std::nullopt;
}

/// Waits until there is news, or until the limit. An error says why it cannot listen.
Result<std::optional<Version>> Store::listen(const std::optional<Version>& seen, const Limit& limit) {
  const auto found = find_target(Clock::Time::min(), limit);
  if (!found) return found.error();
  const auto& target = *found;
  const auto made = connection_to(target, notices_, Connection::Use::notices);
  if (!made) return made.error();
  auto& notices = **made;
  const auto wait = [connection = notices.connection, channel = key_,
                     seen](CallThread::Socket& socket) -> Result<std::optional<Version>> {
    if (!connection->subscribed()) {
      if (auto error = connection->subscribe(channel)) return *error;
      return std::nullopt;
    }
    for (;;) {
      const auto message = connection->next_message(socket);
      if (!message || !*message) return std::nullopt;  // the subscription broke, or the limit passed
      const auto notice = notice_of(**message);
      if (notice && notice->version == seen) continue;
      return notice && notice->released ? std::optional(notice->version) : std::nullopt;
    }
  };
  const StoppedBy either(limit.stop, target.moved);
  auto heard = notices.thread.ask(wait, {limit.clock, limit.by, either.token()});
  if (limit.passed() || target.moved.stop_requested()) return std::nullopt;
  return heard;
}

void Store::warn(const std::string& message) const {
  tell(log_, Level::warning, message, {{"election", election_}, {"store", "redis"}});
}

}  // namespace tenure::redis
