// SPDX-License-Identifier: Apache-2.0
// Goal: each rule that keeps Kafka's leaders apart is needed, and the judge sees what happens without it. Method: the
// faults of kafka_faults_test.cpp, done to builds with one rule broken.
#include <iostream>
#include <map>

#include "kafka_faults.hpp"
#include "nemesis.hpp"

namespace tenure::test {
namespace {

/// The program in which this rule is broken.
std::string broken(const std::string& rule) {
  static const std::map<std::string, std::string> programs{
      {"NO_WAIT", TENURE_CANDIDATE_NO_WAIT},
      {"FROM_ANSWER", TENURE_CANDIDATE_FROM_ANSWER},
      {"NO_DRAIN", TENURE_CANDIDATE_NO_DRAIN},
      {"COMMITS_LATE", TENURE_CANDIDATE_COMMITS_LATE},
      {"ROLES_NO_DRAIN", TENURE_CANDIDATE_ROLES_NO_DRAIN},
      {"ROLES_COMMIT_LATE", TENURE_CANDIDATE_ROLES_COMMIT_LATE},
  };
  return programs.at(rule);
}

class KafkaBroken : public KafkaFaultsOfEach {
 protected:
  void expect_two_leaders(Fleet& candidates) const {
    const auto verdict = judge(candidates.events());
    print(std::cout, verdict);
    if (verdict.count(Breach::overlap) == 0) spoiled("no two led at once");
  }
};

INSTANTIATE_TEST_SUITE_P(Form, KafkaBroken, ::testing::Values(single, roles),
                         [](const auto& p) { return p.param.name; });

TEST_P(KafkaBroken, ABuildThatWaitsForNoLeaseIsFoundOut) {
  auto candidates = fleet(broken("NO_WAIT"));
  stop_and_put_out_the_leader(candidates);
  expect_two_leaders(candidates);
}

class KafkaBrokenSingle : public KafkaBroken {};

INSTANTIATE_TEST_SUITE_P(Form, KafkaBrokenSingle, ::testing::Values(single), [](const auto&) { return "Single"; });

TEST_P(KafkaBrokenSingle, ABuildThatCountsFromTheAnswerIsFoundOut) {
  relay();
  // Not resumed: the candidate's own deadline would take the lead from it some moments after it had believed in it.
  auto candidates = fleet(broken("FROM_ANSWER"));
  answer_the_leader_late(candidates);
  expect_two_leaders(candidates);
}

TEST_P(KafkaBroken, ABuildThatCommitsAfterItsUnassignIsFoundOut) {
  relay(revocation_);
  auto candidates = fleet(broken(form_.commits_late));
  if (join_behind_a_stopped_member(candidates).disorder.empty()) spoiled("nothing was out of order");
}

TEST_P(KafkaBroken, ABuildThatDoesNotDrainIsFoundOut) {
  relay(revocation_);
  auto candidates = fleet(broken(form_.no_drain));
  begin(candidates);
  const auto handle = owner().client_id;
  revoke_with_a_commit_held(candidates);
  if (next_to_join(handle) != handle) spoiled("it cost the handle");
  EXPECT_EQ(disorder(revocation_.steps()), "") << "librdkafka does not wait for its commits any more either";
}

}  // namespace
}  // namespace tenure::test
