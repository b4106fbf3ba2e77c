// SPDX-License-Identifier: Apache-2.0
// The store behind Elections, and open_group().
#include "role_store.hpp"

#include <utility>

#include "settings.hpp"

namespace tenure::kafka {

void RoleStore::joined(const std::string& election) {
  if (!threads_.forked()) threads_->post(role_fact::Joined{election});
}

void RoleStore::left(const std::string& election) {
  if (!threads_.forked()) threads_->post(role_fact::Quit{election});
}

Result<Look> RoleStore::look(const std::string& cursor, const Limit& limit) {
  return ask<Look>(role_call::See{cursor}, limit);
}

Result<Committed> RoleStore::open(SessionId id, const Session& session, const Limit& limit) {
  return ask<Committed>(role_call::Open{id, session}, limit);
}

Result<Committed> RoleStore::commit(const tenure::Commit& commit, const Limit& limit) {
  return ask<Committed>(role_call::Write{commit}, limit);
}

Result<bool> RoleStore::end(SessionId id, const std::vector<std::uint64_t>&, std::uint64_t, const Limit& limit) {
  return ask<bool>(role_call::End{id}, limit);
}

/// Nobody keeps ended sessions here.
Result<int> RoleStore::sweep(const Limit&) { return 0; }

std::optional<Error> RoleStore::request_step_down(const std::string&, const StepDown&, const Limit&) {
  return Error{Fault::misconfigured,
               "kafka: requests to step down are not offered for roles; stop the process that leads, or let it leave() "
               "the election"};
}

std::optional<Release> RoleStore::await_change(const std::string& cursor, const Limit& limit) {
  threads_.call(role_call::Await{cursor}, limit);
  return std::nullopt;
}

template <class T>
Result<T> RoleStore::ask(RoleCall what, const Limit& limit) {
  auto answer = threads_.call(std::move(what), limit);
  if (auto* result = answer ? std::get_if<Result<T>>(&*answer) : nullptr) return std::move(*result);
  // An error of what the call waited for.
  if (auto* other = answer ? std::get_if<Result<Committed>>(&*answer) : nullptr; other && !*other)
    return std::move(*other).error();
  return threads_.unanswered(limit);
}

// ---- opening ----

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
