// SPDX-License-Identifier: Apache-2.0
// Goal: strict.hpp's, over etcd; and tokens are compared to their last digit. Method: strict.hpp's. The transactions
// are etcdctl's.
#include <tenure/fence.hpp>
#include <tenure/fence/etcd.hpp>

#include <optional>
#include <sstream>

#include <tenure/fake_leadership.hpp>

#include "scratch.hpp"
#include "server.hpp"
#include "shared.hpp"
#include "strict.hpp"

/// examples/fencing_etcd.cpp, which the page shows.
std::optional<std::string> put_total(const tenure::Leadership& leadership, int total);

namespace tenure::fence::strict {
namespace {

using etcd::test::Server;

Server& server() { return tenure::test::Shared<Server>::get(); }

/// As etcdctl reads it.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
  return out + '"';
}

/// Each election has a prefix of its own.
class Etcd final : public FencedRecord {
 public:
  Finish begin(Token token, const std::string& value) override {
    const auto leads = etcd_leads("jobs", token, options_.prefix);
    const auto key = "value(" + quoted(leads.key) + ") ";
    const auto file = scratch_.file(value, key + "> " + quoted(leads.above) + "\n" + key + "< " + quoted(leads.below) +
                                               "\n\nput " + options_.prefix + "work/" + value + ' ' + value + "\n\n\n");
    return [file] { return server().ctl("txn <" + file).starts_with("SUCCESS"); };
  }
  Values written() override {
    std::istringstream lines(server().ctl("get --prefix --print-value-only " + options_.prefix + "work/"));
    Values out;
    for (std::string line; std::getline(lines, line);) out.insert(line);
    return out;
  }
  /// The record as it would be with this token.
  void stand(Token token) {
    EXPECT_TRUE(tenure::test::swap(*store_, std::nullopt, tenure::test::record(token.value, 1)));
  }

 private:
  ConditionalStore& store() override { return *store_; }

  const etcd::Options options_ = [] {
    static int count = 0;
    auto out = server().options();
    out.prefix = "tenure" + std::to_string(++count) + "/";
    return out;
  }();
  const std::shared_ptr<ConditionalStore> store_ = etcd::store(options_, "jobs");
  const tenure::test::Scratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(etcd, StrictFence,
                         testing::Values(Subject{"etcd", [] { return std::make_unique<Etcd>(); },
                                                 etcd::test::missing_server()}),
                         name_of);

TEST(EtcdStrictFence, TokensAreComparedToTheLastDigit) {
  TENURE_NEEDS_ETCD();
  Etcd fenced;
  fenced.stand({UINT64_MAX / 2});
  for (const std::uint64_t other : {UINT64_MAX / 2 - 1, UINT64_MAX / 2 + 1, UINT64_MAX / 20, std::uint64_t{0}})
    EXPECT_FALSE(fenced.begin({other}, "none")()) << other;
  EXPECT_TRUE(fenced.begin({UINT64_MAX / 2}, "one")());
  Etcd small;
  small.stand({4});
  for (const std::uint64_t other : {3U, 5U, 40U, 42U, 49U, 0U}) EXPECT_FALSE(small.begin({other}, "none")()) << other;
  EXPECT_TRUE(small.begin({4}, "one")());
}

TEST(EtcdStrictFence, WhereNobodyEverLedNothingIsWritten) {
  TENURE_NEEDS_ETCD();
  Etcd fenced;
  EXPECT_FALSE(fenced.begin({1}, "none")());
  EXPECT_THAT(fenced.written(), testing::IsEmpty());
}

#ifdef TENURE_WITH_EXAMPLE
TEST(EtcdStrictFence, TheExampleOfThePageWritesForTheLeaderAndNotForAFormerOne) {
  TENURE_NEEDS_ETCD();
  Server alone;
  const auto elections = etcd::store(alone.options(), "jobs");
  ASSERT_TRUE(tenure::test::swap(*elections, std::nullopt, tenure::test::record(41, 1)));
  const tenure::test::Scratch scratch;
  FakeLeadership leadership;
  EXPECT_EQ(put_total(leadership.leadership(), 1), std::nullopt) << "it does not lead";
  leadership.lead({41}, std::chrono::minutes(1));
  const auto puts = [&](int total) {
    return alone.ctl("txn <" + scratch.file(std::to_string(total), *put_total(leadership.leadership(), total)));
  };
  EXPECT_THAT(puts(10), testing::StartsWith("SUCCESS"));
  ASSERT_TRUE(tenure::test::swap(*elections, Expected{{41}, {1}}, tenure::test::record(42, 1)));
  EXPECT_THAT(puts(100), testing::StartsWith("FAILURE")) << "it believes that it leads";
  EXPECT_THAT(alone.ctl("get --print-value-only total"), testing::StartsWith("10"));
}
#endif

/// The fence of fence.hpp, which needs a newer token in the key that it compares.
TEST(EtcdStrictFence, AFenceByTokenLetsTheFirstWriteOfAFormerLeaderPass) {
  TENURE_NEEDS_ETCD();
  Etcd fenced;
  const auto former = fenced.claim();
  ASSERT_GT(fenced.claim(), former);
  const tenure::test::Scratch scratch;
  const auto key = "fresh" + std::to_string(::getpid());
  const auto file = scratch.file("txn", "value(" + quoted(key) + ") > " + quoted(etcd_value(former)) + "\n\n\nput " +
                                            key + ' ' + etcd_value(former) + "\n\n");
  EXPECT_TRUE(server().ctl("txn <" + file).starts_with("FAILURE")) << "it is written";
}

}  // namespace
}  // namespace tenure::fence::strict
