// SPDX-License-Identifier: Apache-2.0
// Goal: a new document changes the timing of a running manager without ending its tenure, and says what needs a
// restart. Method: a leader on a memory hub. The length of its lease tells which timing it has.
#include <atomic>

#include "eventually.hpp"
#include "support.hpp"

namespace tenure::test {
namespace {

constexpr auto first_document =
    R"({"store": "memory:apply", "election": "e", "candidate": {"name": "a"}, "timing": "fast"})";

/// A store that keeps its term, as Kafka does.
Opened keeps_term(const Opening& opening) {
  auto opened = any_store(opening);
  opened.kept = {"term", "renew", "margin", "clock_rate_error"};
  return opened;
}

struct Apply : testing::Test {
  explicit Apply(Opener open = any_store) : running(from_json(first_document, open)) {
    Hooks hooks;
    hooks.ousting = [this](const Ousting&) { ++oustings; };
    manager.emplace(running.backend, running.timing, hooks);
    manager->start();
  }
  void SetUp() override { ASSERT_TRUE(manager->await_leadership(10s)); }

  std::vector<Finding> apply_now(const std::string& text) { return apply(text, running, *manager); }

  std::atomic<int> oustings{0};
  Configured running;
  std::optional<LeaderManager> manager;
};

TEST_F(Apply, TheTimingChangesAndTheTenureGoesOn) {
  const auto token = manager->leadership().token();
  EXPECT_TRUE(apply_now(R"({"store": "memory:apply", "election": "e", "candidate": {"name": "a"}, "timing": "steady"})")
                  .empty());
  EXPECT_EQ(running.timing, lock_table_presets().steady);
  EXPECT_LT(manager->leadership().remaining(), lock_table_presets().fast.term);
  EXPECT_EQ(manager->leadership().token(), token);
  EXPECT_EQ(oustings, 0);
  manager->resign(0s);
  EXPECT_TRUE(eventually([&] { return manager->leadership().remaining() > lock_table_presets().fast.term; }))
      << "a new term counts from the next tenure";
}

TEST_F(Apply, ChangesThatNeedARestartAreTold) {
  const auto said =
      apply_now(R"({"store": {"url": "memory:other", "user": "u", "password": "p", "properties": {"a": "b"}},
    "election": "f", "candidate": {"name": "b", "address": "c"}, "timing": {"preset": "fast", "drain": "1s"}})");
  std::vector<std::string> pointers;
  for (const auto& [pointer, message] : said) {
    pointers.push_back(pointer);
    EXPECT_EQ(message, "cannot be changed while a manager runs: it needs a restart");
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"/store/url", "/store/user", "/store/password", "/store/properties",
                                                "/election", "/candidate/name", "/candidate/address"}));
  EXPECT_EQ(running.timing.drain, 1s) << "what can be changed is";
  EXPECT_EQ(apply_now(R"({"store": "memory:other", "election": "e", "candidate": {"name": "a"}, "timing": "fast"})"),
            (std::vector<Finding>{{"/store", "cannot be changed while a manager runs: it needs a restart"}}));
}

TEST_F(Apply, AWrongDocumentChangesNothing) {
  for (const std::string timing : {R"("slow")", R"({"term": 8})", R"({"term": "10ms"})"}) {
    try {
      apply_now(R"({"store": "memory:apply", "election": "e", "timing": )" + timing + "}");
      ADD_FAILURE() << timing;
    } catch (const InvalidDocument& e) {
      EXPECT_EQ(e.findings().size(), 1u);
    }
    EXPECT_EQ(running.timing, lock_table_presets().fast);
  }
}

TEST_F(Apply, ADocumentIsAppliedFromAFile) {
  const Scratch scratch;
  EXPECT_TRUE(apply_file(scratch.file("c.json", first_document), running, *manager).empty());
  EXPECT_THROW(apply_file(scratch / "missing", running, *manager), InvalidDocument);
}

TEST_F(Apply, AConfiguredWithoutADocumentIsRefused) {
  Configured by_hand{.backend = running.backend, .timing = running.timing, .document = nullptr};
  try {
    apply(first_document, by_hand, *manager);
    ADD_FAILURE();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(
        e.what(),
        "apply: running.document is null; hand in the Configured that from_json() or from_json_file() returned");
  }
}

struct ApplyKept : Apply {
  ApplyKept() : Apply(keeps_term) {}
};

TEST_F(ApplyKept, FieldsOfTheTimingThatTheStoreKeepsAreTold) {
  const auto said = apply_now(R"({"store": "memory:apply", "election": "e", "candidate": {"name": "a"},
    "timing": {"preset": "fast", "term": "9s", "drain": "1s", "clock_rate_error_ppm": 100}})");
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].pointer, "/timing/term");
  EXPECT_EQ(said[1].pointer, "/timing/clock_rate_error_ppm");
  EXPECT_TRUE(mentions(said[0].message, "on this store"));
  EXPECT_EQ(running.timing.term, lock_table_presets().fast.term);
  EXPECT_EQ(running.timing.drain, 1s);
}

TEST_F(ApplyKept, ATimingThatDoesNotFitTheKeptFieldsIsRefused) {
  try {
    apply_now(R"({"store": "memory:apply", "election": "e", "candidate": {"name": "a"},
      "timing": {"preset": "fast", "term": "60s", "call": "50s"}})");
    ADD_FAILURE();
  } catch (const InvalidDocument& e) {
    EXPECT_TRUE(mentions(e.what(), "/timing does not fit the fields that this store keeps: Timing: term")) << e.what();
  }
  EXPECT_EQ(running.timing, lock_table_presets().fast);
}

}  // namespace
}  // namespace tenure::test
