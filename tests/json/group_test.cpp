// SPDX-License-Identifier: Apache-2.0
// Goal: a document opens a group of many elections. Its mistakes are told with their places.
// Method: documents as texts, and a store that takes any URL.
#include <tenure/stores.hpp>
#include "support.hpp"

namespace tenure::test {
namespace {

using Names = std::vector<std::string>;

/// A document of two elections, and these members besides.
std::string with(const std::string& members) {
  return R"({"store": "memory:", "group": "g", "elections": ["a", "b"], )" + members + "}";
}

TEST(JsonGroup, ADocumentMaySetAllThatElectionsTake) {
  ::setenv("TENURE_TEST_HOST", "host-7", 1);
  const auto got = group_from_json(R"({
    "store": {"url": "redis://h:1/0", "user": "u", "password": "p", "properties": {"a": "1"}},
    "group": "shards",
    "elections": ["shard 1", "shard 0", "${TENURE_TEST_HOST}"],
    "spread": {"on": false, "handovers_at_once": 3, "most": 5, "weight": 7},
    "hook_threads": 2,
    "candidate": {"name": "${TENURE_TEST_HOST}", "address": "10.0.0.7:80"},
    "timing": {"preset": "steady", "drain": "1s"}
  })",
                                   any_group);
  EXPECT_EQ(last_opening.url, "redis://h:1/0");
  EXPECT_EQ(last_opening.password, "p");
  EXPECT_EQ(last_opening.properties, (std::map<std::string, std::string>{{"a", "1"}}));
  EXPECT_EQ(got.store->group(), "shards");
  EXPECT_EQ(got.elections, (Names{"shard 1", "shard 0", "host-7"})) << "in the document's order";
  EXPECT_EQ(got.spread, (Spread{.on = false, .handovers_at_once = 3, .most = 5, .weight = 7}));
  EXPECT_EQ(got.hook_threads, 2);
  EXPECT_EQ(got.candidate.name, "host-7");
  EXPECT_EQ(got.candidate.address, "10.0.0.7:80");
  auto timing = lock_table_presets().steady;
  timing.drain = 1s;
  EXPECT_EQ(got.timing, timing);
}

TEST(JsonGroup, ADocumentNeedsNoMoreThanAStoreAGroupAndElections) {
  const auto got = group_from_json(R"({"store": "memory:", "group": "g", "elections": []})", any_group);
  EXPECT_TRUE(got.elections.empty()) << "the program joins them";
  EXPECT_EQ(got.spread, Spread{});
  EXPECT_EQ(got.hook_threads, 4);
  EXPECT_EQ(got.timing, lock_table_presets().balanced);
}

TEST(JsonGroup, ADocumentHasRoomForTenThousandElections) {
  std::string names;
  for (int i = 0; i < 10'000; ++i)
    names += (i ? ", " : "") + ("\"orders of region nine, partition " + std::to_string(i) + "\"");
  const auto got = group_from_json(R"({"store": "memory:", "group": "g", "elections": [)" + names + "]}", any_group);
  EXPECT_EQ(got.elections.size(), 10'000u);
}

TEST(JsonGroup, AllMistakesAreReportedTogether) {
  std::string text;
  for (const auto& [pointer, message] : findings_of_group(R"({
    "store": "memory:", "group": "", "elections": ["a", 5, "", "b", "a"], "spraed": {},
    "spread": {"on": "yes", "most": -1, "at_once": 3}, "hook_threads": 0, "timing": "fst"
  })"))
    text += pointer + " " + message + "\n";
  EXPECT_EQ(text,
            "/spraed is not known, did you mean \"spread\"?; known here: store, group, elections, spread, "
            "hook_threads, candidate, timing, $schema\n"
            "/group has 0 bytes; 1 to 200 bytes without NUL are allowed\n"
            "/elections/1 must be a string, not a number\n"
            "/elections/2 has 0 bytes; 1 to 200 bytes without NUL are allowed\n"
            "/elections/4 is the same name as /elections/0; name each election once\n"
            "/spread/at_once is not known; known here: on, handovers_at_once, most, weight\n"
            "/spread/on must be true or false, not a string\n"
            "/spread/most must be a whole number from 0 to 4294967295\n"
            "/hook_threads must be a whole number from 1 to 1000\n"
            "/timing \"fst\" is not a preset, did you mean \"fast\"?; known here: fast, balanced, steady\n");
}

TEST(JsonGroup, EachMistakeIsReportedWithWhatWouldBeRight) {
  EXPECT_EQ(finding_of_group(R"({"store": "memory:", "group": "g", "elections": "a"})"),
            "/elections must be an array of names, not a string");
  EXPECT_EQ(finding_of_group(R"({"store": "memory:", "group": "g"})"), " has no \"elections\"");
  EXPECT_EQ(finding_of_group(R"({"store": "memory:", "elections": []})"), " has no \"group\"");
  EXPECT_EQ(finding_of_group(with(R"("spread": 1)")), "/spread must be an object, not a number");
  EXPECT_EQ(finding_of_group(with(R"("hook_threads": "4")")),
            "/hook_threads must be a whole number from 1 to 1000, not a string");
  EXPECT_EQ(finding_of_group(with(R"("hook_threads": 1.5)")), "/hook_threads must be a whole number from 1 to 1000");
}

TEST(JsonGroup, ADocumentOfTheOtherFormSaysWhoReadsIt) {
  const std::string one = R"({"store": "memory:", "election": "e"})", many = with(R"("timing": "fast")");
  const std::string of_many =
      " belongs to a document of many elections, which group_from_json() reads; from_json() "
      "reads one \"election\"";
  const auto said = findings(many);
  EXPECT_EQ(said, (std::vector<Finding>{{"/elections", of_many.substr(1)}, {"/group", of_many.substr(1)}}));
  EXPECT_EQ(finding(R"({"store": "memory:", "election": "e", "spread": {}})"), "/spread" + of_many);
  EXPECT_EQ(findings_of_group(one)[0],
            (Finding{"/election",
                     "belongs to a document of one election, which from_json() reads; group_from_json() reads a "
                     "\"group\" and its \"elections\""}));
}

TEST(JsonGroup, WhatTheStoreRefusesIsAFinding) {
  EXPECT_EQ(finding_of_group(with(R"("candidate": {})"), [](const Opening&) { return OpenedGroup{}; }),
            "/store could not be opened: the opener returned no store and no reason");
  const auto said = finding_of_group(R"({"store": "file:///d", "group": "g", "elections": ["a"]})", open_many);
  EXPECT_TRUE(mentions(said, "/store tenure::open_many: the store \"file\" keeps no groups")) << said;
  struct Slow : GroupStore {
    std::string group() const override { return "g"; }
    Result<Look> look(const std::string&, const Limit&) override { return Look{}; }
    Result<Committed> open(SessionId, const Session&, const Limit&) override { return Committed{}; }
    Result<Committed> commit(const Commit&, const Limit&) override { return Committed{}; }
    Result<bool> end(SessionId, const std::vector<std::uint64_t>&, std::uint64_t, const Limit&) override {
      return true;
    }
    Result<int> sweep(const Limit&) override { return 0; }
    std::optional<Error> request_step_down(const std::string&, const StepDown&, const Limit&) override { return {}; }
    std::optional<Error> accepts(const Timing&) override {
      return Error{Fault::misconfigured, "slow: terms begin at a minute"};
    }
  };
  EXPECT_EQ(finding_of_group(with(R"("timing": "fast")"),
                             [](const Opening&) {
                               return OpenedGroup{.store = std::make_shared<Slow>(), .presets = lock_table_presets()};
                             }),
            "/timing slow: terms begin at a minute");
}

TEST(JsonGroup, NoFindingShowsASecret) {
  ::setenv("TENURE_TEST_SECRET", canary.c_str(), 1);
  const auto gossip = [](const Opening& o) -> OpenedGroup {
    throw std::invalid_argument("cannot open " + o.url + " with " + o.password);
  };
  const auto said = finding_of_group(
      R"({"store": {"url": "redis://h", "password": "${TENURE_TEST_SECRET}"}, "group": "g", "elections": []})", gossip);
  EXPECT_TRUE(mentions(said, "/store cannot open"));
  EXPECT_FALSE(mentions(said, canary));
}

TEST(JsonGroup, TheDocumentOfTheExampleIsRight) {
  const auto got = group_from_json_file(fs::path(TENURE_EXAMPLES) / "shards.json", any_group);
  EXPECT_EQ(got.elections.size(), 4u);
}

}  // namespace
}  // namespace tenure::test
