// SPDX-License-Identifier: Apache-2.0
// The rules of core/README.md: how each fact changes the state, and which effects follow.
#include "election/candidacy.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kit/in_ms.hpp"
#include "kit/random.hpp"

namespace tenure {
namespace {

/// This many denials in a row are taken as news, if less than two retries lie between them. More of them mean that the
/// store wakes us for nothing.
constexpr int prompt_denials = 8;

/// This many acquires in a row without an answer are repeated soon. Further ones leave a store in trouble alone.
constexpr int prompt_acquires = 8;

/// The limit of an error's text, and of what led to an end. Others may have written it: it is printable from here on.
constexpr std::size_t longest_text = 2000;

/// A longer one means never, and could overflow a Clock::Time.
constexpr Clock::Duration longest_stall = std::chrono::hours(24 * 365 * 100);

std::string asked_by(const StepDownRequested& a) { return printable("asked by " + a.by + ": " + a.why, longest_text); }

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

Timing validated(const Timing& timing) {
  timing.validate();
  return timing;
}

StallLimits stall_limits(const Hooks& hooks) {
  if (hooks.stall_after < Clock::Duration::zero())
    throw std::invalid_argument("Hooks::stall_after: it is negative; 0 turns the watch off");
  if (hooks.stall_pause < Clock::Duration::zero() || hooks.stall_pause > max_term)
    throw std::invalid_argument("Hooks::stall_pause: it must be between 0 and 1 h");
  return {std::min(hooks.stall_after, longest_stall), hooks.stall_pause};
}

Candidacy::Candidacy(const Timing& timing, std::uint64_t jitter_seed, StallLimits stall)
    : stall_(stall), timing_(timing), jitter_state_(jitter_seed) {
  effects_.reserve(32);
}

// ---- facts ----

void Candidacy::start(Time now) {
  started_ = true;
  tick(now);
}

void Candidacy::resign(Time now, std::optional<Duration> cool_down) {
  judge_expiry(now);
  look_for_progress_.reset();
  cool_down_ = std::clamp(cool_down.value_or(timing_.retry), Duration::zero(), max_term);
  if (leading()) {
    end_voluntarily(now, Reason::resigned, "resign() was called");
  } else {
    release_due_ = may_hold_;
    if (!tenure_ && !release_due_) next_ask_ = now + std::exchange(cool_down_, Duration::zero());
    if (pending_ && pending_->question.verb == Verb::acquire) pending_->unwanted = true;
    if (pending_ && pending_->question.verb == Verb::await_change) emit(effect::Interrupt{});
  }
  tick(now);
}

void Candidacy::stop(Time now) {
  if (stopping_) return;
  judge_expiry(now);
  stopping_ = true;
  if (leading()) end_voluntarily(now, Reason::stopped, "stop() was called");
  if (pending_ && pending_->question.verb != Verb::renew) {
    pending_->unwanted = true;
    if (pending_->question.verb == Verb::await_change) pending_->question.by = std::min(pending_->question.by, now);
    if (pending_->question.verb != Verb::release) emit(effect::Interrupt{});
  }
  tick(now);
}

void Candidacy::answered(Time now, std::uint64_t id, Answer answer) {
  judge_expiry(now);  // Before the answer: a lapsed tenure never comes back.
  if (const auto pending = settle(id); pending && !pending->wedged) {
    if (pending->question.verb == Verb::renew)
      renew_answered(now, pending->question, std::move(answer));
    else
      acquire_answered(now, *pending, std::move(answer));
  }
  tick(now);
}

void Candidacy::ineligible(Time now, std::uint64_t id) {
  judge_expiry(now);
  if (const auto pending = settle(id); pending && !pending->wedged) {
    next_ask_ = now + timing_.renew;
    if (pending->question.verb == Verb::renew) {
      if (leading()) end_voluntarily(now, Reason::ineligible, "eligible() said no");
    } else {
      may_hold_ = pending->may_have_held;
      if (may_hold_) {
        release_due_ = true;
        cool_down_ = std::max(cool_down_, timing_.renew);
      }
    }
  }
  tick(now);
}

void Candidacy::released(Time now, std::uint64_t id, std::optional<Error> error) {
  if (const auto pending = settle(id); pending && !pending->wedged) {
    release_due_ = false;
    stop_released_ = stopping_;
    if (error)
      trouble(now, std::move(*error));
    else
      may_hold_ = false;
    next_ask_ = now + std::exchange(cool_down_, Duration::zero());
    await_first_ = false;
  }
  tick(now);
}

/// A store that cannot be waited for is asked as often as a leader would ask it.
void Candidacy::change_awaited(Time now, std::uint64_t id, std::optional<Error> error) {
  if (const auto pending = settle(id); pending && !pending->wedged) {
    await_first_ = false;
    if (error) {
      next_ask_ = std::max(next_ask_, now + jittered(timing_.renew));
      trouble(now, std::move(*error));
    }
  }
  tick(now);
}

void Candidacy::ousting_returned(Time now) {
  judge_expiry(now);
  if (tenure_ && !leading()) {
    const auto& ending = tenure_->ending;
    if (ending.draining()) emit(effect::Withdraw{});
    if (voluntary(ending.reason())) release_due_ = true;
    if (ending.reason() == Reason::step_down) cool_down_ = std::max(cool_down_, timing_.term);
    tenure_.reset();
    await_first_ = false;
    next_ask_ = now;
  }
  tick(now);
}

void Candidacy::progressed(Time at) {
  if (at <= progressed_) return;
  progressed_ = at;
  if (!look_for_progress_) return;
  look_for_progress_.reset();
  cool_down_ = std::min(cool_down_, timing_.retry);
  if (!tenure_ && !release_due_) next_ask_ = std::min(next_ask_, at);
}

void Candidacy::tick(Time now) {
  judge_expiry(now);
  watch_progress(now);
  watch_hook(now);
  watch_store(now);
  ask_next(now);
}

void Candidacy::take_effects(std::vector<Effect>& into) {
  into.clear();
  into.swap(effects_);
}

// ---- answers ----

/// The outstanding question, if this is its answer. The answer to a wedged one is worth nothing.
std::optional<Candidacy::Pending> Candidacy::settle(std::uint64_t id) {
  if (!pending_ || pending_->question.id != id) return std::nullopt;
  if (pending_->told) emit(effect::Report{{Fault::wedged, "the store call that ignored its limit has returned"}});
  return std::exchange(pending_, std::nullopt);
}

void Candidacy::acquire_answered(Time now, const Pending& asked, Answer answer) {
  const auto granted = [&](Token token) {
    if (asked.unwanted)
      release_due_ = true;
    else
      elect(now, asked.question, token);
  };
  std::visit(Overloaded{[&](Unknown& a) { unanswered(now, std::move(a.error)); },
                        [&](Denied& a) { denied(now, a.holder); }, [&](Granted& a) { granted(a.token); },
                        [&](StepDownRequested& a) {
                          granted(a.token);
                          if (tenure_) end_voluntarily(now, Reason::step_down, asked_by(a));
                        }},
             answer);
}

void Candidacy::renew_answered(Time now, const Question& asked, Answer answer) {
  // An answer for a tenure that is over comes late, and says nothing about a later one.
  if (!tenure_ || tenure_->token != asked.token || tenure_->ending.over()) return;
  const auto wrong = [&](Token token) {
    if (token == asked.token) return false;
    unanswered(now, {Fault::corrupt, "asked to renew token " + std::to_string(asked.token.value) +
                                         ", the store answered for token " + std::to_string(token.value)});
    return true;
  };
  std::visit(Overloaded{[&](Unknown& a) {
                          tenure_->superseded = a.error.fault == Fault::fenced;
                          tenure_->trouble = printable(a.error.message, longest_text);
                          unanswered(now, std::move(a.error));
                        },
                        [&](Denied& a) {
                          hear(now, a.holder);
                          end_at_once(now, Reason::superseded, "the store refused to renew", a.holder, now);
                        },
                        [&](Granted& a) {
                          if (!wrong(a.token)) extend(asked.asked);
                        },
                        [&](StepDownRequested& a) {
                          if (wrong(a.token)) return;
                          extend(asked.asked);
                          end_voluntarily(now, Reason::step_down, asked_by(a));
                        }},
             answer);
}

void Candidacy::elect(Time now, const Question& asked, Token token) {
  const auto deadline = timing_.deadline(asked.asked);
  if (now >= deadline)
    return unanswered(now, {Fault::timed_out, "a grant came after its own deadline and was not used"});
  if (highest_ && token <= *highest_) {
    release_due_ = true;
    cool_down_ = timing_.term;
    return unanswered(now, {Fault::corrupt, "the store granted token " + std::to_string(token.value) + " after " +
                                                std::to_string(highest_->value) +
                                                ", and tokens must rise: it has lost data. This tenure is handed back "
                                                "unled; restore the store's data"});
  }
  highest_ = token;
  last_error_.reset();
  tenure_.emplace(Tenure{.token = token, .lease = {.timing = timing_}});
  denials_ = unanswered_ = 0;
  progressed_ = now;
  look_for_progress_.reset();
  hear(now, std::nullopt);
  extend(asked.asked);
  emit(effect::Begin{token});
}

void Candidacy::extend(Time asked) {
  auto& t = *tenure_;
  t.lease.extend(asked);
  t.superseded = false;
  t.trouble.clear();
  last_error_.reset();
  next_ask_ = asked + timing_.renew;
  emit(effect::Publish{t.token, t.lease.deadline});
  if (t.ending.draining()) {
    t.ending.renewed(t.lease.end);
    emit(effect::DoneBy{t.ending.done_by()});
  }
}

void Candidacy::unanswered(Time now, Error error) {
  trouble(now, std::move(error));
  await_first_ = false;
  const bool in_trouble = !tenure_ && ++unanswered_ > prompt_acquires;
  next_ask_ = now + jittered(in_trouble ? std::max(timing_.renew, timing_.retry) : timing_.retry);
}

void Candidacy::denied(Time now, const std::optional<Incumbent>& holder) {
  last_error_.reset();
  unanswered_ = 0;
  hear(now, holder);
  if (holder)
    seen_ = *holder;
  else
    seen_ = Vacant{};
  await_first_ = true;
  if (last_denial_ && now >= *last_denial_ + 2 * timing_.retry) denials_ = 0;
  last_denial_ = now;
  next_ask_ = ++denials_ > prompt_denials ? now + jittered(timing_.retry) : std::max(now, next_ask_);
}

// ---- time ----

void Candidacy::judge_expiry(Time now) {
  if (!tenure_ || tenure_->ending.over() || !tenure_->lease.lapsed(now)) return;
  if (tenure_->ending.draining()) {
    tenure_->ending.lapse();
    emit(effect::Withdraw{});
    return;
  }
  const auto reason = tenure_->superseded ? Reason::superseded : Reason::lapsed;
  end_at_once(now, reason, std::move(tenure_->trouble), std::nullopt, tenure_->lease.end);
}

/// Progress is reported without a lock and wakes nobody, so it is looked for as often as a store in trouble.
void Candidacy::watch_progress(Time now) {
  if (look_for_progress_) look_for_progress_ = now + timing_.retry;
  if (stall_.after == Duration::zero() || !leading() || now < progressed_ + stall_.after) return;
  look_for_progress_ = now + timing_.retry;
  cool_down_ = stall_.pause;
  end_voluntarily(now, Reason::stalled, "the work has reported no progress for " + in_ms(stall_.after));
}

void Candidacy::watch_hook(Time now) {
  if (!tenure_) return;
  if (tenure_->ending.expires(now)) emit(effect::FireExpired{});
  if (tenure_->ending.overruns(now)) {
    emit(effect::Overrun{});
    emit(effect::Report{
        {Fault::hook_overran, "ousting() of token " + std::to_string(tenure_->token.value) +
                                  " had not returned when its time was up: the work may run on without a lease. "
                                  "Make it stop sooner, or raise margin and drain"}});
  }
}

/// If we come late ourselves, this process was stopped or starved, and so was the call. Then it gets its grace
/// once more.
void Candidacy::watch_store(Time now) {
  if (!pending_ || pending_->told || now < store_alarm()) return;
  auto& by = pending_->question.by;
  if (!pending_->wedged && now >= by + 2 * overrun_grace && !std::exchange(pending_->excused, true)) {
    by = now;
    return;
  }
  pending_->wedged = true;
  if (now < store_alarm()) return;
  pending_->told = true;
  last_error_ = std::make_shared<const Error>(
      Error{Fault::wedged,
            "a store call (or eligible()) has not returned by its limit: nothing more is asked until it does"});
  emit(effect::Report{*last_error_});
}

/// When a call that is late counts as wedged, and then when that is reported. REQUIRES: pending_.
Candidacy::Time Candidacy::store_alarm() const {
  if (pending_->told) return Time::max();
  return pending_->question.by + (pending_->wedged ? wedged_is_told_after(timing_.call) : overrun_grace);
}

/// It is always later than the last fact, whose tick() did all that was due by then.
Candidacy::Time Candidacy::next_alarm() const {
  auto at = Time::max();
  if (ended_) return at;
  if (tenure_) {
    if (!tenure_->ending.over()) at = std::min(at, tenure_->lease.deadline);
    if (leading() && stall_.after > Duration::zero()) at = std::min(at, progressed_ + stall_.after);
    at = std::min(at, tenure_->ending.next_alarm());
  }
  if (look_for_progress_) at = std::min(at, *look_for_progress_);
  if (pending_) return std::min(at, store_alarm());
  return tenure_ || started_ ? std::min(at, next_ask_) : at;
}

// ---- questions ----

void Candidacy::ask_next(Time now) {
  if (ended_) return;
  if (tenure_) return ask_leading(now);
  const bool wedged = pending_ && pending_->wedged;
  if (stopping_ && (wedged || (!pending_ && (!may_hold_ || stop_released_)))) {
    emit(effect::Ended{wedged});
    ended_ = true;
  } else if (!pending_ && started_) {
    ask_campaigning(now);
  }
}

void Candidacy::ask_leading(Time now) {
  if (!tenure_->ending.renews(now))
    next_ask_ = Time::max();  // Nothing more, until ousting() has returned.
  else if (!pending_ && now >= next_ask_)
    ask(now, Verb::renew, timing_.call);
}

void Candidacy::ask_campaigning(Time now) {
  if (release_due_ || stopping_)
    ask(now, Verb::release, timing_.call);
  else if (now < next_ask_)
    return;
  else if (await_first_)
    ask(now, Verb::await_change, timing_.term);
  else
    ask(now, Verb::acquire, timing_.call);
}

void Candidacy::ask(Time now, Verb verb, Duration limit) {
  const bool may_have_held = std::exchange(may_hold_, may_hold_ || verb == Verb::acquire);
  pending_.emplace(Pending{});
  pending_->may_have_held = may_have_held;
  auto& question = pending_->question;
  question.id = ++last_id_;
  question.verb = verb;
  question.asked = now;
  question.by = now + limit;
  if (verb == Verb::acquire) look_for_progress_.reset();
  if (verb == Verb::renew) question.token = tenure_->token;
  if (verb == Verb::await_change) question.seen = seen_;
  question.if_eligible = verb == Verb::acquire || (verb == Verb::renew && leading());
  emit(effect::Ask{question});
}

// ---- ends ----

/// The work stops first, and renewals go on. The store is told after ousting() has returned.
void Candidacy::end_voluntarily(Time now, Reason reason, std::string detail) {
  if (!leading()) return;
  auto& t = *tenure_;
  t.ending.drain(reason, now + timing_.drain, t.lease.end);
  emit(effect::FireStop{});
  emit(effect::DoneBy{t.ending.done_by()});
  emit(effect::End{t.token, reason, std::move(detail), std::nullopt});
}

void Candidacy::end_at_once(Time now, Reason reason, std::string detail, std::optional<Incumbent> successor,
                            Time done_by) {
  auto& t = *tenure_;
  const bool led = t.ending.leading();
  const auto own_time = t.lease.timing.margin - t.lease.timing.clock_allowance();
  t.ending.lose(reason, done_by, std::max(done_by, now + own_time));
  emit(effect::Withdraw{});
  if (led) emit(effect::FireStop{});
  emit(effect::DoneBy{t.ending.done_by()});
  if (led) emit(effect::End{t.token, reason, std::move(detail), std::move(successor)});
}

// ---- the rest ----

void Candidacy::hear(Time now, std::optional<Incumbent> incumbent) {
  const auto until = incumbent ? now + std::min(incumbent->remaining, max_term) : now;
  if (incumbent) highest_ = std::max(highest_.value_or(Token{}), incumbent->token);
  emit(effect::Heard{std::move(incumbent), until});
}

/// The store gave no answer, but this.
void Candidacy::trouble(Time now, Error error) {
  error.message = printable(error.message, longest_text);
  last_error_ = std::make_shared<const Error>(error);
  if (auto told = repeats_.told(now, std::move(error))) emit(effect::Report{std::move(*told)});
}

Candidacy::Duration Candidacy::jittered(Duration d) {
  const auto part = static_cast<Clock::rep>(next_random(jitter_state_) % 1024);
  return d / 2 + d / 2048 * part;
}

}  // namespace tenure
