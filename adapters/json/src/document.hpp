// SPDX-License-Identifier: Apache-2.0
// A decoded document. All is checked that needs no store.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/json_group.hpp>

namespace tenure {

/// A preset of the store, and the values that replace parts of it.
struct TimingSpec {
  Timing Presets::*preset{&Presets::balanced};
  std::map<std::string, Clock::Duration, std::less<>> durations;  ///< By the names in timing_fields.
  std::optional<double> clock_rate_error;

  Timing of(const Presets& presets) const;
};

struct DurationField {
  std::string_view name;
  Clock::Duration Timing::*member;
};
inline constexpr DurationField duration_fields[] = {{"term", &Timing::term},   {"renew", &Timing::renew},
                                                    {"retry", &Timing::retry}, {"margin", &Timing::margin},
                                                    {"call", &Timing::call},   {"drain", &Timing::drain}};

/// What a document is about: one election, or a group of many.
enum class Form { one, many };

struct Document {
  Opening opening;  ///< Its `election` is the group's name if there are many.
  TimingSpec timing;
  std::vector<std::string> elections;  ///< Of a group; so are the next two.
  Spread spread;
  int hook_threads{ConfiguredGroup{}.hook_threads};
  std::vector<std::string> secrets;
};

/// Throws InvalidDocument.
Document decode(std::string_view text, Form form);

}  // namespace tenure
