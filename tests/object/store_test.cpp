// SPDX-License-Identifier: Apache-2.0
// Goal: what real servers do besides the contract: races have one winner, requests are few, a request to step down
// meets renewals, and the doctor finds nothing wrong. Method: servers that share no code.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include <tenure/object.hpp>

#include "checks.hpp"
#include "eventually.hpp"
#include "follower_reads.hpp"
#include "server.hpp"
#include "shared.hpp"
#include "store_calls.hpp"

namespace tenure::object::test {
namespace {

using namespace std::chrono_literals;
using tenure::test::error_of;
using tenure::test::expect_error;
using tenure::test::long_enough;
using tenure::test::record;
using tenure::test::swap;
using tenure::test::value;
using tenure::test::within;

struct Moto {};
struct Versitygw {};
struct FakeGcs {};
struct Azurite {};

Server& shared(const std::string& kind) {
  if (kind == "moto") return tenure::test::Shared<Server, Moto>::get(kind);
  if (kind == "fakegcs") return tenure::test::Shared<Server, FakeGcs>::get(kind);
  if (kind == "azurite") return tenure::test::Shared<Server, Azurite>::get(kind);
  return tenure::test::Shared<Server, Versitygw>::get(kind);
}

class ObjectStore : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    TENURE_NEEDS_OBJECT(GetParam());
    options = shared(GetParam()).options();
  }
  Options options;
};

INSTANTIATE_TEST_SUITE_P(Real, ObjectStore, testing::Values("moto", "versitygw", "fakegcs", "azurite"),
                         [](const auto& that) { return that.param; });

/// How many of these writers were granted, all at once.
int winners(const std::vector<std::shared_ptr<ConditionalStore>>& writers, const std::optional<Expected>& expected,
            std::uint64_t token, std::uint64_t beat) {
  std::atomic<int> won{0};
  std::latch begin(static_cast<std::ptrdiff_t>(writers.size()));
  std::vector<std::jthread> threads;
  threads.reserve(writers.size());
  for (std::size_t i = 0; i < writers.size(); ++i)
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      const auto done = writers[i]->compare_and_set(expected, record(token, beat + i), within(long_enough));
      won += done && done->applied ? 1 : 0;
    });
  threads.clear();
  return won;
}

TEST_P(ObjectStore, OfEightWritersOneWinsEachOfAHundredRaces) {
  std::vector<std::shared_ptr<ConditionalStore>> writers;
  writers.reserve(8);
  for (int i = 0; i < 8; ++i) writers.push_back(store(options, "race"));
  EXPECT_EQ(winners(writers, std::nullopt, 1, 10), 1);
  for (std::uint64_t round = 2; round <= 100; ++round) {
    const auto stands = value(writers[0]->read(within(long_enough))).record;
    ASSERT_TRUE(stands);
    EXPECT_EQ(winners(writers, Expected{stands->token, {stands->beat}}, round, round * 10), 1) << round;
  }
}

TEST_P(ObjectStore, NewElectionsAreMadeOnce) {
  std::vector<std::shared_ptr<ConditionalStore>> writers;
  for (int round = 0; round < 20; ++round) {
    writers.clear();
    for (int i = 0; i < 8; ++i) writers.push_back(store(options, "new" + std::to_string(round)));
    EXPECT_EQ(winners(writers, std::nullopt, 1, 10), 1) << round;
  }
}

TEST_P(ObjectStore, AFollowerReadsSeldom) {
  const auto leader = open(options, "jobs");
  const auto token = contract::lead(*leader, contract::quiet_timing);
  ASSERT_TRUE(token);
  const auto counted = std::make_shared<contract::CountedReads>(store(options, "jobs"));
  auto timing = contract::quiet_timing;
  timing.renew = 500ms;
  LeaderManager follower(lock_table(counted, "jobs", {"follower", ""}), timing, {});
  follower.start();
  const auto began = boot_clock().now();
  const auto looked = [&](long often) { return counted->reads() >= often; };
  ASSERT_TRUE(tenure::test::eventually([&] { return looked(12); }, 20s)) << "a term is 30 s";
  const auto renewals = (boot_clock().now() - began) / timing.renew;
  EXPECT_LE(counted->reads(), 8 + 2 * renewals) << "of these eight to learn when the lease ends";
  EXPECT_EQ(leader->release(within(long_enough)), std::nullopt);
  EXPECT_TRUE(follower.await_leadership(10s)) << "it does not wait for the lease's end";
}

TEST_P(ObjectStore, TheServerItselfCountsOneRequestForARenewalAndTwoForATakeOver) {
  if (GetParam() != "moto") GTEST_SKIP() << GetParam() << " logs no requests";
  const auto leader = open(options, "jobs"), next = open(options, "jobs");
  auto asked = [&, before = 0]() mutable {
    const auto now = shared("moto").requests(options.prefix);
    return now - std::exchange(before, now);
  };
  const auto token = contract::lead(*leader, contract::quiet_timing);
  ASSERT_TRUE(token);
  EXPECT_EQ(asked(), 2) << "a first election";
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(std::holds_alternative<Granted>(leader->renew(*token, within(long_enough))));
    EXPECT_EQ(asked(), 1);
  }
  EXPECT_EQ(leader->release(within(long_enough)), std::nullopt);
  EXPECT_EQ(asked(), 1);
  EXPECT_TRUE(std::holds_alternative<Granted>(next->acquire(within(long_enough))));
  EXPECT_EQ(asked(), 2);
}

TEST_P(ObjectStore, TheDoctorFindsNothingWrong) {
  Opening opening;
  opening.url = shared(GetParam()).url();
  opening.credentials = options.credentials;
  opening.election = "jobs";
  const auto text = tenure::test::text_of(value(check_url(opening, within(long_enough))));
  EXPECT_TOLD(text, "fine: the server honours conditional writes; we may read and write");
  EXPECT_TOLD(text, "fine: the bucket tenure answers by the credentials of ");
  EXPECT_FALSE(tenure::test::mentions(text, "WRONG")) << text;
}

TEST_P(ObjectStore, AMissingBucketIsAClearError) {
  options.bucket = "no-such-bucket";
  expect_error(error_of(store(options, "jobs")->compare_and_set(std::nullopt, record(1, 11), within(long_enough))),
               Fault::misconfigured, {", or correct the URL"});
  if (GetParam() == "fakegcs") return;  // It tells a missing bucket as a missing object.
  expect_error(error_of(store(options, "jobs")->read(within(long_enough))), Fault::misconfigured,
               {GetParam() == "azurite" ? "ContainerNotFound" : "NoSuchBucket"});
}

TEST_P(ObjectStore, AWrongSecretIsRefusedWithItsRemedy) {
  if (GetParam() == "moto" || GetParam() == "fakegcs") GTEST_SKIP() << GetParam() << " looks at no signature";
  const bool azure = GetParam() == "azurite";
  options.password = azure ? "AAAA" : tenure::test::canary;
  expect_error(error_of(store(options, "jobs")->read(within(long_enough))), Fault::forbidden,
               {azure ? "check the account's key" : "check the access key's secret", "the URL's user and password"});
}

TEST_P(ObjectStore, AWriteWhoseAnswerIsLateMayHaveLanded) {
  const auto& server = shared(GetParam());
  const auto a = store(options, "jobs");
  ASSERT_TRUE(swap(*a, std::nullopt, record(1, 11)));
  server.freeze(true);
  EXPECT_FALSE(a->compare_and_set(Expected{{1}, {11}}, record(1, 12), within(200ms)));
  server.freeze(false);
  EXPECT_TRUE(swap(*a, Expected{{1}, {11, 12}}, record(1, 13)));
}

}  // namespace
}  // namespace tenure::object::test
