// SPDX-License-Identifier: Apache-2.0
// Goal: Elections leads, hands over, fails over and ends, through its threads and hooks. Method: the memory store, with
// a cut in front of one process's.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <tenure/elections.hpp>
#include <tenure/manual_clock.hpp>
#include <tenure/memory.hpp>
#include <tenure/version.hpp>

#include "eventually.hpp"

namespace tenure::memory {
namespace {

using namespace std::chrono_literals;
using tenure::test::eventually;

/// A machine that is busy for seconds ends no lease.
const Timing timing{.term = 6s, .renew = 50ms, .retry = 10ms, .margin = 300ms, .call = 2s, .drain = 1s};

/// A store whose server this process cannot reach any more, as soon as it is cut.
class Cut final : public GroupStore {
 public:
  explicit Cut(std::shared_ptr<GroupStore> store) : store_(std::move(store)) {}
  void cut() { cut_ = true; }
  int claims() const { return claims_; }  ///< Commits that claimed something.

  std::string group() const override { return store_->group(); }
  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    return asked([&] { return store_->look(cursor, limit); });
  }
  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    return asked([&] { return store_->open(id, session, limit); });
  }
  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    if (!commit.claims.empty()) ++claims_;
    return asked([&] { return store_->commit(commit, limit); });
  }
  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    return asked([&] { return store_->end(id, beats, new_beat, limit); });
  }
  Result<int> sweep(const Limit& limit) override {
    return asked([&] { return store_->sweep(limit); });
  }
  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    return store_->request_step_down(election, request, limit);
  }
  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    if (cut_) return GroupStore::await_change(cursor, limit);
    return store_->await_change(cursor, limit);
  }

 private:
  template <class Call>
  auto asked(Call call) -> decltype(call()) {
    if (cut_) return Error{Fault::unreachable, "cut"};
    return call();
  }
  std::shared_ptr<GroupStore> store_;
  std::atomic<bool> cut_{false};
  std::atomic<int> claims_{0};
};

/// What the hooks of one process were called for.
class Diary {
 public:
  Hooks hooks() {
    return {.elected =
                [this](const Elected& e) {
                  const std::lock_guard lock(mutex_);
                  EXPECT_TRUE(leads_.emplace(e.election, e.token).second) << e.election;
                },
            .ousting =
                [this](const Ousting& o) {
                  const std::lock_guard lock(mutex_);
                  EXPECT_EQ(leads_.extract(o.election).mapped(), o.token);
                  reasons_[o.reason]++;
                },
            .error =
                [this](const Error& e) {
                  const std::lock_guard lock(mutex_);
                  errors_.push_back(e);
                }};
  }
  std::map<std::string, Token> leads() const {
    const std::lock_guard lock(mutex_);
    return leads_;
  }
  int ended(Reason reason) const {
    const std::lock_guard lock(mutex_);
    const auto it = reasons_.find(reason);
    return it == reasons_.end() ? 0 : it->second;
  }
  std::size_t errors() const {
    const std::lock_guard lock(mutex_);
    return errors_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Token> leads_;
  std::map<Reason, int> reasons_;
  std::vector<Error> errors_;
};

std::vector<std::string> names(int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back("job-" + std::to_string(i));
  return out;
}

/// Lets time pass until it holds: to the next alarm, whenever these processes have nothing left to do at this instant.
/// Of each, one thread then waits for the alarm, and one in the store.
template <class Holds>
bool in_the_end(ManualClock& clock, std::size_t processes, Holds holds) {
  return eventually([&] {
    if (clock.await_parked(2 * processes)) clock.advance_to(clock.next_alarm());
    return holds();
  });
}

struct ElectionsOnAHub : testing::Test {
  const Hub hub;
};

TEST_F(ElectionsOnAHub, OneProcessLeadsAllThatItJoinsWithFewQuestions) {
  const auto store = std::make_shared<Cut>(hub.group("jobs"));
  Diary diary;
  Elections elections(store, {"a", "a:1"}, timing, diary.hooks());
  for (const auto& name : names(2000)) elections.join(name);
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.led().size() == 2000; }));
  EXPECT_EQ(store->claims(), 4) << "of 500 each";
  const auto leadership = elections.leadership("job-7");
  EXPECT_TRUE(leadership.is_leader());
  EXPECT_TRUE(elections.is_leader("job-7"));
  EXPECT_FALSE(elections.is_leader("job-2000"));
  EXPECT_TRUE(eventually([&] { return diary.leads().size() == 2000; }));
  EXPECT_EQ(leadership.token(), diary.leads().at("job-7"));
  elections.stop();
  EXPECT_FALSE(leadership.is_leader());
  EXPECT_FALSE(elections.is_leader("job-7"));
  EXPECT_EQ(diary.ended(Reason::stopped), 2000);
  EXPECT_TRUE(diary.leads().empty());
}

TEST_F(ElectionsOnAHub, WhatIsReleasedGoesToTheNextOneAtOnceAndTokensRise) {
  Diary first_diary, second_diary;
  auto first = std::make_unique<Elections>(hub.group("jobs"), Candidate{"a", "a:1"}, timing, first_diary.hooks(),
                                           Spread{.on = false});
  Elections second(hub.group("jobs"), {"b", "b:1"}, timing, second_diary.hooks(), {.on = false});
  for (const auto& name : names(10)) first->join(name), second.join(name);
  first->start();
  ASSERT_TRUE(eventually([&] { return first_diary.leads().size() == 10; }));
  const auto before = first_diary.leads();
  second.start();
  const auto leadership = second.leadership("job-3");
  ASSERT_TRUE(eventually([&] { return leadership.incumbent().has_value(); }));
  EXPECT_EQ(leadership.incumbent()->name, "a");
  EXPECT_EQ(leadership.incumbent()->address, "a:1");
  EXPECT_EQ(leadership.incumbent()->version, version());
  EXPECT_EQ(leadership.incumbent()->token, before.at("job-3"));
  first->resign("job-3", 1h);
  ASSERT_TRUE(eventually([&] { return leadership.is_leader(); }));
  EXPECT_EQ(second.led().size(), 1u);
  EXPECT_EQ(first_diary.ended(Reason::resigned), 1);
  first->leave("job-4");
  ASSERT_TRUE(eventually([&] { return second.led().size() == 2; }));
  first.reset();
  ASSERT_TRUE(eventually([&] { return second.led().size() == 10; }));
  for (const auto& [name, token] : second_diary.leads()) EXPECT_GT(token, before.at(name));
  EXPECT_EQ(second_diary.errors(), 0u);
}

TEST_F(ElectionsOnAHub, OfAProcessThatIsCutOffOthersLeadAfterItsLease) {
  const auto cut = std::make_shared<Cut>(hub.group("jobs"));
  Diary lost_diary, diary;
  ManualClock clock;
  Elections lost(cut, {"a", ""}, timing, lost_diary.hooks(), {.on = false}, 1, clock);
  Elections other(hub.group("jobs"), {"b", ""}, timing, diary.hooks(), {.on = false}, 1, clock);
  for (const auto& name : names(50)) lost.join(name), other.join(name);
  lost.start();
  ASSERT_TRUE(eventually([&] { return lost.led().size() == 50; }));
  other.start();
  ASSERT_TRUE(eventually([&] { return other.leadership("job-0").incumbent().has_value(); }));
  cut->cut();
  ASSERT_TRUE(in_the_end(clock, 2, [&] { return !other.led().empty(); }));
  EXPECT_TRUE(lost.led().empty()) << "its lease ended before" << TENURE_PROMISE;
  EXPECT_TRUE(in_the_end(clock, 2, [&] { return lost_diary.ended(Reason::lapsed) == 50; }));
  EXPECT_TRUE(in_the_end(clock, 2, [&] { return other.led().size() == 50; }));
  EXPECT_GT(lost_diary.errors(), 0u);
}

TEST_F(ElectionsOnAHub, WhoeverComesAndGoesTheElectionsAreSpreadEvenly) {
  std::vector<Diary> diaries(4);
  std::vector<std::unique_ptr<Elections>> processes;
  auto patient = timing;
  patient.retry = 2s;  // who is given an election and does not take it within that gives it back, which is a move more
  const auto come = [&] {
    const auto i = processes.size();
    processes.push_back(std::make_unique<Elections>(hub.group("jobs"), Candidate{"p" + std::to_string(i), ""}, patient,
                                                    diaries[i].hooks()));
    for (const auto& name : names(30)) processes.back()->join(name);
    processes.back()->start();
  };
  const auto all_lead = [&](std::size_t each) {
    return eventually([&] {
      return std::all_of(processes.begin(), processes.end(), [&](const auto& p) { return p->led().size() == each; });
    });
  };
  come();
  EXPECT_TRUE(all_lead(30));
  come();
  EXPECT_TRUE(all_lead(15));
  EXPECT_EQ(diaries[0].ended(Reason::handed_over), 15);
  EXPECT_EQ(to_string(Reason::handed_over), "handed_over");
  come();
  EXPECT_TRUE(all_lead(10));
  EXPECT_EQ(diaries[0].ended(Reason::handed_over) + diaries[1].ended(Reason::handed_over), 25);
  processes.erase(processes.begin() + 1);
  EXPECT_TRUE(all_lead(15));
}

TEST_F(ElectionsOnAHub, SharesAreInProportionToWeights) {
  Elections heavy(hub.group("jobs"), {"a", ""}, timing, {}, {.weight = 3});
  Elections light(hub.group("jobs"), {"b", ""}, timing, {});
  for (auto* one : {&heavy, &light}) {
    one->join(names(40));
    one->start();
  }
  EXPECT_TRUE(eventually([&] { return heavy.led().size() == 30 && light.led().size() == 10; }));
}

TEST_F(ElectionsOnAHub, HandsOverToTheOneThatIsNamed) {
  auto patient = timing;
  patient.retry = 2s;  // so long does the one that is named come first
  Diary diary;
  Elections first(hub.group("jobs"), {"a", ""}, patient, diary.hooks(), {.on = false});
  Elections second(hub.group("jobs"), {"b", ""}, patient, {}, {.on = false});
  Elections third(hub.group("jobs"), {"c", ""}, patient, {}, {.on = false});
  for (auto* one : {&first, &second, &third}) one->join(names(3));
  EXPECT_FALSE(first.hand_over("job-1", "c")) << "it was not started";
  first.start();
  ASSERT_TRUE(eventually([&] { return first.led().size() == 3; }));
  EXPECT_FALSE(first.hand_over("job-1", "c")) << "that one is not there";
  second.start();
  third.start();
  ASSERT_TRUE(eventually([&] { return first.hand_over("job-1", "c"); }));
  EXPECT_TRUE(eventually([&] { return third.is_leader("job-1"); }));
  EXPECT_EQ(diary.ended(Reason::handed_over), 1);
  EXPECT_FALSE(first.hand_over("job-1", "b")) << "we do not lead it";
  EXPECT_FALSE(first.hand_over("nothing", "b"));
  EXPECT_FALSE(first.hand_over("job-2", "a")) << "that is us";
  EXPECT_EQ(first.led().size(), 2u);
  EXPECT_EQ(second.led().size(), 0u);
}

TEST_F(ElectionsOnAHub, ARequestToStepDownReachesTheLeader) {
  Diary diary;
  Elections elections(hub.group("jobs"), {"a", ""}, timing, diary.hooks());
  elections.join("job");
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.leadership("job").is_leader(); }));
  const auto token = *elections.leadership("job").token();
  const Limit limit{boot_clock(), boot_clock().now() + 10s, {}};
  EXPECT_EQ(hub.group("jobs")->request_step_down("job", {token, "ops", "upgrade"}, limit), std::nullopt);
  EXPECT_TRUE(eventually([&] { return diary.ended(Reason::step_down) == 1; }));
}

TEST_F(ElectionsOnAHub, AHookThatHangsHoldsUpNoOtherElection) {
  std::atomic<bool> hold{true};
  std::atomic<int> ousted{0};
  Hooks hooks{.ousting = [&](const Ousting& o) {
    if (o.election == "slow") hold.wait(true);
    ++ousted;
  }};
  ManualClock clock;
  Elections elections(hub.group("jobs"), {"a", ""}, timing, hooks, {}, 2, clock);
  for (const auto* name : {"slow", "b", "c"}) elections.join(name);
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.led().size() == 3; }));
  for (const auto* name : {"slow", "b", "c"}) elections.resign(name, 1h);
  EXPECT_TRUE(eventually([&] { return ousted == 2; }));
  // Its own drain is over, and it leads no more; the store may have given it to others.
  EXPECT_TRUE(in_the_end(clock, 1, [&] { return elections.led().empty(); }));
  hold = false;
  hold.notify_all();
  EXPECT_TRUE(eventually([&] { return ousted == 3; }));
}

TEST_F(ElectionsOnAHub, TheyStopWithAStoreThatIsAwayAndWhoWaitsHearsWhy) {
  const auto cut = std::make_shared<Cut>(hub.group("jobs"));
  Elections elections(cut, {"a", ""}, timing, {.log = no_log});
  elections.join("job");
  elections.start();
  ASSERT_TRUE(eventually([&] { return elections.led().size() == 1; }));
  EXPECT_EQ(elections.last_error(), std::nullopt);
  cut->cut();
  EXPECT_TRUE(eventually([&] { return elections.last_error() == Error{Fault::unreachable, "cut"}; }));
  elections.stop();
  EXPECT_TRUE(elections.led().empty());
}

TEST_F(ElectionsOnAHub, BadOptionsAreRefusedAtOnce) {
  EXPECT_THROW(Elections(nullptr, {"a", ""}, timing), std::invalid_argument);
  EXPECT_THROW(Elections(hub.group("jobs"), {"a", ""}, timing, {.eligible = [] { return true; }}),
               std::invalid_argument);
  EXPECT_THROW(Elections(hub.group("jobs"), {"a", ""}, timing, {}, {}, 0), std::invalid_argument);
  EXPECT_THROW(Elections(hub.group("jobs"), {std::string(101, 'x'), ""}, timing), std::invalid_argument);
  EXPECT_THROW(Elections(hub.group("jobs"), {"a", ""}, timing, {}, {.weight = 0}), std::invalid_argument);
  EXPECT_THROW(Elections(hub.group("jobs"), {"a", ""}, timing, {}, {.weight = 1001}), std::invalid_argument);
  auto wrong = timing;
  wrong.renew = wrong.term;
  EXPECT_THROW(Elections(hub.group("jobs"), {"a", ""}, wrong), std::invalid_argument);
  Elections elections(hub.group("jobs"), {"a", ""}, timing);
  EXPECT_THROW(elections.join(""), std::invalid_argument);
}

}  // namespace
}  // namespace tenure::memory
