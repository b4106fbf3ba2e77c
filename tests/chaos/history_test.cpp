// SPDX-License-Identifier: Apache-2.0
// Goal: the judge finds every breach, and nothing else. Method: journals written by hand, in milliseconds.
#include "history.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace tenure::test {
namespace {

using std::chrono::milliseconds;

Clock::Time ms(int t) { return Clock::Time(milliseconds(t)); }

/// "TIME PROCESS EVENT [ELECTION/][TOKEN] [REASON] [UNTIL]", and so on, with a ';' between two. EVENT is one word.
std::vector<Event> journal(const std::string& text) {
  std::vector<Event> out;
  std::istringstream lines("0 1 start;0 2 start;" + text);
  for (std::string line; std::getline(lines, line, ';');) {
    Event e;
    int at = 0;
    std::istringstream words(line);
    words >> at >> e.pid >> e.what;
    e.at = e.after = ms(at);
    e.term = milliseconds(1000);  // of a start
    e.margin = milliseconds(100);
    std::string which;
    if (e.what != "holds" && words >> which) {
      const auto slash = which.find('/');
      if (slash != which.npos) e.election = which.substr(0, slash);
      which = which.substr(slash == which.npos ? 0 : slash + 1);
      if (!which.empty()) e.token = {std::stoull(which)};
    }
    if (e.what == "ousting") words >> e.reason;
    if (int until = 0; words >> until) e.until = ms(until);
    out.push_back(e);
  }
  return out;
}

Verdict verdict_on(const std::string& text) { return judge(journal(text)); }

/// The breaches found, in order of the enumeration.
std::string breaches(const Verdict& verdict) {
  std::string found;
  for (const auto b :
       {Breach::overlap, Breach::token, Breach::hooks, Breach::revival, Breach::term, Breach::unfinished})
    if (verdict.count(b) != 0) found += (found.empty() ? "" : " ") + to_string(b);
  return found;
}

struct Case {
  const char* name;
  std::string journal;
  const char* breaches;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.journal; }
};

class Journal : public ::testing::TestWithParam<Case> {};

TEST_P(Journal, IsJudged) { EXPECT_EQ(breaches(verdict_on(GetParam().journal)), GetParam().breaches); }

const std::string lapses = "10 1 elected 5;11 1 lead 5 900;900 1 ousting 5 lapsed;";
const std::string stopped_for_a_term = "11 1 lead 5 900;100 1 stopped;1100 1 resumed;";
const std::string superseded =
    "10 1 elected 5;11 1 lead 5 900;300 1 lead 5 900;400 1 ousting 5 superseded;401 1 follow;402 1 ended 5;";
const std::string hands_over =
    "10 1 elected 5;11 1 lead 5 900;100 1 ousting 5 stopped;200 1 ended 5;201 1 follow;201 1 quit;";

INSTANTIATE_TEST_SUITE_P(
    OfOneElection, Journal,
    testing::Values(
        Case{"OneAfterTheOther", lapses + "905 1 follow;906 1 ended 5;1000 2 elected 6;1001 2 lead 6 1800", ""},
        Case{"TwoLeadersAtOnce", "10 1 elected 5;11 1 lead 5 900;800 2 elected 6;801 2 lead 6 1700", "overlap"},
        Case{"ALeaseRenewedIntoTheSuccessors", "11 1 lead 5 900;890 1 lead 5 1700;1000 2 lead 6 1800", "overlap"},
        Case{"AStoppedLeaderIsValidUntilItsDeadline", "11 1 lead 5 900;100 1 stopped;800 2 lead 6 1600;1200 1 resumed",
             "overlap"},
        Case{"WorkThatMayRunOnAfterALapseIsAPart",
             "10 1 elected 5;11 1 lead 5 900;901 1 ousting 5 lapsed 990;901 1 follow;970 2 elected 6;"
             "971 2 lead 6 1700;980 1 ended 5",
             "overlap"},
        Case{"AKilledLeaderIsValidNoMore", "11 1 lead 5 900;100 1 killed;101 2 lead 6 1000", ""},
        Case{"AKilledLeaderIsValidUntilItsDeath", "11 1 lead 5 900;99 2 lead 6 900;100 1 killed", "overlap"},
        Case{"AHandOverComesBeforeTheDeadline", hands_over + "202 2 lead 6 1000", ""},
        Case{"AHandOverBeforeOustingReturned", hands_over + "150 2 lead 6 1000", "overlap"},
        Case{"SupersededAfterTheLastSample", superseded + "350 2 lead 6 1000", ""},
        Case{"SupersededBeforeTheLastSample", superseded + "299 2 lead 6 1000", "overlap"},
        Case{"ATokenOfTwo", "11 1 lead 5 900;1000 2 lead 5 1800", "token"},
        Case{"ATokenThatFalls", "11 1 lead 5 900;1000 2 lead 4 1800", "token"},
        Case{"ATokenThatRises", "11 1 lead 5 900;1000 2 lead 6 1800", ""},
        Case{"ATokenThatItsOwnerUsesAgain", lapses + "901 1 ended 5;1000 1 elected 5", "token"},
        Case{"ATokenOfTenuresWithoutASample", "10 1 elected 5;11 1 ousting 5 lapsed;12 1 ended 5;20 2 elected 5",
             "token"},
        Case{"ElectedTwice", "10 1 elected 5;20 1 elected 6", "hooks"},
        Case{"OustingWithoutElected", "10 1 ousting 5 lapsed", "hooks"},
        Case{"EndedWithoutOusting", "10 1 elected 5;11 1 ended 5", "hooks"},
        Case{"OustingOfAnother", "10 1 elected 5;11 1 ousting 6 lapsed", "hooks"},
        Case{"OustingTwice", "10 1 elected 5;11 1 ousting 5 lapsed;12 1 ousting 5 lapsed", "hooks"},
        Case{"AHookAfterTheEnd", "10 1 quit;11 1 elected 5", "hooks"},
        Case{"AnEndWithoutOusting", "10 1 elected 5;11 1 quit", "unfinished"},
        Case{"AKilledLeaderNeedsNoOusting", "10 1 elected 5;11 1 killed", ""},
        Case{"ATokenRevivedAfterATerm", stopped_for_a_term + "1101 1 lead 5 1900", "revival"},
        Case{"LookedBeforeThePauseAndWroteAfterIt", stopped_for_a_term + "99 1 lead 5 999", ""},
        Case{"ATokenKeptOverAShortPause", "11 1 lead 5 900;100 1 stopped;500 1 resumed;501 1 lead 5 900", ""},
        Case{"ADeadlineOfTermLessMargin", "11 1 lead 5 911", ""},
        Case{"ADeadlineBeyondTermLessMargin", "11 1 lead 5 911;12 1 lead 5 913", "term"},
        Case{"AProcessIdUsedAgain", "11 1 lead 5 900;100 1 killed;100 1 start;200 1 lead 6 1000", ""},
        Case{"ElectedThatCameLateBecauseItsProcessWasStopped",
             "1000 2 lead 6 1800;1200 1 elected 5;1201 1 ousting 5 lapsed;1202 1 ended 5", ""}),
    [](const auto& that) { return that.param.name; });

const std::string holds_b = "11 1 lead a/5 900;12 1 lead b/5 900;500 1 follow a/;600 1 holds 1500;";
const std::string elected_as_a_sample = "10 1 elected a/5 900;800 1 holds 1700;";

INSTANTIATE_TEST_SUITE_P(
    OfAGroup, Journal,
    testing::Values(
        Case{"EachElectionHasALeader", "11 1 lead a/5 900;12 2 lead b/5 900", ""},
        Case{"TwoLeadersOfOne", "11 1 lead a/5 900;12 2 lead b/5 900;13 1 lead b/6 900", "overlap"},
        Case{"TokensOfEachElection", "11 1 lead a/7 900;12 2 lead b/5 900", ""},
        Case{"ATokenThatFallsInOne", "11 1 lead a/7 900;12 2 lead b/5 900;1000 2 lead a/6 1900", "token"},
        Case{"ASampleOfAllIsNoneOfWhatIsHeldNoMore", holds_b + "1000 2 lead a/6 1800", ""},
        Case{"ASampleOfAllMovesTheDeadlineOfWhatIsHeld", holds_b + "1000 2 lead b/6 1800", "overlap"},
        Case{"ASampleOfAllBelongsToItsProcess", "11 1 lead a/5 900;600 2 holds 1500;1000 2 lead a/6 1800", ""},
        Case{"NoSampleOfAllPutsOffASampleByElected", elected_as_a_sample + "950 2 lead a/6 1700", ""},
        Case{"ElectedIsASample", elected_as_a_sample + "890 2 lead a/6 1700", "overlap"},
        Case{"ARevivalInASampleOfAll", "11 1 lead a/5 900;100 1 stopped;1100 1 resumed;1101 1 holds 1900", "revival"}),
    [](const auto& that) { return that.param.name; });

TEST(Verdict, MeasuresTheGapAndTheOverlap) {
  EXPECT_EQ(verdict_on(lapses).smallest_gap, std::nullopt);
  const auto sound = verdict_on(lapses + "906 1 ended 5;1000 2 elected 6;1001 2 lead 6 1800");
  EXPECT_EQ(sound.tenures, 2u);
  EXPECT_EQ(sound.smallest_gap, milliseconds(100));
  EXPECT_EQ(sound.largest_overlap, Clock::Duration::zero());
  const auto two = verdict_on("10 1 elected 5;11 1 lead 5 900;800 2 elected 6;801 2 lead 6 1700");
  EXPECT_EQ(two.largest_overlap, milliseconds(100));
  EXPECT_EQ(two.smallest_gap, milliseconds(-100));
  EXPECT_EQ(
      verdict_on(
          "10 1 elected 5;11 1 lead 5 900;901 1 ousting 5 lapsed 990;970 2 elected 6;971 2 lead 6 1700;980 1 ended 5")
          .largest_overlap,
      milliseconds(10));
}

TEST(Verdict, CountsEachOverlapWithinATenure) {
  const auto verdict = verdict_on("11 1 lead 5 900;100 2 lead 6 300;301 2 ousting 6 lapsed;400 2 lead 7 500");
  EXPECT_EQ(verdict.count(Breach::overlap), 2u);
}

TEST(Verdict, CountsFaults) {
  auto events = journal("11 1 lead 5 900;100 1 stopped;110 2 killed;1000 1 resumed");
  events.emplace_back().what = "server crashed";
  const auto verdict = judge(events);
  for (const auto* what : {"stopped", "killed", "server crashed"}) EXPECT_EQ(verdict.faults.at(what), 1u) << what;
  EXPECT_EQ(verdict.to_leaders, 1u);
}

TEST(Verdict, NamesTheElection) {
  const auto two = verdict_on("11 1 lead a/5 900;12 2 lead b/5 900;13 1 lead b/6 900");
  EXPECT_NE(two.findings.at(0).what.find("b: "), std::string::npos);
  const auto unfinished =
      verdict_on("10 1 elected a/5;10 1 elected b/5;20 1 ousting a/5 stopped;21 1 ended a/5;30 1 quit");
  EXPECT_EQ(breaches(unfinished), "unfinished");
  EXPECT_EQ(unfinished.findings.size(), 1u) << "b alone";
}

TEST(Verdict, KnowsHowManyEachProcessLeads) {
  History history;
  for (const auto& e : journal("11 1 lead a/5 900;12 1 lead b/5 900;12 2 lead c/5 700;20 1 follow a/")) history.take(e);
  const std::map<pid_t, std::size_t> now{{1, 1}, {2, 1}}, later{{1, 1}, {2, 0}};
  EXPECT_EQ(history.led(ms(100)), now);
  EXPECT_EQ(history.led(ms(800)), later);
}

TEST(JournalLine, ThatAKillCutShortDoesNotSpoilTheNext) {
  const auto e = parse_event(R"({"t":5,"pid":7,"event":"elec{"t":6,"pid":8,"event":"lead","token":3,"election":"a"})");
  EXPECT_EQ(e.what, "lead");
  EXPECT_EQ(e.pid, 8);
  EXPECT_EQ(e.election, "a");
}

TEST(JournalLine, IsReadAsTheCandidateWritesIt) {
  const auto e = parse_event(
      R"({"t":5,"pid":7,"event":"ousting","token":9223372036854775807,"reason":"lapsed","detail":"a \"b\" \\c"})");
  EXPECT_EQ(e.at, Clock::Time(Clock::Duration(5)));
  EXPECT_EQ(e.pid, 7);
  EXPECT_EQ(e.what, "ousting");
  EXPECT_EQ(e.token, Token{~0ULL >> 1});
  EXPECT_EQ(e.reason, "lapsed");
  EXPECT_EQ(e.detail, "a \"b\" \\c");
  EXPECT_EQ(parse_event("no line of ours").what, "");
}

}  // namespace
}  // namespace tenure::test
