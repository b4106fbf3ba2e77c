// SPDX-License-Identifier: Apache-2.0
// Goal: what a group store tells unasked, and what it does when it is late, silent or has lost its data. Method: as in
// group_suite.cpp. Every wait is for a condition and has a deadline.
#include <tenure/contract/group_suite.hpp>

#include <atomic>
#include <functional>
#include <set>
#include <thread>

namespace tenure::contract {

// ---- pushes ----

TEST_P(GroupContract, AwaitChangeEndsAtItsLimitOrByItsStopToken) {
  auto a = member("a");
  a.look();
  const auto limit = Player::within(milliseconds(50));
  while (!limit.passed()) a.store().await_change(a.seen().cursor(), limit);  // it may end for no reason
  std::stop_source stop;
  const auto patient = Player::within(hours(1), stop.get_token());
  std::jthread stopper([&] { stop.request_stop(); });
  do {
    a.store().await_change(a.seen().cursor(), patient);
  } while (!stop.stop_requested());
}

TEST_P(GroupContract, AReleaseAnEndAndARequestToStepDownEndAwaitChangeAlsoIfTheyCameFirst) {
  if (!group_->pushes()) GTEST_SKIP() << "this store tells nobody of a change";
  for (const bool came_first : {false, true}) {
    auto a = member("a"), b = member("b"), follower = stranger("follower");
    ASSERT_TRUE(a.claim({"jobs", "mails"}).granted);
    const auto ends_a_wait = [&](const std::string& what, const std::function<void()>& happens) {
      const auto cursor = follower.look().cursor;
      const auto limit = Player::within(patience);
      std::atomic<bool> happened{false};
      if (came_first) happens(), happened = true;
      std::jthread waiter([&] {
        do {  // a wait may end for no reason
          follower.store().await_change(cursor, limit);
        } while (!happened && !limit.passed());
        EXPECT_FALSE(limit.passed()) << what << " was not told";
      });
      for (int i = 0; i < 20 && !came_first; ++i) {
        ASSERT_TRUE(a.renew());
        wait_out(Player::within(milliseconds(5)));
      }
      if (!came_first) happens(), happened = true;
    };
    ends_a_wait("a release", [&] { EXPECT_TRUE(a.releases("mails")); });
    ends_a_wait("a request to step down", [&] {
      const StepDown request{*a.seen().token("jobs"), "ops", "why"};
      EXPECT_EQ(b.store().request_step_down("jobs", request, call()), std::nullopt);
    });
    ends_a_wait("an end by its own process", [&] { EXPECT_TRUE(b.end()); });
    auto c = member("c");
    ends_a_wait("an end by another", [&] {
      EXPECT_TRUE(c.end(a));
      a = member("a again");
    });
  }
}

TEST_P(GroupContract, AStoreIsCalledWhileAnotherThreadWaitsInIt) {
  auto a = member("a");
  std::stop_source stop;
  std::jthread waiter([&, cursor = a.look().cursor] {
    while (!stop.stop_requested()) a.store().await_change(cursor, Player::within(hours(1), stop.get_token()));
  });
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(a.claim({"jobs"}).claimed, Names{"jobs"});
    a.look();
    ASSERT_TRUE(a.releases("jobs"));
  }
  stop.request_stop();
}

TEST_P(GroupContract, ASingleReleaseIsNamed) {
  if (!group_->names_releases()) GTEST_SKIP() << "this store names no release";
  auto a = member("a"), follower = stranger("follower");
  const auto heir = draw_id();
  std::atomic<bool> told{false};
  std::set<Token> released;
  std::optional<Release> named;
  {
    std::jthread waiter([&] {
      for (const auto limit = Player::within(patience); !named && !limit.passed();)
        named = follower.store().await_change(follower.look().cursor, limit);
      told = true;
    });
    while (!told) {  // sooner or later it waits when a release comes
      ASSERT_EQ(a.claim({"job s'"}).claimed, Names{"job s'"});
      released.insert(*a.seen().token("job s'"));
      ASSERT_EQ(a.release({"job s'"}, heir).released, Names{"job s'"});
      wait_out(Player::within(milliseconds(10)));
    }
  }
  ASSERT_TRUE(named) << "no release was named";
  EXPECT_EQ(named->election, "job s'");
  EXPECT_TRUE(released.contains(named->token));
  EXPECT_EQ(named->heir, heir);
}

// ---- faults ----

TEST_P(GroupContract, NoCallOutlivesItsLimitOrItsStopTokenAndNothingIsWrittenThen) {
  auto a = member("a"), ended = member("ended");
  ASSERT_EQ(a.claim({"gone", "jobs"}).claimed.size(), 2u);
  const auto token = *a.seen().token("jobs");
  ASSERT_TRUE(a.releases("gone"));
  ASSERT_TRUE(ended.end());
  const auto before = standing();
  std::stop_source stopped;
  stopped.request_stop();
  for (const auto& limit : {Player::within(-milliseconds(1)), Player::within(hours(1), stopped.get_token())}) {
    auto& store = a.store();
    auto commit = a.renewal();
    commit.claims = {{"free", std::nullopt}};
    EXPECT_FALSE(store.look({}, limit));
    EXPECT_FALSE(store.open(draw_id(), a.session(1), limit));
    EXPECT_FALSE(store.commit(commit, limit));
    EXPECT_FALSE(store.end(a.id(), {a.beat()}, draw_beat(), limit));
    EXPECT_FALSE(store.sweep(limit));
    EXPECT_FALSE(store.retire({{"gone", token}}, limit));
    EXPECT_TRUE(store.request_step_down("jobs", {token, "ops", "why"}, limit));
    store.await_change({}, limit);
  }
  const auto patient = Player::within(patience);
  auto look = a.store().look({}, call());
  while (!look && !patient.passed()) look = a.store().look({}, call());
  EXPECT_TRUE(look) << "the store goes on";
  EXPECT_EQ(standing(), before) << "nothing was written";
}

TEST_P(GroupContract, EveryCallEndsAtItsLimitWhenTheStoreHangs) {
  auto a = member("a"), b = stranger("b");
  ASSERT_TRUE(a.claims("jobs"));
  if (!group_->hang(true)) GTEST_SKIP() << "this store cannot be made to hang";
  const Lateness lateness;
  const auto in_time = [&](const char* verb, auto&& ask) {
    const auto limit = Player::within(milliseconds(100));
    EXPECT_TRUE(ask(limit)) << verb;
    const auto ended = boot_clock().now();
    EXPECT_LE(ended, limit.by + milliseconds(200) + 3 * lateness.most(ended)) << verb;
  };
  auto& store = a.store();
  in_time("look", [&](const Limit& limit) { return !store.look({}, limit); });
  in_time("open", [&](const Limit& limit) { return !b.store().open(draw_id(), b.session(1), limit); });
  in_time("commit", [&](const Limit& limit) { return !store.commit(a.renewal(), limit); });
  in_time("end", [&](const Limit& limit) { return !store.end(draw_id(), {1}, 2, limit); });
  in_time("sweep", [&](const Limit& limit) { return !store.sweep(limit); });
  in_time("retire", [&](const Limit& limit) { return !store.retire({{"jobs", Token{1}}}, limit); });
  in_time("request_step_down", [&](const Limit& limit) {
    return store.request_step_down("jobs", {Token{1}, "ops", "why"}, limit).has_value();
  });
  in_time("await_change", [&](const Limit& limit) {
    store.await_change(a.seen().cursor(), limit);
    return true;
  });
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(b.store().look({}, Player::within(hours(1), stop.get_token())));
  group_->hang(false);
}

TEST_P(GroupContract, ALeadThatCannotBeReadIsReportedAndBelongsToNobodyUntilItIsMended) {
  auto a = member("a"), b = member("b");
  ASSERT_EQ(sorted(a.claim({"jobs", "mails"}).claimed), (Names{"jobs", "mails"}));
  const auto token = *a.seen().token("jobs");
  if (!group_->spoil_lead("orders", "jobs")) GTEST_SKIP() << "nobody can write to this store but we";
  const auto look = b.look("");
  ASSERT_TRUE(look.unreadable.contains("jobs"));
  EXPECT_EQ(look.unreadable.at("jobs").fault, Fault::corrupt);
  EXPECT_EQ(look.unreadable.size(), 1u);
  EXPECT_EQ(look.leads.size(), 1u);
  EXPECT_TRUE(look.leads.contains("mails"));

  for (const auto& expected : {std::optional<Token>{}, std::optional(token)}) {
    auto claims = a.renewal();
    claims.claims = {{"jobs", expected}, {"news", a.seen().token("news")}};
    claims.at_least = Token{token.value + 1};
    const auto done = a.commit(claims);
    ASSERT_TRUE(done.granted) << "the session goes on";
    EXPECT_EQ(done.claimed, Names{"news"});
  }
  auto releases = a.renewal();
  releases.releases = {{"jobs", token, std::nullopt}, {"mails", *a.seen().token("mails"), std::nullopt}};
  EXPECT_EQ(a.commit(releases).released, Names{"mails"});
  b.look();
  EXPECT_TRUE(b.claims("mails"));
  EXPECT_EQ(b.sweep(), 0);

  ASSERT_TRUE(group_->mend_lead("orders", "jobs"));
  const auto told = a.look();
  EXPECT_FALSE(told.whole);
  EXPECT_TRUE(told.unreadable.empty());
  ASSERT_TRUE(told.leads.contains("jobs")) << "who led it has to learn of that";
  const auto lead = told.leads.at("jobs");
  EXPECT_GT(lead.token, token);
  EXPECT_FALSE(lead.released) << "others would claim it before its leader knows";
  EXPECT_FALSE(told.sessions.contains(lead.session));
  EXPECT_FALSE(a.claims("jobs")) << "it is not ours";
  EXPECT_TRUE(a.claims("jobs", {lead.session}));
}

TEST_P(GroupContract, WhatWasLostIsFoundedAnewAndKnowsNobody) {
  auto a = member("a");
  ASSERT_TRUE(a.claims("jobs"));
  const auto old_marker = a.seen().marker();
  const auto cursor = a.look().cursor;
  if (!group_->lose_everything()) GTEST_SKIP() << "this store cannot be made to lose its data";
  auto late = a.renewal();
  late.claims = {{"mails", std::nullopt}};
  EXPECT_FALSE(a.commit(late).granted);
  EXPECT_EQ(standing(), Standing{});
  auto b = member("b");
  const auto found = standing();
  EXPECT_NE(found.marker, 0u);
  EXPECT_NE(found.marker, old_marker);
  EXPECT_EQ(found.sessions.size(), 1u);
  EXPECT_TRUE(found.leads.empty());
  late.marker = old_marker;
  EXPECT_FALSE(a.commit(late).granted);
  late.marker = found.marker;
  EXPECT_FALSE(a.commit(late).granted) << "its session is gone";
  auto wrong = b.renewal();
  wrong.marker = old_marker;
  EXPECT_FALSE(b.commit(wrong).granted);
  EXPECT_TRUE(standing().leads.empty());
  ASSERT_TRUE(b.claims("mails"));
  const auto look = a.look(cursor);
  EXPECT_TRUE(look.whole) << "a cursor of before the loss means nothing";
  EXPECT_EQ(look.leads, standing().leads);
  EXPECT_EQ(look.marker, found.marker);
}

}  // namespace tenure::contract
