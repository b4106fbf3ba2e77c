// SPDX-License-Identifier: Apache-2.0
// The store behind Elections with its threads, and open_group().
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kafka_group.hpp>

#include "create_topic.hpp"
#include "machine_threads.hpp"
#include "non_exclusive_roles.hpp"
#include "role_machine.hpp"
#include "roles.hpp"
#include "settings.hpp"
#include "unit.hpp"

namespace tenure::kafka {
namespace {

bool shows_no_record(const Result<role_fact::Offsets>& read) {
  return read && std::none_of(read->begin(), read->end(), [](const auto& commit) { return commit.has_value(); });
}

/// The threads round Roles or NonExclusiveRoles.
class RoleThreads final : public MachineThreads<RoleThreads, RoleFact, RoleAnswer> {
 public:
  /// Throws std::system_error if threads or descriptors have run out.
  static std::shared_ptr<RoleThreads> make(Options options, int units, Exclusive exclusive,
                                           std::shared_ptr<ClosableLog> log, std::unique_ptr<Reader> observer) {
    std::shared_ptr<RoleThreads> it(
        new RoleThreads(std::move(options), units, exclusive, std::move(log), std::move(observer)));
    it->start("tenure-roles", "tenure-r-read");
    return it;
  }

  Result<Pace> pace_of_its(const Timing& timing) const { return group_pace_of(timing, options_, exclusive_); }

  /// REQUIRES: called once, before the first call().
  void begin(const Timing& timing, const Pace& pace) {
    pace_ = pace;
    const RoleConfig config{.units = units_,
                            .lease = std::chrono::ceil<std::chrono::milliseconds>(timing.term),
                            .margin = timing.margin,
                            .session = pace_.session,
                            .observe_every = pace_.observe_every,
                            .incarnation = incarnation_,
                            .first_claim_waits = options_.first_claim == FirstClaim::wait};
    if (exclusive_ == Exclusive::no)
      roles_ = std::make_unique<NonExclusiveRoles>(config);
    else
      roles_ = std::make_unique<Roles>(config);
    mailbox_.open();
  }

  /// One call at a time. Its answer, or nothing if the limit passed first.
  std::optional<RoleAnswer> call(RoleCall what, const Limit& limit) {
    const auto called = [&what](std::uint64_t id, Clock::Time by) {
      return role_fact::Called{id, std::move(what), by};
    };
    const auto abandoned = [](std::uint64_t id) { return role_fact::Abandoned{id}; };
    return mailbox_.call(limit, called, abandoned);
  }

  Exclusive exclusive() const { return exclusive_; }

 private:
  friend MachineThreads;
  using MachineThreads::carry_out;

  RoleThreads(Options options, int units, Exclusive exclusive, std::shared_ptr<ClosableLog> log,
              std::unique_ptr<Reader> observer)
      : MachineThreads(std::move(options), std::move(log), std::move(observer)), units_(units), exclusive_(exclusive) {}

  // The serving thread
  RoleMachine& machine() { return *roles_; }
  static RoleFact assigned(std::uint64_t handle, const Client::Event& event, const Client::Standing& its) {
    return role_fact::Assigned{handle, event.partitions, its.generation, its.member};
  }
  void handled() {}
  bool waits_to_leave() const { return exclusive_ == Exclusive::yes; }  ///< By rule S6 it would be alive for too long.
  void carry_out(effect::Open& asked) { open(asked, partitions_of(roles_->units())); }

  void carry_out(role_effect::SendCommit& asked) { send(asked.id, asked.commits); }
  /// By the member's own handle: the read that decides a claim comes by the connection that carries its commits.
  void carry_out(role_effect::ReadMember& read) {
    reading_.add(
        [this, read, client = member_.client()] {
          post(role_fact::MemberRead{read.id, tried([&] { return client->committed(read.partitions, read_limit); })});
        },
        true);
  }

  void carry_out(role_effect::Observe& asked) {
    reading_.add([this, asked] {
      auto seen = observe(asked);
      observer_->judge(bool(seen.result));
      seen.new_group =
          asked.check && asked.create && shows_no_record(seen.result) && observer_->client().no_such_group(read_limit);
      post(std::move(seen));
    });
  }

  void carry_out(role_effect::Reply& reply) { mailbox_.answer(reply.id, std::move(reply.answer)); }

  // The reading thread
  role_fact::Observed observe(const role_effect::Observe& asked) {
    role_fact::Observed out{Result<role_fact::Offsets>(role_fact::Offsets())};
    out.result = tried([&]() -> Result<role_fact::Offsets> {
      if (asked.topic) {
        auto partitions = topic(asked);
        if (!partitions && asked.check) return std::move(partitions).error();
        if (partitions && *partitions == 0) return role_fact::Offsets(static_cast<std::size_t>(asked.partitions));
        if (partitions) out.topic = *partitions;
      }
      auto& client = observer_->client();
      return client.with_reason(client.committed(asked.partitions, read_limit));
    });
    return out;
  }

  /// A topic that has more room than we need may have grown while we did not run. We need what the group has by now: it
  /// may have grown since we began.
  Result<int> topic(const role_effect::Observe& asked) {
    const int needed = asked.partitions;
    auto options = options_;
    if (options.create_topic) options.create_topic->partitions = needed;
    auto found = topic_partitions(options, asked.create, observer_->client(), reading_.waker(), *log_);
    if (!found || !asked.check || *found == 0 || *found == needed ||
        (exclusive_ == Exclusive::yes && is_multiple(*found, needed)))
      return found;
    return Error{Fault::misconfigured, "Topic \"" + options_.topic + "\" has " + std::to_string(*found) +
                                           " partitions, and the roles need " + std::to_string(needed) +
                                           ": three for each unit. Give `units` so that it fits, the same in all "
                                           "processes, or use another topic"};
  }

  const int units_;  ///< At first.
  const Exclusive exclusive_;
  std::unique_ptr<RoleMachine> roles_;  ///< the serving thread's, from begin() on
};

/// A group of elections in one consumer group. Each method but request_step_down() is one call to the serving thread.
/// It knows one call at a time: nobody may call while another thread is in await_change().
class RoleStore final : public GroupStore {
 public:
  explicit RoleStore(const std::shared_ptr<RoleThreads>& threads)
      : threads_(threads, group_presets(threads->exclusive()).balanced) {}

  std::string group() const override { return threads_->options().group; }
  Exclusive exclusive() const override { return threads_->exclusive(); }
  bool allots() const override { return true; }
  void joined(const std::string& election) override {
    if (!threads_.forked()) threads_->post(role_fact::Joined{election});
  }

  void left(const std::string& election) override {
    if (!threads_.forked()) threads_->post(role_fact::Quit{election});
  }

  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    return ask<Look>(role_call::See{cursor}, limit);
  }

  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    return ask<Committed>(role_call::Open{id, session}, limit);
  }

  Result<Committed> commit(const tenure::Commit& commit, const Limit& limit) override {
    return ask<Committed>(role_call::Write{commit}, limit);
  }

  Result<bool> end(SessionId id, const std::vector<std::uint64_t>&, std::uint64_t, const Limit& limit) override {
    return ask<bool>(role_call::End{id}, limit);
  }

  /// Nobody keeps ended sessions here.
  Result<int> sweep(const Limit&) override { return 0; }

  std::optional<Error> request_step_down(const std::string&, const StepDown&, const Limit&) override {
    return Error{Fault::misconfigured,
                 "kafka: requests to step down are not offered for roles; stop the process that leads, or let it "
                 "leave() the election"};
  }

  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    threads_.call(role_call::Await{cursor}, limit);
    return std::nullopt;
  }

  std::optional<Error> accepts(const Timing& timing) override { return threads_.accepts(timing); }

 private:
  template <class T>
  Result<T> ask(RoleCall what, const Limit& limit) {
    auto answer = threads_.call(std::move(what), limit);
    if (auto* result = answer ? std::get_if<Result<T>>(&*answer) : nullptr) return std::move(*result);
    // An error of what the call waited for.
    if (auto* other = answer ? std::get_if<Result<Committed>>(&*answer) : nullptr; other && !*other)
      return std::move(*other).error();
    return threads_.unanswered(limit);
  }

  ThreadsInUse<RoleThreads> threads_;
};

}  // namespace

std::shared_ptr<GroupStore> open_group(Options given, int units, Exclusive exclusive) {
  if (units < 1 || units > max_units)
    refuse("units is " + std::to_string(units) + "; 1 to " + std::to_string(max_units) + " are allowed");
  if (given.remote_step_down) refuse("remote_step_down is not offered for roles");
  if (given.topic.empty() && !given.group.empty()) given.topic = given.group + ".roles";
  if (given.create_topic) given.create_topic->partitions = partitions_of(units);
  // So that the new partitions of a topic that grows are dealt out before their units are needed (R15).
  const auto refresh = std::chrono::ceil<std::chrono::milliseconds>(role_topic_pause).count();
  given.properties.try_emplace("topic.metadata.refresh.interval.ms", std::to_string(refresh));
  auto [options, log, observer] = prepared(std::move(given), partitions_of(units));
  return std::make_shared<RoleStore>(
      RoleThreads::make(std::move(options), units, exclusive, std::move(log), std::move(observer)));
}

}  // namespace tenure::kafka
