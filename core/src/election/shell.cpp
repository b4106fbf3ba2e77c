// SPDX-License-Identifier: Apache-2.0
// Carries out what the Candidacy decides, and brings it the answers of the Backend.
#include "election/shell.hpp"

#include <stdexcept>
#include <utility>

#include "kit/random.hpp"

namespace tenure {
namespace {

constexpr const char* backend_is = "the backend";

const Backend& accepted(const std::shared_ptr<Backend>& backend, const Timing& timing) {
  if (!backend) throw std::invalid_argument("LeaderManager: backend is null");
  timing.validate();
  if (const auto refused = backend->accepts(timing)) throw std::invalid_argument("Timing: " + refused->message);
  return *backend;
}

/// An answer without an answer is an error of the call.
Result<Answer> known(Answer answer) {
  if (auto* unknown = std::get_if<Unknown>(&answer)) return std::move(unknown->error);
  return answer;
}

}  // namespace

LeaderManager::Shell::Shell(std::shared_ptr<Backend> backend, const Timing& timing, const Hooks& hooks, Clock& clock)
    : EngineOf({.owner = "LeaderManager",
                .of = "election",
                .name = accepted(backend, timing).election(),
                .verbs = {"acquire", "renew", "release"}},
               timing, hooks, clock, Candidacy(timing, random_u64(), stall_limits(hooks))),
      validity(std::make_shared<OwnValidity>(clock)),
      backend_(std::move(backend)) {}

void LeaderManager::Shell::resign(std::optional<Clock::Duration> cool_down) {
  post([this, cool_down](Clock::Time now) { machine_.resign(now, cool_down); });
}

Metrics LeaderManager::Shell::metrics() const {
  if (forked()) return {};
  const auto now = clock_.now();
  const auto leads = validity->now();
  auto out = snapshot(leads.remaining, now);
  if (leads) out.token = leads.token;
  out.is_leader = out.token.has_value();
  const Lock lock(machine_mutex_);
  if (const auto at = machine_.progressed_at(); at && out.is_leader)
    out.since_progress = late(std::max(*at, validity->progressed_at()), now);
  out.stalled = machine_.stalled();
  return out;
}

void LeaderManager::Shell::carry_out(Effect& any) {
  struct Carrier {
    Shell& s;
    const std::string& election;
    void operator()(effect::Ask& e) {
      s.ask([&s = s, question = e.question](const std::stop_token& stop) { return s.answer_to(question, stop); });
    }
    void operator()(effect::Interrupt&) { s.interrupt(); }
    void operator()(effect::Publish& e) {
      if (std::exchange(s.published_, e.token) != e.token) s.count_elected();
      s.validity->publish(e.token, e.deadline);
    }
    void operator()(effect::Unlead&) { s.validity->withdraw(); }
    void operator()(effect::Begin& e) { s.begin(election, e.token, s.hooks_); }
    void operator()(effect::FireStop&) { s.signals(election).stop.request_stop(); }
    void operator()(effect::DoneBy& e) { s.signals(election).done_by = e.at.time_since_epoch().count(); }
    void operator()(effect::End& e) {
      s.end({election, e.token, e.reason, std::move(e.detail), std::move(e.successor), {}, {}});
    }
    void operator()(effect::FireExpired&) { s.signals(election).expired.request_stop(); }
    void operator()(effect::Overrun&) { s.overran(election); }
    void operator()(effect::Report& e) { s.report(std::move(e.error), s.hooks_, election); }
    void operator()(effect::Heard& e) {
      const auto token = e.incumbent ? std::optional(e.incumbent->token) : std::nullopt;
      s.validity->hear(std::move(e.incumbent), e.until);
      if (std::exchange(s.heard_, token) != token) s.waiters.changed();
    }
    void operator()(effect::Ended& e) { s.quit(e.store_wedged); }
  };
  std::visit(Carrier{*this, form_.name}, any);
}

Engine::Fact LeaderManager::Shell::answer_to(const tenure::Question& q, const std::stop_token& interrupted) {
  const auto id = q.id;
  if (q.if_eligible && hooks_->eligible && !user_agrees())
    return [this, id](Clock::Time now) { machine_.ineligible(now, id); };
  const Limit limit{clock_, q.by, interrupted};
  const auto failed = [](const auto& result) { return result ? std::nullopt : std::optional(result.error()); };
  if (q.verb == Verb::release) {
    const auto error = failed(counted<bool>("release", backend_is, [&]() -> Result<bool> {
      if (auto failure = backend_->release(limit)) return std::move(*failure);
      return true;
    }));
    return [this, id, error](Clock::Time now) { machine_.released(now, id, error); };
  }
  if (q.verb == Verb::await_change) {  // It is no call whose duration tells anything.
    const auto error = failed(counted<bool>(nullptr, backend_is, [&]() -> Result<bool> {
      backend_->await_change(q.seen, limit);
      return true;
    }));
    return [this, id, error](Clock::Time now) { machine_.change_awaited(now, id, error); };
  }
  auto answer = answer_of_store(q, limit);
  if (answer && !std::holds_alternative<Denied>(*answer)) tally_.granted(q.asked);
  return [this, id, answer = answer ? std::move(*answer) : Answer(Unknown{answer.error()})](Clock::Time now) {
    machine_.answered(now, id, answer);
  };
}

Result<Answer> LeaderManager::Shell::answer_of_store(const tenure::Question& q, const Limit& limit) {
  if (q.verb == Verb::renew)
    return counted<Answer>("renew", backend_is, [&] { return known(backend_->renew(q.token, limit)); });
  return counted<Answer>("acquire", backend_is, [&] { return known(backend_->acquire(limit)); });
}

}  // namespace tenure
