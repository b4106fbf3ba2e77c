// SPDX-License-Identifier: Apache-2.0
// What stands in the group: an offset (the token) and its metadata (who, for how long). Pure text in, text
// out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/clock.hpp>

namespace tenure::kafka {

inline constexpr std::size_t max_record_bytes = 512;

/// The metadata of a commit of ours: "v1;A;6250;incarnation;seq;name;address". The first three fields keep
/// place and meaning in every version; of a later one the rest is empty here.
struct Record {
  bool released{};
  Clock::Duration lease{};
  std::string incarnation;
  std::uint64_t seq{};
  std::string name, address;
  friend bool operator==(const Record&, const Record&) = default;
};

std::string encode(const Record& record);

/// Nothing for what no version of ours wrote, and for leases over an hour.
std::optional<Record> decode(std::string_view metadata);

/// A request to step down, metadata of a commit whose offset is the token to give up: "v1;by;why".
struct StepDown {
  std::string by, why;
  friend bool operator==(const StepDown&, const StepDown&) = default;
};

std::string encode(const StepDown& request);
std::optional<StepDown> decode_step_down(std::string_view metadata);

}  // namespace tenure::kafka
