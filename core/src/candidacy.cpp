// SPDX-License-Identifier: Apache-2.0
#include "candidacy.hpp"

#include <algorithm>
#include <utility>

namespace tenure {
namespace {

/// So many denials in a row, none two retries after the last, are news; more are a store that wakes us for nothing.
constexpr int prompt_denials = 8;

/// So many acquires in a row without an answer are asked again soon; further ones leave a store in trouble alone.
constexpr int prompt_acquires = 8;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

bool voluntary(Reason reason) { return reason != Reason::lapsed && reason != Reason::superseded; }

}  // namespace

Candidacy::Candidacy(const Timing& timing, std::uint64_t jitter_seed) : timing_(timing), jitter_state_(jitter_seed) {
  effects_.reserve(32);
}

// ---- facts ----

void Candidacy::start(Time now) {
  started_ = true;
  tick(now);
}

void Candidacy::retime(Time now, const Timing& timing) {
  judge_expiry(now);
  wanted_ = timing;
  if (tenure_) next_ask_ = now;
  tick(now);
}

void Candidacy::timing_refused(Time now, std::uint64_t id, Error error) {
  judge_expiry(now);
  if (const auto pending = settle(id)) {
    may_hold_ = pending->may_have_held;
    timing_ = former_timing_;
    next_ask_ = now;
    report(std::move(error));
  }
  tick(now);
}

void Candidacy::resign(Time now, std::optional<Duration> cool_down) {
  judge_expiry(now);
  cool_down_ = std::clamp(cool_down.value_or(timing_.retry), Duration::zero(), max_term);
  if (tenure_ && tenure_->stage == Stage::leading) {
    end_voluntarily(now, Reason::resigned, "resign() was called");
  } else {
    release_due_ = may_hold_;
    next_ask_ = now + cool_down_;
    if (pending_ && pending_->question.verb == Verb::acquire) pending_->unwanted = true;
    if (pending_ && pending_->question.verb == Verb::await_change) emit(effect::Interrupt{});
  }
  tick(now);
}

void Candidacy::stop(Time now) {
  if (stopping_) return;
  judge_expiry(now);
  stopping_ = true;
  if (tenure_ && tenure_->stage == Stage::leading) end_voluntarily(now, Reason::stopped, "stop() was called");
  if (pending_ && pending_->question.verb != Verb::renew) {
    pending_->unwanted = true;
    if (pending_->question.verb == Verb::await_change) pending_->question.by = std::min(pending_->question.by, now);
    if (pending_->question.verb != Verb::release) emit(effect::Interrupt{});
  }
  tick(now);
}

void Candidacy::answered(Time now, std::uint64_t id, Answer answer) {
  judge_expiry(now);  // before the answer: a lapsed tenure is never revived
  if (const auto pending = settle(id)) {
    if (pending->question.verb == Verb::renew)
      renew_answered(now, pending->question, std::move(answer));
    else
      acquire_answered(now, *pending, std::move(answer));
  }
  tick(now);
}

void Candidacy::ineligible(Time now, std::uint64_t id) {
  judge_expiry(now);
  if (const auto pending = settle(id)) {
    next_ask_ = now + timing_.renew;
    if (pending->question.verb == Verb::renew) {
      if (tenure_ && tenure_->stage == Stage::leading) end_voluntarily(now, Reason::ineligible, "eligible() said no");
    } else {
      may_hold_ = pending->may_have_held;
      if (may_hold_) {
        release_due_ = true;
        cool_down_ = timing_.renew;
      }
    }
  }
  tick(now);
}

void Candidacy::released(Time now, std::uint64_t id, std::optional<Error> error) {
  if (settle(id)) {
    release_due_ = false;
    stop_released_ = stopping_;
    if (error)
      report(std::move(*error));
    else
      may_hold_ = false;
    next_ask_ = now + std::exchange(cool_down_, Duration::zero());
    await_first_ = false;
  }
  tick(now);
}

void Candidacy::change_awaited(Time now, std::uint64_t id) {
  if (settle(id)) await_first_ = false;
  tick(now);
}

void Candidacy::ousting_returned(Time now) {
  judge_expiry(now);
  if (tenure_ && tenure_->stage != Stage::leading) {
    if (tenure_->stage == Stage::draining) emit(effect::Withdraw{});
    if (voluntary(tenure_->reason)) release_due_ = true;
    if (tenure_->reason == Reason::recalled) cool_down_ = timing_.term;
    tenure_.reset();
    await_first_ = false;
    next_ask_ = now;
  }
  tick(now);
}

void Candidacy::tick(Time now) {
  judge_expiry(now);
  watch_hook(now);
  watch_store(now);
  ask_next(now);
}

void Candidacy::take_effects(std::vector<Effect>& into) {
  into.clear();
  into.swap(effects_);
}

// ---- answers ----

/// The outstanding question, if this is its answer and still worth something.
std::optional<Candidacy::Pending> Candidacy::settle(std::uint64_t id) {
  if (!pending_ || pending_->question.id != id) return std::nullopt;
  auto pending = std::exchange(pending_, std::nullopt);
  if (!pending->wedged) return pending;
  report({Fault::wedged, "the store call that ignored its limit has returned; its answer is not used"});
  return std::nullopt;
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
                        [&](Recalled& a) {
                          granted(a.token);
                          if (tenure_) end_voluntarily(now, Reason::recalled, "asked by " + a.by + ": " + a.why);
                        }},
             answer);
}

void Candidacy::renew_answered(Time now, const Question& asked, Answer answer) {
  // Of a tenure that is over: late, and says nothing about a later one.
  if (!tenure_ || tenure_->token != asked.token || tenure_->stage == Stage::over) return;
  const auto wrong = [&](Token token) {
    if (token == asked.token) return false;
    unanswered(now, {Fault::corrupt, "asked to renew token " + std::to_string(asked.token.value) +
                                         ", the store answered for token " + std::to_string(token.value)});
    return true;
  };
  std::visit(Overloaded{[&](Unknown& a) {
                          tenure_->deposed = a.error.fault == Fault::deposed;
                          tenure_->trouble = a.error.message;
                          unanswered(now, std::move(a.error));
                        },
                        [&](Denied& a) {
                          hear(now, a.holder);
                          end_at_once(now, Reason::superseded, "the store refused to renew", a.holder, now);
                        },
                        [&](Granted& a) {
                          if (!wrong(a.token)) extend(asked);
                        },
                        [&](Recalled& a) {
                          if (wrong(a.token)) return;
                          extend(asked);
                          end_voluntarily(now, Reason::recalled, "asked by " + a.by + ": " + a.why);
                        }},
             answer);
}

void Candidacy::elect(Time now, const Question& asked, Token token) {
  const auto deadline = asked.asked + timing_.term - timing_.margin;
  if (now >= deadline)
    return unanswered(now, {Fault::timed_out, "a grant came after its own deadline and was not used"});
  if (highest_ && token <= *highest_) {
    release_due_ = true;
    cool_down_ = timing_.term;
    return unanswered(now, {Fault::corrupt, "the store granted token " + std::to_string(token.value) + " after " +
                                                std::to_string(highest_->value) +
                                                ": tokens must rise; it has lost data. Not led by"});
  }
  highest_ = token;
  last_trouble_.reset();
  auto& t = tenure_.emplace(Tenure{});
  t.token = token;
  t.deadline = deadline;
  t.lease_end = asked.asked + timing_.term - timing_.clock_allowance();
  next_ask_ = asked.asked + timing_.renew;
  denials_ = unanswered_ = 0;
  hear(now, std::nullopt);
  emit(effect::Publish{token, deadline});
  emit(effect::Begin{token});
}

void Candidacy::extend(const Question& asked) {
  auto& t = *tenure_;
  t.deadline = std::max(t.deadline, asked.asked + timing_.term - timing_.margin);
  t.lease_end = std::max(t.lease_end, asked.asked + timing_.term - timing_.clock_allowance());
  t.deposed = false;
  t.trouble.clear();
  last_trouble_.reset();
  next_ask_ = wanted_ ? asked.asked : asked.asked + timing_.renew;
  emit(effect::Publish{t.token, t.deadline});
  if (t.stage == Stage::draining) {
    t.done_by = t.overrun_at = std::min(t.drain_by, t.lease_end);
    emit(effect::DoneBy{t.done_by});
  }
}

void Candidacy::unanswered(Time now, Error error) {
  report(std::move(error));
  await_first_ = false;
  const bool in_trouble = !tenure_ && ++unanswered_ > prompt_acquires;
  next_ask_ = now + jittered(in_trouble ? std::max(timing_.renew, timing_.retry) : timing_.retry);
}

void Candidacy::denied(Time now, const std::optional<Incumbent>& holder) {
  last_trouble_.reset();
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
  if (!tenure_ || tenure_->stage == Stage::over || now < tenure_->deadline) return;
  if (tenure_->stage == Stage::draining) {
    tenure_->stage = Stage::over;
    emit(effect::Withdraw{});
    return;
  }
  const auto reason = tenure_->deposed ? Reason::superseded : Reason::lapsed;
  end_at_once(now, reason, std::move(tenure_->trouble), std::nullopt, tenure_->lease_end);
}

void Candidacy::watch_hook(Time now) {
  if (!tenure_ || tenure_->stage == Stage::leading) return;
  auto& t = *tenure_;
  if (!t.expired_fired && now >= t.done_by) {
    t.expired_fired = true;
    emit(effect::FireExpired{});
  }
  if (!t.overrun_told && now >= t.overrun_at) {
    t.overrun_told = true;
    emit(effect::Overrun{});
    report({Fault::hook_overran, "ousting() of token " + std::to_string(t.token.value) +
                                     " had not returned when its time was up; the store is told after it returns"});
  }
}

void Candidacy::watch_store(Time now) {
  if (!pending_ || pending_->wedged || now < pending_->question.by + overrun_grace) return;
  pending_->wedged = true;
  report({Fault::wedged,
          "a store call (or eligible()) has not returned by its limit: nothing more is asked until it does"});
}

Candidacy::Time Candidacy::next_alarm() const {
  auto at = Time::max();
  if (ended_) return at;
  if (tenure_) {
    const auto& t = *tenure_;
    if (t.stage != Stage::over) at = std::min(at, t.deadline);
    if (t.stage != Stage::leading && !t.expired_fired) at = std::min(at, t.done_by);
    if (t.stage != Stage::leading && !t.overrun_told) at = std::min(at, t.overrun_at);
  }
  if (pending_) return pending_->wedged ? at : std::min(at, pending_->question.by + overrun_grace);
  if (tenure_ ? renewing(next_ask_) : started_) at = std::min(at, next_ask_);
  return at;
}

// ---- questions ----

bool Candidacy::renewing(Time at) const {
  return tenure_->stage == Stage::leading || (tenure_->stage == Stage::draining && at < tenure_->drain_by);
}

void Candidacy::ask_next(Time now) {
  if (ended_) return;
  if (tenure_) {
    if (!pending_ && now >= next_ask_ && renewing(now)) ask(now, Verb::renew, timing_.call);
    return;
  }
  const bool wedged = pending_ && pending_->wedged;
  if (stopping_ && (wedged || (!pending_ && (!may_hold_ || stop_released_)))) {
    ended_ = true;
    emit(effect::Ended{wedged});
  } else if (!pending_ && started_) {
    ask_campaigning(now);
  }
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
  if (wanted_ && (verb == Verb::acquire || verb == Verb::renew)) adopt_timing(question);
  if (verb == Verb::renew) question.token = tenure_->token;
  if (verb == Verb::await_change) question.seen = seen_;
  question.if_eligible = verb == Verb::acquire || (verb == Verb::renew && tenure_->stage == Stage::leading);
  emit(effect::Ask{question});
}

/// A question is asked, written and answered by one timing. A shorter term binds from when it may have been written: a
/// follower that reads it waits no longer; a longer one from its answer.
void Candidacy::adopt_timing(Question& question) {
  former_timing_ = std::exchange(timing_, *std::exchange(wanted_, std::nullopt));
  question.retimed = timing_;
  question.by = question.asked + timing_.call;
  if (!tenure_) return;
  auto& t = *tenure_;
  t.lease_end = std::min(t.lease_end, question.asked + timing_.term - timing_.clock_allowance());
  t.deadline = std::min(t.deadline, question.asked + timing_.term - timing_.margin);
  if (t.stage == Stage::draining) t.done_by = t.overrun_at = std::min(t.done_by, t.lease_end);
  emit(effect::Publish{t.token, t.deadline});
}

// ---- ends ----

/// Work stops first, the store is told after ousting() has returned; renewals go on meanwhile.
void Candidacy::end_voluntarily(Time now, Reason reason, std::string detail) {
  auto& t = *tenure_;
  if (t.stage != Stage::leading) return;
  t.stage = Stage::draining;
  t.reason = reason;
  t.drain_by = now + timing_.drain;
  t.done_by = t.overrun_at = std::min(t.drain_by, t.lease_end);
  emit(effect::FireStop{});
  emit(effect::DoneBy{t.done_by});
  emit(effect::End{t.token, reason, std::move(detail), std::nullopt});
}

void Candidacy::end_at_once(Time now, Reason reason, std::string detail, std::optional<Incumbent> successor,
                            Time done_by) {
  auto& t = *tenure_;
  emit(effect::Withdraw{});
  if (t.stage == Stage::leading) emit(effect::FireStop{});
  const bool told = t.stage == Stage::draining;
  t.stage = Stage::over;
  t.done_by = std::min(t.done_by, done_by);
  t.overrun_at = std::min(t.overrun_at, std::max(done_by, now + timing_.margin - timing_.clock_allowance()));
  emit(effect::DoneBy{t.done_by});
  if (told) return;
  t.reason = reason;
  emit(effect::End{t.token, reason, std::move(detail), std::move(successor)});
}

// ---- the rest ----

void Candidacy::hear(Time now, std::optional<Incumbent> incumbent) {
  const auto until = incumbent ? now + incumbent->remaining : now;
  emit(effect::Heard{std::move(incumbent), until});
}

void Candidacy::report(Error error) {
  if (last_trouble_ == error) return;
  last_trouble_ = error;
  emit(effect::Report{std::move(error)});
}

Candidacy::Duration Candidacy::jittered(Duration d) {
  auto z = (jitter_state_ += 0x9e3779b97f4a7c15);  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  const auto part = static_cast<Clock::rep>((z ^ (z >> 31)) % 1024);
  return d / 2 + d / 2048 * part;
}

}  // namespace tenure
