// SPDX-License-Identifier: Apache-2.0
// Goal: a group of single records keeps the contract of groups but for what one_by_one.hpp excepts. A change that takes
// effect late makes nobody lead who should not. Method: the suite that all stores share, over memory's records, and
// members driven verb by verb. A hub holds writes back and delivers them late.
#include <mutex>
#include <set>

#include <tenure/manual_clock.hpp>
#include <tenure/memory.hpp>
#include <tenure/one_by_one.hpp>

#include "group_suite.hpp"

namespace tenure::contract {
namespace {

/// The records of one group, as all connections see them.
struct RecordsOfOneGroup {
  memory::Hub sessions, leads;
  std::mutex mutex{};
  std::set<std::string> names{};

  static std::shared_ptr<GroupStore> connect(const std::shared_ptr<RecordsOfOneGroup>& self, const std::string& group) {
    return one_by_one(group,
                      {.session = [self](std::size_t slot) { return self->sessions.store(std::to_string(slot)); },
                       .lead =
                           [self](const std::string& election) {
                             const std::lock_guard lock(self->mutex);
                             self->names.insert(election);
                             return self->leads.store(election);
                           },
                       .elections = [self](const Limit&) -> Result<Names> {
                         const std::lock_guard lock(self->mutex);
                         return Names(self->names.begin(), self->names.end());
                       }});
  }
};

class RecordsUnderTest final : public GroupUnderTest {
 public:
  std::shared_ptr<GroupStore> connect(const std::string& group) override {
    auto& records = groups_[group];
    if (!records) records = std::make_shared<RecordsOfOneGroup>();
    return RecordsOfOneGroup::connect(records, group);
  }
  Timing timing() const override {
    auto timing = GroupUnderTest::timing();
    timing.renew = milliseconds(100), timing.retry = milliseconds(20);
    return timing;
  }
  bool pushes() const override { return false; }
  bool commits_in_one_step() const override { return false; }
  bool spoil_lead(const std::string& group, const std::string& election) override {
    return put(group, election, "garbage");
  }
  bool mend_lead(const std::string& group, const std::string& election) override {
    return put(group, election, std::string(32, '0'));  // a session that nobody has, and no heir
  }
  bool step_clock(Clock::Duration by) override {
    for (const auto& [name, records] : groups_) records->sessions.step_clock(by), records->leads.step_clock(by);
    return true;
  }
  bool hang(bool on) override {
    for (const auto& [name, records] : groups_) records->sessions.hang(on), records->leads.hang(on);
    return true;
  }

 private:
  bool put(const std::string& group, const std::string& election, const std::string& incarnation) {
    const auto record = groups_.at(group)->leads.store(election);
    const auto limit = Player::within(seconds(10));
    const auto stands = record->read(limit);
    if (!stands || !stands->record) return false;
    const auto& [token, beat] = Version{stands->record->token, stands->record->beat};
    const auto swap = record->compare_and_set(
        Expected{token, {beat}}, {.token = {token.value + 1}, .beat = draw_beat(), .incarnation = incarnation}, limit);
    return swap && swap->applied;
  }

  std::map<std::string, std::shared_ptr<RecordsOfOneGroup>> groups_;
};

const auto records = testing::Values(GroupSubject{"records", [] { return std::make_unique<RecordsUnderTest>(); }});

INSTANTIATE_TEST_SUITE_P(one_by_one, GroupContract, records, name_of_group);
INSTANTIATE_TEST_SUITE_P(one_by_one, GuardOfACommit, records, name_of_group);

struct OneByOne : testing::Test {
  Member member(const std::string& name) {
    Member m(RecordsOfOneGroup::connect(group, "orders"), name, std::chrono::seconds(10));
    EXPECT_TRUE(m.open());
    return m;
  }
  std::shared_ptr<RecordsOfOneGroup> group = std::make_shared<RecordsOfOneGroup>();
};

TEST_F(OneByOne, AClaimWithoutAnAnswerIsNotClaimedAndTheRenewalStands) {
  auto a = member("a");
  group->leads.lose_answers(1);
  const auto done = a.claim({"jobs", "mails"});
  EXPECT_TRUE(done.granted);
  EXPECT_EQ(done.claimed, Names{"mails"});
  EXPECT_EQ(done.look.leads.at("jobs").session, a.id()) << "the look tells that it was done all the same";
  EXPECT_TRUE(a.claims("jobs")) << "anew, with a greater token";
  EXPECT_TRUE(a.renew());
}

TEST_F(OneByOne, AClaimThatComesAfterTheEndOfItsSessionLeavesTheElectionToOthers) {
  auto a = member("a"), b = member("b");
  group->leads.hold_writes(1);
  EXPECT_FALSE(a.claims("jobs"));
  ASSERT_TRUE(b.end(a));
  group->leads.deliver_held();
  EXPECT_EQ(b.look().leads.at("jobs").session, a.id()) << "it came";
  EXPECT_FALSE(a.renew());
  EXPECT_TRUE(b.claims("jobs", {a.id()}));
}

TEST_F(OneByOne, AClaimThatComesAfterAnothersTakesNothingFromIt) {
  auto a = member("a"), b = member("b");
  group->leads.hold_writes(1);
  EXPECT_FALSE(a.claims("jobs"));
  ASSERT_TRUE(b.claims("jobs"));
  const auto lead = b.look("").leads;
  group->leads.deliver_held();
  EXPECT_EQ(b.look("").leads, lead);
  EXPECT_TRUE(b.releases("jobs"));
}

TEST_F(OneByOne, ALateReleaseEndsNoLaterTenure) {
  auto a = member("a");
  ASSERT_TRUE(a.claims("jobs"));
  group->leads.hold_writes(1);
  EXPECT_FALSE(a.releases("jobs"));
  ASSERT_TRUE(a.claims("jobs")) << "anew";
  const auto lead = a.look("").leads;
  group->leads.deliver_held();
  EXPECT_EQ(a.look("").leads, lead);
}

TEST_F(OneByOne, ALeadThatNamesASweptSessionIsClaimedAsAnEndedOnes) {
  auto a = member("a"), b = member("b");
  group->leads.hold_writes(1);
  EXPECT_FALSE(a.claims("jobs"));
  ASSERT_TRUE(b.end(a));
  EXPECT_EQ(b.sweep(), 1);
  group->leads.deliver_held();
  b.look();
  EXPECT_FALSE(b.claims("jobs")) << "not said to have ended";
  EXPECT_TRUE(b.claims("jobs", {a.id()}));
}

TEST_F(OneByOne, SlotsOfSweptSessionsAreUsedAgain) {
  auto a = member("a");
  for (int i = 0; i < 5; ++i) {
    auto b = member("b");
    ASSERT_TRUE(b.end());
    EXPECT_EQ(a.sweep(), 1);
    EXPECT_FALSE(b.renew());
  }
  auto c = member("c");
  EXPECT_EQ(c.seen().sessions().size(), 2u);
  EXPECT_FALSE(group->sessions.store("2")->read(Player::within(std::chrono::seconds(10)))->record)
      << "two slots were enough";
}

TEST_F(OneByOne, AStoreThatMayLoseRecordsIsRefused) {
  group->sessions = memory::Hub({.absence_certain = false});
  const auto store = RecordsOfOneGroup::connect(group, "orders");
  const auto look = store->look({}, Player::within(std::chrono::seconds(10)));
  ASSERT_FALSE(look);
  EXPECT_EQ(look.error().fault, Fault::misconfigured);
  EXPECT_NE(look.error().message.find("take one that loses none"), std::string::npos) << look.error().message;
}

TEST_F(OneByOne, RecordsThatAreNoneOfAGroupAreToldApart) {
  const auto limit = Player::within(std::chrono::seconds(10));
  ASSERT_TRUE(
      group->leads.store("jobs")->compare_and_set(std::nullopt, Record{.token = {7}, .incarnation = "x"}, limit));
  group->names.insert("jobs");
  const auto store = RecordsOfOneGroup::connect(group, "orders");
  auto look = store->look({}, limit);
  ASSERT_TRUE(look);
  ASSERT_TRUE(look->unreadable.contains("jobs"));
  EXPECT_EQ(look->unreadable.at("jobs").fault, Fault::corrupt);
  EXPECT_NE(look->unreadable.at("jobs").message.find("\"jobs\""), std::string::npos);
  ASSERT_TRUE(
      group->sessions.store("0")->compare_and_set(std::nullopt, Record{.token = {7}, .incarnation = "x"}, limit));
  look = store->look({}, limit);
  ASSERT_FALSE(look) << "without all sessions nothing can be said";
  EXPECT_NE(look.error().message.find("session slot 0"), std::string::npos) << look.error().message;
}

// ---- a store that is slow ----

/// Each call of a record takes so long.
class Slow final : public ConditionalStore {
 public:
  Slow(std::shared_ptr<ConditionalStore> store, ManualClock& clock) : store_(std::move(store)), clock_(clock) {}

  static constexpr auto takes = std::chrono::milliseconds(10);
  Result<Read> read(const Limit& limit) override {
    clock_.advance(takes);
    return store_->read(limit);
  }
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    clock_.advance(takes);
    return store_->compare_and_set(expected, next, limit);
  }

 private:
  std::shared_ptr<ConditionalStore> store_;
  ManualClock& clock_;
};

struct OneByOneSlowly : OneByOne {
  OneByOneSlowly() {
    for (int i = 0; i < 20; ++i) elections.push_back("e" + std::to_string(10 + i));
  }
  /// Its leads are slow.
  Member slow_member(const std::string& name) {
    const auto slow = [this](std::shared_ptr<ConditionalStore> store) -> std::shared_ptr<ConditionalStore> {
      return std::make_shared<Slow>(std::move(store), clock);
    };
    Member m(one_by_one("orders",
                        {.session = [this](std::size_t slot) { return group->sessions.store(std::to_string(slot)); },
                         .lead = [this, slow](const std::string& e) { return slow(group->leads.store(e)); },
                         .elections = [this](const Limit&) -> Result<Names> { return elections; }}),
             name, std::chrono::seconds(10));
    EXPECT_TRUE(m.open());
    return m;
  }
  Limit in(Clock::Duration time) { return {clock, clock.now() + time}; }

  ManualClock clock;
  Names elections;
};

TEST_F(OneByOneSlowly, ACommitThatHadNoTimeToReadOurLeadsTellsNone) {
  auto a = slow_member("a");
  ASSERT_EQ(a.claim(elections).claimed, elections);
  const auto short_of_time = a.store().commit(a.renewal(), in(15 * Slow::takes));
  ASSERT_TRUE(short_of_time);
  EXPECT_TRUE(short_of_time->granted);
  EXPECT_EQ(short_of_time->look.cursor, "") << "somebody may lead one of them, and the lease must not count";
  EXPECT_FALSE(short_of_time->look.whole);
}

TEST_F(OneByOneSlowly, ACommitThatReadOurLeadsTellsThemAlsoIfItHadNoTimeForTheOthers) {
  auto a = slow_member("a"), b = slow_member("b");
  const Names first(elections.begin(), elections.begin() + 10), rest(elections.begin() + 10, elections.end());
  ASSERT_EQ(a.claim(rest).claimed, rest);
  ASSERT_EQ(b.claim(first).claimed, first);
  a.look();
  const auto told = a.store().commit(a.renewal(), in(16 * Slow::takes));
  ASSERT_TRUE(told && told->granted);
  EXPECT_NE(told->look.cursor, "");
}

TEST_F(OneByOneSlowly, ALeadThatCouldNotBeReadIsReadBeforeThoseOfOthers) {
  auto a = slow_member("a"), b = slow_member("b");
  const Names first(elections.begin(), elections.begin() + 10), rest(elections.begin() + 10, elections.end());
  ASSERT_EQ(a.claim(first).claimed, first);
  ASSERT_EQ(b.claim(rest).claimed, rest);
  const auto& last = elections.back();
  const auto write = [&](const std::string& text) {
    const auto limit = Player::within(std::chrono::seconds(10));
    const auto record = group->leads.store(last);
    const auto stands = record->read(limit)->record.value();
    EXPECT_TRUE(record->compare_and_set(Expected{stands.token, {stands.beat}},
                                        {.token = {stands.token.value + 1}, .beat = draw_beat(), .incarnation = text},
                                        limit));
  };
  write("garbage");
  ASSERT_TRUE(a.look().unreadable.contains(last));
  write(std::string(32, '0'));
  const auto told = a.store().commit(a.renewal(), in(16 * Slow::takes));
  ASSERT_TRUE(told && told->granted);
  EXPECT_TRUE(told->look.leads.contains(last)) << "for all that is known it was ours";
}

TEST_F(OneByOneSlowly, AReleaseThatHadNoTimeIsToldApart) {
  auto a = slow_member("a");
  ASSERT_EQ(a.claim(elections).claimed, elections);
  auto releases = a.renewal();
  for (const auto& election : elections)
    releases.releases.push_back({election, a.seen().token(election).value(), std::nullopt});
  const auto done = a.store().commit(releases, in(41 * Slow::takes));
  ASSERT_TRUE(done && done->granted);
  EXPECT_EQ(done->released.size(), 10u) << "two calls each, in half of the time";
  EXPECT_EQ(done->unanswered.size(), 10u);
}

TEST_F(OneByOne, AFunctionThatIsMissingIsRefused) { EXPECT_THROW(one_by_one("orders", {}), std::invalid_argument); }

}  // namespace
}  // namespace tenure::contract
