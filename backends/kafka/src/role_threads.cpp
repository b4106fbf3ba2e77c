// SPDX-License-Identifier: Apache-2.0
// Carries events of the handles to a machine of roles, and its effects to them.
#include "role_threads.hpp"

#include <algorithm>
#include <utility>

#include "create_topic.hpp"
#include "non_exclusive_roles.hpp"
#include "roles.hpp"
#include "unit_numbers.hpp"

namespace tenure::kafka {
namespace {

bool shows_no_record(const Result<role_fact::Offsets>& read) {
  return read && std::none_of(read->begin(), read->end(), [](const auto& commit) { return commit.has_value(); });
}

}  // namespace

RoleThreads::RoleThreads(Options options, int units, Exclusive exclusive, std::shared_ptr<ClosableLog> log,
                         std::unique_ptr<Reader> observer)
    : MachineThreads(std::move(options), std::move(log), std::move(observer)), units_(units), exclusive_(exclusive) {}

std::shared_ptr<RoleThreads> RoleThreads::make(Options options, int units, Exclusive exclusive,
                                               std::shared_ptr<ClosableLog> log, std::unique_ptr<Reader> observer) {
  std::shared_ptr<RoleThreads> it(
      new RoleThreads(std::move(options), units, exclusive, std::move(log), std::move(observer)));
  it->start("tenure-roles", "tenure-r-read");
  return it;
}

void RoleThreads::begin(const Timing& timing, const Pace& pace) {
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

std::optional<RoleAnswer> RoleThreads::call(RoleCall what, const Limit& limit) {
  const auto called = [&what](std::uint64_t id, Clock::Time by) { return role_fact::Called{id, std::move(what), by}; };
  const auto abandoned = [](std::uint64_t id) { return role_fact::Abandoned{id}; };
  return mailbox_.call(limit, called, abandoned);
}

// ---- the serving thread ----

void RoleThreads::carry_out(effect::Open& asked) { open(asked, partitions_of(roles_->units())); }

/// By the member's own handle: the read that decides a claim comes by the connection that carries its commits.
void RoleThreads::carry_out(role_effect::ReadMember& read) {
  reading_.add_first([this, read, client = member_.client()] {
    post(role_fact::MemberRead{read.id, tried([&] { return client->committed(read.partitions, read_limit); })});
  });
}

void RoleThreads::carry_out(role_effect::Observe& asked) {
  reading_.add([this, asked] {
    auto seen = observe(asked);
    observer_->judge(bool(seen.result));
    seen.new_group =
        asked.check && asked.create && shows_no_record(seen.result) && observer_->client().no_such_group(read_limit);
    post(std::move(seen));
  });
}

// ---- the reading thread ----

role_fact::Observed RoleThreads::observe(const role_effect::Observe& asked) {
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
Result<int> RoleThreads::topic(const role_effect::Observe& asked) {
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

}  // namespace tenure::kafka
