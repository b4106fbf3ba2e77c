// SPDX-License-Identifier: Apache-2.0
// Goal: a group observer tells every change once and nothing else, and takes no part. Method: a store that shows what
// the test says, and a ManualClock.
#include <tenure/group_observer.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tenure/kit/wait.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/manual_clock.hpp>

#include "eventually.hpp"
#include "in_child.hpp"
#include "refusal.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr Timing pace{.term = 10s, .renew = 2s, .retry = 200ms, .margin = 500ms, .call = 1s, .drain = 4s};
constexpr std::int64_t store_now = 1'700'000'000'000;

/// Shows sessions and leads. It counts looks and writes.
class ShownGroup : public GroupStore {
 public:
  ManualClock clock;  ///< The test's.
  std::atomic<int> looks{0}, whole_looks{0}, writes{0};
  bool allotting{};
  Exclusive mode{Exclusive::yes};
  std::vector<std::string> names_joined;

  void session(std::uint64_t id, std::uint64_t beat, std::chrono::milliseconds age = 0ms, bool ended = false) {
    const std::lock_guard lock(mutex_);
    auto& record = shown_.sessions[SessionId{id}].record;
    record = {.token = {1}, .beat = beat, .who = who_text({"p" + std::to_string(id), "a"}, "i")};
    record.term = 10s;
    record.released = ended;
    record.written_ms = store_now - age.count();
  }
  void lead(const std::string& election, std::uint64_t token, std::uint64_t session, bool released = false) {
    const std::lock_guard lock(mutex_);
    shown_.unreadable.erase(election);
    shown_.leads[election] = {.token = {token}, .session = {session}, .released = released};
  }
  void spoil(const std::string& election) {
    const std::lock_guard lock(mutex_);
    shown_.leads.erase(election);
    shown_.unreadable[election] = {Fault::corrupt, "spoilt"};
  }
  void forget(const std::string& election) {
    const std::lock_guard lock(mutex_);
    shown_.leads.erase(election);
  }
  void fail(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  /// Something happened: whoever waits looks.
  void push() {
    const std::lock_guard lock(mutex_);
    if (waiting_)
      waiting_->wake();
    else
      pushed_ = true;
  }

  std::string group() const override { return "orders"; }
  Exclusive exclusive() const override { return mode; }
  bool allots() const override { return allotting; }
  void joined(const std::string& election) override { names_joined.push_back(election); }
  Result<Look> look(const std::string& cursor, const Limit&) override {
    const std::lock_guard lock(mutex_);
    ++looks;
    whole_looks += cursor.empty();
    if (error_) return *error_;
    auto out = shown_;
    out.now_ms = store_now;
    out.whole = true;
    out.cursor = "c";
    return out;
  }
  Result<Committed> open(SessionId, const Session&, const Limit&) override { return written<Committed>(); }
  Result<Committed> commit(const Commit&, const Limit&) override { return written<Committed>(); }
  Result<bool> end(SessionId, const std::vector<std::uint64_t>&, std::uint64_t, const Limit&) override {
    return written<bool>();
  }
  Result<int> sweep(const Limit&) override { return written<int>(); }
  std::optional<Error> request_step_down(const std::string&, const StepDown&, const Limit&) override {
    return written<bool>().error();
  }
  std::optional<Release> await_change(const std::string&, const Limit& limit) override {
    const auto waker = limit.clock.make_waker();
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(pushed_, false)) return std::nullopt;
      waiting_ = waker.get();
    }
    wait(*waker, limit);
    const std::lock_guard lock(mutex_);
    waiting_ = nullptr;
    return std::nullopt;
  }

 private:
  template <class T>
  Result<T> written() {
    ++writes;
    return Error{Fault::forbidden, "an observer writes nothing"};
  }

  std::mutex mutex_;
  Look shown_;
  std::optional<Error> error_;
  Waker* waiting_{};
  bool pushed_{};
};

class ObservingAGroup : public testing::Test {
 protected:
  GroupObserverOptions noting() {
    return {
        .changed =
            [this](const std::string& election, const Sight& sight) {
              const std::lock_guard lock(mutex);
              const auto* who = std::get_if<Incumbent>(&sight);
              seen += election + (who ? "=" + who->name + " " : std::holds_alternative<Vacant>(sight) ? "=- " : "=? ");
            },
        .log =
            [this](const LogLine& line) {
              const std::lock_guard lock(mutex);
              lines.push_back(line.message);
            }};
  }
  std::string so_far() {
    const std::lock_guard lock(mutex);
    return seen;
  }
  bool told(const std::string& all) {
    return eventually([&] { return so_far() == all; });
  }
  std::size_t logged() {
    const std::lock_guard lock(mutex);
    return lines.size();
  }
  /// The observer has looked, and waits.
  bool parked() { return group->clock.await_parked(1); }

  std::shared_ptr<ShownGroup> group = std::make_shared<ShownGroup>();
  ManualClock& clock = group->clock;
  std::mutex mutex;
  std::string seen;
  std::vector<std::string> lines;
};

TEST_F(ObservingAGroup, ReportsEveryChangeOnceAndWritesNothing) {
  group->session(1, 1), group->session(2, 1);
  group->lead("a", 5, 1), group->lead("b", 6, 2), group->lead("c", 7, 2, true);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("a=p1 b=p2 ")) << so_far();
  EXPECT_EQ(observer.incumbent("a").value().token, Token{5});
  EXPECT_EQ(observer.incumbent("c"), std::nullopt);
  EXPECT_EQ(observer.incumbent("unheard of"), std::nullopt);
  ASSERT_TRUE(parked());
  const auto changes = observer.changes();
  group->session(1, 2);
  group->push();  // renewed: no news
  ASSERT_TRUE(eventually([&] { return group->looks >= 2; }));
  ASSERT_TRUE(parked());
  group->lead("c", 8, 1);
  group->push();
  ASSERT_TRUE(told("a=p1 b=p2 c=p1 ")) << so_far();
  EXPECT_EQ(observer.await_change(changes, 1h), changes + 1);
  group->lead("b", 9, 1);
  group->lead("a", 5, 1, true);
  group->push();
  ASSERT_TRUE(told("a=p1 b=p2 c=p1 a=- b=p1 ")) << so_far();
  group->session(1, 3, 0ms, true);  // One write ends what it led.
  group->push();
  ASSERT_TRUE(told("a=p1 b=p2 c=p1 a=- b=p1 b=- c=- ")) << so_far();
  EXPECT_EQ(group->writes, 0);
}

TEST_F(ObservingAGroup, ListsAllByNameAndSaysWhatWasSeenToRenew) {
  group->session(1, 1), group->lead("b", 5, 1), group->lead("a", 6, 1, true), group->spoil("c");
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("b=p1 c=? ")) << so_far();
  auto all = observer.all();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].election + all[1].election + all[2].election, "abc");
  EXPECT_TRUE(std::holds_alternative<Vacant>(all[0].sight));
  EXPECT_TRUE(std::holds_alternative<Unknown>(all[2].sight));
  EXPECT_FALSE(all[1].renewed) << "the first sight proves nothing";
  ASSERT_TRUE(parked());
  group->session(1, 2), group->push();
  EXPECT_TRUE(eventually([&] { return observer.all()[1].renewed; }));
}

TEST_F(ObservingAGroup, TheStoresClockShowsThatADeadLeaderIsOne) {
  group->session(1, 1, 11s), group->session(2, 1, 4s);
  group->lead("a", 5, 1), group->lead("b", 5, 2);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("b=p2 ")) << so_far();
  EXPECT_EQ(observer.incumbent("b").value().remaining, 6s);
}

TEST_F(ObservingAGroup, ReportsTheEndOfALeaseWhenItEnds) {
  group->session(1, 1, 9s), group->lead("a", 5, 1);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("a=p1 "));
  ASSERT_TRUE(parked());
  clock.advance(1s);  // less than from one look to the next
  EXPECT_TRUE(told("a=p1 a=- ")) << so_far();
}

/// The store's clock was stepped by an hour between a renewal and the look.
TEST_F(ObservingAGroup, ASteppedClockOfTheStoreEndsNoLeaseThatIsSeenToBeRenewed) {
  group->session(1, 1), group->lead("a", 5, 1);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("a=p1 "));
  ASSERT_TRUE(parked());
  group->session(1, 2, 1h);
  clock.advance(pace.renew);
  ASSERT_TRUE(eventually([&] { return observer.all()[0].renewed; }));
  EXPECT_EQ(observer.incumbent("a").value().remaining, pace.term - pace.renew);
  EXPECT_EQ(so_far(), "a=p1 ");
}

TEST_F(ObservingAGroup, ReportsThatALeaseEndedAlsoWhileTheStoreDoesNotAnswer) {
  group->session(1, 1, 5s), group->lead("a", 5, 1), group->lead("b", 6, 1);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("a=p1 b=p1 "));
  ASSERT_TRUE(parked());
  group->fail(Error{Fault::unreachable, "away"});
  const auto changes = observer.changes();
  for (int i = 0; i < 60 && so_far() == "a=p1 b=p1 "; ++i) {
    ASSERT_TRUE(parked());
    clock.advance(pace.retry);
  }
  ASSERT_TRUE(told("a=p1 b=p1 a=- b=- ")) << so_far();
  EXPECT_EQ(observer.changes(), changes + 1);
  EXPECT_EQ(observer.incumbent("a"), std::nullopt);
  EXPECT_EQ(observer.last_error().value().message, "away");
  ASSERT_TRUE(parked());
  group->fail({});
  group->session(1, 2);
  clock.advance(pace.retry);
  EXPECT_TRUE(told("a=p1 b=p1 a=- b=- a=p1 b=p1 ")) << "it was renewed after all: " << so_far();
  EXPECT_EQ(observer.last_error(), std::nullopt);
}

/// Each look finds the leases renewed, and what is told takes longer than they last.
TEST_F(ObservingAGroup, ACalleeThatIsSlowerThanALeaseHearsOfNoEndThatTheStoreDoesNotShow) {
  group->session(1, 1), group->lead("a", 5, 1), group->lead("b", 6, 1);
  auto options = noting();
  std::uint64_t beat = 1;
  options.changed = [&, noted = options.changed](const std::string& election, const Sight& sight) {
    noted(election, sight);
    if (beat < 20) clock.advance(pace.term);
    group->session(1, ++beat);
  };
  GroupObserver observer(group, pace, options, clock);
  ASSERT_TRUE(eventually([&] { return group->looks >= 2; })) << "it looks again before it says anything";
  ASSERT_TRUE(parked());
  EXPECT_EQ(so_far(), "a=p1 b=p1 ");
}

TEST_F(ObservingAGroup, WhoWasStoppedLooksBeforeItSaysThatALeaseEnded) {
  group->session(1, 1), group->lead("a", 5, 1);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("a=p1 "));
  ASSERT_TRUE(parked());
  group->session(1, 2);
  clock.advance(1h);
  ASSERT_TRUE(eventually([&] { return group->looks >= 2; }));
  ASSERT_TRUE(parked());
  EXPECT_EQ(so_far(), "a=p1 ");
}

TEST_F(ObservingAGroup, AnIncumbentIsForgottenWhenItsLeaseEndsByOurClock) {
  group->session(1, 1), group->lead("a", 5, 1);
  GroupObserver observer(group, pace, {}, clock);
  ASSERT_GT(observer.await_change(0, 1h), 0u);
  ASSERT_TRUE(observer.incumbent("a"));
  group->fail(Error{Fault::unreachable, "away"});
  clock.advance(pace.term);
  EXPECT_EQ(observer.incumbent("a"), std::nullopt);
}

TEST_F(ObservingAGroup, ALeadWhoseSessionIsGoneIsLedByNobody) {
  group->lead("a", 5, 77);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_GT(observer.await_change(0, 1h), 0u) << "the first answer is told, also if nobody leads";
  EXPECT_EQ(observer.incumbent("a"), std::nullopt);
  EXPECT_EQ(so_far(), "");
}

TEST_F(ObservingAGroup, WhatIsSpoiltIsLookedForAnewTwiceATerm) {
  group->session(1, 1), group->spoil("a");
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("a=? "));
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(parked());
    group->session(1, 1 + static_cast<std::uint64_t>(i));
    const int before = group->looks;
    clock.advance(pace.renew);
    ASSERT_TRUE(eventually([&] { return group->looks > before; }));
  }
  EXPECT_GE(group->whole_looks, 4) << "40 s are four terms";
  EXPECT_LE(group->whole_looks, 10);
  group->lead("a", 9, 1), group->session(1, 50);
  ASSERT_TRUE(parked());
  clock.advance(pace.term / 2);
  EXPECT_TRUE(told("a=? a=p1 ")) << so_far();
}

TEST_F(ObservingAGroup, TroubleIsLoggedOnceAMinuteWithItsCount) {
  group->fail(Error{Fault::unreachable, "away"});
  GroupObserver observer(group, pace, noting(), clock);
  for (int i = 1; i <= 310; ++i) {  // 62 s
    ASSERT_TRUE(parked());
    const int before = group->looks;
    clock.advance(pace.retry);
    ASSERT_TRUE(eventually([&] { return group->looks > before; }));
  }
  ASSERT_TRUE(parked());
  EXPECT_EQ(logged(), 2u);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(lines.front(), "unreachable: away");
  EXPECT_NE(lines.back().find("more since the last report"), std::string::npos) << lines.back();
}

TEST_F(ObservingAGroup, WatchesThoseAloneThatAreNamed) {
  group->session(1, 1), group->lead("a", 5, 1), group->lead("b", 6, 1);
  auto options = noting();
  options.elections = {"b", "z"};
  GroupObserver observer(group, pace, std::move(options), clock);
  ASSERT_TRUE(told("b=p1 "));
  const auto all = observer.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].election + all[1].election, "bz");
  EXPECT_EQ(observer.incumbent("a"), std::nullopt);
  EXPECT_EQ(group->names_joined, (std::vector<std::string>{"b", "z"})) << "where the store must know them";
}

TEST_F(ObservingAGroup, ARetiredElectionIsListedNoMore) {
  group->session(1, 1), group->lead("a", 5, 1);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("a=p1 "));
  ASSERT_TRUE(parked());
  group->forget("a"), group->push();
  ASSERT_TRUE(told("a=p1 a=- "));
  EXPECT_TRUE(eventually([&] { return observer.all().empty(); }));
}

TEST_F(ObservingAGroup, ShowsNoTokenWhereSeveralMayLead) {
  group->mode = Exclusive::no;
  group->session(1, 1), group->lead("a", 5, 1);
  GroupObserver observer(group, pace, noting(), clock);
  ASSERT_TRUE(told("a=p1 "));
  EXPECT_EQ(observer.incumbent("a").value().token, Token{});
}

TEST_F(ObservingAGroup, RefusesWhatCanNeverWork) {
  const auto refusal = [&](std::shared_ptr<GroupStore> store, const Timing& timing, GroupObserverOptions options) {
    return test::refusal_of([&] { GroupObserver(std::move(store), timing, std::move(options), clock); });
  };
  EXPECT_NE(refusal(nullptr, pace, {}).find("store is null"), std::string::npos);
  EXPECT_NE(refusal(group, {}, {}), "accepted");
  EXPECT_NE(refusal(group, pace, {.elections = {""}}), "accepted");
  group->allotting = true;
  EXPECT_NE(refusal(group, pace, {}).find("GroupObserverOptions::elections"), std::string::npos);
  EXPECT_EQ(refusal(group, pace, {.elections = {"a"}}), "accepted");
}

TEST_F(ObservingAGroup, StoreThatWakesForNothingMakesNoHotLoop) {
  GroupObserver observer(group, pace, noting(), clock);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(parked());
    group->push();
  }
  EXPECT_LE(group->looks, 10) << "the clock stands still: prompt looks only";
}

TEST_F(ObservingAGroup, AnExceptionOfItsCalleeEndsNothing) {
  group->session(1, 1), group->lead("a", 5, 1), group->lead("b", 5, 1);
  auto options = noting();
  options.changed = [note = options.changed](const std::string& election, const Sight& sight) {
    note(election, sight);
    throw std::runtime_error("no disk");
  };
  GroupObserver observer(group, pace, std::move(options), clock);
  EXPECT_TRUE(told("a=p1 b=p1 ")) << so_far();
  EXPECT_TRUE(eventually([&] { return logged() == 1; }));
}

TEST_F(ObservingAGroup, IsGoneAtOnceInAForkedChild) {
  auto observer = std::make_unique<GroupObserver>(group, pace, noting(), clock);
  ASSERT_TRUE(parked());
  test::in_child([&] {
    const bool none = !observer->incumbent("a") && observer->all().empty() && observer->await_change(9, 1h) != 9;
    observer.reset();
    return none;
  });
}

}  // namespace
}  // namespace tenure
