// SPDX-License-Identifier: Apache-2.0
// The rules of core/README.md: how each fact changes the state, and which effects follow.
#include "election/candidacy.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kit/in_ms.hpp"
#include "kit/random.hpp"
#include "kit/require.hpp"

namespace tenure {
namespace {

/// This many denials in a row are taken as news, if less than two retries lie between them. More of them mean that the
/// store wakes us for nothing.
constexpr int prompt_denials = 8;

/// This many acquires in a row without an answer are repeated soon. Further ones leave a store in trouble alone.
constexpr int prompt_acquires = 8;

/// A longer one means never, and could overflow a Clock::Time.
constexpr Clock::Duration longest_stall = std::chrono::hours(24 * 365 * 100);

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

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

/// A follower looks within a term, also where nothing tells it of the release. Until then the lead is left to it.
void Candidacy::resign(Time now, std::optional<Duration> cool_down) {
  judge_expiry(now);
  const bool ends_already = tenure_ && !leading() && !look_for_progress_;
  look_for_progress_.reset();
  const bool leads = leading() || (tenure_ && tenure_->ending.draining());
  const auto pause = std::clamp(cool_down.value_or(leads ? timing_.term : timing_.retry), Duration::zero(), max_term);
  cool_down_ = ends_already ? std::max(cool_down_, pause) : pause;  // Who ended it may have asked for more.
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
  if (const auto pending = settle(now, id); pending && !pending->wedged) {
    if (pending->question.verb == Verb::renew)
      renew_answered(now, pending->question, std::move(answer));
    else
      acquire_answered(now, *pending, std::move(answer));
  }
  tick(now);
}

void Candidacy::ineligible(Time now, std::uint64_t id) {
  judge_expiry(now);
  if (const auto pending = settle(now, id)) {  // However late: it is the user's word, and not the store's.
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
  if (const auto pending = settle(now, id); pending && !pending->wedged) {
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
  if (const auto pending = settle(now, id); pending && !pending->wedged) {
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
    if (ending.draining()) emit(effect::Unlead{});
    if (voluntary(ending.reason())) release_due_ = true;
    if (ending.reason() == Reason::step_down) cool_down_ = std::max(cool_down_, timing_.term);
    tenure_.reset();
    await_first_ = false;
    next_ask_ = now;
  }
  tick(now);
}

void Candidacy::progressed(Time at) {
  if (tenure_) tenure_->progressed = std::max(tenure_->progressed, at);
  if (!look_for_progress_ || at <= stalled_since_) return;
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

/// The outstanding question, if this is its answer. The answer to a wedged one is worth nothing. If nobody was told of
/// that yet, it is trouble like any other: a call that is late for a moment each time would lose the lead in silence.
std::optional<Candidacy::Pending> Candidacy::settle(Time now, std::uint64_t id) {
  if (!pending_ || pending_->question.id != id) return std::nullopt;
  auto pending = std::exchange(pending_, std::nullopt);
  if (pending->told) {
    emit(effect::Report{{Fault::wedged, "the store call that ignored its limit has returned"}, {}});
  } else if (pending->wedged) {
    Error late{Fault::timed_out,
               "a store call (or eligible()) took " + in_ms(now - pending->question.by) +
                   " longer than it may, so the answer is not used: make it quicker, or raise Timing::call"};
    if (tenure_ && pending->question.verb == Verb::renew) tenure_->trouble = late.message;
    unanswered(now, std::move(late));
  }
  return pending;
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
                          if (tenure_) end_voluntarily(now, Reason::step_down, asked_by(a.by, a.why));
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
                          end_voluntarily(now, Reason::step_down, asked_by(a.by, a.why));
                        }},
             answer);
}

void Candidacy::elect(Time now, const Question& asked, Token token) {
  TENURE_REQUIRE(!tenure_);
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
  tenure_.emplace(Tenure{{.token = token, .progressed = now}, {.timing = timing_}});
  denials_ = unanswered_ = 0;
  look_for_progress_.reset();
  hear(now, std::nullopt);
  extend(asked.asked);
  emit(effect::Begin{{}, token});
}

void Candidacy::extend(Time asked) {
  auto& t = *tenure_;
  t.lease.extend(asked);
  t.superseded = false;
  t.trouble.clear();
  last_error_.reset();
  next_ask_ = asked + timing_.renew;
  emit(effect::Publish{t.token, t.lease.deadline});
  t.renewed(emitter(), {}, t.lease.end);
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
  if (tenure_->ending.draining()) return tenure_->lapse(emitter(), {});
  const auto reason = tenure_->superseded ? Reason::superseded : Reason::lapsed;
  end_at_once(now, reason, std::move(tenure_->trouble), std::nullopt, tenure_->lease.end);
}

/// Progress is reported without a lock and wakes nobody, so it is looked for as often as a store in trouble.
void Candidacy::watch_progress(Time now) {
  if (look_for_progress_) look_for_progress_ = now + timing_.retry;
  if (!tenure_ || !tenure_->stalls(now, stall_)) return;
  stalled_since_ = tenure_->progressed;
  look_for_progress_ = now + timing_.retry;
  cool_down_ = stall_.pause;
  end_voluntarily(now, Reason::stalled, "the work has reported no progress for " + in_ms(stall_.after));
}

void Candidacy::watch_hook(Time now) {
  if (tenure_) tenure_->watch_hook(emitter(), {}, now);
}

void Candidacy::watch_store(Time now) {
  if (!pending_ || !pending_->watch(now, pending_->question.by, timing_.call)) return;
  last_error_ = std::make_shared<const Error>(
      Error{Fault::wedged,
            "a store call (or eligible()) has not returned by its limit: nothing more is asked until it does"});
  emit(effect::Report{*last_error_, {}});
}

/// It is always later than the last fact, whose tick() did all that was due by then.
Candidacy::Time Candidacy::next_alarm() const {
  auto at = Time::max();
  if (ended_) return at;
  if (tenure_) {
    if (!tenure_->ending.over()) at = std::min(at, tenure_->lease.deadline);
    at = std::min({at, tenure_->stalls_at(stall_), tenure_->ending.next_alarm()});
  }
  if (look_for_progress_) at = std::min(at, *look_for_progress_);
  if (pending_) return std::min(at, pending_->alarm(pending_->question.by, timing_.call));
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
  TENURE_REQUIRE(!pending_);
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

void Candidacy::end_voluntarily(Time now, Reason reason, std::string detail) {
  if (leading())
    tenure_->end_voluntarily(emitter(), {}, reason, std::move(detail), now + timing_.drain, tenure_->lease.end);
}

void Candidacy::end_at_once(Time now, Reason reason, std::string detail, std::optional<Incumbent> successor,
                            Time done_by) {
  const auto& timing = tenure_->lease.timing;
  tenure_->end_at_once(emitter(), {}, reason, std::move(detail), std::move(successor), done_by,
                       now + timing.margin - timing.clock_allowance());
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
  if (auto told = repeats_.told(now, std::move(error))) emit(effect::Report{std::move(*told), {}});
}

Candidacy::Duration Candidacy::jittered(Duration d) {
  const auto part = static_cast<Clock::rep>(next_random(jitter_state_) % 1024);
  return d / 2 + d / 2048 * part;
}

}  // namespace tenure
