// SPDX-License-Identifier: Apache-2.0
// For the tests of Neli: facts are handed to one Neli at chosen moments of a clock that is only a number, and its
// effects are compared. The test plays the store, the group and the callers.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "neli.hpp"

namespace tenure::kafka {

using namespace std::chrono_literals;
using Time = Clock::Time;

inline constexpr auto lease = 6250ms;
inline constexpr auto margin = 250ms;
inline constexpr std::int64_t unix_start = 1'700'000'000'000;

inline Neli::Config config() {
  return {.lease = lease,
          .margin = margin,
          .observe_every = 250ms,
          .name = "me",
          .address = "me:1",
          .incarnation = "mine",
          .first_claim_waits = false,
          .remote_step_down = false,
          .highest = {}};
}

inline Commit record(std::int64_t token, const std::string& incarnation = "other", bool released = false,
                     std::uint64_t seq = 1, Clock::Duration its_lease = lease) {
  return {token, encode(Record{released, its_lease, seq, {incarnation, incarnation, incarnation + ":1"}})};
}

/// Whom record(41) names.
inline const Incumbent of_41{"other", "other", "other:1", {41}, 1s};
inline const Error unreachable{Fault::unreachable, "broker away"};
inline const Error fenced{Fault::fenced, "UNKNOWN_MEMBER_ID"};

/// One Neli, and everything round it played by hand.
class Scene {
 public:
  explicit Scene(Neli::Config s = config()) : neli(std::move(s)) {}

  void give(const Fact& fact) {
    if (const auto* answer = std::get_if<fact::Committed>(&fact); answer && unanswered == answer->id) unanswered = 0;
    if (std::holds_alternative<fact::Revoked>(fact)) may_commit = false;
    for (auto& next : neli.on(fact, now, unix_start + (now - start) / 1ms)) {
      std::visit([this](const auto& effect) { keeps_the_fence(effect); }, next);
      effects.push_back(std::move(next));
    }
  }
  /// Rules 11 and 13: a commit between an assignment and our own unassign only, one at a time, and no unassign before
  /// its answer. Checked in every test.
  void keeps_the_fence(const effect::Assign&) { may_commit = true; }
  void keeps_the_fence(const effect::Unassign&) {
    EXPECT_FALSE(unanswered) << "sent later, the commit would carry the next generation";
    may_commit = false;
  }
  void keeps_the_fence(const effect::Drop&) {
    unanswered = 0;
    may_commit = false;
  }
  void keeps_the_fence(const effect::SendCommit& send) {
    EXPECT_TRUE(may_commit) << "a commit outside of an assignment";
    EXPECT_FALSE(unanswered) << "two commits at a time";
    unanswered = send.id;
  }
  template <class Other>
  void keeps_the_fence(const Other&) {}
  /// Stops at every alarm on the way, as the serving thread does.
  void advance(Clock::Duration by) {
    const auto to = now + by;
    for (auto alarm = neli.alarm(); alarm <= to; alarm = neli.alarm()) {
      ASSERT_GT(alarm, now) << "an alarm that does not move is a hot loop";
      now = alarm;
      give(fact::Elapsed{});
      if (answering) answer_reads();
    }
    now = to;
    give(fact::Elapsed{});
    if (answering) answer_reads();
  }
  /// From here on every read shows this, and advance() answers it at once.
  void stands(std::optional<Commit> found) {
    world = std::move(found);
    answering = true;
    answer_reads();
  }
  void answer_reads() {
    while (did<effect::Observe>()) observed(world);
    while (did<effect::ReadMember>()) read(world);
  }

  std::uint64_t call(Verb verb, Token of = {}, Sight seen = Vacant{}, Clock::Duration within = 2s) {
    give(fact::Called{++calls, verb, now + within, of, std::move(seen)});
    return calls;
  }
  void observed(std::optional<Commit> found, bool new_group = false) {
    give(fact::Observed{take<effect::Observe>().id, std::move(found), new_group});
  }
  void observed(Error error) { give(fact::Observed{take<effect::Observe>().id, std::move(error)}); }
  void assigned(bool owner, int generation = 7, const std::string& member = "one") {
    give(fact::Assigned{handle, owner, generation, member});
  }
  void committed(Outcome outcome = Outcome::accepted, Error error = {}) {
    give(fact::Committed{sent.id, outcome, std::move(error)});
  }
  void committed_again(Outcome outcome = Outcome::accepted) {
    give(fact::Committed{sent.id, outcome, outcome == Outcome::accepted ? Error{} : unreachable, true});
  }
  void read(std::optional<Commit> found, const std::string& carried) {
    give(fact::MemberRead{take<effect::ReadMember>().id, Reading{std::move(found), carried}});
  }
  void read(std::optional<Commit> found) { read(std::move(found), nonce); }

  /// The next effect of a kind; those before it stay.
  template <class A>
  A take() {
    const auto it =
        std::find_if(effects.begin(), effects.end(), [](const auto& a) { return std::holds_alternative<A>(a); });
    if (it == effects.end()) {
      ADD_FAILURE() << "nothing of the kind was done";
      return {};
    }
    auto out = std::get<A>(*it);
    effects.erase(it);
    return out;
  }
  template <class A>
  bool did() const {
    return std::any_of(effects.begin(), effects.end(), [](const auto& a) { return std::holds_alternative<A>(a); });
  }
  Commit take_commit(int partition) {
    sent = take<effect::SendCommit>();
    EXPECT_EQ(sent.partition, partition);
    if (partition == 1) nonce = sent.commit.metadata;
    return sent.commit;
  }
  Record take_record() {
    const auto commit = take_commit(0);
    const auto out = decode(commit.metadata);
    EXPECT_TRUE(out) << commit.metadata;
    return out.value_or(Record{});
  }
  Answer take_answer() { return take<effect::Reply>().answer; }
  template <class A>
  A take_answer() {
    const auto answer = take_answer();
    EXPECT_TRUE(std::holds_alternative<A>(answer)) << "another answer, number " << answer.index();
    return std::holds_alternative<A>(answer) ? std::get<A>(answer) : A{};
  }

  // ---- ways that many tests go ----

  /// In the group, the record read, no assignment yet.
  void join(std::optional<Commit> found = {}) {
    call(Verb::acquire);
    observed(std::move(found));
    opened();
    forget();
  }
  void opened() {
    const auto open = take<effect::Open>();
    handle = open.handle;
    rank = open.client_id;
  }
  /// Owner of partition 0 with a nonce that stands and a read under way.
  void own(int generation = 7) {
    assigned(true, generation);
    take_commit(1);
    committed();
    forget<effect::Assign>();
  }
  /// The same, and the read has found this.
  void own_over(const std::optional<Commit>& found, int generation = 7) { own(generation), read(found); }
  /// Owner of partition 0, and may claim at once: another one has released.
  void own_what_is_free(std::int64_t before = 40) {
    join(record(before, "other", true));
    own_over(record(before, "other", true));
  }
  void revoked(bool lost = false) { give(fact::Revoked{handle, lost}); }
  void rebalanced(bool owner, int generation) { revoked(), assigned(owner, generation); }
  /// A call that waits for long.
  void await(Sight seen = Vacant{}) { call(Verb::await_change, {}, std::move(seen), 1min); }
  /// Whether a call to acquire sends anything.
  bool claims() { return call(Verb::acquire), did<effect::SendCommit>(); }
  /// The token that it sends for a call to acquire.
  std::int64_t claim() { return call(Verb::acquire), take_commit(0).offset; }
  /// A renewal is on its way. The number of the call.
  std::uint64_t ask_renewal(Clock::Duration within = 2s) {
    const auto id = call(Verb::renew, token, Vacant{}, within);
    take_record();
    return id;
  }
  void lead(std::int64_t before = 40) {
    own_what_is_free(before);
    call(Verb::acquire);
    take_record();
    committed();
    token = take_answer<Granted>().token;
    forget();
  }
  void renew() {
    call(Verb::renew, token);
    take_record();
    committed();
    ASSERT_EQ(take_answer<Granted>().token, token);
  }
  void renewal_is_fenced() { ask_renewal(), committed(Outcome::fenced, fenced); }
  /// Not a moment sooner.
  void expect_drop_after(Clock::Duration time) {
    advance(time - 1ms);
    EXPECT_FALSE(did<effect::Drop>());
    advance(1ms);
    EXPECT_TRUE(did<effect::Drop>());
  }
  void forget() { effects.clear(); }
  template <class A>
  void forget() {
    std::erase_if(effects, [](const auto& a) { return std::holds_alternative<A>(a); });
  }

  static constexpr Time start{1h};
  Time now = start;
  Neli neli;
  std::vector<Effect> effects;
  std::uint64_t calls{0}, handle{0};
  effect::SendCommit sent;
  std::string nonce, rank;
  Token token;
  std::optional<Commit> world;
  bool answering{};
  std::uint64_t unanswered{};
  bool may_commit{};
};

struct NeliTest : testing::Test {
  Scene s;
};

}  // namespace tenure::kafka
