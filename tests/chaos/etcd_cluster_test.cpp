// SPDX-License-Identifier: Apache-2.0
// Goal: at most one candidate leads while members of their etcd cluster die, hang and come back, and the cluster loses
// its majority. Method: real processes, three real members; a nemesis strikes candidates and members in turn. The judge
// reads the journal.
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>

#include "expect_sound.hpp"
#include "nemesis.hpp"
#include "server.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TEST(EtcdCluster, NeverTwoLeadersWhileMembersDieAndHang) {
  TENURE_NEEDS_ETCD();
  etcd::test::Cluster cluster;
  const Scratch scratch;
  std::string members;
  for (std::size_t i = 0; i < cluster.size(); ++i) members += (i > 0 ? "," : "") + cluster[i].address();
  constexpr Clock::Duration term = 2s;
  Fleet candidates(TENURE_CANDIDATE,
                   {"--store", "etcd://" + members, "--election", "jobs", "--term-ms", std::to_string(term / 1ms),
                    "--note-ms", "20"},
                   scratch / "journal");

  auto plan = Plan::from_environment(term, 40);
  plan.candidates = 3;
  std::size_t next = 0;
  const auto one = [&]() -> etcd::test::Server& { return cluster[next]; };
  const auto another = [&]() -> etcd::test::Server& { return cluster[(next + 1) % cluster.size()]; };
  const auto on = [&] { next = (next + 1) % cluster.size(); };
  plan.deeds = {{done_to::crashed, [&](pid_t) { one().kill(); }, [&] { one().launch(), on(); }},
                {done_to::frozen, [&](pid_t) { one().freeze(true); }, [&] { one().freeze(false), on(); }},
                {done_to::crashed, [&](pid_t) { one().kill(), another().kill(); },
                 [&] { one().launch(), another().launch(), on(); }}};
  const auto enough = [&](const Verdict& verdict) {
    return verdict.tenures >= 2 && verdict.faults.contains(done_to::frozen) &&
           verdict.faults.contains(done_to::crashed) &&
           verdict.faults.at(done_to::crashed) >= 2;  // of one member, and of two
  };
  plan.enough = [&] { return enough(judge(candidates.events())); };
  Nemesis nemesis(candidates, plan);
  EXPECT_TRUE(nemesis.run(std::cout));
  EXPECT_TRUE(enough(expect_sound(judge(candidates.events()))));
}

}  // namespace
}  // namespace tenure::test
