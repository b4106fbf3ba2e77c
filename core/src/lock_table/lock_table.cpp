// SPDX-License-Identifier: Apache-2.0
// A Backend over a ConditionalStore: carries questions and answers between the store and the decisions.
#include <unistd.h>

#include <stdexcept>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/store.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/lock_table.hpp>
#include <utility>

#include "kit/random.hpp"
#include "lock_table/lock_table_decisions.hpp"

namespace tenure {
namespace {

class LockTable final : public Backend {
 public:
  LockTable(std::shared_ptr<ConditionalStore> store, std::string election, Candidate candidate, Log log)
      : store_(std::move(store)),
        election_(std::move(election)),
        log_(std::move(log)),
        self_(checked(std::move(candidate))),
        decisions_(who_text(self_, draw_incarnation()), lock_table_presets().balanced) {
    if (!store_) throw std::invalid_argument("lock_table: the store is missing");
    check_election(election_);
  }

  Answer acquire(const Limit& limit) override {
    // It would take its parent's record for its own, and the lead from it.
    if (::getpid() != made_by_) return Unknown{forked_child("the store")};
    contends_ = true;
    lost_race_ = false;
    const auto asked = limit.clock.now();
    if (const auto attempt = succession(asked, limit)) return claim(*attempt, limit);
    if (!std::exchange(looked_, false)) {
      if (auto error = look(limit)) return Unknown{std::move(*error)};
      if (limit.passed()) return Unknown{{Fault::timed_out, "the limit passed before anything was claimed"}};
      if (alarm_) return Unknown{*std::exchange(alarm_, std::nullopt)};
      looked_ = leaves_the_claim_to_the_next(asked, limit);
      if (looked_) return decisions_.denied(limit.clock.now());
    }
    const auto now = limit.clock.now();
    const auto attempt = decisions_.claim(asked, now, random_u64());
    if (auto alarm = decisions_.take_alarm()) return Unknown{std::move(*alarm)};
    if (!attempt) return decisions_.denied(now);
    return claim(*attempt, limit);
  }

  Answer renew(Token token, const Limit& limit) override {
    const auto attempt = decisions_.renewal(token, limit.clock.now(), random_u64());
    if (!attempt) return decisions_.denied(limit.clock.now());
    const auto result = store_->compare_and_set(attempt->expected, attempt->next, limit);
    auto answer = decisions_.renewed(result, limit.clock.now());
    after_sight();
    return answer;
  }

  std::optional<Error> release(const Limit& limit) override {
    contends_ = false;
    const auto asked = limit.clock.now();
    // Every refusal shows another record than the one before it, and only our own late writes ask for another round.
    while (const auto attempt = decisions_.surrender(asked, random_u64())) {
      if (limit.passed()) return Error{Fault::timed_out, "the limit passed before the release was answered"};
      const auto result = store_->compare_and_set(attempt->expected, attempt->next, limit);
      auto error = decisions_.surrendered(result, limit.clock.now());
      after_sight();
      if (error) return error;
    }
    return std::nullopt;
  }

  Sight observe(const Limit& limit) override {
    if (auto error = look(limit)) return Unknown{std::move(*error)};
    if (decisions_.unreadable()) return Unknown{{Fault::corrupt, "the record cannot be read"}};
    if (auto incumbent = decisions_.watched(limit.clock.now())) return std::move(*incumbent);
    return Vacant{};
  }

  /// The caller knows what we saw last.
  void await_change(const Sight&, const Limit& limit) override {
    if (contends_ && looked_) return;
    const auto now = limit.clock.now();
    auto by = limit.by;
    if (contends_) {
      const auto look = decisions_.next_look();
      // It looks again at once only if the due time passed after the last look, or if our last claim lost a race.
      if (look > std::exchange(sighted_, now) || std::exchange(lost_race_, false)) by = std::min(by, look);
    } else {
      by = std::min(by, decisions_.watch_again(now));
    }
    if (by > now) released_ = store_->await_change(decisions_.version(), Limit{limit.clock, by, limit.stop});
  }

  std::optional<Error> request_step_down(const std::string& by, const std::string& why, const Limit& limit) override {
    if (auto error = refused_step_down(by, why)) return error;
    const auto found = store_->read(limit);
    if (!found) return found.error();
    if (found->unreadable) return Error{Fault::corrupt, "the record cannot be read, so that nobody can be asked"};
    if (!found->record || found->record->released) return std::nullopt;
    if (limit.passed()) return Error{Fault::timed_out, "the call ended before the request was written"};
    return store_->request_step_down({found->record->token, by, why}, limit);
  }

  std::optional<Error> accepts(const Timing& timing) override {
    if (auto refusal = store_->accepts(timing)) return refusal;
    decisions_.run_by(timing);
    return std::nullopt;
  }

  std::string election() const override { return election_; }

 private:
  /// The claim on the release that the last wait heard of. It needs no look.
  std::optional<LockTableDecisions::Attempt> succession(Clock::Time asked, const Limit& limit) {
    const auto released = std::exchange(released_, std::nullopt);
    if (!released || alarm_ || limit.passed()) return std::nullopt;
    return decisions_.succession(*released, asked, random_u64());
  }

  /// A claim takes as long as the look before it. If less than that is left, as it is with a store that is far away,
  /// the next acquire() claims what this one saw: two round trips need not fit into one call.
  bool leaves_the_claim_to_the_next(Clock::Time asked, const Limit& limit) const {
    const auto now = limit.clock.now();
    return decisions_.earliest() <= now && limit.by - now < now - asked;
  }

  Answer claim(const LockTableDecisions::Attempt& attempt, const Limit& limit) {
    const auto result = store_->compare_and_set(attempt.expected, attempt.next, limit);
    sighted_ = limit.clock.now();
    auto answer = decisions_.claimed(result, sighted_);
    lost_race_ = std::holds_alternative<Denied>(answer);
    after_sight();
    return answer;
  }

  std::optional<Error> look(const Limit& limit) {
    const auto result = store_->read(limit);
    if (!result) return result.error();
    // A first sighting is timed after its answer.
    const auto& read = *result;
    sighted_ = limit.clock.now();
    decisions_.saw(read, sighted_);
    after_sight();
    if (contends_ && read.read_only && read.read_only != read_only_)
      tell(Level::warning, "this candidate could not lead: " + read.read_only->message);
    read_only_ = read.read_only;
    return std::nullopt;
  }

  void after_sight() {
    if (auto alarm = decisions_.take_alarm()) {
      tell(Level::error, alarm->message);
      alarm_ = std::move(alarm);  // The next acquire() answers with it, once.
    }
    if (!decisions_.copied()) return;
    tell(Level::warning,
         "the store shows a record of ours that we did not write last: a copy of this process is at work, or the store "
         "lost our last write; it counts as somebody else's");
    decisions_.become(who_text(self_, draw_incarnation()));
  }

  void tell(Level level, std::string_view message) const {
    tenure::tell(log_, level, message, {{"election", election_}});
  }

  const pid_t made_by_{::getpid()};
  const std::shared_ptr<ConditionalStore> store_;
  const std::string election_;
  const Log log_;
  const Candidate self_;
  LockTableDecisions decisions_;
  std::optional<Error> alarm_;
  bool contends_{}, lost_race_{};
  Clock::Time sighted_{};            ///< When the last look or claim was answered.
  std::optional<Error> read_only_;   ///< What the store said last.
  bool looked_{};                    ///< The last acquire() saw a record that the next one may claim.
  std::optional<Version> released_;  ///< What the store pushed since the last acquire().
};

}  // namespace

std::shared_ptr<Backend> lock_table(std::shared_ptr<ConditionalStore> store, std::string election, Candidate candidate,
                                    Log log) {
  return std::make_shared<LockTable>(std::move(store), std::move(election), std::move(candidate), std::move(log));
}

Presets lock_table_presets() {
  using std::chrono::seconds;
  return {.fast = Timing::of(seconds(3)), .balanced = Timing::of(seconds(10)), .steady = Timing::of(seconds(30))};
}

}  // namespace tenure
