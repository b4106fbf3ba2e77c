// SPDX-License-Identifier: Apache-2.0
// The fault of each rule, and the run that must show two leaders.
#include "kafka_faults.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>
#include <stdexcept>

#include <tenure/kit/wait.hpp>

#include "eventually.hpp"
#include "nemesis.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

constexpr auto waits = 30s;

/// Of the candidates: brokers as tests/run starts them allow sessions that are as short. A lease of `fast` takes twice
/// as long, and each hand-over by a lease with it.
constexpr auto settings = "&min_session_ms=100";
const std::vector<std::string> timing{"--term-ms", "3000", "--renew-ms", "250", "--call-ms", "1000"};
constexpr Clock::Duration term = 3s, margin = 75ms;
constexpr Clock::Duration drain_limit = 500ms;  // of the library
constexpr Clock::Duration late = 800ms;         // below the call's limit, above the margin

void until(const std::function<bool()>& happened, const char* otherwise) {
  const auto seldom = [&] {  // it may ask the broker
    if (happened()) return true;
    wait_out({boot_clock(), boot_clock().now() + 10ms, {}});
    return false;
  };
  if (!eventually(seldom, waits)) throw std::runtime_error(otherwise);
}

std::string variable(const char* name) {
  const auto* value = std::getenv(name);
  return value ? value : "";
}

/// The member id's rank, its time and its process: the last is the same for all handles of a candidate.
std::string process_of(const std::string& client_id) { return client_id.substr(client_id.rfind('.')); }

/// Until the leader's next renewal is on its way to the broker.
void await_renewal(const Relay& relay, pid_t leader) {
  const auto before = relay.requests(leader, offset_commit);
  until([&] { return relay.requests(leader, offset_commit) > before; }, "the leader does not renew");
}

/// Who leads the election of partition 0; 0: nobody, or more than one.
pid_t leader_in(Fleet& fleet) {
  std::set<pid_t> leaders;
  for (const auto& e : fleet.events()) {
    if (!e.election.empty() && e.election != "0") continue;
    if (e.what == "lead") leaders.insert(e.pid);
    if (e.what == "follow") leaders.erase(e.pid);
  }
  return leaders.size() == 1 ? *leaders.begin() : 0;
}

Form with_timing(Form form) {
  form.settings += settings;
  form.arguments.insert(form.arguments.end(), timing.begin(), timing.end());
  return form;
}

}  // namespace

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

bool taken_after_assignment(const std::string& client_id, const std::vector<Step>& steps) {
  const auto joined = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.what == Step::joined; });
  return std::any_of(joined, steps.end(), [&](const Step& s) {
    return s.what == Step::committed && s.client_id == client_id && s.error == 0;
  });
}

const Form single = with_timing({"Single", "", {}, "rebalance of the group", "NO_DRAIN", "COMMITS_LATE"});
const Form roles = with_timing(
    {"Roles", "&units=4", {"--elections", "12"}, "has no assignment yet", "ROLES_NO_DRAIN", "ROLES_COMMIT_LATE"});

KafkaFaults::KafkaFaults(Form form) : form_(std::move(form)), brokers_(variable("TENURE_KAFKA_BROKERS")) {}

void KafkaFaults::SetUp() {
  if (brokers_.empty()) GTEST_SKIP() << "needs a real broker: set TENURE_KAFKA_BROKERS to host:port";
}

void KafkaFaults::relay() {
  bootstrap_ = relay_.emplace(std::stoi(brokers_.substr(brokers_.rfind(':') + 1)), Speaks::kafka).address();
}

void KafkaFaults::relay(Gate& gate) {
  bootstrap_ = relay_.emplace(std::stoi(brokers_.substr(brokers_.rfind(':') + 1)), gate).address();
}

Fleet KafkaFaults::fleet(const std::string& program) {
  revocation_.let_go();
  if (relay_) {
    relay_->mute(false);
    relay_->delay_answers({});
  }
  group_ = scratch_.path().filename().string() + "-" + std::to_string(++groups_);
  std::vector<std::string> arguments{
      "--store",
      "kafka://" + bootstrap_ + "/tenure-chaos-" + form_.name + "?create_topic=true&group=" + group_ + form_.settings,
      "--election",
      group_,
      "--note-ms",
      "20",
      "--sample-us",
      "2000"};
  arguments.insert(arguments.end(), form_.arguments.begin(), form_.arguments.end());
  return {program, arguments, scratch_ / group_};
}

void KafkaFaults::spoiled(const std::string& why) const {
  lateness_.starved(term);
  throw std::runtime_error(why);
}

pid_t KafkaFaults::begin(Fleet& fleet) const {
  fleet.start("first");
  const auto leads = is("lead");
  if (fleet.await(0, leads, waits) == Fleet::npos) throw std::runtime_error("nobody is elected");
  fleet.start("second");
  pid_t leader = 0;
  const auto at_rest = [&] {  // a slow broker may have cost the first one its handle, and its rank
    const auto in_group = members();
    leader = leader_in(fleet);
    return leader != 0 &&
           std::count_if(in_group.begin(), in_group.end(), [](const auto& m) { return !m.partitions.empty(); }) == 2;
  };
  until(at_rest, "the second candidate does not join");
  if (!extended(fleet, leader, 1ms, waits)) throw std::runtime_error("the leader's deadline does not move");
  return leader;
}

/// Whether the leader's deadline comes to be further away than it is now, by more than this.
bool KafkaFaults::extended(Fleet& fleet, pid_t leader, Clock::Duration by, Clock::Duration within) {
  const auto& events = fleet.events();
  const auto tells = [leader](const Event& e) { return e.pid == leader && (e.what == "lead" || e.what == "holds"); };
  const auto last = std::find_if(events.rbegin(), events.rend(), tells);
  const auto later = [&, least = last->until + by](const Event& e) { return tells(e) && e.until > least; };
  return fleet.await(0, later, within) != Fleet::npos;
}

void KafkaFaults::await_successor(Fleet& fleet, pid_t leader) const {
  // The threads that sample and that call hooks have both noted it: either may be the first.
  std::set<std::string> its;
  for (const auto& e : fleet.events()) {
    if (e.pid == leader && e.what == "lead") its.insert(e.election);
    if (e.pid == leader && e.what == "follow") its.erase(e.election);
  }
  if (its.empty()) spoiled("the leader leads no more");
  const auto leads = [&](const Event& e) { return e.what == "lead" && e.pid != leader && its.contains(e.election); };
  const auto at = fleet.await(0, leads, waits);
  if (at == Fleet::npos) throw std::runtime_error("nobody succeeds");
  const auto led = fleet.events()[at];
  const auto elected = [&led](const Event& e) {
    return e.what == "elected" && e.pid == led.pid && e.election == led.election && e.token == led.token;
  };
  if (fleet.await(0, elected, waits) == Fleet::npos) throw std::runtime_error("no hook tells of the successor");
}

void KafkaFaults::resume(Fleet& fleet, pid_t leader) {
  const auto from = fleet.events().size();
  fleet.resume(leader);
  const auto says = [&](const Event& e) {
    return e.pid == leader && (e.what == "lead" || e.what == "holds" || e.what == "follow");
  };
  if (fleet.await(from, says, waits) == Fleet::npos) throw std::runtime_error("the leader says nothing any more");
}

std::vector<KafkaWire::Member> KafkaFaults::members() const { return KafkaWire(brokers_).members_of(group_); }

KafkaWire::Member KafkaFaults::owner() const {
  std::optional<KafkaWire::Member> out;
  const auto found = [&] {
    for (const auto& member : members())
      if (std::find(member.partitions.begin(), member.partitions.end(), 0) != member.partitions.end()) out = member;
    return out.has_value();
  };
  until(found, "nobody owns partition 0");
  return *out;
}

void KafkaFaults::put_leader_out() const { KafkaWire(brokers_).leave(group_, owner().id); }

pid_t KafkaFaults::stop_and_put_out_the_leader(Fleet& fleet) const {
  const auto leader = begin(fleet);
  fleet.stop(leader);
  put_leader_out();
  await_successor(fleet, leader);
  return leader;
}

pid_t KafkaFaults::answer_the_leader_late(Fleet& fleet) {
  const auto leader = begin(fleet);
  relay_->delay_answers(late, leader);
  await_renewal(*relay_, leader);
  relay_->mute(true, leader);
  if (!extended(fleet, leader, margin, 2 * term)) return 0;
  fleet.stop(leader);
  put_leader_out();
  await_successor(fleet, leader);
  return leader;
}

void KafkaFaults::revoke_with_a_commit_held(Fleet& fleet) {
  revocation_.catch_next(owner().client_id);
  fleet.start("third");
  until([&] { return revocation_.caught(); }, "the leader is told of no rebalance, or does not renew");
}

std::string KafkaFaults::next_to_join(const std::string& handle) const {
  std::string out;
  const auto joins = [&] {
    for (const auto& step : revocation_.steps())
      if (step.what == Step::joins && process_of(step.client_id) == process_of(handle)) out = step.client_id;
    return !out.empty();
  };
  until(joins, "the leader does not join again");
  return out;
}

KafkaFaults::Rejoined KafkaFaults::join_behind_a_stopped_member(Fleet& fleet) {
  const auto leader = begin(fleet);
  const auto handle = owner().client_id;
  const auto second =
      *std::find_if(fleet.running().begin(), fleet.running().end(), [&](pid_t p) { return p != leader; });
  fleet.stop(second);
  revoke_with_a_commit_held(fleet);
  const auto from = fleet.events().size();
  revocation_.let_go();
  const bool same = next_to_join(handle) == handle;
  const auto waits_for_it = [&](const Event& e) {
    const auto steps = revocation_.steps();
    return (!steps.empty() && steps.back().what == Step::commits) ||
           (e.pid == leader && e.message.find(form_.joins) != e.message.npos);
  };
  if (fleet.await(from, waits_for_it, waits) == Fleet::npos) throw std::runtime_error("the leader does not renew");
  return {same, revocation_.drained_in() < drain_limit / 2, disorder(revocation_.steps())};
}

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
  EXPECT_NE(revocation_.late_answer(), 0) << "the broker took it " << TENURE_PROMISE;
}

}  // namespace tenure::test
