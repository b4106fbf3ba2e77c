// SPDX-License-Identifier: Apache-2.0
// Follows the master with one connection, and asks or listens on it.
#include "link.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <tenure/kit/jitter.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/wait.hpp>

#include "options.hpp"

namespace tenure::redis {
namespace {

/// The longest pause from a subscription that failed to the next attempt, if anybody still waits.
constexpr Clock::Duration subscribe_again = std::chrono::seconds(1);

constexpr int most_redirections = 4;

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

Warn warnings(Log log, std::string kind, std::string name) {
  return [log = std::move(log), kind = std::move(kind), name = std::move(name)](const std::string& message) {
    tell(log, Level::warning, message, {{kind, name}, {"store", "redis"}});
  };
}

Link::Link(Connection::Purpose purpose, std::shared_ptr<Sentinels> sentinels, Warn warn, Made made)
    : purpose_(std::move(purpose)), sentinels_(std::move(sentinels)), warn_(std::move(warn)) {
  if (!sentinels_ && made == Made::now) kept_.emplace(purpose_, std::nullopt);
}

// ---- which server ----

Result<Link::Target> Link::find_target(Clock::Time since, const Limit& limit) {
  if (!sentinels_) return Target{};
  auto named = sentinels_->master(since, limit);
  if (const auto warning = sentinels_->take_warning()) warn_(*warning);
  const auto known = !named && since == Clock::Time::min() ? sentinels_->known() : std::nullopt;
  if (!named && !known) return named.error();
  const auto& [master, moved] = known ? *known : *named;
  return Target{master, moved};
}

std::optional<Error> Link::find_master(Clock::Time since, const Limit& limit) {
  const auto found = find_target(since, limit);
  return found ? std::nullopt : std::optional(found.error());
}

Result<Link::ThreadedConnection*> Link::connection_to(const Target& target) try {
  if (!kept_ || kept_->master != target.master) kept_.emplace(purpose_, target.master);
  return &*kept_;
} catch (const std::system_error& e) {
  return no_connection_left(e);
}

// ---- asking it ----

Result<Reply> Link::run(const Call& call, const Asked& asked, const Limit& limit) {
  const auto found = find_target(asked.named_since, limit);
  if (!found) return found.error();
  const auto& target = *found;
  const auto made = connection_to(target);
  if (!made) return made.error();
  auto& there = **made;
  const StoppedBy either(limit.stop, target.moved);
  const Limit until_moved{limit.clock, limit.by, either.token()};
  for (int redirections = 0;; ++redirections) {
    const auto ask = [&](const Exchange& exchange) -> Result<std::optional<Reply>> {
      auto answer = there.connection->run(call, redirections < most_redirections, exchange);
      if (asked.replicas > 0 && answer && *answer && !(*answer)->list.empty() && (*answer)->list[0].integer == 1)
        if (auto error = there.connection->await_replicas(by_boot_clock(limit), exchange)) return *error;
      return answer;
    };
    auto answer = there.thread.exchange(ask, until_moved);
    if (target.moved.stop_requested())
      return Error{Fault::unreachable, "the Sentinels name another master than " + to_string(*target.master) + " now"};
    if (!answer && sentinels_) sentinels_->doubt();
    if (!answer && answer.error().fault == Fault::timed_out) return answer.error();  // it may still connect
    if (const auto warning = there.connection->take_warning()) warn_(*warning);
    if (!answer) return answer.error();
    if (auto& reply = *answer) return std::move(*reply);
  }
}

// ---- listening to it ----

std::optional<std::string> Link::await_message(const std::string& channel,
                                               const std::function<bool(const std::string&)>& matters, Link& rests,
                                               const Limit& limit) {
  while (!limit.passed()) {
    const auto heard = listen(channel, matters, limit);
    if (heard) return *heard;
    const auto& error = heard.error();
    if (error.message != last_warning_)
      warn_("this candidate cannot subscribe, so it will notice a release late: " + error.message);
    last_warning_ = error.message;
    const bool passes = error.fault == Fault::unreachable || error.fault == Fault::timed_out;
    rests.rest({limit.clock, passes ? std::min(limit.by, limit.clock.now() + jittered(subscribe_again)) : limit.by,
                limit.stop});
  }
  return std::nullopt;
}

/// Until there is news or the limit; an error if it cannot listen.
Result<std::optional<std::string>> Link::listen(const std::string& channel,
                                                const std::function<bool(const std::string&)>& matters,
                                                const Limit& limit) {
  const auto found = find_target(Clock::Time::min(), limit);
  if (!found) return found.error();
  const auto& target = *found;
  const auto made = connection_to(target);
  if (!made) return made.error();
  auto& there = **made;
  const auto wait = [&](const Exchange& exchange) -> Result<std::optional<std::string>> {
    const auto& connection = there.connection;
    if (!connection->subscribed()) {
      if (auto error = connection->subscribe(channel, exchange)) return *error;
      matters({});
      return std::nullopt;
    }
    for (;;) {
      auto message = connection->next_message(exchange);
      if (!message || !*message) return std::nullopt;  // the subscription broke, or the limit passed
      if (matters(**message)) return std::move(*message);
    }
  };
  const StoppedBy either(limit.stop, target.moved);
  auto heard = there.thread.exchange(wait, {limit.clock, limit.by, either.token()});
  if (limit.passed() || target.moved.stop_requested()) return std::nullopt;
  return heard;
}

void Link::rest(const Limit& limit) {
  if (sentinels_) return sentinels_->wait_out(limit);
  if (kept_) return kept_->thread.wait_out(limit);
  wait_out(limit);
}

}  // namespace tenure::redis
