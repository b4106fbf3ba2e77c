// SPDX-License-Identifier: Apache-2.0
// Reads and writes durations.
#include "durations.hpp"

#include <cstdint>
#include <stdexcept>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::tool {

Clock::Duration duration(std::string_view text) {
  static constexpr std::pair<std::string_view, Clock::Duration> units[] = {{"ms", std::chrono::milliseconds(1)},
                                                                           {"s", std::chrono::seconds(1)},
                                                                           {"m", std::chrono::minutes(1)},
                                                                           {"h", std::chrono::hours(1)}};
  const auto digits = text.find_first_not_of("0123456789");
  const auto count = number<std::uint32_t>(text.substr(0, digits));
  if (digits != text.npos && count && *count > 0)
    for (const auto& [unit, length] : units)
      if (text.substr(digits) == unit && *count <= std::chrono::hours(365 * 24) / length) return *count * length;
  throw std::invalid_argument("\"" + printable(text, 40) +
                              "\" is no duration; write a whole number above 0 with ms, s, m or h, for instance 500ms");
}

std::string seconds(Clock::Duration time) {
  const auto ms = in_ms(time);
  auto out = std::to_string(ms / 1000);
  if (const auto rest = ms % 1000; rest != 0) {
    auto digits = std::to_string(1000 + (rest < 0 ? -rest : rest)).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    out = (ms < 0 && ms > -1000 ? "-" : "") + out + "." + digits;
  }
  return out + " s";
}

std::string tenths(Clock::Duration time) {
  const auto tenth = in_ms(time) / 100;
  return std::to_string(tenth / 10) + "." + std::to_string(tenth % 10) + " s";
}

}  // namespace tenure::tool
