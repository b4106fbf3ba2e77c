// SPDX-License-Identifier: Apache-2.0
// Candidates as processes over a real broker, and the one fault that would make two leaders if a rule were broken.
#pragma once
#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "history.hpp"
#include "kafka_wire.hpp"
#include "lateness.hpp"
#include "relay.hpp"
#include "scratch.hpp"

namespace tenure::test {

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
  /// From when the handle heard of the rebalance until the commit was answered.
  Clock::Duration drained_in() const {
    const std::lock_guard lock(mutex_);
    return late_answer_ ? answered_at_ - cut_off_at_ : Clock::Duration::max();
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
    if (!m.request && m.api == offset_commit && m.connection == connection_ && !late_answer_) {
      late_answer_ = m.error;
      answered_at_ = boot_clock().now();
    }
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
      cut_off_at_ = boot_clock().now();
    }
    return state_ == State::has_news ? tells : state_ == State::cut_off && m.request && m.connection == connection_;
  }

  mutable std::mutex mutex_;
  std::string client_id_;
  State state_{};
  std::uint64_t connection_{};  ///< That is held, or was. They count from 1.
  std::optional<int> late_answer_;
  Clock::Time cut_off_at_{}, answered_at_{};
  std::vector<Step> steps_;
};

/// Rules 11 and 13 of backends/kafka/README.md: between its assignment and its next join every commit of a handle is
/// answered, and after that none goes out. Returns what breaks it.
std::string disorder(const std::vector<Step>& steps);

/// Whether the broker took a commit of this handle after the next assignment. Before it a dropped handle may be
/// heard: librdkafka sends a request without an answer again, in the generation that it was made in.
bool taken_after_assignment(const std::string& client_id, const std::vector<Step>& steps);

/// What a candidate takes part in, and how.
struct Form {
  std::string name, settings;  ///< The latter of its URL.
  std::vector<std::string> arguments;
  std::string joins;                   ///< What it says of a renewal while it has no assignment.
  std::string no_drain, commits_late;  ///< The rules of its broken builds.

  friend void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }
};
extern const Form single, roles;

class KafkaFaults : public ::testing::Test {
 protected:
  explicit KafkaFaults(Form form = single);
  void SetUp() override;

  /// Puts a relay between all candidates and the broker, until the test ends.
  void relay();
  void relay(Gate& gate);
  /// Candidates of a group of their own.
  Fleet fleet(const std::string& program);

  /// A candidate that leads, and a second one that stands by: both are assigned, and the leader renews.
  pid_t begin(Fleet& fleet) const;
  /// Lets a stopped leader go on, and say what it takes itself for.
  static void resume(Fleet& fleet, pid_t leader);
  KafkaWire::Member owner() const;  ///< Of partition 0.
  void put_leader_out() const;      ///< A LeaveGroup in the name of the owner.
  /// Another one leads what the leader led, and its hook has told so.
  void await_successor(Fleet& fleet, pid_t leader) const;

  /// The leader is stopped and leaves the group without its doing: at once another one owns partition 0, while the
  /// lease still runs. Returns when that one leads; the leader is still stopped.
  pid_t stop_and_put_out_the_leader(Fleet& fleet) const;
  /// The broker acknowledges a renewal at once, the leader hears of it late, and no more of its requests pass. Then it
  /// is stopped, and leaves the group without its doing. Returns when another one leads; the leader is still stopped.
  /// 0: the answer came after the call's limit, since the broker or the machine was busy. That shows nothing.
  pid_t answer_the_leader_late(Fleet& fleet);
  /// The leader hears of a rebalance while a renewal of its is held on the way to the broker.
  void revoke_with_a_commit_held(Fleet& fleet);
  struct Rejoined {
    bool same_handle;
    bool in_time;  ///< The broker answered the commit long before the leader would give up its handle.
    std::string disorder;
  };
  /// The leader is revoked with a commit under way, and renews while the rebalance waits for one that is stopped.
  Rejoined join_behind_a_stopped_member(Fleet& fleet);
  /// The handle by which the candidate that had `handle` joins next.
  std::string next_to_join(const std::string& handle) const;
  /// The candidate that had this handle gets an assignment again.
  void await_join(const std::string& handle) const;
  void expect_refused_when_let_go();

  /// Throws what the test tells: the fault did not come about as it is meant. That shows nothing, and it is excused
  /// where the machine stood still for so long that a lease may have ended.
  [[noreturn]] void spoiled(const std::string& why) const;

  const Form form_;
  const Lateness lateness_;
  const Scratch scratch_;
  const std::string brokers_;
  std::string bootstrap_{brokers_}, group_;
  Revocation revocation_;
  std::optional<Relay> relay_;

 private:
  int groups_{};
  static bool extended(Fleet& fleet, pid_t leader, Clock::Duration by, Clock::Duration within);
  std::vector<KafkaWire::Member> members() const;
};

class KafkaFaultsOfEach : public KafkaFaults, public ::testing::WithParamInterface<Form> {
 protected:
  KafkaFaultsOfEach() : KafkaFaults(GetParam()) {}
};

}  // namespace tenure::test
