// SPDX-License-Identifier: Apache-2.0
// The metadata of our commits as text: who leads and for how long, and who asks the leader to step down.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/exclusive.hpp>

namespace tenure::kafka {

/// Of a single election. What is committed there proves that a read is current, and holds transactions.
inline constexpr int nonce_partition = 1;

/// A record of ours is shorter, whoever the candidate is.
inline constexpr std::size_t max_record_bytes = 1024;

/// A token is the offset of a commit.
inline constexpr auto max_token = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// The metadata of a commit of ours: "v1;A;6250;17;12;E;4;name=...". The fields are: the state, the lease in
/// milliseconds, the sequence number, the number of units of roles, the mode (E: exclusive; of Exclusive::no L once its
/// writer knows that it leads, and else C), the number of units before, and the text of who writes it. The first three
/// keep place and meaning in every version. If a later version wrote it, the others are empty here.
struct Record {
  bool released{};
  Clock::Duration lease{};
  std::uint64_t seq{};
  Incumbent who{};  ///< Its texts alone.
  int units{};      ///< 0: of a single election.
  Exclusive exclusive{Exclusive::yes};
  bool leads{};      ///< Of Exclusive::no alone: an earlier commit of this tenure was acknowledged.
  int grown_from{};  ///< Of unit 0 alone: the number of units before. 0: there was no other.
  friend bool operator==(const Record&, const Record&) = default;
};

/// REQUIRES: checked() accepted the candidate.
std::string encode(const Record& record);

/// Nothing if no version of ours wrote it, or if the lease is over an hour.
std::optional<Record> decode(std::string_view metadata);

/// A request to step down: "v1;by;why". The offset of its commit is the token to be given up.
std::string encode(const StepDown& request);
std::optional<StepDown> decode_step_down(Token offset, std::string_view metadata);

}  // namespace tenure::kafka
