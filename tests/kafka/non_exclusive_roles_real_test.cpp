// SPDX-License-Identifier: Apache-2.0
// Goal: on a real broker no role is without a leader while members come, go and are put out, and each is led once when
// all is at rest. Method: several Elections in one process, each with a store of its own, which is a member of its own.
// Whether all are led is looked at all the time. Every wait is for a condition and has a deadline.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include <tenure/elections.hpp>
#include <tenure/kafka_group.hpp>

#include "broker.hpp"
#include "lateness.hpp"
#include "support.hpp"

namespace tenure::kafka::test {
namespace {

constexpr int units = 4;

std::vector<std::string> all_roles() {
  std::vector<std::string> out;
  for (int i = 0; i < 12; ++i) out.push_back("role" + std::to_string(i));
  return out;
}

/// What the hooks of all processes were told.
struct Told {
  std::mutex mutex;
  std::set<Reason> reasons;
  bool token{};

  void heard(Token t) {
    const std::lock_guard lock(mutex);
    token = token || t != Token{};
  }
  void ended(const Ousting& o) {
    heard(o.token);
    const std::lock_guard lock(mutex);
    reasons.insert(o.reason);
  }
};

class KafkaNonExclusiveRoles : public testing::Test {
 protected:
  using Processes = std::map<std::string, std::unique_ptr<Elections>>;

  void SetUp() override {
    if (brokers_.empty()) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
  }
  Elections& start(const std::string& name) {
    Options o;
    o.brokers = brokers_;
    o.group = group_;
    o.create_topic = CreateTopic{};
    const Hooks hooks{.elected = [this](const Elected& e) { told_.heard(e.token); },
                      .ousting = [this](const Ousting& e) { told_.ended(e); }};
    auto& process = processes_[name];
    process =
        std::make_unique<Elections>(Exclusive::no, open_group(std::move(o), units, Exclusive::no),
                                    tenure::Candidate{name, name + ":1"}, group_presets(Exclusive::no).fast, hooks);
    process->join(all_roles());
    process->start();
    return *process;
  }
  int leaders(const std::string& role) const {
    int out = 0;
    for (const auto& [name, process] : processes_) out += process->is_leader(role);
    return out;
  }
  bool each_led_once() const {
    const auto roles = all_roles();
    return std::all_of(roles.begin(), roles.end(), [this](const auto& role) { return leaders(role) == 1; });
  }
  bool each_process_leads() const {
    return std::all_of(processes_.begin(), processes_.end(), [](const auto& p) { return !p.second->led().empty(); });
  }
  /// A role that was given on between two looks of one round is found in the next round.
  void check_led() {
    for (const auto& role : all_roles())
      if (leaders(role) == 0 && leaders(role) == 0) ADD_FAILURE() << role << " has no leader " << TENURE_PROMISE;
  }
  /// While it waits, it looks whether any role is without a leader.
  bool eventually(const std::function<bool()>& condition) {
    const tenure::test::Lateness since;
    for (; tenure::test::in_time(since, 2 * patience); wait_out(within(10ms))) {
      if (watching_) check_led();
      if (condition()) return true;
    }
    return false;
  }
  void watch_from_here() { watching_ = true; }

  const std::string brokers_ = real_brokers();
  const std::string group_ = unique_name("tenure-shared");
  bool watching_{};
  Told told_;
  Processes processes_;
};

TEST_F(KafkaNonExclusiveRoles, OneProcessLeadsAllAndThereIsNoToken) {
  auto& a = start("a");
  ASSERT_TRUE(eventually([&] { return each_led_once(); }));
  EXPECT_FALSE(a.exclusive());
  EXPECT_FALSE(a.leadership("role3").token());
  EXPECT_EQ(a.led().front().second, Token{});
  a.stop();
  EXPECT_FALSE(told_.token);
}

TEST_F(KafkaNonExclusiveRoles, WhoJoinsTakesItsPartAndNoRoleIsWithoutALeader) {
  start("a");
  ASSERT_TRUE(eventually([&] { return each_led_once(); }));
  watch_from_here();
  start("b");
  ASSERT_TRUE(eventually([&] { return each_process_leads() && each_led_once(); }));
  start("c");
  ASSERT_TRUE(eventually([&] { return each_process_leads() && each_led_once(); }));
  const std::lock_guard lock(told_.mutex);
  EXPECT_EQ(told_.reasons, std::set{Reason::handed_over});
}

TEST_F(KafkaNonExclusiveRoles, WhoIsPutOutLeadsOnUntilAnotherOneDoes) {
  start("a");
  start("b");
  ASSERT_TRUE(eventually([&] { return each_process_leads() && each_led_once(); }));
  watch_from_here();
  std::set<std::string> gone;
  for (const auto& member : members(brokers_, group_)) {
    expel(brokers_, group_, member.id);
    gone.insert(member.id);
  }
  ASSERT_EQ(gone.size(), 2u);
  ASSERT_TRUE(eventually([&] {
    const auto now = members(brokers_, group_);
    return now.size() == 2 && std::none_of(now.begin(), now.end(), [&](const auto& m) { return gone.contains(m.id); });
  }));
  ASSERT_TRUE(eventually([&] { return each_process_leads() && each_led_once(); }));
}

TEST_F(KafkaNonExclusiveRoles, AStopLeavesItsRolesToTheOthers) {
  auto& a = start("a");
  start("b");
  ASSERT_TRUE(eventually([&] { return each_process_leads() && each_led_once(); }));
  a.stop();
  ASSERT_TRUE(eventually([&] { return each_led_once(); }));
}

}  // namespace
}  // namespace tenure::kafka::test
