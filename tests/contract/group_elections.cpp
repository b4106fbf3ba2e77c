// SPDX-License-Identifier: Apache-2.0
// Goal: whole processes can rely on a group store, where the rules of single calls are not enough: a hand-over, and a
// lead that cannot be read. Method: several Elections over one group. Every wait is for a condition and has a deadline;
// no term ends meanwhile.
#include <tenure/contract/group_suite.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <tenure/elections.hpp>

namespace tenure::contract {
namespace {

/// One process. It takes what is free, and gives nothing away by itself.
class Process {
 public:
  Process(std::shared_ptr<GroupStore> store, const Timing& timing, const std::string& name, const Names& elections)
      : elections_(std::move(store), {name, ""}, timing, hooks(), {.on = false}) {
    elections_.join(elections);
    elections_.start();
  }

  Elections& elections() { return elections_; }
  bool leads(const std::string& election) const { return elections_.is_leader(election); }

  int ended(Reason reason) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::count(reasons_.begin(), reasons_.end(), reason));
  }
  /// How often an error was told that has this text.
  int told(const std::string& part) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::count_if(errors_.begin(), errors_.end(), [&](const Error& error) {
      return error.message.find(part) != std::string::npos;
    }));
  }

 private:
  Hooks hooks() {
    Hooks hooks;
    hooks.ousting = [this](const Ousting& o) {
      const std::lock_guard lock(mutex_);
      reasons_.push_back(o.reason);
    };
    hooks.error = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      errors_.push_back(error);
    };
    hooks.log = [](const LogLine&) {};
    return hooks;
  }

  std::mutex mutex_;
  std::vector<Reason> reasons_;
  std::vector<Error> errors_;
  Elections elections_;
};

/// Where data can be lost, nobody leads an election that is new before a term has passed.
void begin(Member founder, const Names& elections) {
  EXPECT_EQ(sorted(founder.claim(elections).claimed), sorted(elections));
  EXPECT_EQ(sorted(founder.release(elections).released), sorted(elections));
  EXPECT_TRUE(founder.end());
}

}  // namespace

/// A starved heir may not take it at once, and then anybody may. So it is asked for again; of one tenure perhaps twice,
/// before its leader knows.
TEST_P(GroupContract, AHandOverReachesTheOneThatIsNamed) {
  begin(member("founder"), {"jobs", "mails"});
  const auto timing = group_->timing();
  Process first(connect(), timing, "first", {"jobs", "mails"});
  ASSERT_TRUE(eventually([&] { return first.leads("jobs") && first.leads("mails"); }));
  const auto before = first.elections().leadership("jobs").token();
  Process other(connect(), timing, "other", {"jobs", "mails"}), heir(connect(), timing, "heir", {"jobs", "mails"});
  int begun = 0;
  EXPECT_TRUE(eventually([&] {
    for (auto* process : {&first, &other})
      if (process->leads("jobs")) begun += process->elections().hand_over("jobs", "heir");
    return heir.leads("jobs");
  }));
  const int ended = first.ended(Reason::handed_over) + other.ended(Reason::handed_over);
  EXPECT_GE(ended, 1);
  EXPECT_LE(ended, begun) << "each was asked for";
  const auto after = heir.elections().leadership("jobs").token();
  ASSERT_TRUE(before && after);
  EXPECT_GT(*after, *before);
  EXPECT_TRUE(first.leads("mails")) << "that one was not handed over";
  EXPECT_FALSE(first.elections().hand_over("jobs", "heir")) << "it does not lead it any more";
}

/// Also where nothing is pushed, so that the other one sees the release with its next renewal. A starved one may miss
/// it.
TEST_P(GroupContract, WhoResignsLeavesTheLeadToAnother) {
  begin(member("founder"), {"jobs"});
  const auto timing = group_->timing();
  Process first(connect(), timing, "first", {"jobs"}), second(connect(), timing, "second", {"jobs"});
  const auto leads_beside = [](Process& leader, Process& other) {
    return leader.leads("jobs") && other.elections().leadership("jobs").incumbent();
  };
  ASSERT_TRUE(eventually([&] { return leads_beside(first, second) || leads_beside(second, first); }));
  bool left = false;
  for (int i = 0; i < 3 && !left; ++i) {
    auto& leader = first.leads("jobs") ? first : second;
    auto& other = first.leads("jobs") ? second : first;
    const auto before = leader.elections().leadership("jobs").token();
    if (!before) continue;
    leader.elections().resign("jobs");
    EXPECT_TRUE(eventually([&] {
      left = other.leads("jobs");
      return left || leader.elections().leadership("jobs").token().value_or(*before) > *before;
    }));
  }
  EXPECT_TRUE(left);
}

TEST_P(GroupContract, ALeadThatCannotBeReadCostsNoProcessAnotherElection) {
  begin(member("founder"), {"jobs", "mails"});
  const auto timing = group_->timing();
  Process first(connect(), timing, "first", {"jobs", "mails"});
  ASSERT_TRUE(eventually([&] { return first.leads("jobs") && first.leads("mails"); }));
  if (!group_->spoil_lead("orders", "jobs")) GTEST_SKIP() << "nobody can write to this store but we";
  {
    Process second(connect(), timing, "second", {"jobs", "mails", "news"});
    ASSERT_TRUE(eventually([&] { return second.told("election jobs cannot be read") > 0; }));
    EXPECT_TRUE(first.leads("jobs")) << "its leader goes on";
    first.elections().stop();
    ASSERT_TRUE(eventually([&] { return second.leads("mails"); }));
    EXPECT_FALSE(second.leads("jobs")) << "nobody knows who leads it";
    EXPECT_EQ(second.told("cannot be read"), 1) << "not at each look";
    EXPECT_EQ(second.told("mails") + second.told("news"), 0);
  }
  EXPECT_EQ(first.ended(Reason::stopped), 2) << "nothing ended before";
}

}  // namespace tenure::contract
