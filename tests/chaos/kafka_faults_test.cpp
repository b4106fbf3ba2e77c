// SPDX-License-Identifier: Apache-2.0
// Goal: what could make two leaders over Kafka does not. Method: real processes over a real broker under the one fault
// that would, if a rule were broken: kafka_broken_test.cpp breaks each.
#include <csignal>

#include "eventually.hpp"
#include "expect_sound.hpp"
#include "kafka_faults.hpp"
#include "once.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr auto waits = 30s;

TEST(KafkaDisorder, IsACommitWithoutAnAnswerOrInAJoin) {
  const Step commits{Step::commits, "a", 0}, committed{Step::committed, "a", 0}, joins{Step::joins, "a", 0};
  const Step joined{Step::joined, "a", 0}, another_joins{Step::joins, "b", 0};
  EXPECT_EQ(disorder({joins, joined, commits, another_joins, committed, joins, joined, commits}), "");
  EXPECT_NE(disorder({commits, joins}), "");
  EXPECT_NE(disorder({commits, committed, joins, commits}), "");
}

TEST(KafkaDroppedHandle, CommitsBehindTheNextAssignmentAreFound) {
  const Step taken{Step::committed, "a", 0}, refused{Step::committed, "a", 25}, joined{Step::joined, "b", 0};
  EXPECT_FALSE(taken_after_assignment("a", {taken, joined, refused}));
  EXPECT_TRUE(taken_after_assignment("a", {joined, taken}));
  EXPECT_FALSE(taken_after_assignment("b", {joined, taken}));
}

INSTANTIATE_TEST_SUITE_P(Form, KafkaFaultsOfEach, ::testing::Values(single, roles),
                         [](const auto& p) { return p.param.name; });

TEST_P(KafkaFaultsOfEach, ALeaderPutOutOfItsGroupHasItsLease) {
  auto candidates = fleet(TENURE_CANDIDATE);
  resume(candidates, stop_and_put_out_the_leader(candidates));
  EXPECT_GE(expect_sound(judge(candidates.events())).tenures, 2u);
}

class KafkaShortSessions : public KafkaFaults {
 protected:
  KafkaShortSessions() : KafkaFaults({"Single", "&min_session_ms=100", {"--preset", "steady"}, {}, {}, {}}) {}
};

TEST_F(KafkaShortSessions, WithSessionsOfASecondEachKilledLeaderIsSucceededAndNoTwoLead) {
  auto candidates = fleet(TENURE_CANDIDATE);
  auto leader = begin(candidates);
  for (int i = 0; i < 5; ++i) {
    const auto from = candidates.events().size();
    candidates.note(done_to::killed, leader);
    candidates.signal(leader, SIGKILL);
    candidates.start("next");
    const auto next = candidates.await(from, is_of_another("elected", leader), waits);
    ASSERT_NE(next, Fleet::npos) << "nobody succeeds";
    leader = candidates.events()[next].pid;
  }
  EXPECT_GE(expect_sound(judge(candidates.events())).tenures, 6u);
}

TEST_F(KafkaFaults, ALateAnswerMakesTheLeaseNoLonger) {
  relay();
  EXPECT_TRUE(once([this] {
    auto candidates = fleet(TENURE_CANDIDATE);
    const auto leader = answer_the_leader_late(candidates);
    if (leader != 0) resume(candidates, leader);
    return expect_sound(judge(candidates.events())).tenures == 2 && leader != 0;
  })) << "the broker is slow, or there is another hand-over, each time";
}

TEST_P(KafkaFaultsOfEach, ACommitOfARevocationIsAnsweredBeforeTheNextJoin) {
  relay(revocation_);
  EXPECT_TRUE(once([this] {
    auto candidates = fleet(TENURE_CANDIDATE);
    const auto rejoined = join_behind_a_stopped_member(candidates);
    expect_sound(judge(candidates.events()));
    EXPECT_EQ(rejoined.disorder, "") << TENURE_PROMISE;
    EXPECT_TRUE(rejoined.same_handle || !rejoined.in_time);
    return rejoined.in_time;
  })) << "the broker is slow each time";
}

TEST_P(KafkaFaultsOfEach, ACommitThatARevocationLeavesUnansweredCostsTheHandle) {
  relay(revocation_);
  auto candidates = fleet(TENURE_CANDIDATE);
  const auto leader = begin(candidates);
  const auto handle = owner().client_id;
  revoke_with_a_commit_held(candidates);
  EXPECT_NE(next_to_join(handle), handle) << TENURE_PROMISE;
  await_successor(candidates, leader);
  expect_refused_when_let_go();
  EXPECT_FALSE(taken_after_assignment(handle, revocation_.steps())) << TENURE_PROMISE;
  expect_sound(judge(candidates.events()));
}

TEST_P(KafkaFaultsOfEach, ACommitOfAMemberThatWasPutOutIsRefused) {
  relay(revocation_);
  auto candidates = fleet(TENURE_CANDIDATE);
  begin(candidates);
  const auto handle = owner().client_id;
  revocation_.catch_next_commit(handle);
  ASSERT_TRUE(eventually([&] { return revocation_.caught(); }, waits)) << "the leader does not renew";
  put_leader_out();
  await_join(handle);
  expect_refused_when_let_go();
  expect_sound(judge(candidates.events()));
}

}  // namespace
}  // namespace tenure::test
