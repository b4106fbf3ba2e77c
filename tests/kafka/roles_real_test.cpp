// SPDX-License-Identifier: Apache-2.0
// Goal: on a real broker many elections over one consumer group are led once each, move when members come and go, and
// cost one request per renewal. Method: several Elections in one process, each with a store of its own, which is a
// member of its own. Every wait is for a condition and has a deadline.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <tenure/elections.hpp>
#include <tenure/group_observer.hpp>
#include <tenure/kafka_group.hpp>

#include "broker.hpp"
#include "kafka_wire.hpp"
#include "lateness.hpp"
#include "support.hpp"

namespace tenure::kafka::test {
namespace {

constexpr int units = 4;

std::vector<std::string> roles() {
  std::vector<std::string> out;
  for (int i = 0; i < 12; ++i) out.push_back("role" + std::to_string(i));
  return out;
}

/// What all hooks of all processes saw, in order.
class Journal {
 public:
  void elected(const std::string& who, const Elected& e) {
    const std::lock_guard lock(mutex_);
    ++tenures_;
    elected_[who].insert(e.election);
    auto& last = highest_[e.election];
    if (e.token <= last)
      wrong_ += e.election + ": token " + std::to_string(e.token.value) + " after " + std::to_string(last.value) +
                " (" + who + "); ";
    last = std::max(last, e.token);
  }
  void ousting(const Ousting& o) {
    const std::lock_guard lock(mutex_);
    reasons_.push_back(o.reason);
  }
  std::string wrong() const {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }
  std::size_t tenures() const {
    const std::lock_guard lock(mutex_);
    return tenures_;
  }
  /// The roles that it was elected to, some of them more than once.
  std::set<std::string> elected(const std::string& who) const {
    const std::lock_guard lock(mutex_);
    const auto found = elected_.find(who);
    return found == elected_.end() ? std::set<std::string>() : found->second;
  }
  std::vector<Reason> reasons() const {
    const std::lock_guard lock(mutex_);
    return reasons_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Token> highest_;
  std::map<std::string, std::set<std::string>> elected_;
  std::vector<Reason> reasons_;
  std::size_t tenures_{};
  std::string wrong_;
};

class Process {
 public:
  Process(Options options, Journal& journal, const std::string& name, const Timing& timing, int of = units)
      : elections_(open_group(std::move(options), of), tenure::Candidate{name, name + ":1"}, timing,
                   Hooks{.elected = [&journal, name](const Elected& e) { journal.elected(name, e); },
                         .ousting = [&journal](const Ousting& o) { journal.ousting(o); }}) {
    elections_.join(roles());
    elections_.start();
  }
  Elections& elections() { return elections_; }
  std::set<std::string> led() const {
    std::set<std::string> out;
    for (const auto& [election, token] : elections_.led()) out.insert(election);
    return out;
  }

 private:
  Elections elections_;
};

class KafkaRoles : public testing::Test {
 protected:
  void SetUp() override {
    if (brokers_.empty()) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
  }
  void TearDown() override { EXPECT_EQ(journal_.wrong(), "") << TENURE_PROMISE; }
  Options options() const {
    Options o;
    o.brokers = brokers_;
    o.group = group_;
    o.create_topic = CreateTopic{};
    return o;
  }
  Process& start(const std::string& name) { return start(name, options(), presets().fast); }
  Process& start(const std::string& name, Options o, const Timing& timing) {
    auto& process = processes_[name];
    process = std::make_unique<Process>(std::move(o), journal_, name, timing);
    return *process;
  }
  void stop(const std::string& name) {
    processes_.at(name)->elections().stop();
    processes_.erase(name);
  }
  /// One whose leases last a second or two.
  Process& start_quick(const std::string& name, Log log = no_log) {
    auto o = options();
    o.min_session = 100ms;
    o.log = std::move(log);
    return start(name, std::move(o), own_broker_presets().steady);
  }
  /// Each role is led, and no two processes say at once that they lead it.
  bool all_led(std::size_t least_each) {
    std::map<std::string, int> led;
    bool enough = true;
    for (const auto& [name, process] : processes_) {
      const auto mine = process->led();
      enough = enough && mine.size() >= least_each;
      for (const auto& role : mine) ++led[role];
    }
    return enough && led.size() == roles().size();
  }
  /// While it waits, it looks whether any role is led twice.
  bool eventually(const std::function<bool()>& condition, Clock::Duration limit = patience) {
    const tenure::test::Lateness since;
    for (; tenure::test::in_time(since, limit); wait_out(within(10ms))) {
      check_exclusive();
      if (condition()) return true;
    }
    return false;
  }
  /// Two at once is seen if both still lead after the second one was seen to lead.
  void check_exclusive() {
    std::map<std::string, std::vector<Process*>> led;
    for (const auto& [name, process] : processes_)
      for (const auto& role : process->led()) led[role].push_back(process.get());
    for (const auto& [role, by] : led) {
      if (by.size() < 2) continue;
      const bool still = std::all_of(by.begin(), by.end(), [&, r = role](auto* p) { return p->led().contains(r); });
      EXPECT_FALSE(still) << role << " is led by two " << TENURE_PROMISE;
    }
  }

  const std::string brokers_ = real_brokers();
  const std::string group_ = unique_name("tenure-roles");
  Journal journal_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
};

TEST_F(KafkaRoles, WhoOnlyWatchesReadsWhoLeadsAndJoinsNothing) {
  auto& a = start("a");
  ASSERT_TRUE(eventually([&] { return a.led().size() == 12; }));
  auto o = options();
  o.create_topic.reset();
  EXPECT_THROW(GroupObserver(open_group(o, units), presets().fast), std::invalid_argument) << "no names are kept";
  const GroupObserver observer(open_group(o, units), presets().fast, {.elections = {"role0", "role7"}, .log = no_log});
  const auto who = [&] {
    const auto leader = observer.incumbent("role0");
    return leader ? leader->name + " " + leader->address : "nobody";
  };
  EXPECT_TRUE(eventually([&] { return who() == "a a:1"; })) << who();
  EXPECT_TRUE(eventually([&] { return observer.all()[1].renewed; }));
  EXPECT_EQ(a.led().size(), 12U) << "no member came";
  processes_.erase("a");
  EXPECT_TRUE(eventually([&] { return who() == "nobody"; })) << who();
}

TEST_F(KafkaRoles, WhoJoinsGetsItsPartAndWhatStaysGoesOnWithItsToken) {
  // A busy machine costs them no lease.
  auto& a = start("a", options(), presets().balanced);
  ASSERT_TRUE(eventually([&] { return a.led().size() == 12; }));
  const auto before = a.elections().led();
  auto& b = start("b", options(), presets().balanced);
  ASSERT_TRUE(eventually([&] { return !b.led().empty() && all_led(1); }));
  const auto after = a.elections().led();
  for (const auto& [role, token] : after)
    EXPECT_TRUE(std::find(before.begin(), before.end(), std::pair(role, token)) != before.end())
        << role << " stayed, so its tenure went on";
  for (const auto reason : journal_.reasons()) EXPECT_EQ(reason, Reason::handed_over);
  EXPECT_TRUE(eventually([&] { return journal_.tenures() == 12 + b.led().size(); })) << journal_.tenures();
}

TEST_F(KafkaRoles, MoreProcessesThanUnitsLeadEachRoleOnceAndTheSpareOnesSucceed) {
  const std::string names = "abcdef";
  static_assert(units < 6);
  for (const char name : names) start_quick({name});
  ASSERT_TRUE(eventually([&] { return members(brokers_, group_).size() == names.size() && all_led(0); }));
  for (int gone = 0; gone < 3; ++gone) {
    const auto leads = [](const auto& p) { return !p.second->led().empty(); };
    const auto leader = std::find_if(processes_.begin(), processes_.end(), leads);
    ASSERT_NE(leader, processes_.end());
    stop(std::string(leader->first));
    ASSERT_TRUE(eventually([&] { return all_led(0); }));
  }
  EXPECT_TRUE(eventually([&] { return all_led(1); })) << "three processes for four units";
}

TEST_F(KafkaRoles, WithSessionsOf100MillisecondsEachRoleIsLedOnce) {
  for (const std::string name : {"a", "b"}) {
    auto o = options();
    o.min_session = 100ms;
    o.session = 100ms;
    o.heartbeat = 25ms;
    o.log = no_log;
    start(name, std::move(o), own_broker_presets().steady);
  }
  ASSERT_TRUE(eventually([&] { return all_led(1); }));
  stop("a");
  ASSERT_TRUE(eventually([&] { return all_led(12); }));
}

TEST_F(KafkaRoles, GroupsOfRolesAndASingleElectionShareATopicUndisturbed) {
  const auto in = [this](const std::string& group) {
    auto o = options();
    o.group = group_ + group;
    o.topic = group_ + ".roles";
    return o;
  };
  auto& a = start("a", in(""), presets().fast);
  Journal others;
  Process other(in(".other"), others, "other", presets().steady);  // a busy machine costs it no lease
  const auto all = [](const Process& p) { return p.led().size() == roles().size(); };
  ASSERT_TRUE(eventually([&] { return all(a) && all(other); })) << "the single election would create a smaller topic";
  Candidate single(in(".single"), presets().steady);
  const auto token = single.campaign();
  ASSERT_TRUE(token);
  const auto before = other.elections().led();
  const auto& b = start("b", in(""), presets().fast);
  ASSERT_TRUE(eventually([&] { return single.renewed(*token) && !b.led().empty() && all_led(1); }));
  EXPECT_EQ(other.elections().led(), before);
  EXPECT_TRUE(single.renewed(*token));
  EXPECT_EQ(others.wrong(), "") << TENURE_PROMISE;
}

/// As the README says. Another number than a multiple would not do: a role may come into a unit with smaller tokens.
TEST_F(KafkaRoles, WithAMultipleOfTheUnitsAllAreLedAgainAndTokensRise) {
  auto o = options();
  o.min_session = 100ms;
  start("old", o, own_broker_presets().steady);
  ASSERT_TRUE(eventually([&] { return all_led(12); }));
  processes_.clear();
  grow_topic(brokers_, group_ + ".roles", 3 * 2 * units);
  auto& process = processes_["new"];
  process = std::make_unique<Process>(o, journal_, "new", own_broker_presets().steady, 2 * units);
  EXPECT_TRUE(eventually([&] { return all_led(12); }));
  EXPECT_TRUE(eventually([&] { return journal_.elected("new").size() == 12; })) << journal_.tenures();
}

/// Three processes run on while the topic grows, and one that knows the new number joins.
TEST_F(KafkaRoles, UnitsGrowWhileProcessesRunAndTokensRise) {
  std::atomic<int> grown = 0;
  auto o = options();
  o.log = [&grown](const LogLine& line) {
    if (line.message.find("the group grows from 4 units to 8") != line.message.npos) ++grown;
  };
  for (const auto* name : {"a", "b", "c"}) start(name, o, presets().fast);
  ASSERT_TRUE(eventually([&] { return all_led(1); }));
  grow_topic(brokers_, group_ + ".roles", 3 * 2 * units);
  ASSERT_TRUE(eventually([&] { return grown == 3 && all_led(1); }, 2 * patience));
  auto& late = processes_["late"];
  late = std::make_unique<Process>(options(), journal_, "late", presets().fast, 2 * units);
  ASSERT_TRUE(eventually([&] { return all_led(1); }));
}

TEST_F(KafkaRoles, OneProcessLeadsAllInATopicThatIsMadeForItUntilItLeavesSome) {
  auto& a = start("a", options(), presets().balanced);  // a busy machine costs it no lease
  ASSERT_TRUE(eventually([&] { return a.led().size() == 12; }));
  EXPECT_EQ(partitions(brokers_, group_ + ".roles"), 3 * units);
  a.elections().leave("role3");
  ASSERT_TRUE(eventually([&] { return a.led().size() == 11; }));
  a.elections().join("role3");
  ASSERT_TRUE(eventually([&] { return a.led().size() == 12; }));
  EXPECT_TRUE(eventually([&] { return journal_.tenures() == 13; })) << journal_.tenures();
}

TEST_F(KafkaRoles, AllWhoAreExpelledComeBackAndEachRoleIsLedOnce) {
  auto& a = start("a");
  ASSERT_TRUE(eventually([&] { return a.led().size() == 12; }));
  auto& b = start("b");
  ASSERT_TRUE(eventually([&] { return !b.led().empty() && all_led(1); }));
  std::set<std::string> gone;
  for (const auto& member : members(brokers_, group_)) {
    expel(brokers_, group_, member.id);
    gone.insert(member.id);
  }
  ASSERT_TRUE(eventually([&] {
    const auto now = members(brokers_, group_);
    return now.size() == 2 && std::none_of(now.begin(), now.end(), [&](const auto& m) { return gone.contains(m.id); });
  }));
  ASSERT_TRUE(eventually([&] { return all_led(1); }, 2 * patience));
}

TEST_F(KafkaRoles, MembersComeAndGoAndEachRoleIsLedOnceWithRisingTokens) {
  start("a");
  start("b");
  ASSERT_TRUE(eventually([&] { return all_led(1); }));
  start("c");
  ASSERT_TRUE(eventually([&] { return all_led(1); }));
  stop("a");
  ASSERT_TRUE(eventually([&] { return all_led(1); }));
  start("d");
  ASSERT_TRUE(eventually([&] { return all_led(1); }));
  stop("b");
  ASSERT_TRUE(eventually([&] { return all_led(1); }));
}

// ---- R16 ----

TEST_F(KafkaRoles, WhoseHooksAllHangLeavesItsUnitsToOthersAndComesBackWhenTheyReturn) {
  std::optional<Elections> hangs;  // It outlives what its hooks wait for.
  std::promise<void> mended;
  const auto mend = mended.get_future().share();
  auto o = options();
  o.min_session = 100ms;
  o.log = no_log;
  hangs.emplace(open_group(o, units), tenure::Candidate{"hangs", ""}, own_broker_presets().steady,
                Hooks{.elected = [mend](const Elected&) { mend.wait(); }, .log = no_log});
  hangs->join(roles());
  hangs->start();
  ASSERT_TRUE(eventually([&] { return hangs->led().size() == 12; }));
  const auto& b = start_quick("b");
  ASSERT_TRUE(eventually([&] { return members(brokers_, group_).size() == 2; }));
  for (const auto& role : roles()) hangs->resign(role);
  EXPECT_TRUE(eventually([&] { return b.led().size() == 12; })) << b.led().size();
  mended.set_value();
  EXPECT_TRUE(eventually([&] { return !hangs->led().empty() && hangs->led().size() + b.led().size() == 12; }));
}

// ---- R14: rule 21, a stranger in the group ----

TEST_F(KafkaRoles, AStrangerThatKeepsRolesFromAllIsNamed) {
  Lines lines;
  const auto& a = start_quick("a", lines.log());
  ASSERT_TRUE(eventually([&] { return a.led().size() == 12; }));
  const Stranger stranger(brokers_, group_, group_ + ".roles", "a consumer");
  EXPECT_TRUE(eventually([&] { return lines.mention("is owned by \"a consumer\" at "); }))
      << testing::PrintToString(lines.all());
}

TEST_F(KafkaRoles, AStrangerOfTheOtherProtocolIsReportedWithTheRemedy) {
  Lines lines;
  const auto& a = start_quick("a", lines.log());
  ASSERT_TRUE(eventually([&] { return a.led().size() == 12; }));
  tenure::test::KafkaWire wire(brokers_);
  if (!wire.join_by_new_protocol(group_, group_ + ".roles"))
    GTEST_SKIP() << "this broker knows no group.protocol=consumer";
  EXPECT_TRUE(eventually([&] { return lines.mention("group.consumer.migration.policy=disabled"); }))
      << testing::PrintToString(lines.all());
}

TEST_F(KafkaRoles, ATopicThatIsMissingOrHasAnotherNumberOfPartitionsIsRefusedWithTheRightOne) {
  Options o;
  o.brokers = brokers_;
  o.group = group_;
  const auto store = open_group(o, units);
  ASSERT_FALSE(store->accepts(presets().fast));
  const auto tells = [&](const std::string& part) {
    Error error;
    EXPECT_TRUE(eventually([&] {
      const auto opened = store->open(SessionId{1}, Session{}, within(10s));
      if (!opened) error = opened.error();
      return mentions(error.message, part);
    })) << error.message;
    EXPECT_EQ(error.fault, Fault::misconfigured);
  };
  tells("--partitions 12");
  create_topic(brokers_, group_ + ".roles", 7);
  tells("has 7 partitions, and the roles need 12");
}

}  // namespace
}  // namespace tenure::kafka::test
