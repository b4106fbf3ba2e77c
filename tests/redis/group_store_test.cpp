// SPDX-License-Identifier: Apache-2.0
// Goal: whatever a real server refuses, forgets or loses, a group's rules hold and the remedy is told. Method: each
// test has a server of its own, brought into the state in question.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kit/who.hpp>

#include "group_scripts.hpp"
#include "no_descriptors.hpp"
#include "server.hpp"
#include "support.hpp"
#include "watched.hpp"

namespace tenure::redis::test {
namespace {

const std::string sessions_key = "tenure:{shards}:s", leads_key = "tenure:{shards}:e", log_key = "tenure:{shards}:log";
constexpr SessionId ada{0x7fff'ffff'ffff'fff1}, bob{0x7fff'ffff'ffff'fff2};
constexpr Token beyond_doubles{(std::uint64_t{1} << 61) + 1};  // Lua takes its neighbours for the same number

Session session(std::uint64_t beat) {
  Session made{.record = record(0, beat), .joined = 3, .names = std::numeric_limits<std::uint64_t>::max()};
  return made;
}

class RedisGroup : public ::testing::Test {
 protected:
  void SetUp() override {
    TENURE_NEEDS_REDIS();
    server.emplace();
    store = open_at(url(*server));
  }

  static std::string url(const Server& server, const std::string& credentials = {}, const std::string& rest = {}) {
    return "redis://" + credentials + server.address() + rest;
  }
  static std::shared_ptr<GroupStore> open_at(const std::string& url, Log log = {}) {
    return open_group(from_url(url), "shards", std::move(log));
  }

  std::optional<Server> server;
  std::shared_ptr<GroupStore> store;
};

/// A session, and what its process knows.
class Process {
 public:
  Process(GroupStore& store, SessionId id) : store_(store), id_(id) {
    const auto opened = value(store_.open(id, session(beat_), within(2s)));
    EXPECT_TRUE(opened.granted);
    look = opened.look;
  }

  Commit next() {
    Commit out;
    out.session = id_;
    out.beats = {beat_};
    out.next = session(beat_ + 1);
    out.marker = look.marker;
    out.cursor = look.cursor;
    return out;
  }
  Result<Committed> send(const Commit& commit, Clock::Duration time = 2s) {
    auto answer = store_.commit(commit, within(time));
    if (answer && answer->granted) ++beat_;
    if (answer) look = answer->look;
    return answer;
  }
  Committed commit(const Commit& commit) { return value(send(commit)); }
  bool renew() { return commit(next()).granted; }
  /// What renews by a cursor that means nothing is told no leads, and the next look tells all.
  void expect_to_look_anew() {
    EXPECT_TRUE(renew());
    EXPECT_FALSE(look.whole);
    EXPECT_EQ(look.cursor, "");
    EXPECT_TRUE(look.leads.empty());
    look = value(store_.look(look.cursor, within(2s)));
    EXPECT_TRUE(look.whole);
  }

  /// Those that were claimed.
  std::vector<std::string> claim(std::vector<Claim> claims, std::vector<SessionId> ended = {}, Token at_least = {}) {
    auto out = next();
    out.claims = std::move(claims);
    out.ended = std::move(ended);
    out.at_least = at_least;
    const auto done = commit(out);
    token = done.token;
    return done.claimed;
  }
  std::vector<std::string> release(std::vector<Release> releases) {
    auto out = next();
    out.releases = std::move(releases);
    return commit(out).released;
  }
  bool end() { return value(store_.end(id_, {beat_}, beat_ + 1000, within(2s))); }
  std::uint64_t beat() const { return beat_; }

  Look look;
  Token token;  ///< Of the last claims.

 private:
  GroupStore& store_;
  const SessionId id_;
  std::uint64_t beat_{10};
};

/// Of so many elections that nobody led, from this one on.
std::vector<Claim> claims_of(int count, int first = 0) {
  std::vector<Claim> out;
  for (int i = first; i < first + count; ++i) out.push_back({"name" + std::to_string(10'000 + i), {}});
  return out;
}

Look look(GroupStore& store, const std::string& cursor = {}) { return value(store.look(cursor, within(5s))); }

// ---- scripts ----

TEST_F(RedisGroup, TheServerNamesEachScriptAsWeDo) {
  for (const auto* script :
       {&look_script, &open_script, &commit_script, &end_script, &sweep_script, &retire_script, &step_down_lead_script})
    EXPECT_EQ(server->ask({"SCRIPT", "LOAD", std::string(script->text)}), script->sha1);
}

TEST_F(RedisGroup, AForgottenScriptIsSentAgain) {
  Process a(*store, ada);
  const auto forget = [&] { server->ask({"SCRIPT", "FLUSH"}); };
  forget();
  EXPECT_EQ(a.claim({{"x", {}}}), Names{"x"});
  forget();
  EXPECT_TRUE(a.renew());
  forget();
  EXPECT_EQ(look(*store).leads.size(), 1u);
  forget();
  EXPECT_EQ(store->request_step_down("x", {a.token, "ops", "why"}, within(2s)), std::nullopt);
  forget();
  EXPECT_TRUE(a.end());
  forget();
  EXPECT_EQ(value(store->sweep(within(2s))), 0);
}

TEST_F(RedisGroup, NothingExpires) {
  Process a(*store, ada);
  a.claim({{"x", {}}});
  for (const auto& key : {sessions_key, leads_key, log_key}) EXPECT_EQ(server->ask({"TTL", key}), "-1") << key;
}

TEST_F(RedisGroup, ItsClockStandsInWhatItWrites) {
  server->step_clock(1h);
  Process a(*store, ada);
  a.claim({{"x", {}}});
  const auto hour_ahead = static_cast<double>(boot_clock().unix_ms() + 3'600'000);
  EXPECT_NEAR(static_cast<double>(a.look.now_ms), hour_ahead, 5000);
  EXPECT_NEAR(static_cast<double>(a.look.sessions.at(ada).record.written_ms), hour_ahead, 5000);
  EXPECT_NEAR(static_cast<double>(a.token.value), hour_ahead, 5000);
}

// ---- numbers and names ----

TEST_F(RedisGroup, TokensAndBeatsBeyondLuasNumbersAreCompared) {
  Process a(*store, ada), b(*store, bob);
  EXPECT_EQ(a.claim({{"x", {}}, {"y", {}}}, {}, beyond_doubles), (Names{"x", "y"}));
  EXPECT_EQ(a.token, beyond_doubles);
  EXPECT_EQ(a.look.leads.at("x").session, ada);
  const Token below{beyond_doubles.value - 1}, above{beyond_doubles.value + 1};
  EXPECT_EQ(a.release({{"x", below, {}}, {"y", above, {}}}), Names());
  EXPECT_EQ(a.claim({{"x", below}, {"y", above}}, {}, above), Names());
  EXPECT_EQ(a.release({{"x", beyond_doubles, bob}}), Names{"x"});
  EXPECT_EQ(b.claim({{"x", above}}, {}, above), Names());
  EXPECT_EQ(b.claim({{"x", beyond_doubles}}, {}, above), Names{"x"});
  EXPECT_EQ(b.token, above);
  auto wrong = a.next();
  wrong.session = bob;
  wrong.beats = {b.beat() - 1, b.beat() + 1};
  EXPECT_FALSE(a.commit(wrong).granted);

  const Token nines{9'999'999'999'999'999'999u}, ten{10'000'000'000'000'000'000u};
  EXPECT_EQ(a.claim({{"z", {}}}, {}, nines), Names{"z"});
  EXPECT_EQ(a.token, nines) << "greater than the clock";
  EXPECT_EQ(a.claim({{"z", nines}}, {}, ten), Names{"z"});
  EXPECT_EQ(a.token, ten) << "by length before by text";
}

TEST_F(RedisGroup, NamesMayHaveAnyBytes) {
  std::string all;
  for (int byte = 1; byte < 201; ++byte) all.push_back(static_cast<char>(byte));
  std::string rest;
  for (int byte = 201; byte < 256; ++byte) rest.push_back(static_cast<char>(byte));
  for (const auto& group : Names{all, rest, "}", "}{", "{}", "a b", "a:s"}) {
    const auto each = open_group(from_url(url(*server)), group);
    EXPECT_EQ(each->group(), group);
    Process a(*each, ada), b(*each, bob);
    Names names{all, rest, " ", "1 2 0 -", "\n", "-", "1"};
    std::sort(names.begin(), names.end());
    std::vector<Claim> claims;
    for (const auto& name : names) claims.push_back({name, {}});
    EXPECT_EQ(a.claim(claims), names);
    EXPECT_TRUE(b.renew());
    EXPECT_EQ(b.look.leads.size(), names.size());
    EXPECT_FALSE(b.look.whole);
    std::vector<Release> releases;
    for (const auto& name : names) releases.push_back({name, a.token, {}});
    EXPECT_EQ(a.release(releases), names);
    EXPECT_TRUE(look(*each).leads.at(all).released);
  }
}

TEST_F(RedisGroup, ASessionMaySayAnythingOfItself) {
  auto odd = session(10);
  odd.record.who = std::string("1 2 - \n\0\xff ", 9) + std::string(max_who_bytes - 9, '%');
  ASSERT_TRUE(value(store->open(ada, odd, within(2s))).granted);
  auto stands = look(*store).sessions.at(ada);
  stands.record.written_ms = 0;
  stands.record.token = odd.record.token;
  EXPECT_EQ(stands, odd);
}

TEST_F(RedisGroup, ARequestToStepDownMayHaveAnyBytes) {
  Process a(*store, ada);
  a.claim({{"x", {}}});
  const std::string by = "o ps\n-", why = std::string("1 2\0", 4) + std::string(100, '\xff');
  ASSERT_EQ(store->request_step_down("x", {a.token, by, why}, within(2s)), std::nullopt);
  ASSERT_TRUE(a.renew());
  const auto request = a.look.leads.at("x").step_down;
  ASSERT_TRUE(request);
  EXPECT_EQ(request->by, by);
  EXPECT_EQ(request->why, why);
}

TEST_F(RedisGroup, GroupsAndElectionsOfOneNameAreApart) {
  const auto others = open_group(from_url(url(*server)), "shard");
  const auto single = redis::store(from_url(url(*server)), "shards");
  Process a(*store, ada);
  a.claim({{"x", {}}});
  EXPECT_TRUE(swap(*single, std::nullopt, record(1, 11)));
  Process b(*others, ada);
  EXPECT_TRUE(b.look.leads.empty());
  EXPECT_TRUE(a.renew());
  EXPECT_EQ(look(*store).leads.size(), 1u);
}

// ---- looks ----

TEST_F(RedisGroup, ATrimmedLogMakesAWholeLook) {
  Process a(*store, ada), b(*store, bob);
  a.claim({{"x", {}}, {"y", {}}});
  b.renew();
  a.release({{"x", a.token, {}}});
  a.release({{"y", a.token, {}}});
  const auto before = b.look.cursor;
  server->ask({"XTRIM", log_key, "MAXLEN", "1"});
  EXPECT_TRUE(look(*store, before).whole);
  b.expect_to_look_anew();
  EXPECT_EQ(b.look.leads.size(), 2u);
  b.renew();
  EXPECT_FALSE(b.look.cursor.empty()) << "the end of the log stands";
}

TEST_F(RedisGroup, AnEmptyLogMakesOneWholeLook) {
  Process a(*store, ada);
  a.claim({{"x", {}}});
  for (const auto& lose : std::vector<Names>{{"XTRIM", log_key, "MAXLEN", "0"}, {"DEL", log_key}}) {
    server->ask(lose);
    a.expect_to_look_anew();
    EXPECT_EQ(a.look.leads.size(), 1u);
    ASSERT_TRUE(a.renew());
    EXPECT_FALSE(a.look.cursor.empty()) << "the commit began it anew";
  }
}

/// As after a fail-over to a replica that lagged behind: an entry stands at the cursor's place, and it is another one.
TEST_F(RedisGroup, ALogWithAnotherPastMakesAWholeLook) {
  Process a(*store, ada), b(*store, bob);
  a.claim({{"x", {}}});
  b.renew();
  const auto place = b.look.cursor.substr(0, b.look.cursor.find(' '));
  server->ask({"DEL", log_key});
  server->ask({"XADD", log_key, place, "4711", "", "y", ""});
  b.expect_to_look_anew();
  EXPECT_EQ(b.look.leads.size(), 1u);
}

TEST_F(RedisGroup, ACursorOfAnotherStoreMakesAWholeLook) {
  Process a(*store, ada);
  a.claim({{"x", {}}});
  for (const std::string cursor : {"7", "-", "+ ", "1-", "-1", "1-1-1 2", "99999999999999999999-0 1", "0-0 0", "x y",
                                   "18446744073709551615-18446744073709551615 1"})
    EXPECT_TRUE(look(*store, cursor).whole) << cursor;
}

/// Each renewal reads the entry at its cursor, so that is a short one, however many elections the last commit changed.
TEST_F(RedisGroup, AfterACommitWithManyChangesACursorNamesAShortEntry) {
  Process a(*store, ada), b(*store, bob);
  ASSERT_EQ(a.claim(claims_of(300)).size(), 300u);
  EXPECT_EQ(a.look.leads.size(), 300u);
  b.renew();
  EXPECT_FALSE(b.look.whole);
  EXPECT_EQ(b.look.leads.size(), 300u);
  EXPECT_EQ(b.look.cursor, a.look.cursor);
  const auto place = a.look.cursor.substr(0, a.look.cursor.find(' '));
  EXPECT_LT(server->ask({"XRANGE", log_key, place, "+"}).size(), 60u) << "an id and a beat";
  a.renew();
  EXPECT_FALSE(a.look.whole);
  EXPECT_TRUE(a.look.leads.empty());
}

TEST_F(RedisGroup, TheLogIsKeptShortAndALookAcrossItIsExact) {
  Process a(*store, ada), b(*store, bob);
  auto claims = claims_of(500);
  ASSERT_EQ(a.claim(claims).size(), 500u);
  for (int i = 0; i < 1300; ++i) {
    claims[0].expected = a.token;
    ASSERT_EQ(a.claim({claims[0]}, {}, {a.token.value + 1}).size(), 1u);
    if (i == 700) b.renew();
  }
  b.renew();
  EXPECT_FALSE(b.look.whole);
  EXPECT_EQ(b.look.leads.size(), 1u);
  EXPECT_LT(std::stol(server->ask({"XLEN", log_key})), 1200);
}

// ---- what is past ----

TEST_F(RedisGroup, WhoJoinedReadsNothingElse) {
  const auto other = open_at(url(*server));
  Process a(*store, ada);
  ASSERT_EQ(a.claim({{"in", {}}, {"out", {}}}).size(), 2u);
  other->joined("in");
  const auto told = look(*other);
  EXPECT_TRUE(told.whole);
  EXPECT_EQ(told.leads.size(), 1u);
  EXPECT_TRUE(told.leads.contains("in"));
  const auto forgotten = look(*other, "1-1 5");
  EXPECT_TRUE(forgotten.whole) << "a cursor that the log does not know";
  EXPECT_EQ(forgotten.leads.size(), 1u);
}

TEST_F(RedisGroup, ARenewalCostsNoMoreBesideManyNamesAndEndedSessions) {
  const auto fresh_store = open_group(from_url(url(*server)), "fresh", {});
  for (auto* const either : {store.get(), fresh_store.get()}) either->joined("e");
  Process late_one(*store, ada), fresh_one(*fresh_store, ada);
  for (auto* const one : {&late_one, &fresh_one}) ASSERT_EQ(one->claim({{"e", {}}}).size(), 1u);
  server->ask({"EVAL",
               "for i = 1, 20000 do redis.call('HSET', KEYS[1], i, '1 1 1 1 1000 1 1 1 1 who') end "
               "for i = 1, 100000 do redis.call('HSET', KEYS[2], 'old' .. i, '5 1 1 -') end",
               "2", sessions_key, leads_key});
  // The time that the server itself says it took, so that a busy machine's client does not count.
  const auto taken_us = [&] {
    const auto text = server->ask({"INFO", "commandstats"});
    const auto at = text.find("usec=", text.find("cmdstat_evalsha:"));
    return at == text.npos ? 0 : std::stol(text.substr(at + 5));
  };
  const auto renewals = [&](Process& one) {
    const auto before = taken_us();
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(one.renew());
    return taken_us() - before;
  };
  // In turn, so that both meet the same machine.
  auto fresh = std::numeric_limits<long>::max(), late = fresh;
  for (int times = 0; times < 20; ++times) {
    fresh = std::min(fresh, renewals(fresh_one));
    late = std::min(late, renewals(late_one));
  }
  ASSERT_GT(fresh, 0);
  EXPECT_LT(late, 2 * fresh) << late / 20 << " us a renewal, and " << fresh / 20 << " in a fresh group";
  EXPECT_EQ(look(*store).leads.size(), 1u);
}

// ---- sweeps ----

/// Between its calls the server answers others.
TEST_F(RedisGroup, ASweepOfManyNamesIsManyCalls) {
  Process a(*store, ada), b(*store, bob);
  ASSERT_EQ(a.claim({{"e", {}}}).size(), 1u);
  ASSERT_TRUE(b.end());
  server->ask({"EVAL", "for i = 1, 50000 do redis.call('HSET', KEYS[1], 'old' .. i, '5 1 1 -') end", "1", leads_key});
  const auto before = server->calls("hscan");
  EXPECT_EQ(value(store->sweep(within(10s))), 1);
  EXPECT_GE(server->calls("hscan") - before, 9) << "a call looks at some thousand names";
}

/// Otherwise each renewal would read them for ever, where nobody takes part in these elections any more.
TEST_F(RedisGroup, ASweepReleasesWhatEndedSessionsLeadAndTheNextOneRemovesThem) {
  Process a(*store, ada), b(*store, bob);
  for (int first = 0; first < 1200; first += 400) ASSERT_EQ(a.claim(claims_of(400, first)).size(), 400u);
  ASSERT_EQ(store->request_step_down("name10007", {a.token, "ops", "why"}, within(2s)), std::nullopt);
  b.renew();
  const auto token = look(*store).leads.at("name10007").token;
  ASSERT_TRUE(a.end());
  EXPECT_EQ(value(store->sweep(within(5s))), 0);
  b.renew();
  EXPECT_FALSE(b.look.whole);
  EXPECT_EQ(b.look.leads.size(), 1200u) << "it is told as a change";
  EXPECT_TRUE(std::ranges::all_of(b.look.leads, [](const auto& lead) { return lead.second.released; }));
  EXPECT_EQ(value(store->sweep(within(5s))), 1);
  EXPECT_EQ(look(*store).sessions.size(), 1u);
  EXPECT_EQ(b.claim({{"name10007", token}}, {}, {token.value + 1000}), Names{"name10007"}) << "its token is kept";
  EXPECT_EQ(value(store->sweep(within(5s))), 0);
  EXPECT_TRUE(b.renew()) << "a live session keeps what it leads";
  EXPECT_FALSE(look(*store).leads.at("name10007").released);
}

// ---- pushes ----

/// What was pushed within the time: nothing, a release, or something that is none.
struct Heard {
  bool woken{};
  std::optional<Release> release{};
};
Heard hear(GroupStore& store, const std::string& cursor, Clock::Duration most) {
  const auto limit = within(most);
  auto release = store.await_change(cursor, limit);
  return {boot_clock().now() < limit.by, std::move(release)};
}

class RedisGroupPush : public RedisGroup {
 protected:
  void SetUp() override {
    RedisGroup::SetUp();
    if (IsSkipped()) return;
    listener = open_at(url(*server));
    a.emplace(*store, ada);
    a->claim({{"x", {}}, {"y", {}}, {"z", {}}});
    EXPECT_TRUE(soon().woken) << "the first wait subscribes and returns";
  }
  Heard soon() {
    const auto heard = hear(*listener, seen, 10s);
    look(*listener);
    return heard;
  }
  bool quiet() { return !hear(*listener, seen, 50ms).woken; }

  std::shared_ptr<GroupStore> listener;
  std::optional<Process> a;
  std::string seen;
};

TEST_F(RedisGroupPush, NeitherRenewalsNorClaimsNorVainReleasesArePushed) {
  seen = a->look.cursor;
  a->renew();
  a->claim({{"w", {}}});
  EXPECT_TRUE(quiet()) << "neither renewals nor claims are";
  a->release({{"y", Token{a->token.value + 1}, {}}});
  EXPECT_TRUE(quiet()) << "nor what was not done";
}

TEST_F(RedisGroupPush, ASingleReleaseIsNamed) {
  a->release({{"x", a->token, bob}});
  const auto heard = soon();
  ASSERT_TRUE(heard.release);
  EXPECT_EQ(heard.release->election, "x");
  EXPECT_EQ(heard.release->token, a->token);
  EXPECT_EQ(heard.release->heir, bob);
  EXPECT_TRUE(quiet()) << "once";

  a->release({{"y", a->token, {}}, {"z", a->token, {}}});
  const auto two = soon();
  EXPECT_TRUE(two.woken);
  EXPECT_FALSE(two.release) << "of several none is";
}

TEST_F(RedisGroupPush, WhatWasSeenIsNoNews) {
  a->release({{"x", a->token, {}}});
  seen = a->look.cursor;
  EXPECT_TRUE(quiet());
  a->release({{"y", a->token, {}}});
  EXPECT_TRUE(soon().release);
}

TEST_F(RedisGroupPush, WhatWasPushedWakesUntilItIsLookedAt) {
  a->release({{"x", a->token, {}}});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(hear(*listener, seen, 10s).release);
  look(*listener);
  EXPECT_TRUE(quiet());
  server->ask({"PUBLISH", log_key, "forged"});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(hear(*listener, seen, 10s).woken);
  look(*listener);
  EXPECT_TRUE(quiet()) << "also what nothing in the store bears out";
}

TEST_F(RedisGroupPush, AnEndAndARequestArePushed) {
  seen = a->look.cursor;
  ASSERT_EQ(store->request_step_down("x", {a->token, "ops", "why"}, within(2s)), std::nullopt);
  EXPECT_TRUE(soon().woken);
  ASSERT_TRUE(a->end());
  EXPECT_TRUE(soon().woken);
  ASSERT_TRUE(a->end()) << "it has ended";
  EXPECT_TRUE(quiet()) << "and is not told again";
}

/// Who may publish and read, but not write.
TEST_F(RedisGroupPush, AForgedOrGarbledMessageTakesNothing) {
  Process b(*listener, bob);
  seen = b.look.cursor;
  const auto id = std::string("9999999999999-0"), token = std::to_string(a->token.value);
  for (const auto& [message, names] : std::vector<std::pair<std::string, bool>>{
           {id + " released " + token + " - x", true},
           {id + " released " + token + " " + std::to_string(bob.value) + " x", true},
           {id + " released " + token + " 12x x", false},
           {id + " released " + token + " x", false},
           {id + " released -1 - x", false},
           {id + " released " + token + " - ", false},
           {id + " released " + token + " - " + std::string(201, 'x'), false},
           {id + " freed " + token + " - x", false},
           {id, false},
           {"released " + token + " - x", false},
           {"", false},
           {std::string(100'000, 'x'), false}}) {
    SCOPED_TRACE(message.substr(0, 60));
    server->ask({"PUBLISH", log_key, message});
    const auto heard = soon();
    EXPECT_TRUE(heard.woken);
    EXPECT_EQ(heard.release.has_value(), names);
    const auto release = heard.release.value_or(Release{"x", a->token, {}});
    EXPECT_EQ(b.claim({{release.election, release.token}}, {}, a->token), Names());
    EXPECT_EQ(b.claim({{release.election, release.token}}, {ada}, a->token), Names()) << "it stands alive";
    EXPECT_TRUE(a->renew());
  }
  server->ask({"PUBLISH", log_key, std::string(1 << 20, 'x')});
  EXPECT_TRUE(soon().woken) << "too long to be read: the subscription breaks";
  EXPECT_TRUE(soon().woken) << "and is made anew";
  a->release({{"x", a->token, {}}});
  EXPECT_TRUE(soon().release);
}

TEST_F(RedisGroupPush, AWaitAndACommitGoOnSideBySide) {
  auto waiting = std::async(std::launch::async, [&] { return hear(*store, a->look.cursor, 10s); });
  EXPECT_TRUE(waiting.get().woken) << "subscribes";
  a->renew();
  seen = a->look.cursor;
  waiting = std::async(std::launch::async, [&] { return hear(*store, seen, 20s); });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(a->renew());
  EXPECT_EQ(a->release({{"x", a->token, {}}}), Names{"x"});
  EXPECT_TRUE(waiting.get().release);
}

TEST_F(RedisGroupPush, ABrokenSubscriptionReturnsAndIsMadeAgain) {
  seen = a->look.cursor;
  auto waiting = std::async(std::launch::async, [&] { return soon().woken; });
  server->ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(soon().woken) << "subscribed anew";
  a->release({{"x", a->token, {}}});
  EXPECT_TRUE(soon().release);
}

// ---- loss ----

class RedisGroupLoss : public RedisGroup {
 protected:
  /// Founded anew by the next session; those of before are refused, whatever they know.
  void expect_founded_anew(const std::function<void(Server&)>& lose) {
    Lines lines;
    server->ask({"FLUSHALL"});
    store = open_at(url(*server), lines.log());
    Process a(*store, ada);
    a.claim({{"x", {}}});
    const auto marker = a.look.marker;
    ASSERT_NE(marker, 0u);
    auto late = a.next();
    lose(*server);

    const auto empty = look(*store, a.look.cursor);
    EXPECT_TRUE(empty.whole);
    EXPECT_TRUE(empty.sessions.empty());
    EXPECT_TRUE(empty.leads.empty());
    EXPECT_EQ(empty.marker, 0u) << "nobody has founded it";
    EXPECT_FALSE(a.commit(late).granted);
    EXPECT_FALSE(value(store->end(ada, late.beats, 99, within(2s)))) << "it is absent";
    EXPECT_EQ(value(store->sweep(within(2s))), 0);
    expect_error(*store->request_step_down("x", {a.token, "ops", "why"}, within(2s)), Fault::misconfigured,
                 {"ever led"});

    Process b(*store, bob);
    EXPECT_NE(b.look.marker, 0u);
    EXPECT_NE(b.look.marker, marker);
    EXPECT_TRUE(b.look.leads.empty());
    EXPECT_EQ(b.look.sessions.size(), 1u);
    EXPECT_FALSE(a.commit(late).granted);
    late.marker = b.look.marker;
    EXPECT_FALSE(a.commit(late).granted) << "nor does its session stand";
    EXPECT_EQ(lines.all().size(), 2u) << "at the first founding and at the second";
    for (const auto& line : lines.all()) EXPECT_NE(line.find("begin a term (10000 ms) later"), line.npos) << line;
  }
};

TEST_F(RedisGroupLoss, Flushall) {
  expect_founded_anew([](Server& at) { at.ask({"FLUSHALL"}); });
}
TEST_F(RedisGroupLoss, TheSessionsAlone) {
  expect_founded_anew([](Server& at) { at.ask({"DEL", sessions_key}); });
}
TEST_F(RedisGroupLoss, TheLeadsAlone) {
  expect_founded_anew([](Server& at) { at.ask({"DEL", leads_key}); });
}
TEST_F(RedisGroupLoss, AMarkerAlone) {
  expect_founded_anew([](Server& at) { at.ask({"HDEL", leads_key, ""}); });
  expect_founded_anew([](Server& at) { at.ask({"HSET", sessions_key, "", "1 4711"}); });
}

TEST_F(RedisGroupLoss, TheLogAloneEndsNobody) {
  Process a(*store, ada), b(*store, bob);
  a.claim({{"x", {}}});
  const auto marker = a.look.marker;
  server->ask({"DEL", log_key});
  b.expect_to_look_anew();
  EXPECT_EQ(b.look.marker, marker);
  EXPECT_EQ(b.look.leads.size(), 1u);
  EXPECT_TRUE(a.renew());
}

TEST_F(RedisGroupLoss, WhoSaysThatNothingIsLostHasNoMarkerAndIsRefusedAllTheSame) {
  Lines lines;
  store = open_at(url(*server, "", "?first_claim=at_once"), lines.log());
  Process a(*store, ada);
  EXPECT_EQ(a.look.marker, 0u);
  EXPECT_EQ(a.claim({{"x", {}}}), Names{"x"});
  EXPECT_EQ(look(*store).marker, 0u);
  server->ask({"FLUSHALL"});
  Process b(*store, bob);
  EXPECT_FALSE(a.renew());
  EXPECT_TRUE(lines.all().empty());
}

TEST_F(RedisGroupLoss, AStoreThatMayEvictIsReported) {
  server->ask({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  server->ask({"CONFIG", "SET", "maxmemory", "100mb"});
  Lines lines;
  store = open_at(url(*server), lines.log());
  look(*store);
  look(*store);
  ASSERT_EQ(lines.all().size(), 1u);
  EXPECT_NE(lines.all()[0].find("its maxmemory-policy is allkeys-lru"), std::string::npos);
}

// ---- refusals ----

TEST_F(RedisGroup, AWrongTypeAtAKeyIsSaidAndNothingIsWritten) {
  for (const auto& key : {sessions_key, leads_key, log_key}) {
    SCOPED_TRACE(key);
    server->ask({"FLUSHALL"});
    server->ask({"SET", key, "somebody's"});
    const auto refuses = [&](const std::optional<Error>& error) {
      ASSERT_TRUE(error);
      expect_error(*error, Fault::misconfigured,
                   {"WRONGTYPE: a key that it needs holds something that tenure did not write"});
    };
    refuses(error_of(store->open(ada, session(10), within(2s))));
    EXPECT_EQ(server->ask({"DBSIZE"}), "1");
    EXPECT_EQ(server->ask({"GET", key}), "somebody's");

    server->ask({"DEL", key});
    Process a(*store, ada);
    a.claim({{"x", {}}});
    server->ask({"SET", key, "somebody's"});
    const auto before = server->ask({"HGETALL", key == sessions_key ? leads_key : sessions_key});
    auto commit = a.next();
    commit.claims = {{"y", {}}};
    refuses(error_of(a.send(commit)));
    refuses(error_of(store->look({}, within(2s))));
    refuses(error_of(store->end(ada, {a.beat()}, 99, within(2s))));
    refuses(error_of(store->sweep(within(2s))));
    refuses(store->request_step_down("x", {a.token, "ops", "why"}, within(2s)));
    EXPECT_EQ(server->ask({"HGETALL", key == sessions_key ? leads_key : sessions_key}), before);
  }
}

TEST_F(RedisGroup, WhatSomebodyElseWroteIsSaidWithTheRemedy) {
  Process a(*store, ada);
  a.claim({{"x", {}}});
  for (const auto& value : Names{"", "7", "7 1 0", "07 1 0 -", "7 1 2 -", "7 1 0 x", "7 1 0 - 1", "7 1 0 - 1 101 x",
                                 "4611686018427387905 1 0 -"}) {
    server->ask({"HSET", leads_key, "x", value});
    const auto look = tenure::test::value(store->look({}, within(2s)));
    ASSERT_TRUE(look.unreadable.contains("x")) << value;
    expect_error(look.unreadable.at("x"), Fault::corrupt, {leads_key + " holds what tenure did not write at \"x\""});
    expect_error(look.unreadable.at("x"), Fault::corrupt, {"mend it by redis-cli: EVAL "});
    EXPECT_EQ(a.claim({}, {}), Names());
  }
  server->ask({"DEL", leads_key});
  Process b(*store, bob);
  for (const auto& value : Names{"", "10 0", "10 0 1 1 1 1 1 1", "10 2 1 1 1 1 1 0 0 x", "10 0 1 1 1 1 1 1 -1 x",
                                 "10 0 1 1 1 1 1 1 1 " + std::string(max_who_bytes + 1, 'x')}) {
    server->ask({"HSET", sessions_key, "4711", value});
    expect_error(error_of(store->look({}, within(2s))), Fault::corrupt, {sessions_key + " holds something"});
  }
  server->ask({"HDEL", sessions_key, "4711"});
  EXPECT_TRUE(b.renew());
}

/// As redis-cli reads a line whose words stand in quotes or have none.
Names words_of(const std::string& line) {
  Names out(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"')
      inside = !inside;
    else if (line[i] == ' ' && !inside)
      out.emplace_back();
    else if (line[i] == '\\')
      out.back() += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16)), i += 3;
    else
      out.back() += line[i];
  }
  return out;
}

TEST_F(RedisGroup, TheRemedyOfALeadMendsItWhateverItsNameAndReachesItsLeader) {
  Process a(*store, ada);
  for (const std::string name : {"x", "a \"b\" \\c\x01\xff"}) {
    a.claim({{name, {}}});
    const auto token = a.token;
    server->ask({"HSET", leads_key, name, "garbage"});
    const auto spoilt = look(*store).unreadable.at(name).message;
    server->ask(words_of(spoilt.substr(spoilt.find("EVAL "))));
    ASSERT_TRUE(a.renew());
    ASSERT_TRUE(a.look.leads.contains(name)) << "as a change";
    const auto& mended = a.look.leads.at(name);
    EXPECT_GE(mended.token, token);
    EXPECT_EQ(mended.session, SessionId{});
    EXPECT_FALSE(mended.released);
  }
}

TEST_F(RedisGroup, AnotherFormatIsRefusedAndLeftAlone) {
  Process a(*store, ada), b(*store, bob);
  a.claim({{"x", {}}});
  b.end();
  server->ask({"HSET", sessions_key, "", "2 7"});
  server->ask({"HSET", leads_key, "", "2 7"});
  const auto contents = [&] { return server->ask({"HGETALL", sessions_key}) + server->ask({"HGETALL", leads_key}); };
  const auto before = contents();
  const auto refuses = [&](const std::optional<Error>& error) {
    ASSERT_TRUE(error);
    expect_error(*error, Fault::corrupt, {"use the release that wrote it"});
  };
  refuses(error_of(store->look({}, within(2s))));
  refuses(error_of(store->open({7}, session(10), within(2s))));
  refuses(error_of(a.send(a.next())));
  refuses(error_of(store->end(ada, {a.beat()}, 99, within(2s))));
  refuses(error_of(store->sweep(within(2s))));
  refuses(store->request_step_down("x", {a.token, "ops", "why"}, within(2s)));
  EXPECT_EQ(contents(), before);
}

TEST_F(RedisGroup, AFullServerRefusesNewSessionsAndTheOthersGoOn) {
  Process a(*store, ada), b(*store, bob);
  a.claim({{"x", {}}});
  server->ask({"CONFIG", "SET", "maxmemory", "1"});
  expect_error(error_of(store->open({7}, session(10), within(2s))), Fault::misconfigured, {"says OOM"});
  EXPECT_TRUE(a.renew());
  EXPECT_EQ(a.release({{"x", a.token, {}}}), Names{"x"});
  EXPECT_TRUE(a.end());
  EXPECT_EQ(b.claim({{"x", a.token}}, {}, {a.token.value + 1}), Names{"x"});
}

TEST_F(RedisGroup, AReplicaTakesNoWrites) {
  Server master;
  Server replica({"replicaof 127.0.0.1 " + std::to_string(master.port())});
  Process a(*open_at(url(master)), ada);
  ASSERT_TRUE(eventually([&] { return replica.ask({"EXISTS", sessions_key}) == "1"; }));
  expect_error(error_of(open_at(url(replica))->open(bob, session(10), within(2s))), Fault::forbidden,
               {"says READONLY"});
}

TEST_F(RedisGroup, WhatNoReplicaAcknowledgedIsUnknown) {
  const auto certain = std::exchange(store, open_at(url(*server, "", "?replicas=1")));
  const auto unacknowledged = [&](const std::function<std::optional<Error>()>& call) {
    std::optional<Error> error;
    // A server looks ten times a second whether a WAIT is over, so that its answer may come after the limit.
    ASSERT_TRUE(eventually([&] { return (error = call()) && error->fault != Fault::timed_out; }));
    expect_error(*error, Fault::unreachable, {"0 of 1 replicas acknowledged the write"});
  };
  std::uint64_t id = 100;
  unacknowledged([&] { return error_of(store->open({++id}, session(10), within(400ms))); });
  EXPECT_TRUE(look(*certain).sessions.contains({id})) << "it stands on the master all the same";
  Process a(*certain, ada);
  unacknowledged([&] {
    auto claims = a.next();
    const auto found = look(*certain);
    claims.beats = {found.sessions.at(ada).record.beat};
    claims.next.record.beat = claims.beats[0] + 1;
    claims.claims = {{"x" + std::to_string(claims.beats[0]), {}}};
    return error_of(store->commit(claims, within(400ms)));
  });
  EXPECT_FALSE(look(*certain).leads.empty());
  EXPECT_FALSE(value(store->end(ada, {1}, 2, within(400ms)))) << "what is refused waits for nobody";
  const auto beat = look(*certain).sessions.at(ada).record.beat;
  EXPECT_FALSE(store->end(ada, {beat}, beat + 1, within(400ms)));
  EXPECT_TRUE(value(store->end(ada, {}, beat + 1, within(2s)))) << "it has ended on the master all the same";
}

TEST_F(RedisGroup, APasswordIsDemandedAndInNoMessage) {
  server.emplace({"requirepass " + canary});
  server->password = canary;
  expect_error(error_of(open_at(url(*server))->look({}, within(2s))), Fault::forbidden, {"says NOAUTH"});
  expect_error(error_of(open_at(url(*server, ":" + canary + "x@"))->look({}, within(2s))), Fault::forbidden,
               {"WRONGPASS"});
  EXPECT_TRUE(look(*open_at(url(*server, ":" + canary + "@"))).whole);
}

const Names needed{"evalsha", "eval", "hget", "hset", "hmget",  "hgetall",   "hdel", "hexists",
                   "hscan",   "del",  "xadd", "time", "xrange", "xrevrange", "xlen"};

TEST_F(RedisGroup, TheLeastPrivilegesDoAndNoneOfThemIsTooMuch) {
  const auto use = [&]() -> std::optional<Error> {
    server->ask({"FLUSHALL"});
    store = open_at(url(*server, "u:" + canary + "@"), no_log);
    const auto opened = store->open(ada, session(10), within(2s));
    if (!opened) return opened.error();
    Commit commit;
    commit.session = ada;
    commit.beats = {10};
    commit.next = session(11);
    commit.marker = opened->look.marker;
    commit.cursor = opened->look.cursor;
    commit.claims = {{"x", {}}};
    const auto claimed = store->commit(commit, within(2s));
    if (!claimed) return claimed.error();
    if (auto error = store->request_step_down("x", {claimed->token, "ops", "why"}, within(2s))) return error;
    server->ask({"SCRIPT", "FLUSH"});
    if (const auto ended = store->end(ada, {11}, 12, within(2s)); !ended) return ended.error();
    if (const auto swept = store->sweep(within(2s)); !swept) return swept.error();
    for (const auto& cursor : {std::string(), claimed->look.cursor})
      if (const auto seen = store->look(cursor, within(2s)); !seen) return seen.error();
    return std::nullopt;
  };
  expect_least_privileges(*server, needed, {"publish", "subscribe", "info"}, use);
}

TEST_F(RedisGroup, AFollowerThatMayNotSubscribeWaitsAndWarns) {
  set_user(*server, both(needed, {"publish", "info"}));
  Lines lines;
  store = open_at(url(*server, "u:" + canary + "@"), lines.log());
  const auto wait = [&] {
    const auto limit = within(100ms);
    EXPECT_EQ(store->await_change({}, limit), std::nullopt);
    EXPECT_GE(boot_clock().now(), limit.by) << "no hot loop";
  };
  ASSERT_TRUE(eventually([&] { return wait(), !lines.all().empty(); }));
  for (int i = 0; i < 2; ++i) wait();
  ASSERT_EQ(lines.all().size(), 1u) << "said once";
  EXPECT_NE(lines.all()[0].find("says NOPERM"), std::string::npos) << lines.all()[0];
}

TEST_F(RedisGroup, NamesThatCannotBeAreRefused) {
  const auto options = from_url("redis://127.0.0.1:1");
  EXPECT_THROW(open_group(options, ""), std::invalid_argument);
  EXPECT_THROW(open_group(options, std::string(201, 'x')), std::invalid_argument);
  EXPECT_THROW(open_group(options, std::string("a\0", 2)), std::invalid_argument);
  EXPECT_THROW(open_group({}, "shards"), std::invalid_argument);
}

// ---- large ones ----

TEST_F(RedisGroup, AGroupOfManyElectionsIsReadWhole) {
  Process a(*store, ada), b(*store, bob);
  const auto before = b.look.cursor;
  for (int first = 0; first < 5000; first += 500) {
    std::vector<Claim> claims;
    for (int i = first; i < first + 500; ++i)
      claims.push_back({std::to_string(10'000 + i) + std::string(100, 'x'), {}});
    ASSERT_EQ(a.claim(claims).size(), 500u);
  }
  const auto whole = look(*store);
  EXPECT_EQ(whole.leads.size(), 5000u);
  const auto changed = look(*store, before);
  EXPECT_FALSE(changed.whole);
  EXPECT_EQ(changed.leads.size(), whole.leads.size());
}

/// Between its calls the server answers others.
TEST_F(RedisGroup, AllOfManyLeadsAreReadInManyCalls) {
  Process a(*store, ada);
  ASSERT_EQ(a.claim({{"e", {}}}).size(), 1u);
  server->ask({"EVAL", "for i = 1, 12000 do redis.call('HSET', KEYS[1], 'old' .. i, '5 1 1 -') end", "1", leads_key});
  const auto before = server->calls("hscan"), all = server->calls("hgetall");
  const auto told = look(*store);
  EXPECT_EQ(told.leads.size(), 12'001u);
  EXPECT_EQ(told.sessions.size(), 1u);
  EXPECT_TRUE(told.whole);
  EXPECT_GE(server->calls("hscan") - before, 5) << "a call looks at some thousand names";
  EXPECT_EQ(server->calls("hgetall") - all, 2) << "the sessions alone, at first and in the end";
  EXPECT_TRUE(look(*store, told.cursor).leads.empty());
}

/// A server that plays one whose leads take two pages, and what changes in between.
struct TwoPages : testing::Test {
  static std::string text(const std::string& of) { return "$" + std::to_string(of.size()) + "\r\n" + of + "\r\n"; }
  static std::string list(const Names& of) {
    std::string out = "*" + std::to_string(of.size()) + "\r\n";
    for (const auto& one : of) out += one;
    return out;
  }
  static std::string told(bool whole, const Names& leads, const std::string& cursor) {
    Names words;
    for (const auto& one : leads) words.push_back(text(one));
    return list({text("1"), text("1 7"), list({}), whole ? ":1\r\n" : ":0\r\n", list(words), text(cursor)});
  }

  FakeServer::Answer answer(const std::string& request) {
    const auto asks = [&](const Script& script) { return request.find(script.sha1) != request.npos; };
    if (!asks(page_script) && !asks(look_script)) return {to_each(request, "+OK\r\n")};
    const bool first = request.ends_with("\r\n0\r\n");
    asked += asks(look_script) ? 'l' : first ? '1' : '2';
    if (asks(page_script) && first)
      return {list({text("9"), told(true, {"a", "5 1 0 -", "b", "5 1 0 -", "c", "spoilt"}, "5-0 1")}),
              std::exchange(goes, false)};
    if (asks(page_script)) {
      if (std::exchange(dawdles, false)) eventually([&] { return !late; });
      return {list({text("0"), told(true, {"d", "5 1 0 -"}, "6-0 2")})};
    }
    if (std::exchange(forgets, false)) return {told(false, {}, "")};
    return {told(false, {"b", "6 2 0 -", "c", "6 2 0 -", "d", "spoilt"}, "7-0 3")};
  }
  void expect_all(const Result<Look>& all) {
    ASSERT_TRUE(all) << error_of(all).message;
    EXPECT_TRUE(all->whole);
    EXPECT_EQ(all->cursor, "7-0 3");
    ASSERT_EQ(all->leads.size(), 3u);
    EXPECT_EQ(all->leads.at("a").token, Token{5});
    EXPECT_EQ(all->leads.at("b").token, Token{6}) << "it changed after its page";
    EXPECT_EQ(all->leads.at("c").token, Token{6}) << "it was mended after its page";
    EXPECT_EQ(all->unreadable.size(), 1u);
    EXPECT_TRUE(all->unreadable.contains("d")) << "it was spoilt after its page";
  }

  bool goes{}, forgets{}, dawdles{};  ///< Once.
  std::atomic<bool> late{};
  std::string asked;  ///< By the threads of the connections, one after the other.
  FakeServer server{[this](const std::string& request) { return answer(request); }};
  std::shared_ptr<GroupStore> store = open_group(from_url("redis://" + server.address()), "shards");
};

TEST_F(TwoPages, WhatChangedMeanwhileIsShown) {
  expect_all(store->look({}, within(5s)));
  EXPECT_EQ(asked, "12l");
}

TEST_F(TwoPages, IfTheLogHasForgottenTheFirstPageAllIsReadAnew) {
  forgets = true;
  expect_all(store->look({}, within(5s)));
  EXPECT_EQ(asked, "12l12l");
}

/// Another server, or this one after a restart, has another order.
TEST_F(TwoPages, ByAnotherConnectionAllIsReadAnew) {
  goes = true;
  auto all = store->look({}, within(5s));
  if (!all) all = store->look({}, within(5s));  // A question may meet the end of the connection.
  expect_all(all);
  EXPECT_EQ(asked, "1212l");
}

/// Else nobody would ever read all of a group that takes longer.
TEST_F(TwoPages, WhatALimitCutsOffTheNextLookGoesOnWith) {
  dawdles = late = true;
  EXPECT_EQ(error_of(store->look({}, within(50ms))).fault, Fault::timed_out);
  late = false;
  expect_all(store->look({}, within(5s)));
  EXPECT_TRUE(asked.starts_with("12") && asked.ends_with("2l")) << asked;
  EXPECT_EQ(std::ranges::count(asked, '1'), 1) << asked;
}

// ---- Sentinels ----

TEST_F(RedisGroup, SentinelsThatAreAwayEndNoSessionAndNothingIsClaimed) {
  std::optional<FakeSentinel> sentinel(std::in_place, server->port());
  Lines lines;
  store = open_at("redis+sentinel://" + sentinel->address() + "/main?first_claim=at_once", lines.log());
  Process a(*store, ada);
  EXPECT_EQ(a.claim({{"x", {}}}), Names{"x"});
  const auto x = a.token;
  sentinel.reset();
  EXPECT_TRUE(a.renew());
  auto both = a.next();
  both.claims = {{"y", {}}};
  both.releases = {{"x", x, {}}};
  for (int i = 0; i < 2; ++i) {
    const auto done = a.commit(both);
    EXPECT_TRUE(done.granted);
    EXPECT_EQ(done.claimed, Names());
    EXPECT_EQ(done.released, i == 0 ? Names{"x"} : Names());
    both = a.next();
    both.claims = {{"y", {}}};
  }
  std::map<std::string, int> told;  // why: it closes its connection, and later refuses another one
  for (const auto& line : lines.all())
    if (line.find("nothing is claimed as long as the Sentinels") != line.npos) ++told[line];
  EXPECT_FALSE(told.empty());
  for (const auto& [line, times] : told) EXPECT_EQ(times, 1) << line;
}

TEST_F(RedisGroup, AFailOverIsFollowed) {
  Watched watched(3);
  store = open_at(watched.url());
  ASSERT_TRUE(eventually([&] { return bool(store->look({}, within(400ms))); }));
  Process a(*store, ada);
  ASSERT_EQ(a.claim({{"x", {}}}), Names{"x"});
  ASSERT_TRUE(eventually([&] {
    return watched.in_step() &&
           watched.second.ask({"HGET", leads_key, "x"}) == watched.first.ask({"HGET", leads_key, "x"});
  }));
  watched.first.kill();
  ASSERT_TRUE(eventually([&] {
    const auto renewed = a.send(a.next(), 400ms);
    return renewed && renewed->granted;
  })) << watched.sentinels[0]->log();
  // A claim asks the Sentinels anew, and two who still name the first would outvote the third.
  ASSERT_TRUE(eventually([&] {
    return std::ranges::all_of(watched.sentinels, [&](const auto& one) {
      return one->ask({"SENTINEL", "get-master-addr-by-name", "main"}) ==
             "127.0.0.1 " + std::to_string(watched.second.port());
    });
  }));
  EXPECT_EQ(a.claim({{"y", {}}}), Names{"y"});
  EXPECT_NE(watched.second.ask({"HGET", leads_key, "y"}), "");
}

// ---- clusters ----

TEST_F(RedisGroup, ItsKeysHaveOneSlot) {
  Cluster cluster;
  for (const std::string name : {"shards", "}", "}{", "{}", "a}b", "{"}) {
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      const auto each = open_group(from_url("redis://" + cluster[i].address()), name);
      Process a(*each, {100 + i});
      EXPECT_EQ(a.claim({{"x" + std::to_string(i), {}}}).size(), 1u) << name;
      EXPECT_EQ(look(*each).sessions.size(), i + 1) << name;
    }
  }
}

}  // namespace
}  // namespace tenure::redis::test
