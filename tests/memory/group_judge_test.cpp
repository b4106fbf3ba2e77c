// SPDX-License-Identifier: Apache-2.0
// Goal: the judge of random histories sees each breach. Method: a right history, and the same with one thing changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "group_history.hpp"

namespace tenure::contract {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// One opens and leads "x" and "y", and releases "x". Two ends it and leads both.
struct AJudge : testing::Test {
  static constexpr SessionId one{1}, two{2};

  static Event opened(std::uint64_t at, SessionId id, std::uint64_t beat) {
    Event event{.verb = Event::Verb::open, .asked = at, .answered = at + 1, .session = id, .granted = true};
    event.commit.next.record.beat = beat;
    return event;
  }
  static Event ended(std::uint64_t at, SessionId id, std::uint64_t beat, bool granted = true) {
    Event event{.verb = Event::Verb::end, .asked = at, .answered = at + 1, .session = id, .granted = granted};
    event.commit.beats = {beat};
    return event;
  }
  static Event committed(std::uint64_t at, SessionId id, std::uint64_t beat, std::uint64_t next_beat) {
    Event event{.verb = Event::Verb::commit, .asked = at, .answered = at + 1, .session = id, .granted = true};
    event.commit.beats = {beat};
    event.commit.next.record.beat = next_beat;
    return event;
  }

  AJudge() {
    history = {opened(10, one, 11),        opened(20, two, 21), committed(30, one, 11, 12), committed(40, one, 12, 13),
               committed(50, two, 21, 22), ended(60, one, 13),  committed(70, two, 22, 23), committed(80, one, 13, 14)};
    auto& claims = history[2];
    claims.commit.claims = {{"x", {}}, {"y", {}}};
    claims.claimed = {"x", "y"};
    claims.token = Token{100};
    history[3].commit.releases = {{"x", Token{100}, {}}};
    history[3].released = {"x"};
    history[4].commit.claims = {{"x", Token{100}}};
    history[4].claimed = {"x"};
    history[4].token = Token{101};
    history[6].commit.claims = {{"y", Token{100}}};
    history[6].commit.ended = {one};
    history[6].claimed = {"y"};
    history[6].token = Token{102};
    history[7].granted = false;
  }

  void finds(const std::string& what) const { EXPECT_THAT(judge(history), Contains(HasSubstr(what))); }

  std::vector<Event> history;
};

TEST_F(AJudge, FindsNothingWrongWithARightHistory) { EXPECT_THAT(judge(history), IsEmpty()); }

TEST_F(AJudge, ExplainsCallsThatOverlapByTheirOrder) {
  history[4].asked = 35;  // the claim begins before the release
  history[5].asked = 69, history[5].answered = 75;
  history[6].asked = 68;
  EXPECT_THAT(judge(history), IsEmpty());
}

TEST_F(AJudge, SeesATokenThatIsGivenTwice) {
  history[6].token = Token{100};
  finds("given twice");
}

TEST_F(AJudge, SeesATokenThatFalls) {
  history[4].token = Token{99};
  finds("not before it");
  finds("smaller than one that was given before");
}

TEST_F(AJudge, SeesAClaimThatExpectedAnotherToken) {
  history[4].commit.claims[0].expected = Token{90};
  finds("did not expect the one before it");
}

TEST_F(AJudge, SeesAClaimOfALiveSessionsLead) {
  history[3].released.clear();
  finds("x, token 101: taken from a live session");
}

TEST_F(AJudge, SeesAClaimBeforeTheRelease) {
  history[4].asked = 32, history[4].answered = 33;
  finds("x, token 101: taken from a live session");
}

TEST_F(AJudge, SeesAClaimBeforeTheEnd) {
  history[5].asked = 76, history[5].answered = 77;
  finds("y, token 102: taken from a live session");
}

TEST_F(AJudge, SeesAClaimThatDidNotSayWhoEnded) {
  history[6].commit.ended.clear();
  finds("taken from a live session");
  history.push_back({.verb = Event::Verb::sweep, .asked = 62, .answered = 63, .session = two});
  EXPECT_EQ(judge(history), std::vector<std::string>()) << "a sweep may have released it";
}

TEST_F(AJudge, SeesAClaimThatNobodyAskedFor) {
  history[6].claimed.emplace_back("z");
  finds("was not asked for");
}

TEST_F(AJudge, SeesACommitAfterTheEnd) {
  history[7].granted = true;
  finds("went on after its end");
}

TEST_F(AJudge, SeesACommitByABeatThatItHadNot) {
  history[4].commit.beats = {20};
  finds("by a beat that it had not");
}

TEST_F(AJudge, SeesARefusalWithoutReason) {
  history[4].granted = false;
  finds("refused, and nobody had ended it");
}

TEST_F(AJudge, SeesAnEndByABeatThatItHadNot) {
  for (const auto beat : {99, 12, 14}) {
    history[5].commit.beats = {static_cast<std::uint64_t>(beat)};
    finds("ended by a beat that it had not");
  }
}

TEST_F(AJudge, SeesAnEndThatIsNotFinal) {
  history.push_back(ended(90, one, 13, false));
  finds("had ended, and an end was refused");
}

TEST_F(AJudge, SeesReleasesThatWereNotPossible) {
  auto release = history[3];
  release.asked = 44, release.answered = 45;
  release.commit.beats = {13};
  history.push_back(release);
  finds("released twice");
  history.back().session = two;
  finds("released by another session");
  history.back() = release;
  history.back().asked = 55, history.back().answered = 56;
  finds("released when another had it");
  history.back().commit.releases[0].token = Token{7};
  finds("released, and never given");
}

TEST_F(AJudge, SeesASecondSessionOfOneId) {
  history.push_back(opened(95, two, 50));
  finds("opened twice");
}

}  // namespace
}  // namespace tenure::contract
