// SPDX-License-Identifier: Apache-2.0
// Goal: the rules that every group store keeps, written once. Method: sessions driven verb by verb, each by a
// connection of its own. Each store's own group_test.cpp instantiates it.
#include <tenure/contract/group_suite.hpp>
#include <tenure/kit/who.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <limits>
#include <map>
#include <set>
#include <thread>

namespace tenure::contract {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GroupContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GuardOfACommit);

namespace {

std::string bytes(int from, int to) {
  std::string all;
  for (int byte = from; byte <= to; ++byte) all += static_cast<char>(byte);
  return all;
}

Names numbered(const std::string& prefix, std::size_t n) {
  Names names;
  for (std::size_t i = 0; i < n; ++i) names.push_back(prefix + std::to_string(1000 + i));
  return names;
}

}  // namespace

// ---- open ----

TEST_P(GroupContract, AGroupThatNobodyOpenedIsEmpty) {
  const auto look = stranger("a").look();
  EXPECT_TRUE(look.whole);
  EXPECT_TRUE(look.sessions.empty());
  EXPECT_TRUE(look.leads.empty());
  EXPECT_EQ(look.marker, 0u);
  EXPECT_EQ(stranger("a").sweep(), 0);
  EXPECT_FALSE(stranger("a").end({77}, {1})) << "what is absent may have been lost";
  const auto commit = stranger("a").commit({.session = {77}, .beats = {1}, .next = {}, .claims = {{"jobs", {}}}});
  EXPECT_FALSE(commit.granted);
  EXPECT_EQ(standing(), Standing{}) << "nobody founded it";
}

TEST_P(GroupContract, ASessionStandsAsItWasOpenedAndAsItWasRenewed) {
  auto store = connect();
  Session session{.record = {.token = {},
                             .beat = std::numeric_limits<std::uint64_t>::max(),
                             .who = who_text({bytes(1, 100), bytes(101, 200)}, ""),
                             .released = false,
                             .term = milliseconds(1500) + Clock::Duration(1),
                             .asked = Clock::Duration(1'234'567'890'123'456'789)},
                  .joined = std::numeric_limits<std::uint32_t>::max(),
                  .names = std::numeric_limits<std::uint64_t>::max(),
                  .weight = 1000,
                  .most = std::numeric_limits<std::uint32_t>::max() - 1};
  const SessionId id{std::numeric_limits<std::int64_t>::max()};
  const auto opened = store->open(id, session, call());
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(opened->granted);
  const auto stands = [&](const Look& look) {
    ASSERT_TRUE(look.sessions.contains(id));
    const auto& found = look.sessions.at(id);
    EXPECT_EQ(found.record.beat, session.record.beat);
    EXPECT_EQ(found.record.who, session.record.who);
    EXPECT_FALSE(found.record.released);
    EXPECT_EQ(found.record.term, std::chrono::ceil<milliseconds>(session.record.term)) << "rounded up";
    EXPECT_EQ(found.record.asked, session.record.asked);
    EXPECT_GT(found.record.written_ms, 1'000'000'000'000) << "the store's clock, set by the store";
    EXPECT_EQ(found.joined, session.joined);
    EXPECT_EQ(found.names, session.names);
    EXPECT_EQ(found.weight, session.weight);
    EXPECT_EQ(found.most, session.most);
  };
  stands(opened->look);
  stands(stranger("b").look());
  const Commit renewal{.session = id, .beats = {session.record.beat}, .next = session, .marker = opened->look.marker};
  for (int step = 1; step < 3; ++step) {
    auto next = renewal;
    if (step == 1) next.next = {.record = {.beat = 0, .who = bytes('!', '~'), .term = milliseconds(1)}};
    if (step == 2) next.beats = {0};
    session = next.next;
    const auto renewed = store->commit(next, call());
    ASSERT_TRUE(renewed) << renewed.error().message;
    ASSERT_TRUE(renewed->granted);
    stands(renewed->look);
    stands(stranger("b").look());
  }
}

/// The store's clock, and how long ago it was at a write: who only watches counts by that.
TEST_P(GroupContract, TheStoreSaysWhenASessionWasWritten) {
  auto a = stranger("a"), b = stranger("b");
  const auto tells = [&](const Look& look, Clock::Time asked, milliseconds least) {
    ASSERT_TRUE(look.sessions.contains(a.id()));
    const milliseconds since(look.now_ms - look.sessions.at(a.id()).record.written_ms);
    EXPECT_GE(since, least) << "now_ms is of the look, written_ms of the write";
    EXPECT_LE(since, boot_clock().now() - asked + milliseconds(40));
  };
  for (const bool renewal : {false, true}) {
    const auto asked = boot_clock().now();
    ASSERT_TRUE(renewal ? a.renew() : a.open());
    tells(a.look(""), asked, milliseconds(0));
    wait_out(Player::within(milliseconds(50)));
    tells(b.look(""), asked, milliseconds(40));
  }
}

TEST_P(GroupContract, AnIdThatStandsIsNotOpenedAgain) {
  auto a = member("a"), b = stranger("b");
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(a.renew());  // A store may keep it elsewhere by then.
  for (const bool ended : {false, true}) {
    if (ended) {
      ASSERT_TRUE(a.end());
    }
    const auto before = standing();
    const auto again = b.store().open(a.id(), b.session(draw_beat()), call());
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_FALSE(again->granted);
    EXPECT_TRUE(again->look.sessions.contains(a.id()));
    EXPECT_EQ(standing(), before);
  }
}

TEST_P(GroupContract, AGroupHasAMarkerIfItsStoreCanLoseData) {
  auto a = member("a"), b = member("b");
  EXPECT_EQ(a.seen().marker() != 0, group_->can_lose());
  EXPECT_EQ(b.seen().marker(), a.seen().marker());
  EXPECT_EQ(stranger("c").look().marker, a.seen().marker());
}

TEST_P(GroupContract, ManyOpenAtOnceAndFoundOneGroup) {
  constexpr int processes = 4;
  for (int round = 0; round < 5; ++round) {
    const auto name = "founded " + std::to_string(round);
    std::vector<Member> members;
    for (int i = 0; i < processes; ++i) members.push_back(stranger("p" + std::to_string(i), name));
    std::barrier together(processes);
    {
      std::vector<std::jthread> threads;
      for (auto& m : members)
        threads.emplace_back([&] {
          together.arrive_and_wait();
          EXPECT_TRUE(m.open());
        });
    }
    const auto all = standing(name);
    EXPECT_EQ(all.sessions.size(), std::size_t{processes});
    for (auto& m : members) {
      EXPECT_EQ(m.seen().marker(), all.marker);
      EXPECT_TRUE(m.renew());
    }
  }
}

TEST_P(GroupContract, GroupsOfOneStoreAreApart) {
  const Names names{"plain",
                    "PLAIN",
                    "plain ",
                    "a/b",
                    "a_b",
                    "*?[a-z]",
                    "'; --",
                    "{tag}a",
                    "\n",
                    "\xff\xfe",
                    full_length("'\n\x01{}$1\\"),
                    full_length("'\n\x01{}$2\\")};
  std::vector<Member> members;
  for (const auto& name : names) {
    members.push_back(member("holder of " + std::to_string(members.size()), name));
    EXPECT_TRUE(members.back().claims("jobs"));
    EXPECT_EQ(members.back().store().group(), name);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto all = standing(names[i]);
    ASSERT_EQ(all.sessions.size(), 1u);
    EXPECT_TRUE(all.sessions.contains(members[i].id()));
    EXPECT_EQ(all.leads.at("jobs").session, members[i].id());
  }
}

// ---- what guards a commit ----

void GuardOfACommit::SetUp() {
  GroupContract::SetUp();
  if (IsSkipped()) return;
  a_.emplace(member("a"));
  auto b = member("b");
  ASSERT_TRUE(b.claims("released"));
  ASSERT_TRUE(b.releases("released"));
  ASSERT_TRUE(b.claims("of the dead"));
  ASSERT_TRUE(b.end());
  dead_ = b.id();
  ASSERT_TRUE(a_->claims("mine"));
  a_->look();
}

Commit GuardOfACommit::busy() {
  auto commit = a_->renewal();
  for (const auto* election : {"free", "of the dead", "released"})
    commit.claims.push_back({election, a_->seen().token(election)});
  commit.releases = {{"mine", *a_->seen().token("mine")}};
  commit.ended = {dead_};
  return commit;
}

void GuardOfACommit::refused(const Commit& commit) {
  const auto before = standing();
  const auto done = a_->store().commit(commit, call());
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(done->granted);
  EXPECT_TRUE(done->claimed.empty());
  EXPECT_TRUE(done->released.empty());
  EXPECT_EQ(done->look.sessions, before.sessions) << "a refusal tells what stands";
  EXPECT_EQ(standing(), before) << "nothing at all happened";
}

TEST_P(GuardOfACommit, WithItsBeatEverythingIsDoneInOneStep) {
  const auto commit = busy();
  const auto done = a_->commit(commit);
  ASSERT_TRUE(done.granted);
  EXPECT_EQ(sorted(done.claimed), (Names{"free", "of the dead", "released"}));
  EXPECT_EQ(done.released, Names{"mine"});
  const auto all = standing();
  EXPECT_EQ(all.sessions.at(a_->id()).record.beat, commit.next.record.beat);
  EXPECT_EQ(all.sessions.at(a_->id()), done.look.sessions.at(a_->id())) << "what stands after the commit";
  for (const auto& election : done.claimed) {
    const Lead ours{.token = done.token, .session = a_->id()};
    EXPECT_EQ(all.leads.at(election), ours);
    EXPECT_EQ(a_->seen().leads().at(election), ours) << "the answer tells our own changes";
  }
  EXPECT_TRUE(all.leads.at("mine").released);
  EXPECT_EQ(all.leads, a_->seen().leads());
}

TEST_P(GuardOfACommit, AnyOfItsBeatsWillDo) {
  auto commit = busy();
  commit.beats = {1, std::numeric_limits<std::uint64_t>::max(), a_->beat(), 0};
  EXPECT_TRUE(a_->commit(commit).granted);
}

TEST_P(GuardOfACommit, ABeatThatItNeverHadRefusesIt) {
  auto commit = busy();
  for (const auto& beats : std::vector<std::vector<std::uint64_t>>{{a_->beat() + 1}, {1, 2, 3}, {}}) {
    commit.beats = beats;
    refused(commit);
  }
}

TEST_P(GuardOfACommit, ABeatOfBeforeItsRenewalRefusesIt) {
  const auto late = busy();
  ASSERT_TRUE(a_->renew());
  refused(late);
}

TEST_P(GuardOfACommit, ACommitThatComesTwiceIsDoneOnce) {
  const auto commit = busy();
  ASSERT_TRUE(a_->commit(commit).granted);
  refused(commit);
}

TEST_P(GuardOfACommit, OfTwoClonesOneIsRefused) {
  const auto mine = busy(), copy = busy();
  ASSERT_TRUE(a_->commit(mine).granted);
  refused(copy);
  EXPECT_TRUE(a_->renew());
}

TEST_P(GuardOfACommit, AnEndedSessionIsRefusedWhateverItsBeat) {
  auto late = busy();
  const auto new_beat = draw_beat();
  const auto ended = a_->store().end(a_->id(), {a_->beat()}, new_beat, call());
  ASSERT_TRUE(ended && *ended);
  refused(late);
  late.beats.push_back(new_beat);
  refused(late);
}

TEST_P(GuardOfACommit, ASessionThatNobodyOpenedIsRefused) {
  auto commit = busy();
  commit.session = draw_id();
  refused(commit);
}

TEST_P(GuardOfACommit, AnotherMarkerRefusesIt) {
  if (!group_->can_lose()) GTEST_SKIP() << "this store loses nothing, and its groups have no marker";
  auto commit = busy();
  for (const auto marker : {commit.marker + 1, std::uint64_t{0}}) {
    commit.marker = marker;
    refused(commit);
  }
}

TEST_P(GuardOfACommit, ItCarriesSoManyChangesAndNoMore) {
  const auto first = numbered("first ", max_changes), second = numbered("second ", max_changes - 1);
  auto done = a_->claim(first);
  ASSERT_TRUE(done.granted);
  EXPECT_EQ(sorted(done.claimed), first);
  auto commit = a_->renewal();
  for (const auto& election : first) commit.releases.push_back({election, done.token});
  commit.claims = {{"one more", std::nullopt}};
  const auto before = standing();
  const auto refused = a_->store().commit(commit, call());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::misconfigured);
  EXPECT_NE(refused.error().message.find("501 changes"), std::string::npos) << refused.error().message;
  EXPECT_EQ(standing(), before);
  commit.claims.clear();
  done = a_->commit(commit);
  ASSERT_TRUE(done.granted);
  EXPECT_EQ(sorted(done.released), first);
  EXPECT_EQ(a_->seen().leads(), standing().leads);
}

TEST_P(GuardOfACommit, WrongNamesAreRefusedAndNothingHappens) {
  const auto before = standing();
  const auto wrong = [&](Names claims, const Names& releases, const std::string& why) {
    auto commit = busy();
    commit.claims.clear(), commit.releases.clear();
    for (const auto& election : claims) commit.claims.push_back({election, std::nullopt});
    for (const auto& election : releases) commit.releases.push_back({election, Token{1}});
    const auto done = a_->store().commit(commit, call());
    ASSERT_FALSE(done) << why;
    EXPECT_EQ(done.error().fault, Fault::misconfigured);
    EXPECT_NE(done.error().message.find(why), std::string::npos) << done.error().message;
  };
  wrong({"b", "a"}, {}, "sorted");
  wrong({"a", "a"}, {}, "once");
  wrong({}, {"b", "a"}, "sorted");
  wrong({"a", "b"}, {"b"}, "claimed and released");
  wrong({""}, {}, "0 bytes");
  wrong({full_length("") + "x"}, {}, "201 bytes");
  wrong({std::string("a\0b", 3)}, {}, "NUL");
  EXPECT_EQ(standing(), before);
}

// ---- claims ----

TEST_P(GroupContract, AnAbsentLeadIsClaimedByWhoeverExpectsNobody) {
  auto a = member("a"), b = member("b");
  auto wrong = a.renewal();
  wrong.claims = {{"jobs", Token{1}}};
  auto done = a.commit(wrong);
  EXPECT_TRUE(done.granted) << "the renewal";
  EXPECT_TRUE(done.claimed.empty()) << "there is no such token";
  EXPECT_TRUE(standing().leads.empty());
  EXPECT_TRUE(a.claims("jobs"));
  const auto before = standing().leads;
  done = b.claim({"jobs"});  // unseen
  EXPECT_TRUE(done.granted);
  EXPECT_TRUE(done.claimed.empty());
  EXPECT_EQ(done.look.leads.at("jobs").session, a.id()) << "the look says why not";
  EXPECT_EQ(standing().leads, before);
}

TEST_P(GroupContract, AReleasedLeadIsClaimedWithItsTokenOnly) {
  auto a = member("a"), b = member("b");
  ASSERT_TRUE(a.claims("jobs"));
  const auto token = *a.seen().token("jobs");
  ASSERT_TRUE(a.releases("jobs"));
  b.look();
  auto wrong = b.renewal();
  for (const auto& expected :
       {std::optional<Token>{}, std::optional(Token{token.value + 1}), std::optional(Token{token.value - 1})}) {
    wrong = b.renewal();
    wrong.claims = {{"jobs", expected}};
    EXPECT_TRUE(b.commit(wrong).claimed.empty());
  }
  EXPECT_EQ(standing().leads.at("jobs").token, token);
  const auto done = b.claim({"jobs"}, {}, Token{token.value + 1});
  EXPECT_EQ(done.claimed, Names{"jobs"});
  EXPECT_GT(done.token, token);
  EXPECT_EQ(standing().leads.at("jobs"), (Lead{.token = done.token, .session = b.id()})) << "no longer released";
}

/// What an unanswered commit left behind.
TEST_P(GroupContract, OurOwnLeadIsClaimedAnewWithAGreaterToken) {
  auto a = member("a");
  ASSERT_TRUE(a.claims("jobs"));
  const auto ghost = *a.seen().token("jobs");
  const auto done = a.claim({"jobs"}, {}, Token{ghost.value + 1});
  EXPECT_EQ(done.claimed, Names{"jobs"});
  EXPECT_GT(done.token, ghost);
  EXPECT_EQ(standing().leads.at("jobs").token, done.token);
}

TEST_P(GroupContract, TheLeadsOfAnEndedSessionAreClaimedByWhoeverSaysThatItEnded) {
  auto a = member("a"), b = member("b"), c = member("c");
  ASSERT_TRUE(a.claim({"one", "three", "two"}).granted);
  ASSERT_TRUE(b.end(a));
  b.look();
  EXPECT_FALSE(b.claims("one")) << "not said to have ended";
  EXPECT_FALSE(b.claims("one", {c.id()})) << "another one is";
  EXPECT_TRUE(b.claims("one", {c.id(), a.id(), draw_id()}));
  auto wrong = b.renewal();
  wrong.claims = {{"two", Token{b.seen().token("two")->value + 1}}};
  wrong.ended = {a.id()};
  EXPECT_TRUE(b.commit(wrong).claimed.empty()) << "another token";
  c.look();
  EXPECT_EQ(sorted(c.claim({"one", "three", "two"}, {a.id()}).claimed), (Names{"three", "two"}));
  const auto leads = standing().leads;
  EXPECT_EQ(leads.at("one").session, b.id());
  EXPECT_EQ(leads.at("two").session, c.id());
  EXPECT_EQ(leads.at("three").session, c.id());
}

TEST_P(GroupContract, TheLeadOfALiveSessionIsNotClaimedWhateverIsSaidOfIt) {
  auto a = member("a"), b = member("b");
  ASSERT_TRUE(a.claims("jobs"));
  b.look();
  const auto before = standing().leads;
  EXPECT_FALSE(b.claims("jobs"));
  EXPECT_FALSE(b.claims("jobs", {a.id()})) << "a forged push is no end";
  EXPECT_FALSE(b.claims("jobs", {a.id(), b.id()}));
  EXPECT_EQ(standing().leads, before);
  EXPECT_TRUE(a.releases("jobs"));
}

TEST_P(GroupContract, ALeadWhoseSessionIsGoneIsClaimedLikeAnEndedOnes) {
  auto a = member("a"), b = member("b");
  ASSERT_TRUE(a.claims("jobs"));
  if (!group_->lose_session("orders", a.id())) GTEST_SKIP() << "this store cannot be made to lose a session alone";
  b.look();
  EXPECT_FALSE(a.renew()) << "it stands no more";
  EXPECT_FALSE(b.end(a.id(), {1})) << "what is absent may have been lost";
  EXPECT_FALSE(b.claims("jobs"));
  EXPECT_TRUE(b.claims("jobs", {a.id()}));
}

TEST_P(GroupContract, EachChangeIsJudgedByItself) {
  auto a = member("a"), b = member("b");
  ASSERT_EQ(a.claim({"busy", "freed", "given back", "kept"}).claimed.size(), 4u);
  ASSERT_TRUE(a.releases("freed"));
  ASSERT_TRUE(b.claims("b leads"));
  b.look(), a.look();
  auto commit = a.renewal();
  commit.claims = {{"absent", std::nullopt},
                   {"freed", std::nullopt},                    // it is not absent
                   {"kept", a.seen().token("kept")},           // our own, anew
                   {"unknown", Token{5}}};                     // it is absent
  commit.releases = {{"b leads", *a.seen().token("b leads")},  // another's
                     {"busy", Token{1}},                       // another tenure
                     {"given back", *a.seen().token("given back")},
                     {"nowhere", Token{1}}};
  const auto done = a.commit(commit);
  ASSERT_TRUE(done.granted);
  EXPECT_EQ(sorted(done.claimed), (Names{"absent", "kept"}));
  EXPECT_EQ(done.released, Names{"given back"});
  const auto leads = standing().leads;
  EXPECT_EQ(leads.size(), 6u);
  EXPECT_EQ(leads, a.seen().leads());
  EXPECT_FALSE(leads.at("b leads").released);
  EXPECT_FALSE(leads.at("busy").released);
  EXPECT_TRUE(leads.at("given back").released);
}

TEST_P(GroupContract, ElectionsMayHaveAnyNames) {
  Names names{"plain",
              "PLAIN",
              "plain ",
              "..",
              "a/b",
              "%s%n%d",
              "'; drop table x; --",
              "\"quoted\"",
              "{tag}a",
              "KEYS[1]",
              "*?[a-z]",
              "{}",
              "NULL",
              "\\",
              "\\x00",
              "a,b",
              " ",
              "0",
              "\n",
              "\r\n",
              "\xc3\xa4\xf0\x9f\x91\x91",
              "\xff\xfe",
              bytes(1, 100),
              bytes(56, 255),
              full_length("'\n\x01{}$1\\"),
              full_length("'\n\x01{}$2\\")};
  for (int byte = 1; byte < 256; ++byte) names.push_back(bytes(byte, byte));
  names = sorted(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  auto a = member("a"), b = member("b");
  EXPECT_EQ(sorted(a.claim(names).claimed), names);
  EXPECT_EQ(sorted(a.release(names, b.id()).released), names);
  b.look();
  EXPECT_EQ(sorted(b.claim(names).claimed), names);
  const auto leads = standing().leads;
  EXPECT_EQ(leads, b.seen().leads());
  ASSERT_EQ(leads.size(), names.size());
  for (const auto& name : names) EXPECT_TRUE(leads.contains(name)) << testing::PrintToString(name);
}

// ---- tokens ----

TEST_P(GroupContract, AllClaimsOfACommitHaveOneTokenThatFollowsTheStoresClock) {
  auto a = member("a");
  const auto before = a.look().now_ms;
  const auto done = a.claim({"one", "two"}, {}, Token{1});
  const auto after = a.look().now_ms;
  ASSERT_EQ(done.claimed.size(), 2u);
  EXPECT_GT(before, 1'000'000'000'000);
  EXPECT_GE(done.token.value, static_cast<std::uint64_t>(before));
  EXPECT_LE(done.token.value, static_cast<std::uint64_t>(after));
  for (const auto& [election, lead] : standing().leads) EXPECT_EQ(lead.token, done.token) << election;
}

TEST_P(GroupContract, ATokenIsAtLeastWhatIsAskedToTheLastDigit) {
  auto a = member("a");
  const auto now = static_cast<std::uint64_t>(a.look().now_ms);
  for (const auto least : {2 * now, (std::uint64_t{1} << 53) + 1, (std::uint64_t{1} << 53) + 2,
                           (std::uint64_t{1} << 61) + 3, (std::uint64_t{1} << 61) + 4}) {
    const auto done = a.claim({"jobs"}, {}, Token{least});
    EXPECT_EQ(done.claimed, Names{"jobs"});
    EXPECT_EQ(done.token, Token{least});
    EXPECT_EQ(standing().leads.at("jobs").token, Token{least});
    auto near = a.renewal();
    near.claims = {{"jobs", Token{least - 1}}};
    EXPECT_TRUE(a.commit(near).claimed.empty()) << "a token is not rounded";
  }
}

TEST_P(GroupContract, TokensFollowASteppedClockForwardAndNotBack) {
  auto a = member("a");
  const auto first = a.claim({"jobs"}).token;
  if (!group_->step_clock(hours(1))) GTEST_SKIP() << "this store's clock cannot be stepped";
  const auto second = a.claim({"jobs"}, {}, Token{first.value + 1}).token;
  EXPECT_GE(second.value, first.value + 3'600'000);
  group_->step_clock(-hours(2));
  const auto done = a.claim({"jobs"}, {}, Token{second.value + 1});
  group_->step_clock(hours(1));
  EXPECT_EQ(done.claimed, Names{"jobs"});
  EXPECT_EQ(done.token, Token{second.value + 1});
}

// ---- releases ----

TEST_P(GroupContract, AReleaseKeepsItsTokenAndNamesItsHeir) {
  auto a = member("a"), b = member("b");
  ASSERT_TRUE(a.claim({"to anybody", "to b"}).granted);
  const auto token = *a.seen().token("to b");
  auto release = a.renewal();
  release.releases = {{"to anybody", token}, {"to b", token, b.id()}};
  const auto done = a.commit(release);
  EXPECT_EQ(sorted(done.released), (Names{"to anybody", "to b"}));
  const auto leads = standing().leads;
  EXPECT_EQ(leads.at("to anybody"), (Lead{.token = token, .session = a.id(), .released = true}));
  EXPECT_EQ(leads.at("to b"), (Lead{.token = token, .session = a.id(), .released = true, .heir = b.id()}));
  EXPECT_TRUE(a.release({"to b"}).released.empty()) << "it is released already";
  EXPECT_EQ(standing().leads, leads) << "and its heir stays";
  auto c = member("c");
  EXPECT_TRUE(c.claims("to b")) << "an heir is a hint, and the store does not judge it";
  EXPECT_EQ(standing().leads.at("to b").heir, std::nullopt);
}

TEST_P(GroupContract, OnlyItsSessionReleasesALeadAndOnlyThatTenure) {
  auto a = member("a"), b = member("b");
  ASSERT_TRUE(a.claims("jobs"));
  b.look();
  const auto before = standing().leads;
  EXPECT_TRUE(b.release({"jobs"}).released.empty()) << "another's";
  for (const auto token : {before.at("jobs").token.value + 1, before.at("jobs").token.value - 1, std::uint64_t{0}}) {
    auto release = a.renewal();
    release.releases = {{"jobs", Token{token}}};
    EXPECT_TRUE(a.commit(release).released.empty()) << "another tenure";
  }
  EXPECT_TRUE(a.release({"nobody led it"}).released.empty());
  EXPECT_EQ(standing().leads, before);
  EXPECT_TRUE(a.releases("jobs"));
}

// ---- ends ----

TEST_P(GroupContract, ASessionIsEndedByWhoeverKnowsItsBeat) {
  auto a = member("a"), b = member("b");
  ASSERT_TRUE(a.claims("jobs"));
  const auto before = standing();
  EXPECT_FALSE(b.end(a.id(), {a.beat() + 1, 1, 0}));
  EXPECT_FALSE(b.end(a.id(), {}));
  EXPECT_EQ(standing(), before) << "nothing at all happened";
  const auto new_beat = draw_beat();
  const auto ended = b.store().end(a.id(), {1, a.beat()}, new_beat, call());
  ASSERT_TRUE(ended && *ended);
  const auto all = standing();
  EXPECT_TRUE(all.sessions.at(a.id()).record.released);
  EXPECT_EQ(all.sessions.at(a.id()).record.beat, new_beat);
  EXPECT_EQ(all.sessions.at(a.id()).record.who, a.session(0).record.who);
  EXPECT_FALSE(all.sessions.at(b.id()).record.released);
  EXPECT_EQ(all.leads, before.leads) << "its leads go on naming it";
  EXPECT_TRUE(b.renew());
}

TEST_P(GroupContract, AnEndIsFinalAndMayBeRepeated) {
  auto a = member("a"), b = member("b");
  ASSERT_TRUE(a.end());
  const auto before = standing();
  EXPECT_TRUE(a.end());
  EXPECT_TRUE(b.end(a.id(), {1, 2}));
  EXPECT_TRUE(b.end(a.id(), {}));
  EXPECT_EQ(standing(), before);
  EXPECT_FALSE(a.renew());
  EXPECT_FALSE(b.end(draw_id(), {1})) << "what is absent may have been lost";
  EXPECT_EQ(standing(), before);
}

TEST_P(GroupContract, ABeatOfBeforeARenewalEndsNothing) {
  auto a = member("a"), b = member("b");
  const auto seen = a.beat();
  ASSERT_TRUE(a.renew());
  EXPECT_FALSE(b.end(a.id(), {seen}));
  EXPECT_TRUE(a.renew());
}

TEST_P(GroupContract, OurOwnEndFreesEveryLeadAtOnce) {
  auto a = member("a"), b = member("b");
  const auto all = numbered("election ", 40);
  ASSERT_EQ(a.claim(all).claimed.size(), all.size());
  ASSERT_TRUE(a.end());
  b.look();
  EXPECT_EQ(sorted(b.claim(all, {a.id()}).claimed), all);
}

// ---- retire ----

/// Those that were, with the tokens that it has seen.
static std::set<std::string> retired_by(Member& member, const Names& elections) {
  std::map<std::string, Token> leads;
  for (const auto& election : elections) leads[election] = member.seen().token(election).value_or(Token{1});
  const auto done = member.store().retire(leads, member.limit());
  EXPECT_TRUE(done) << done.error().message;
  return done ? *done : std::set<std::string>{};
}

/// No store's clock is there yet, and no number of Lua tells it from the next one.
constexpr Token far_token{(std::uint64_t{1} << 61) + 1};

TEST_P(GroupContract, WhatNobodyLeadsIsRetiredAndItsTokenIsKept) {
  auto a = member("a"), b = member("b");
  ASSERT_EQ(a.claim({"gone", "led", "moved"}, {}, far_token).claimed.size(), 3u);
  b.look();
  ASSERT_EQ(a.release({"gone", "moved"}).released.size(), 2u);
  ASSERT_TRUE(a.claims("moved"));
  ASSERT_TRUE(a.releases("moved"));
  EXPECT_EQ(retired_by(b, {"gone", "led", "moved", "nobody's"}), std::set<std::string>{"gone"});
  EXPECT_TRUE(retired_by(b, {"gone"}).empty()) << "it is not there";
  const auto look = connect()->look({}, call());
  ASSERT_TRUE(look);
  EXPECT_EQ(look->retired, far_token);
  EXPECT_FALSE(look->leads.contains("gone"));
  EXPECT_EQ(look->leads.at("moved").token, a.seen().token("moved"));
  EXPECT_EQ(look->leads.at("led").token, far_token);
  EXPECT_TRUE(a.releases("led"));
}

TEST_P(GroupContract, NoTokenFallsWhenANameComesBack) {
  auto a = member("a"), b = member("b"), c = member("c");
  ASSERT_EQ(a.claim({"known", "unknown"}, {}, far_token).claimed.size(), 2u);
  ASSERT_EQ(a.release({"known", "unknown"}).released.size(), 2u);
  b.look();
  ASSERT_EQ(retired_by(a, {"known", "unknown"}).size(), 2u);
  auto beyond = b.renewal();
  beyond.claims = {{"known", Token{far_token.value + 1}}};
  EXPECT_TRUE(b.commit(beyond).claimed.empty()) << "no such lead was retired";
  const auto known = b.claim({"known"}, {}, far_token);
  EXPECT_EQ(known.claimed, Names{"known"}) << "it expects the lead that was retired";
  EXPECT_GT(known.token, far_token);
  const auto unknown = c.claim({"new", "unknown"}, {}, Token{1});
  EXPECT_EQ(unknown.claimed, (Names{"new", "unknown"})) << "it knows of nothing";
  EXPECT_GT(unknown.token, far_token);
}

TEST_P(GroupContract, WhoFollowsByACursorLearnsOfARetirement) {
  auto a = member("a");
  ASSERT_EQ(a.claim({"gone", "stays"}).claimed.size(), 2u);
  ASSERT_EQ(a.release({"gone", "stays"}).released.size(), 2u);
  const auto store = connect();
  const auto before = store->look({}, call());
  ASSERT_TRUE(before);
  ASSERT_TRUE(before->leads.contains("gone"));
  ASSERT_EQ(retired_by(a, {"gone"}).size(), 1u);
  auto after = store->look(before->cursor, call());
  if (after && !after->whole) after = store->look(after->cursor, call());
  ASSERT_TRUE(after);
  EXPECT_TRUE(after->whole) << "a cursor cannot tell what is gone";
  EXPECT_FALSE(after->leads.contains("gone"));
  EXPECT_TRUE(after->leads.contains("stays"));
}

TEST_P(GroupContract, TheLeadsOfAnEndedSessionMayBeRetiredAndThoseOfALostOneNot) {
  auto a = member("a"), b = member("b"), c = member("c");
  ASSERT_TRUE(a.claims("ended"));
  ASSERT_TRUE(b.claims("lost"));
  c.look();
  ASSERT_TRUE(a.end());
  EXPECT_EQ(retired_by(c, {"ended", "lost"}), std::set<std::string>{"ended"});
  EXPECT_EQ(c.sweep(), 1) << "nothing names it any more";
  if (!group_->lose_session("orders", b.id())) GTEST_SKIP() << "this store loses no session";
  EXPECT_TRUE(retired_by(c, {"lost"}).empty()) << "it may live";
}

TEST_P(GroupContract, SoManyAreRetiredAtOnceAndNoMore) {
  auto a = member("a");
  auto names = numbered("n", max_changes);
  ASSERT_EQ(a.claim(names).claimed.size(), max_changes);
  ASSERT_EQ(a.release(names).released.size(), max_changes);
  std::map<std::string, Token> more;
  for (const auto& name : names) more[name] = *a.seen().token(name);
  more["one more"] = Token{1};
  const auto refused = a.store().retire(more, call());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::misconfigured);
  EXPECT_EQ(standing().leads.size(), max_changes);
  EXPECT_EQ(retired_by(a, names).size(), max_changes);
  EXPECT_TRUE(standing().leads.empty());
}

TEST_P(GroupContract, TokensRiseWhileTheirNameIsRetiredAgainAndAgain) {
  auto gone = member("operator");
  std::vector<Member> members;
  for (int i = 0; i < 2; ++i) members.push_back(member("p" + std::to_string(i)));
  std::atomic<int> contend{static_cast<int>(members.size())};
  std::atomic<std::size_t> retired{};
  const auto until = boot_clock().now() + std::chrono::seconds(20);
  std::vector<std::vector<Token>> tokens(members.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < members.size(); ++i)
      threads.emplace_back([&, i] {
        auto& me = members[i];
        for (int round = 0; round < group_->rounds() || (retired == 0 && boot_clock().now() < until); ++round) {
          if (const auto done = me.claim({"e"}); !done.claimed.empty()) tokens[i].push_back(done.token);
          me.look({});  // A retirement makes the cursor of a commit void, and then that tells no lead.
          me.releases("e");
          me.look({});
        }
        --contend;
      });
    while (contend > 0) retired += gone.look({}).leads.contains("e") ? retired_by(gone, {"e"}).size() : 0;
    EXPECT_GT(retired, 0u);
  }
  std::vector<Token> all;
  for (const auto& one : tokens) {
    EXPECT_TRUE(std::is_sorted(one.begin(), one.end()));
    all.insert(all.end(), one.begin(), one.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_GT(all.size(), 0u);
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "no token was granted twice";
}

// ---- sweep ----

TEST_P(GroupContract, ASweepRemovesWhatHasEndedAndIsNotNamed) {
  auto alive = member("alive"), leads = member("leads"), led = member("led"), unnamed = member("unnamed");
  ASSERT_TRUE(leads.claims("one"));
  ASSERT_TRUE(led.claim({"three", "two"}).granted);
  EXPECT_EQ(alive.sweep(), 0) << "nobody has ended";
  ASSERT_TRUE(unnamed.end());
  ASSERT_TRUE(led.releases("two"));
  ASSERT_TRUE(led.end());
  EXPECT_EQ(alive.sweep(), 1);
  auto left = standing().sessions;
  EXPECT_EQ(left.size(), 3u);
  EXPECT_FALSE(left.contains(unnamed.id()));
  EXPECT_EQ(alive.look().sessions, left) << "a cursor tells it too";
  ASSERT_EQ(alive.claim({"three"}, {led.id()}).claimed, Names{"three"});
  EXPECT_EQ(alive.sweep(), 1) << "a released lead needs no session";
  EXPECT_EQ(alive.sweep(), 0);
  ASSERT_TRUE(alive.claims("two"));
  left = standing().sessions;
  EXPECT_EQ(left.size(), 2u);
  EXPECT_TRUE(left.contains(alive.id()));
  EXPECT_TRUE(left.contains(leads.id()));
  EXPECT_FALSE(unnamed.renew());
}

TEST_P(GroupContract, ASweepOfManyIsOneCall) {
  auto a = member("a");
  std::vector<Member> ended;
  auto store = connect();
  for (int i = 0; i < 30; ++i) {
    ended.emplace_back(store, "e" + std::to_string(i), group_->call());
    ASSERT_TRUE(ended.back().open());
    if (i % 3 == 0) {
      ASSERT_TRUE(ended.back().claims("of " + std::to_string(i)));
    }
    ASSERT_TRUE(ended.back().end());
  }
  EXPECT_EQ(a.sweep(), 20);
  EXPECT_EQ(standing().sessions.size(), 11u);
  EXPECT_TRUE(a.renew());
}

// ---- looks ----

TEST_P(GroupContract, ALookShowsAllAndThenOnlyWhatChanged) {
  auto a = member("a"), b = member("b");
  const auto many = numbered("election ", 100);
  ASSERT_EQ(a.claim(many).claimed.size(), many.size());
  auto look = b.look("");
  EXPECT_TRUE(look.whole);
  EXPECT_EQ(look.leads, standing().leads);
  const auto nothing_new = [&] {  // a store may tell a change twice, as long as an older transaction runs
    const auto by = Player::within(patience);
    for (look = b.look(); !look.whole && !look.leads.empty() && !by.passed(); look = b.look())
      wait_out(Player::within(milliseconds(5)));
    return !look.whole && look.leads.empty();
  };
  EXPECT_TRUE(nothing_new());
  EXPECT_EQ(look.sessions, standing().sessions) << "sessions are always told";
  ASSERT_TRUE(a.renew());
  EXPECT_TRUE(nothing_new()) << "a renewal changes no lead";
  EXPECT_EQ(look.sessions.at(a.id()).record.beat, a.beat());
  ASSERT_TRUE(a.release({many[3], many[7]}).granted);
  look = b.look();
  EXPECT_FALSE(look.whole);
  EXPECT_TRUE(look.leads.contains(many[3]) && look.leads.contains(many[7]));
  EXPECT_LT(look.leads.size(), many.size());
  EXPECT_EQ(b.seen().leads(), standing().leads);
  EXPECT_TRUE(nothing_new());
  ASSERT_TRUE(b.claims(many[3]));
  EXPECT_EQ(b.seen().leads(), standing().leads) << "a commit's answer is a look";
  EXPECT_TRUE(nothing_new());
}

TEST_P(GroupContract, WhoJoinedIsShownThatWhateverElseIsLeftOut) {
  auto a = member("a");
  ASSERT_EQ(a.claim({"in", "later", "out"}).claimed.size(), 3u);
  auto b = stranger("b");
  b.store().joined("in");
  b.store().joined("new");
  ASSERT_TRUE(b.open());
  EXPECT_EQ(b.seen().token("in"), a.seen().token("in"));
  EXPECT_EQ(b.seen().token("new"), std::nullopt);
  ASSERT_TRUE(a.releases("in"));
  ASSERT_TRUE(b.renew());
  EXPECT_TRUE(b.seen().leads().at("in").released) << "what changes is told as before";
  b.store().joined("later");
  EXPECT_TRUE(b.look({}).whole);
  EXPECT_EQ(b.seen().token("in"), a.seen().token("in"));
  EXPECT_EQ(b.seen().token("later"), a.seen().token("later"));
  b.store().left("in");
  b.look({});
  EXPECT_EQ(b.seen().token("in"), a.seen().token("in")) << "a claim of this session may be under way";
}

TEST_P(GroupContract, ACommitShowsNoSessionButItsOwn) {
  auto a = member("a"), b = member("b");
  EXPECT_TRUE(b.look({}).all_sessions);
  const auto granted = b.commit(b.renewal());
  ASSERT_TRUE(granted.granted);
  EXPECT_FALSE(granted.look.all_sessions);
  EXPECT_EQ(granted.look.sessions.size(), 1u);
  EXPECT_TRUE(granted.look.sessions.contains(b.id()));
  ASSERT_TRUE(b.end());
  const auto refused = b.commit(b.renewal());
  EXPECT_TRUE(refused.look.all_sessions) << "who is refused wants to know why";
  EXPECT_TRUE(refused.look.sessions.contains(a.id()));
}

TEST_P(GroupContract, ACommitsAnswerShowsWhatOthersChanged) {
  auto a = member("a"), b = member("b");
  b.look();
  ASSERT_TRUE(a.claims("one"));
  auto done = b.commit(b.renewal());
  EXPECT_TRUE(done.look.leads.contains("one"));
  ASSERT_TRUE(a.claims("two"));
  auto refused = b.renewal();
  refused.beats = {1};
  done = b.commit(refused);
  EXPECT_FALSE(done.granted);
  EXPECT_TRUE(done.look.leads.contains("two")) << "a refusal's too";
  auto whole = b.renewal();
  whole.cursor.clear();
  done = b.commit(whole);
  EXPECT_TRUE(done.granted);
  if (!done.look.whole) {
    EXPECT_EQ(done.look.cursor, "") << "a commit may tell no leads, and says so";
    done.look = b.look();
  }
  EXPECT_TRUE(done.look.whole);
  EXPECT_EQ(done.look.leads, standing().leads);
}

TEST_P(GroupContract, ACursorThatIsNoneShowsAll) {
  auto a = member("a");
  ASSERT_TRUE(a.claims("jobs"));
  for (const std::string cursor : {"?", "-1", "99999999999999999999999999"}) {
    const auto look = a.store().look(cursor, call());
    if (!look) {
      EXPECT_NE(look.error().fault, Fault::timed_out) << look.error().message;
      continue;
    }
    EXPECT_TRUE(look->leads.contains("jobs")) << cursor;
  }
}

// ---- requests to step down ----

TEST_P(GroupContract, ARequestToStepDownStandsBesideTheLeadOfItsToken) {
  auto a = member("a"), b = member("b"), operators = stranger("ops");
  ASSERT_TRUE(a.claim({"jobs", "other"}).granted);
  const auto token = *a.seen().token("jobs");
  const auto ask = [&](const StepDown& request) {
    return operators.store().request_step_down("jobs", request, call());
  };
  const auto asked = [](Member& m) {
    m.look();
    const auto& lead = m.seen().leads().at("jobs");
    return lead.step_down && lead.step_down->token == lead.token ? lead.step_down : std::nullopt;
  };
  EXPECT_EQ(ask({Token{token.value - 1}, "ops", "the tenure before"}), std::nullopt);
  EXPECT_EQ(asked(a), std::nullopt) << "means nothing to this one";
  const StepDown first{token, bytes(1, 100), bytes(56, 255)}, second{token, "", "upgrade"};
  for (const auto& request : {first, second}) {
    EXPECT_EQ(ask(request), std::nullopt);
    EXPECT_EQ(asked(a), request);
    EXPECT_EQ(asked(b), request) << "others see it too";
    EXPECT_EQ(standing().leads.at("jobs"), (Lead{.token = token, .session = a.id(), .step_down = request}));
  }
  EXPECT_EQ(standing().leads.at("other").step_down, std::nullopt);
  ASSERT_TRUE(a.renew());
  EXPECT_EQ(asked(a), second) << "it stands until the lead is claimed";
  ASSERT_TRUE(a.releases("jobs"));
  b.look();
  ASSERT_TRUE(b.claims("jobs"));
  EXPECT_EQ(asked(b), std::nullopt) << "the next tenure was not asked";
  const auto stands = standing().leads.at("jobs");
  EXPECT_EQ(stands.step_down, std::nullopt) << "and nobody is told of what the one before was asked";
  EXPECT_EQ(ask(second), std::nullopt);
  EXPECT_EQ(standing().leads.at("jobs"), stands) << "a request that comes late reaches nobody";
}

TEST_P(GroupContract, NobodyIsAskedToStepDownFromWhatNobodyLed) {
  for (const bool founded : {false, true}) {
    if (founded) member("a");
    const auto before = standing();
    const auto error = stranger("ops").store().request_step_down("jobs", {Token{1}, "ops", "why"}, call());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->fault, Fault::misconfigured);
    EXPECT_NE(error->message.find("jobs"), std::string::npos) << error->message;
    EXPECT_EQ(standing(), before);
  }
}

}  // namespace tenure::contract
