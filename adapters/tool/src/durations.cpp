// SPDX-License-Identifier: Apache-2.0
// Reads and writes durations.
#include "durations.hpp"

#include <cstdint>
#include <iomanip>
#include <sstream>
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
  std::ostringstream out;
  out << std::setprecision(15)
      << std::chrono::duration<double>(std::chrono::duration_cast<std::chrono::milliseconds>(time)).count();
  return out.str() + " s";
}

}  // namespace tenure::tool
