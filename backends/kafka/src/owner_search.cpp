// SPDX-License-Identifier: Apache-2.0
// Decides when the coordinator is asked, and what its answer means.
#include "owner_search.hpp"

#include <algorithm>

#include <tenure/kit/logging.hpp>

namespace tenure::kafka {
namespace {

bool has_owner(const Owners& owners, int partition) {
  return std::any_of(owners.partitions.begin(), owners.partitions.end(),
                     [partition](const PartitionOwner& owner) { return owner.partition == partition; });
}

}  // namespace

std::optional<Clock::Time> OwnerSearch::ask_at(Clock::Time since, Clock::Duration lease) {
  if (!since_) since_ = since;
  if (asking_ || told_) return std::nullopt;
  return *since_ + lease;
}

std::optional<std::string> OwnerSearch::answered(const Result<Owners>& found, const std::vector<int>& unled) {
  asking_ = false;
  if (!found || unled.empty()) return std::nullopt;
  const bool single = form_ == Form::single;
  const std::string trouble = single ? "nobody can lead or renew: " : "some roles have no leader: ";
  if (found->converted) {
    told_ = true;
    return trouble +
           "a consumer of the protocol group.protocol=consumer is in this group and has converted it. Stop it, and set "
           "the brokers' group.consumer.migration.policy=disabled";
  }
  for (const auto& owner : found->partitions) {
    if (ours(owner.client_id) || std::find(unled.begin(), unled.end(), owner.partition) == unled.end()) continue;
    told_ = named_owner_ = true;
    return trouble + "partition " + std::to_string(owner.partition) + " is owned by \"" +
           printable(owner.client_id, 80) + "\" at " + printable(owner.host, 80) +
           (single
                ? ", which is no candidate. It leads too, if it takes who owns partition 0 for the leader, as goNELI "
                  "does. Stop it, or give the election a group of its own"
                : ", which is no process of these roles. It leads too, if it takes an owner for a leader, as "
                  "goNELI does. Stop it, or give the roles a group of their own");
  }
  for (const int partition : unled) {
    if (!found->stable || has_owner(*found, partition)) continue;
    told_ = true;
    return trouble + "partition " + std::to_string(partition) +
           " is assigned to no member of the group. Either the topic has too few partitions, or the member that deals "
           "them out does not see it. Add the partitions, and give every member READ on the topic";
  }
  return std::nullopt;
}

bool OwnerSearch::ours(const std::string& client_id) const {
  const bool of_roles = client_id.starts_with(role_prefix);
  if (form_ == Form::roles) return of_roles;
  return !of_roles && client_id.starts_with(candidate_prefix);
}

}  // namespace tenure::kafka
