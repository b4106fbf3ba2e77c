// SPDX-License-Identifier: Apache-2.0
// Every decision of an election, and nothing else: facts go in, effects come out. There is no thread here, no I/O and
// no clock. core/README.md has the rules, by number. candidacy_test.cpp drives them one by one; candidacy_sim_test.cpp
// drives whole elections at random and judges each effect by them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/hooks.hpp>
#include <tenure/kit/repeats.hpp>
#include <tenure/timing.hpp>

#include "election/late_call.hpp"
#include "election/lease.hpp"
#include "election/tenure.hpp"

namespace tenure {

enum class Verb { acquire, renew, release, await_change };

/// A question to the store. `asked` was taken before it left, and a lease runs from there.
struct Question {
  std::uint64_t id{};
  Verb verb{};
  Token token{};       ///< Of renew: which tenure.
  Sight seen{};        ///< Of await_change: what we know.
  bool if_eligible{};  ///< The user is asked first.
  Clock::Time asked{}, by{};
};

namespace effect {
// clang-format off
struct Ask { Question question; };              ///< A question; no other one is outstanding.
struct Interrupt {};                            ///< Nobody waits for the outstanding answer any more.
struct Publish { Token token; Clock::Time deadline; };  ///< is_leader() holds until then.
struct Heard { std::optional<Incumbent> incumbent; Clock::Time until; };  ///< Who leads, and until when at most.
struct Ended { bool store_wedged; };            ///< stop() has done its work.
// clang-format on
}  // namespace effect

using Effect = std::variant<effect::Ask, effect::Interrupt, effect::Publish, effect::Unlead, effect::Begin,
                            effect::FireStop, effect::DoneBy, effect::End, effect::FireExpired, effect::Overrun,
                            effect::Report, effect::Heard, effect::Ended>;

class Candidacy {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;
  using Effect = tenure::Effect;

  Candidacy(const Timing& timing, std::uint64_t jitter_seed, StallLimits stall = {});

  // Facts. `now` never falls from one fact to the next.
  void start(Time now);
  void resign(Time now, std::optional<Duration> cool_down);
  void stop(Time now);
  void answered(Time now, std::uint64_t id, Answer answer);  ///< acquire, renew
  void ineligible(Time now, std::uint64_t id);               ///< the user said no; the store was not asked
  void released(Time now, std::uint64_t id, std::optional<Error> error);
  void change_awaited(Time now, std::uint64_t id, std::optional<Error> error);  ///< await_change returned, or failed
  void ousting_returned(Time now);
  void progressed(Time at);  ///< The work told then that it goes on. Comes before any other fact: each one decides.
  void tick(Time now);       ///< time has passed

  /// When tick() is due, if no other fact comes first.
  Time next_alarm() const;

  /// Until when our lease lets us lead, if we have one.
  std::optional<Time> deadline() const {
    return tenure_ && !tenure_->ending.over() ? std::optional(tenure_->lease.deadline) : std::nullopt;
  }

  /// Until when the present question should be answered. Never, if there is none.
  Time answer_by() const { return pending_ ? pending_->question.by : Time::max(); }

  /// Nothing waits for the present question any more.
  bool wedged() const { return pending_ && pending_->wedged; }

  /// Until when ousting() should return. Never, if none is due.
  Time work_by() const { return tenure_ ? tenure_->ending.overrun_at() : Time::max(); }

  /// When the work went on last, while it is watched.
  std::optional<Time> progressed_at() const {
    return leading() && stall_.after > Duration::zero() ? std::optional(tenure_->progressed) : std::nullopt;
  }

  /// A tenure ended because of the work, which has not gone on since, and no other tenure has begun.
  bool stalled() const { return look_for_progress_.has_value(); }

  /// What the store did last in place of an answer. Nothing, once it has answered.
  const std::shared_ptr<const Error>& last_error() const { return last_error_; }

  /// The effects since the last call. They are carried out in this order. `into` is cleared, and its room is used for
  /// the next ones, so that a deadline is served without an allocation.
  void take_effects(std::vector<Effect>& into);

  bool over() const { return ended_; }

 private:
  struct Pending : LateCall {
    Question question{};
    bool may_have_held{};  ///< As it was before this question.
    bool unwanted{};       ///< resign() or stop() came meanwhile: a grant is handed back.
  };
  struct Tenure : tenure::Tenure {
    Lease lease{};
    bool superseded{};      ///< The store renews no more: another one will lead when the lease ends.
    std::string trouble{};  ///< Why the last renewal failed.
  };

  std::optional<Pending> settle(Time now, std::uint64_t id);
  void acquire_answered(Time now, const Pending& asked, Answer answer);
  void renew_answered(Time now, const Question& asked, Answer answer);
  void elect(Time now, const Question& asked, Token token);
  void extend(Time asked);
  void unanswered(Time now, Error error);
  void trouble(Time now, Error error);
  void denied(Time now, const std::optional<Incumbent>& holder);
  void judge_expiry(Time now);
  void watch_progress(Time now);
  void watch_hook(Time now);
  void watch_store(Time now);
  void ask_next(Time now);
  void ask_leading(Time now);
  void ask_campaigning(Time now);
  void ask(Time now, Verb verb, Duration limit);
  void end_voluntarily(Time now, Reason reason, std::string detail);
  void end_at_once(Time now, Reason reason, std::string detail, std::optional<Incumbent> successor, Time done_by);
  auto emitter() {
    return [this](auto effect) { emit(std::move(effect)); };
  }
  void hear(Time now, std::optional<Incumbent> incumbent);
  void emit(Effect effect) {
    if (!ended_) effects_.push_back(std::move(effect));  // Facts may come later, such as the return of a wedged call.
  }
  bool leading() const { return tenure_ && tenure_->ending.leading(); }
  Duration jittered(Duration d);

  StallLimits stall_;
  Timing timing_;
  std::uint64_t jitter_state_;
  std::vector<Effect> effects_;
  std::uint64_t last_id_{0};
  std::optional<Pending> pending_;
  std::optional<Tenure> tenure_;
  std::optional<Token> highest_;  ///< Of every tenure of ours, and of any that we heard of.
  Time next_ask_{Time::min()};
  Duration cool_down_{};  ///< It begins after the release that is due.
  Sight seen_{};
  bool await_first_{};  ///< We were denied: a change comes before the next attempt.
  std::optional<Time> last_denial_;
  int denials_{}, unanswered_{};
  Time stalled_since_{Time::min()};          ///< The work that stalled last had told nothing since.
  std::optional<Time> look_for_progress_{};  ///< We stalled, and contend once it goes on or the pause is over.
  bool may_hold_{};                          ///< We asked for the lead since the last release.
  bool release_due_{};
  bool started_{}, stopping_{}, stop_released_{}, ended_{};
  std::shared_ptr<const Error> last_error_;  ///< Of the store, while it has not answered since.
  Repeats repeats_;
};

}  // namespace tenure
