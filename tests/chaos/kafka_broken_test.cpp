// SPDX-License-Identifier: Apache-2.0
// Goal: each rule that keeps Kafka's leaders apart is needed, and the judge sees what happens without it. Method: the
// faults of kafka_faults_test.cpp, done to builds with one rule broken.
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>

#include "kafka_faults.hpp"
#include "nemesis.hpp"
#include "once.hpp"

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
  /// Where the machine or the broker spoils the fault it is done again: to find it once is enough.
  void expect_found(const std::string& rule, const std::function<bool(Fleet&)>& found) {
    EXPECT_TRUE(once([&] {
      auto candidates = fleet(broken(rule));
      try {
        return found(candidates);
      } catch (const std::runtime_error& e) {
        std::cout << e.what() << '\n';
        return false;
      }
    }));
  }
  static bool two_led(Fleet& candidates) {
    const auto verdict = judge(candidates.events());
    print(std::cout, verdict);
    return verdict.count(Breach::overlap) > 0;
  }
};

INSTANTIATE_TEST_SUITE_P(Form, KafkaBroken, ::testing::Values(single, roles),
                         [](const auto& p) { return p.param.name; });

TEST_P(KafkaBroken, ABuildThatWaitsForNoLeaseIsFoundOut) {
  expect_found("NO_WAIT", [this](Fleet& candidates) {
    stop_and_put_out_the_leader(candidates);
    return two_led(candidates);
  });
}

class KafkaBrokenSingle : public KafkaBroken {};

INSTANTIATE_TEST_SUITE_P(Form, KafkaBrokenSingle, ::testing::Values(single), [](const auto&) { return "Single"; });

TEST_P(KafkaBrokenSingle, ABuildThatCountsFromTheAnswerIsFoundOut) {
  relay();
  // Not resumed: the candidate's own deadline would take the lead from it some moments after it had believed in it.
  expect_found("FROM_ANSWER",
               [this](Fleet& candidates) { return answer_the_leader_late(candidates) != 0 && two_led(candidates); });
}

TEST_P(KafkaBroken, ABuildThatCommitsAfterItsUnassignIsFoundOut) {
  relay(revocation_);
  expect_found(form_.commits_late,
               [this](Fleet& candidates) { return !join_behind_a_stopped_member(candidates).disorder.empty(); });
}

TEST_P(KafkaBroken, ABuildThatDoesNotDrainIsFoundOut) {
  relay(revocation_);
  expect_found(form_.no_drain, [this](Fleet& candidates) {
    begin(candidates);
    const auto handle = owner().client_id;
    revoke_with_a_commit_held(candidates);
    const bool found = next_to_join(handle) == handle;
    EXPECT_EQ(disorder(revocation_.steps()), "") << "librdkafka does not wait for its commits any more either";
    return found;
  });
}

}  // namespace
}  // namespace tenure::test
