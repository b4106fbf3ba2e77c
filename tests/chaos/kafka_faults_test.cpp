// SPDX-License-Identifier: Apache-2.0
// Goal: what could make two leaders over Kafka does not, and each rule that prevents it is needed. Method: real
// processes over a real broker under the one fault that shows it, the sound build beside one with the rule broken.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include <tenure/kit/wait.hpp>

#include "expect_sound.hpp"
#include "history.hpp"
#include "kafka_wire.hpp"
#include "nemesis.hpp"
#include "relay.hpp"

namespace tenure::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Clock::Duration margin = 250ms;  // of the preset `fast`
constexpr auto waits = 60s;

/// What was to be shown could not be: a busy machine has cost a lease before, or has spoiled the fault.
struct Spoiled : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Otherwise = std::runtime_error>
void until(const std::function<bool()>& happened, const char* otherwise) {
  for (const auto give_up = boot_clock().now() + waits; !happened();) {
    if (boot_clock().now() > give_up) throw Otherwise(otherwise);
    wait_out({boot_clock(), boot_clock().now() + 5ms, {}});
  }
}

std::string variable(const char* name) {
  const auto* value = std::getenv(name);
  return value ? value : "";
}

/// What a candidate's handle sent, or was answered, in the order in which it did and heard so.
struct Step {
  enum { commits, committed, joins, joined } what;
  std::string client_id;
  int error{};  ///< of what was committed
};

/// Cuts a handle off with a commit under way: that and all behind it is held. Any thread.
class Revocation final : public Gate {
 public:
  /// In the next revocation: the heartbeat that tells of a rebalance is answered when the next commit is under way.
  void catch_next(const std::string& client_id) { begin(State::armed, client_id); }
  void catch_next_commit(const std::string& client_id) { begin(State::has_news, client_id); }
  bool caught() const {
    const std::lock_guard lock(mutex_);
    return state_ == State::cut_off;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    state_ = State::idle;
  }
  /// What the broker answered to the commit that was held.
  std::optional<int> late_answer() const {
    const std::lock_guard lock(mutex_);
    return late_answer_;
  }
  /// Of all handles, since one of the above began.
  std::vector<Step> steps() const {
    const std::lock_guard lock(mutex_);
    return steps_;
  }

  void sent(const KafkaMessage& m) override {
    const std::lock_guard lock(mutex_);
    if (m.api == offset_commit) steps_.push_back({Step::commits, m.client_id, 0});
    if (m.api == join_group) steps_.push_back({Step::joins, m.client_id, 0});
  }
  bool passes(const KafkaMessage& m) override {
    const std::lock_guard lock(mutex_);
    if (m.client_id == client_id_ && holds(m)) return false;
    if (!m.request && m.api == offset_commit && m.connection == connection_) late_answer_ = m.error;
    if (!m.request && m.api == offset_commit) steps_.push_back({Step::committed, m.client_id, m.error});
    if (!m.request && m.api == sync_group) steps_.push_back({Step::joined, m.client_id, 0});
    return true;
  }

 private:
  enum class State { idle, armed, has_news, cut_off };
  static constexpr int rebalance_in_progress = 27;

  void begin(State state, const std::string& client_id) {
    const std::lock_guard lock(mutex_);
    client_id_ = client_id;
    state_ = state;
    steps_.clear();
    connection_ = 0;
    late_answer_.reset();
  }

  bool holds(const KafkaMessage& m) {
    const bool tells = !m.request && m.api == heartbeat && m.error == rebalance_in_progress;
    if (state_ == State::armed && tells) state_ = State::has_news;
    if (state_ == State::has_news && m.request && m.api == offset_commit) {
      state_ = State::cut_off;
      connection_ = m.connection;
    }
    return state_ == State::has_news ? tells : state_ == State::cut_off && m.request && m.connection == connection_;
  }

  mutable std::mutex mutex_;
  std::string client_id_;
  State state_{};
  std::uint64_t connection_{};  ///< That is held, or was. They count from 1.
  std::optional<int> late_answer_;
  std::vector<Step> steps_;
};

/// Rules 11 and 13 of backends/kafka/README.md: between its assignment and its next join every commit of a handle is
/// answered, and after that none goes out. Returns what breaks it.
std::string disorder(const std::vector<Step>& steps) {
  std::set<std::string> unanswered, joining;
  for (const auto& [what, handle, error] : steps) {
    if (what == Step::commits && joining.contains(handle)) return "a commit behind a JoinGroup: " + handle;
    if (what == Step::joins && unanswered.contains(handle)) return "a JoinGroup behind an unanswered commit: " + handle;
    if (what == Step::commits) unanswered.insert(handle);
    if (what == Step::committed) unanswered.erase(handle);
    if (what == Step::joins) joining.insert(handle);
    if (what == Step::joined) joining.erase(handle);
  }
  return {};
}

TEST(KafkaDisorder, IsACommitWithoutAnAnswerOrInAJoin) {
  const Step commits{Step::commits, "a", 0}, committed{Step::committed, "a", 0}, joins{Step::joins, "a", 0};
  const Step joined{Step::joined, "a", 0}, another_joins{Step::joins, "b", 0};
  EXPECT_EQ(disorder({joins, joined, commits, another_joins, committed, joins, joined, commits}), "");
  EXPECT_NE(disorder({commits, joins}), "");
  EXPECT_NE(disorder({commits, committed, joins, commits}), "");
}

/// What a candidate takes part in, and how.
struct Form {
  std::string name, settings;  ///< The latter of its URL.
  std::vector<std::string> arguments;
  std::string no_drain, commits_late;  ///< Broken programs.
  std::string joins;                   ///< What it says of a renewal while it has no assignment.

  friend void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }
};

const Form single{"Single",
                  "",
                  {"--preset", "fast"},
                  TENURE_CANDIDATE_NO_DRAIN,
                  TENURE_CANDIDATE_COMMITS_LATE,
                  "rebalance of the group"};
const Form roles{"Roles",
                 "&units=4",
                 {"--preset", "fast", "--elections", "12"},
                 TENURE_CANDIDATE_ROLES_NO_DRAIN,
                 TENURE_CANDIDATE_ROLES_COMMIT_LATE,
                 "has no assignment yet"};

class KafkaFaults : public ::testing::Test {
 protected:
  explicit KafkaFaults(Form form = single) : form_(std::move(form)) {
    auto name = (fs::temp_directory_path() / "tenure-faults-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    scratch_ = name;
    group_ = scratch_.filename();
  }
  ~KafkaFaults() override {
    if (HasFailure())
      std::cout << "the journal is kept in " << scratch_ << '\n';
    else
      fs::remove_all(scratch_);
  }
  void SetUp() override {
    if (brokers_.empty()) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
  }

  /// Puts a relay between all candidates and the broker, until the test ends.
  void relay(Gate* gate = nullptr) {
    const auto ports = variable("TENURE_KAFKA_RELAY");
    const auto colon = ports.find(':');
    if (colon == ports.npos) GTEST_SKIP() << "needs a broker with a listener for a relay, as docker/kafka starts it";
    const auto port = ports.substr(0, colon);
    relay_.emplace(std::stoi(port), std::stoi(ports.substr(colon + 1)), gate);
    bootstrap_ = "127.0.0.1:" + port;
  }

  Fleet fleet(const std::string& program) const {
    std::vector<std::string> arguments{
        "--store",
        "kafka://" + bootstrap_ + "/tenure-chaos-" + form_.name + "?create_topic=true&group=" + group_ + form_.settings,
        "--election",
        group_,
        "--note-ms",
        "20"};
    arguments.insert(arguments.end(), form_.arguments.begin(), form_.arguments.end());
    return {program, arguments, scratch_ / group_};
  }

  /// A candidate that leads, and a second one that stands by: both are assigned, and the leader renews.
  pid_t begin(Fleet& fleet) const {
    const auto first = fleet.start("first");
    const auto leads = [](const Event& e) { return e.what == "lead"; };
    if (fleet.await(0, leads, waits) == Fleet::npos) throw std::runtime_error("nobody is elected");
    fleet.start("second");
    const auto assigned = [&] {
      const auto in_group = members();
      return std::count_if(in_group.begin(), in_group.end(), [](const auto& m) { return !m.partitions.empty(); }) == 2;
    };
    until(assigned, "the second candidate does not join");
    await_extension(fleet, first, 1ms);
    return first;
  }

  /// Until the leader's deadline is further away than it is now, by more than this.
  static void await_extension(Fleet& fleet, pid_t leader, Clock::Duration by) {
    const auto& events = fleet.events();
    const auto tells = [leader](const Event& e) { return e.pid == leader && (e.what == "lead" || e.what == "holds"); };
    const auto last = std::find_if(events.rbegin(), events.rend(), tells);
    const auto extended = [&, least = last->until + by](const Event& e) { return tells(e) && e.until > least; };
    if (fleet.await(0, extended, waits) == Fleet::npos) throw Spoiled("the leader's deadline does not move");
  }

  /// Another one leads what the leader led. The threads that sample and that call hooks have both noted it: either may
  /// be the first.
  static void await_successor(Fleet& fleet, pid_t leader) {
    std::set<std::string> its;
    for (const auto& e : fleet.events()) {
      if (e.pid == leader && e.what == "lead") its.insert(e.election);
      if (e.pid == leader && e.what == "follow") its.erase(e.election);
    }
    if (its.empty()) throw Spoiled("the leader leads no more");
    const auto leads = [&](const Event& e) { return e.what == "lead" && e.pid != leader && its.contains(e.election); };
    const auto at = fleet.await(0, leads, waits);
    if (at == Fleet::npos) throw Spoiled("nobody succeeds");
    const auto led = fleet.events()[at];
    const auto elected = [&led](const Event& e) {
      return e.what == "elected" && e.pid == led.pid && e.election == led.election && e.token == led.token;
    };
    if (fleet.await(0, elected, waits) == Fleet::npos) throw Spoiled("no hook tells of the successor");
  }

  /// Lets a stopped leader go on, and say what it takes itself for.
  static void resume(Fleet& fleet, pid_t leader) {
    const auto from = fleet.events().size();
    fleet.resume(leader);
    const auto says = [&](const Event& e) {
      return e.pid == leader && (e.what == "lead" || e.what == "holds" || e.what == "follow");
    };
    if (fleet.await(from, says, waits) == Fleet::npos) throw std::runtime_error("the leader says nothing any more");
  }

  /// What this test asks of the broker itself, a busy machine may spoil, too.
  std::vector<KafkaWire::Member> members() const try {
    return KafkaWire(brokers_).members_of(group_);
  } catch (const std::runtime_error& e) {
    throw Spoiled(e.what());
  }

  KafkaWire::Member owner() const {
    const auto in_group = members();
    const auto leads = [](const KafkaWire::Member& m) {
      return std::find(m.partitions.begin(), m.partitions.end(), 0) != m.partitions.end();
    };
    const auto leader = std::find_if(in_group.begin(), in_group.end(), leads);
    if (leader == in_group.end()) throw Spoiled("nobody owns partition 0");
    return *leader;
  }

  /// A LeaveGroup in the name of the owner of partition 0.
  void put_leader_out() const try {
    KafkaWire(brokers_).leave(group_, owner().id);
  } catch (const std::runtime_error& e) {
    throw Spoiled(e.what());
  }

  void begin_anew();
  void expect_as_meant(const std::function<bool(Fleet&)>& shows);
  void expect_found_out(const std::string& program, const std::function<void(Fleet&)>& fault);
  pid_t stop_and_put_out_the_leader(Fleet& fleet) const;
  pid_t answer_the_leader_late(Fleet& fleet);
  void revoke_with_a_commit_held(Fleet& fleet);
  struct Rejoined {
    bool same_handle;
    std::string disorder;
  };
  Rejoined join_behind_a_stopped_member(Fleet& fleet);
  void expect_refused_when_let_go();
  void await_join(const std::string& handle) const;

  const Form form_;
  fs::path scratch_;
  std::string group_, brokers_{variable("TENURE_KAFKA_BROKERS")}, bootstrap_{brokers_};
  Revocation revocation_;
  std::optional<Relay> relay_;
};

class KafkaFaultsOfEach : public KafkaFaults, public ::testing::WithParamInterface<Form> {
 protected:
  KafkaFaultsOfEach() : KafkaFaults(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Form, KafkaFaultsOfEach, ::testing::Values(single, roles),
                         [](const auto& p) { return p.param.name; });

/// What comes next happens in a group of its own, and the relay does nothing yet.
void KafkaFaults::begin_anew() {
  group_ += "-";
  revocation_.let_go();
  if (!relay_) return;
  relay_->mute(false);
  relay_->delay_answers({});
}

/// What sound candidates do is shown once. Where the machine spoiled that, or it returns false, it is done again. No
/// promise is broken all the same.
void KafkaFaults::expect_as_meant(const std::function<bool(Fleet&)>& shows) {
  bool as_meant = false;
  for (int tries = 0; tries < 5 && !as_meant; ++tries) {
    begin_anew();
    auto candidates = fleet(TENURE_CANDIDATE);
    try {
      as_meant = shows(candidates);
    } catch (const Spoiled& e) {
      std::cout << e.what() << '\n';
    }
    expect_sound(judge(candidates.events()));
  }
  EXPECT_TRUE(as_meant);
}

/// A successor that the machine keeps waiting may come after the lease: then the fault is done again.
void KafkaFaults::expect_found_out(const std::string& program, const std::function<void(Fleet&)>& fault) {
  std::size_t overlaps = 0;
  for (int tries = 0; tries < 5 && overlaps == 0; ++tries) {
    begin_anew();
    auto candidates = fleet(program);
    try {
      fault(candidates);
    } catch (const std::exception& e) {  // A busy machine may spoil the fault.
      std::cout << e.what() << '\n';
    }
    const auto verdict = judge(candidates.events());
    print(std::cout, verdict);
    overlaps = verdict.count(Breach::overlap);
  }
  EXPECT_GE(overlaps, 1u);
}

/// The leader is stopped and leaves the group without its doing: at once another one owns partition 0, while the
/// lease still runs. Returns when that one leads; the leader is still stopped.
pid_t KafkaFaults::stop_and_put_out_the_leader(Fleet& fleet) const {
  const auto leader = begin(fleet);
  fleet.stop(leader);
  put_leader_out();
  await_successor(fleet, leader);
  return leader;
}

TEST_P(KafkaFaultsOfEach, ALeaderPutOutOfItsGroupHasItsLease) {
  expect_as_meant([this](Fleet& candidates) {
    resume(candidates, stop_and_put_out_the_leader(candidates));
    EXPECT_GE(judge(candidates.events()).tenures, 2u);
    return true;
  });
}

class KafkaShortSessions : public KafkaFaults {
 protected:
  KafkaShortSessions() : KafkaFaults({"Single", "&min_session_ms=100", {"--preset", "steady"}, {}, {}, {}}) {}
};

TEST_F(KafkaShortSessions, WithSessionsOfASecondEachKilledLeaderIsSucceededAndNoTwoLead) {
  expect_as_meant([this](Fleet& candidates) {
    auto leader = begin(candidates);
    for (int i = 0; i < 5; ++i) {
      const auto from = candidates.events().size();
      candidates.note(done_to::killed, leader);
      candidates.signal(leader, SIGKILL);
      candidates.start("next");
      const auto next = candidates.await(
          from, [&](const Event& e) { return e.what == "elected" && e.pid != leader; }, waits);
      if (next == Fleet::npos) throw std::runtime_error("nobody succeeds");
      leader = candidates.events()[next].pid;
    }
    EXPECT_GE(judge(candidates.events()).tenures, 6u);
    return true;
  });
}

TEST_P(KafkaFaultsOfEach, ABuildThatWaitsForNoLeaseIsFoundOut) {
  expect_found_out(TENURE_CANDIDATE_NO_WAIT, [this](Fleet& f) { stop_and_put_out_the_leader(f); });
}

constexpr Clock::Duration late = 1600ms;  // below the call's limit of 2 s, above the margin

/// Until the leader's next renewal is on its way to the broker.
void await_renewal(const Relay& relay, pid_t leader) {
  const auto before = relay.requests(leader, offset_commit);
  until<Spoiled>([&] { return relay.requests(leader, offset_commit) > before; }, "the leader does not renew");
}

/// The broker acknowledges a renewal at once, the leader hears of it late, and no more of its requests pass. Then it is
/// stopped, and leaves the group without its doing. Returns when another one leads; the leader is still stopped.
pid_t KafkaFaults::answer_the_leader_late(Fleet& fleet) {
  const auto leader = begin(fleet);
  relay_->delay_answers(late, leader);
  await_renewal(*relay_, leader);
  relay_->mute(true, leader);
  await_extension(fleet, leader, margin);
  fleet.stop(leader);
  put_leader_out();
  await_successor(fleet, leader);
  return leader;
}

TEST_F(KafkaFaults, ALateAnswerMakesTheLeaseNoLonger) {
  relay();
  if (IsSkipped()) return;
  expect_as_meant([this](Fleet& candidates) {
    resume(candidates, answer_the_leader_late(candidates));
    return judge(candidates.events()).tenures == 2;
  });
}

TEST_F(KafkaFaults, ABuildThatCountsFromTheAnswerIsFoundOut) {
  relay();
  if (IsSkipped()) return;
  // Not resumed: the candidate's own deadline would take the lead from it some moments after it had believed in it.
  expect_found_out(TENURE_CANDIDATE_FROM_ANSWER, [this](Fleet& f) { answer_the_leader_late(f); });
}

/// The leader hears of a rebalance while a renewal of its is held on the way to the broker.
void KafkaFaults::revoke_with_a_commit_held(Fleet& fleet) {
  revocation_.catch_next(owner().client_id);
  fleet.start("third");
  until<Spoiled>([&] { return revocation_.caught(); }, "the leader is told of no rebalance, or does not renew");
}

/// The member id's rank, its time and its process: the last is the same for all handles of a candidate.
std::string process_of(const std::string& client_id) { return client_id.substr(client_id.rfind('.')); }

/// Whether the broker took a commit of this handle after the next assignment. Before it a dropped handle may be
/// heard: librdkafka sends a request without an answer again, in the generation that it was made in.
bool taken_after_assignment(const std::string& client_id, const std::vector<Step>& steps) {
  const auto joined = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.what == Step::joined; });
  return std::any_of(joined, steps.end(), [&](const Step& s) {
    return s.what == Step::committed && s.client_id == client_id && s.error == 0;
  });
}

TEST(KafkaDroppedHandle, CommitsBehindTheNextAssignmentAreFound) {
  const Step taken{Step::committed, "a", 0}, refused{Step::committed, "a", 25}, joined{Step::joined, "b", 0};
  EXPECT_FALSE(taken_after_assignment("a", {taken, joined, refused}));
  EXPECT_TRUE(taken_after_assignment("a", {joined, taken}));
  EXPECT_FALSE(taken_after_assignment("b", {joined, taken}));
}

/// The handle by which the candidate that had `handle` joins next.
std::string next_to_join(const Revocation& revocation, const std::string& handle) {
  std::string out;
  const auto joins = [&] {
    for (const auto& step : revocation.steps())
      if (step.what == Step::joins && process_of(step.client_id) == process_of(handle)) out = step.client_id;
    return !out.empty();
  };
  until(joins, "the leader does not join again");
  return out;
}

/// The leader is revoked with a commit under way, and renews while the rebalance waits for one that is stopped.
KafkaFaults::Rejoined KafkaFaults::join_behind_a_stopped_member(Fleet& fleet) {
  const auto leader = begin(fleet);
  const auto handle = owner().client_id;
  const auto second =
      *std::find_if(fleet.running().begin(), fleet.running().end(), [&](pid_t p) { return p != leader; });
  fleet.stop(second);
  revoke_with_a_commit_held(fleet);
  const auto from = fleet.events().size();
  revocation_.let_go();
  const bool same = next_to_join(revocation_, handle) == handle;
  const auto waits_for_it = [&](const Event& e) {
    const auto steps = revocation_.steps();
    return (!steps.empty() && steps.back().what == Step::commits) ||
           (e.pid == leader && e.message.find(form_.joins) != e.message.npos);
  };
  if (fleet.await(from, waits_for_it, waits) == Fleet::npos) throw Spoiled("the leader does not renew");
  return {same, disorder(revocation_.steps())};
}

TEST_P(KafkaFaultsOfEach, ACommitOfARevocationIsAnsweredBeforeTheNextJoin) {
  relay(&revocation_);
  if (IsSkipped()) return;
  expect_as_meant([this](Fleet& candidates) {
    const auto rejoined = join_behind_a_stopped_member(candidates);
    EXPECT_EQ(rejoined.disorder, "");
    return rejoined.same_handle;  // a slow broker may answer it beyond the drain's limit
  });
}

TEST_P(KafkaFaultsOfEach, ABuildThatCommitsAfterItsUnassignIsFoundOut) {
  relay(&revocation_);
  if (IsSkipped()) return;
  std::string disorder, spoiled;
  for (int tries = 0; tries < 5 && disorder.empty(); ++tries) {  // a slow broker may end the handle before
    begin_anew();
    auto candidates = fleet(form_.commits_late);
    try {
      disorder = join_behind_a_stopped_member(candidates).disorder;
    } catch (const std::exception& e) {
      spoiled = e.what();  // The build is broken: it may lose the lead before the fault can be made.
    }
  }
  EXPECT_NE(disorder, "") << spoiled;
}

/// The candidate that had this handle gets an assignment again.
void KafkaFaults::await_join(const std::string& handle) const {
  const auto joined = [&] {
    const auto steps = revocation_.steps();
    return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
      return step.what == Step::joined && process_of(step.client_id) == process_of(handle);
    });
  };
  until(joined, "the former leader does not join again");
}

void KafkaFaults::expect_refused_when_let_go() {
  revocation_.let_go();
  until([this] { return revocation_.late_answer().has_value(); }, "the commit that was held is not answered");
  EXPECT_NE(revocation_.late_answer(), 0) << "the broker took it";
}

TEST_P(KafkaFaultsOfEach, ACommitThatARevocationLeavesUnansweredCostsTheHandle) {
  relay(&revocation_);
  if (IsSkipped()) return;
  expect_as_meant([this](Fleet& candidates) {
    const auto leader = begin(candidates);
    const auto handle = owner().client_id;
    revoke_with_a_commit_held(candidates);
    EXPECT_NE(next_to_join(revocation_, handle), handle);
    await_successor(candidates, leader);
    expect_refused_when_let_go();
    EXPECT_FALSE(taken_after_assignment(handle, revocation_.steps()));
    return true;
  });
}

TEST_P(KafkaFaultsOfEach, ACommitOfAMemberThatWasPutOutIsRefused) {
  relay(&revocation_);
  if (IsSkipped()) return;
  expect_as_meant([this](Fleet& candidates) {
    begin(candidates);
    const auto handle = owner().client_id;
    revocation_.catch_next_commit(handle);
    until<Spoiled>([&] { return revocation_.caught(); }, "the leader does not renew");
    put_leader_out();
    await_join(handle);
    expect_refused_when_let_go();
    return true;
  });
}

TEST_P(KafkaFaultsOfEach, ABuildThatDoesNotDrainIsFoundOut) {
  relay(&revocation_);
  if (IsSkipped()) return;
  bool found = false;
  for (int tries = 0; tries < 5 && !found; ++tries) {  // a busy machine may cost the handle in spite of that
    begin_anew();
    auto candidates = fleet(form_.no_drain);
    try {
      begin(candidates);
      const auto handle = owner().client_id;
      revoke_with_a_commit_held(candidates);
      found = next_to_join(revocation_, handle) == handle;
      EXPECT_EQ(disorder(revocation_.steps()), "") << "librdkafka does not wait for its commits any more either";
    } catch (const std::exception& e) {
      std::cout << e.what() << '\n';
    }
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tenure::test
