// SPDX-License-Identifier: Apache-2.0
// The metadata of our commits as text: who leads and for how long, and who asks the leader to step down.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/clock.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/exclusive.hpp>

namespace tenure::kafka {

inline constexpr std::size_t max_record_bytes = 512;

/// A token is the offset of a commit.
inline constexpr auto max_token = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

/// The metadata of a commit of ours: "v1;A;6250;incarnation;seq;name;address". The record of a unit of roles has one
/// field more, the number of units: "v2;...;address;12". That of a role which several may lead has one more still: "L"
/// once its writer knows that it leads, and else "C": "v3;...;address;12;L". In a group that has grown, the record of
/// unit 0 says how many units there were before: "v4;...;address;12;4". The first three fields keep place and meaning
/// in every version. If a later version wrote it, the others are empty here.
struct Record {
  bool released{};
  Clock::Duration lease{};
  std::string incarnation;
  std::uint64_t seq{};
  std::string name, address;
  int units{};  ///< 0: of a single election.
  Exclusive exclusive{Exclusive::yes};
  bool leads{};      ///< Of Exclusive::no alone: an earlier commit of this tenure was acknowledged.
  int grown_from{};  ///< Of unit 0 alone: the number of units before. 0: there was no other.
  friend bool operator==(const Record&, const Record&) = default;
};

std::string encode(const Record& record);

/// What is wrong with the name and address, if such a record may grow beyond max_record_bytes while its writer lives:
/// everybody else would take it for a foreign commit.
std::optional<std::string> too_long(Record record);

/// Nothing if no version of ours wrote it, or if the lease is over an hour.
std::optional<Record> decode(std::string_view metadata);

/// A request to step down: "v1;by;why". The offset of its commit is the token to be given up.
std::string encode(const StepDown& request);
std::optional<StepDown> decode_step_down(Token offset, std::string_view metadata);

}  // namespace tenure::kafka
