// SPDX-License-Identifier: Apache-2.0
// One process of a group, with a clock that is only a number and a store that the test plays: it carries a question
// out, or tells that nothing came of it, or both.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/kit/who.hpp>

#include "group_answers.hpp"

namespace tenure::test {

using namespace std::chrono_literals;

inline const Timing group_timing{
    .term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 3s, .clock_rate_error = 0.0005};

/// A store that several scenes may share. Its time is theirs.
struct GroupStage {
  GroupModel store{};
  Clock::Time now{Clock::Time{1h}};

  explicit GroupStage(bool can_lose = false) {
    store.can_lose = can_lose;
    pass(0s);
  }
  void pass(Clock::Duration by) {
    now += by;
    store.now_ms = 1'700'000'000'000 + now.time_since_epoch() / 1ms;
  }
  /// Another process's session. It was just written.
  void rival(SessionId id, std::uint64_t beat) {
    store.sessions[id] = Session{.record = {.token = Token{1},
                                            .beat = beat,
                                            .who = who_text({"rival", ""}, "other"),
                                            .term = group_timing.term,
                                            .asked = now.time_since_epoch(),
                                            .written_ms = store.now_ms}};
  }
  void lead(const std::string& election, Token token, SessionId by, bool released = false) {
    store.leads[election] = {Lead{.token = token, .session = by, .released = released}, ++store.version};
  }
  const Lead& lead(const std::string& election) const { return store.leads.at(election).lead; }
  void ask_to_step_down(const std::string& election) {
    auto& kept = store.leads.at(election);
    kept.lead.step_down = StepDown{kept.lead.token, "ops", "drill"};
    kept.changed = ++store.version;
  }
};

class GroupScene {
 public:
  explicit GroupScene(GroupStage& on, std::uint64_t seed = 100, const Spread& spread = Spread{.on = false},
                      std::size_t hook_threads = SIZE_MAX)
      : stage(on), candidacy(made(seed, spread, hook_threads)) {}

  static GroupCandidacy made(std::uint64_t seed, const Spread& spread, std::size_t hook_threads) {
    return {who_text({"me", "here"}, "life" + std::to_string(seed)), group_timing, [seed]() mutable { return ++seed; },
            spread, hook_threads};
  }
  /// REQUIRES: nothing has happened yet.
  void run_with(const Spread& spread, std::size_t hook_threads = SIZE_MAX) {
    candidacy = made(100, spread, hook_threads);
  }

  // ---- what the user does ----

  void start() { candidacy.start(stage.now), take(); }
  void join(const std::string& election) { candidacy.join(stage.now, election, stall), take(); }
  void leave(const std::string& election) { candidacy.leave(stage.now, election), take(); }
  void resign(const std::string& election, std::optional<Clock::Duration> cool_down = {}) {
    candidacy.resign(stage.now, election, cool_down), take();
  }
  void hand_over(const std::string& election, const std::string& to) {
    candidacy.hand_over(stage.now, election, to), take();
  }
  void stop() { candidacy.stop(stage.now), take(); }
  void ousting_returned(const std::string& election) { candidacy.ousting_returned(stage.now, election), take(); }
  void hooks_hang(bool hang) { candidacy.hooks_hang(stage.now, hang), take(); }
  /// Its work has stopped, and the store knows.
  void work_ended(const std::string& election) { ousting_returned(election), settle(); }
  /// It resigns, its work stops, and the store knows.
  void hand_back(const std::string& election, std::optional<Clock::Duration> cool_down = {}) {
    resign(election, cool_down), work_ended(election);
  }
  void tick() {
    for (const auto& election : candidacy.progress_due(stage.now)) {
      candidacy.progressed(election, worked[election]);
      ++looks_at_work;
    }
    candidacy.tick(stage.now), take();
  }

  void begins(const std::vector<std::string>& elections = {"e"}) {
    for (const auto& election : elections) join(election);
    start();
  }
  void takes_part(const std::vector<std::string>& elections = {"e"}) { begins(elections), settle(); }
  /// Started, and it leads these.
  void lead(const std::vector<std::string>& elections) {
    takes_part(elections);
    for (const auto& election : elections) ASSERT_TRUE(leads(election)) << election;
  }

  // ---- what the store does ----

  template <class What>
  const What* asks() const {
    return asked ? std::get_if<What>(&asked->what) : nullptr;
  }
  const Commit& commit() const {
    static const Commit none{};
    const auto* write = asks<ask::Write>();
    EXPECT_NE(write, nullptr) << "no commit was asked for";
    return write ? write->commit : none;
  }

  /// It takes effect, and nobody hears of it.
  GroupAnswer land() { return land(*asked); }
  GroupAnswer land(const GroupQuestion& question) {
    return carried_out(stage.store, question, [this] { return ++markers_; });
  }
  void tell(const GroupAnswer& answer) { tell(std::exchange(asked, std::nullopt).value(), answer); }
  void tell(const GroupQuestion& question, const GroupAnswer& answer) {
    hand(candidacy, stage.now, question.id, answer), take();
  }
  /// It takes effect and is answered, in no time.
  void answer() {
    ASSERT_TRUE(asked) << "nothing was asked";
    ASSERT_FALSE(asks<ask::Await>()) << "a wait ends by a push, or by its limit";
    tell(land());
  }
  /// No answer came. Whether it took effect, the test decides.
  void unanswered() {
    ASSERT_TRUE(asked);
    tell(no_answer(*asked));
  }
  void push(std::optional<Release> release = {}) {
    ASSERT_TRUE(asks<ask::Await>()) << "nobody waits";
    const auto id = std::exchange(asked, std::nullopt)->id;
    candidacy.awaited(stage.now, id, release);
    take();
  }
  /// Something happened in the store: it looks.
  void look_now() { push(), settle(); }
  void cannot_wait(Error error) {
    ASSERT_TRUE(asks<ask::Await>()) << "nobody waits";
    candidacy.wait_failed(stage.now, std::exchange(asked, std::nullopt)->id, std::move(error));
    take();
  }
  /// Answers all that is asked now. What never comes to rest is a hot loop.
  void settle() {
    for (int i = 0; asked && !asks<ask::Await>(); ++i) {
      ASSERT_LT(i, 50) << "a hot loop at the store";
      answer();
    }
  }
  /// Answers all that is asked on the way, at once.
  void pass(Clock::Duration by) {
    const auto to = stage.now + by;
    settle();
    while (due() <= to && !testing::Test::HasFatalFailure()) {
      step();
      settle();
    }
    stage.pass(to - stage.now);
    tick();
    settle();
  }
  /// Until this is asked, which is left open. All else is answered at once.
  template <class What>
  void pass_until_asked() {
    const auto until = stage.now + 1min;
    while (!asks<What>() && !testing::Test::HasFatalFailure()) {
      if (asked && !asks<ask::Await>()) {
        answer();
        continue;
      }
      ASSERT_LE(due(), until) << "it was never asked";
      step();
    }
  }
  /// Until its next commit, which is answered at once.
  void renew() {
    pass_until_asked<ask::Write>();
    answer();
  }
  /// Until it has looked at the others' sessions.
  void see() {
    pass_until_asked<ask::See>();
    settle();
  }
  /// Nothing that is asked takes effect, and no answer comes.
  void pass_without_store(Clock::Duration by) {
    const auto to = stage.now + by;
    while (due() <= to && !testing::Test::HasFatalFailure()) step();
    stage.pass(to - stage.now);
    tick();
  }

  /// The store is away until the end of the lease.
  void lapse() { pass_without_store(deadline - stage.now); }

  // ---- what came out ----

  bool leads(const std::string& election) const {
    const auto it = led.find(election);
    return it != led.end() && it->second.session == session && stage.now < std::min(deadline, it->second.cap);
  }
  template <class E>
  std::vector<E> all() const {
    std::vector<E> found;
    for (const auto& effect : history)
      if (const auto* e = std::get_if<E>(&effect)) found.push_back(*e);
    return found;
  }
  template <class E>
  std::size_t count() const {
    return all<E>().size();
  }
  bool reported(Fault fault) const {
    const auto reports = all<group_effect::Report>();
    return std::any_of(reports.begin(), reports.end(), [&](const auto& r) { return r.error.fault == fault; });
  }
  std::vector<Reason> reasons() const {
    std::vector<Reason> reasons;
    for (const auto& end : all<group_effect::End>()) reasons.push_back(end.reason);
    return reasons;
  }

  struct Led {
    Token token;
    SessionId session;
    Clock::Time cap{Clock::Time::max()};
  };
  GroupStage& stage;
  GroupCandidacy candidacy;
  StallLimits stall{};                          ///< Of what is joined from now on.
  std::map<std::string, Clock::Time> worked{};  ///< When the work of an election told that it goes on.
  std::size_t looks_at_work{};
  std::optional<GroupQuestion> asked;
  std::vector<GroupEffect> history, newest;  ///< All effects; those of the last fact.
  std::map<std::string, Led> led;
  SessionId session{};
  Clock::Time deadline{};
  std::vector<SessionId> opened;  ///< Every id that was sent.

 private:
  /// When the process does something, or a call reaches its limit.
  Clock::Time due() const { return asked ? std::min(candidacy.next_alarm(), asked->by) : candidacy.next_alarm(); }

  void step() {
    stage.pass(std::max(due() - stage.now, Clock::Duration::zero()));
    if (!asked || stage.now < asked->by)
      tick();
    else if (asks<ask::Await>())
      push();
    else
      unanswered();
    ASSERT_GT(candidacy.next_alarm(), stage.now) << "an alarm that does not move is a hot loop";
  }

  void take() {
    newest.clear();
    do {
      interrupted_ = false;
      std::vector<GroupEffect> effects;
      candidacy.take_effects(effects);
      for (auto& effect : effects) std::visit([this](auto& e) { carry_out(e); }, effect);
      newest.insert(newest.end(), effects.begin(), effects.end());
      history.insert(history.end(), effects.begin(), effects.end());
      if (!interrupted_) continue;
      const bool waited = asks<ask::Await>();
      const auto question = *std::exchange(asked, std::nullopt);
      waited ? candidacy.awaited(stage.now, question.id, std::nullopt)
             : hand(candidacy, stage.now, question.id, no_answer(question));
    } while (interrupted_);
  }
  void carry_out(group_effect::Ask& e) {
    ASSERT_FALSE(asked) << "two questions at once";
    asked = e.question;
    if (const auto* open = asks<ask::Open>()) opened.push_back(open->id);
  }
  void carry_out(group_effect::Interrupt&) {
    ASSERT_TRUE(asked);
    interrupted_ = true;
  }
  void carry_out(group_effect::Publish& e) { session = e.session, deadline = e.deadline; }
  void carry_out(group_effect::Withdraw&) { session = {}; }
  void carry_out(group_effect::Lead& e) { led[e.election] = {e.token, e.session}; }
  void carry_out(group_effect::Unlead& e) { led.erase(e.election); }
  void carry_out(group_effect::Cap& e) { led.at(e.election).cap = e.at; }
  template <class Other>
  void carry_out(Other&) {}

  std::uint64_t markers_{1000};
  bool interrupted_{};
};

inline constexpr SessionId rival{7};

/// Most tests are of one process.
struct GroupTest : testing::Test {
  /// "e", in a session that was just written.
  void rival_leads(std::uint64_t beat = 1, Token token = {5}, bool released = false) {
    stage.rival(rival, beat);
    stage.lead("e", token, rival, released);
  }

  /// Not an instant sooner.
  void expect_leads_after(Clock::Duration wait, const std::string& election = "e") {
    me.pass(wait - 1ns);
    EXPECT_FALSE(me.leads(election));
    me.pass(1ns);
    EXPECT_TRUE(me.leads(election));
  }

  GroupStage stage;
  GroupScene me{stage};
};

}  // namespace tenure::test
