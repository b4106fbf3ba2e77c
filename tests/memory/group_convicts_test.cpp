// SPDX-License-Identifier: Apache-2.0
// Goal: the contract suite of groups finds a store that breaks a rule. Method: broken_group runs the suite over a store
// that breaks one rule; a test that fails must be the one that holds this rule, and no rule broken must fail none.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

struct Broken {
  std::string rule, found_by;
};

struct Run {
  int status;
  std::string said;
};

Run suite_over(const Broken& broken) {
  const auto command = "TENURE_BROKEN_RULE=" + broken.rule + " '" TENURE_BROKEN_GROUP "' --gtest_filter='*" +
                       broken.found_by + "*' --gtest_brief=1 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("popen");
  Run run{};
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) run.said.append(buffer, n);
  const int status = ::pclose(pipe);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

struct GroupContractConvicts : testing::TestWithParam<Broken> {};

TEST_P(GroupContractConvicts, TheStoreThatBreaksThisRule) {
  const auto run = suite_over(GetParam());
  EXPECT_EQ(run.status, 1) << run.said;
  EXPECT_NE(run.said.find("[  FAILED  ] broken/"), std::string::npos) << run.said;
  EXPECT_NE(run.said.find("." + GetParam().found_by), std::string::npos) << run.said;
  const auto whole = suite_over({"", GetParam().found_by});
  EXPECT_EQ(whole.status, 0) << whole.said;
}

constexpr auto limits = "NoCallOutlivesItsLimitOrItsStopTokenAndNothingIsWrittenThen";

INSTANTIATE_TEST_SUITE_P(
    rule, GroupContractConvicts,
    testing::Values(Broken{"any_beat_renews", "ABeatThatItNeverHadRefusesIt"},
                    Broken{"any_marker_will_do", "AnotherMarkerRefusesIt"},
                    Broken{"any_token_claims", "AReleasedLeadIsClaimedWithItsTokenOnly"},
                    Broken{"nobody_need_say_who_ended", "TheLeadsOfAnEndedSessionAreClaimedByWhoeverSaysThatItEnded"},
                    Broken{"a_token_is_rounded", "ATokenIsAtLeastWhatIsAskedToTheLastDigit"},
                    Broken{"a_token_need_not_be_so_great", "ATokenIsAtLeastWhatIsAskedToTheLastDigit"},
                    Broken{"any_token_releases", "OnlyItsSessionReleasesALeadAndOnlyThatTenure"},
                    Broken{"any_token_is_retired", "WhatNobodyLeadsIsRetiredAndItsTokenIsKept"},
                    Broken{"the_retired_token_is_hidden", "WhatNobodyLeadsIsRetiredAndItsTokenIsKept"},
                    Broken{"a_retired_token_is_expected_in_vain", "NoTokenFallsWhenANameComesBack"},
                    Broken{"an_heir_is_forgotten", "AReleaseKeepsItsTokenAndNamesItsHeir"},
                    Broken{"too_many_changes_are_cut", "ItCarriesSoManyChangesAndNoMore"},
                    Broken{"a_change_is_not_told", "WhoFollowsByACursorMissesNothing"},
                    Broken{"no_look_is_whole", "ALookShowsAllAndThenOnlyWhatChanged"},
                    Broken{"ended_sessions_are_hidden", "ASessionIsEndedByWhoeverKnowsItsBeat"},
                    Broken{"a_release_is_hidden", "AReleaseKeepsItsTokenAndNamesItsHeir"},
                    Broken{"a_refusal_is_told_as_granted", "AnEndedSessionIsRefusedWhateverItsBeat"},
                    Broken{"an_id_is_opened_twice", "AnIdThatStandsIsNotOpenedAgain"},
                    Broken{"a_term_is_rounded_down", "ASessionStandsAsItWasOpenedAndAsItWasRenewed"},
                    Broken{"any_beat_ends", "ABeatOfBeforeARenewalEndsNothing"},
                    Broken{"what_lives_is_said_to_have_ended", "ASessionIsEndedByWhoeverKnowsItsBeat"},
                    Broken{"nothing_is_swept", "ASweepRemovesWhatHasEndedAndIsNotNamed"},
                    Broken{"what_leads_name_is_swept", "ASweepRemovesWhatHasEndedAndIsNotNamed"},
                    Broken{"a_request_outlives_its_tenure", "ARequestToStepDownStandsBesideTheLeadOfItsToken"},
                    Broken{"nobody_need_have_led", "NobodyIsAskedToStepDownFromWhatNobodyLed"},
                    Broken{"a_session_was_always_written_now", "TheStoreSaysWhenASessionWasWritten"},
                    Broken{"nothing_is_retired", "WhatNobodyLeadsIsRetiredAndItsTokenIsKept"},
                    Broken{"a_look_has_no_limit", limits}, Broken{"a_retirement_has_no_limit", limits},
                    Broken{"what_comes_late_is_written", limits}),
    [](const auto& broken) { return broken.param.rule; });

}  // namespace
