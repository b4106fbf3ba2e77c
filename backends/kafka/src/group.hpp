// SPDX-License-Identifier: Apache-2.0
// What a group's coordinator keeps and says, as plain values: no librdkafka, and nothing of elections.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <tenure/error.hpp>

namespace tenure::kafka {

/// In place of a handle's number: whichever is open. No handle has this number.
inline constexpr std::uint64_t any_handle = 0;

/// A commit as the coordinator keeps it, whoever made it.
struct Commit {
  std::int64_t offset{};
  std::string metadata;
  friend bool operator==(const Commit&, const Commit&) = default;
};

/// What the coordinator said to a commit.
enum class Outcome {
  accepted,
  fenced,         ///< We are not of the present generation, or no member any more.
  unknown_topic,  ///< There is no such partition.
  failed,         ///< Anything else. It may be in the log all the same.
};

/// Whether an error is a refusal that only a user can mend: a right or a setting is missing. Another process may have
/// it.
inline bool refusal(const Error& error) {
  return error.fault == Fault::forbidden || error.fault == Fault::misconfigured;
}

struct PartitionOwner {
  int partition{};
  std::string client_id, host;
};

/// Who owns what of the topic, as the coordinator tells it to anybody.
struct Owners {
  std::vector<PartitionOwner> partitions;
  bool converted{};  ///< The group is of the other protocol now, and tells nothing in this one.
  bool stable{};     ///< Else it is in a rebalance, and tells of nobody what it has.
};

}  // namespace tenure::kafka
