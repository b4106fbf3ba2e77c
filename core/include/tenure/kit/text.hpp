// SPDX-License-Identifier: Apache-2.0
// Numbers and bytes as text, read strictly.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/export.hpp>

namespace tenure {

/// The whole text as a number, which fits. Nothing for anything else, such as a blank or a '+'.
template <class Number>
std::optional<Number> number(std::string_view text, int base = 10) {
  Number value{};
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

/// Two digits for each byte, in lower case.
TENURE_EXPORT std::string hex(std::string_view bytes);

/// 16 digits, in lower case.
TENURE_EXPORT std::string hex(std::uint64_t value);

/// '%' and two digits, in upper case.
TENURE_EXPORT std::string percent(char byte);

/// FNV-1a. It finds accidents, not forgers. `start` continues the sum of what stood before.
TENURE_EXPORT std::uint64_t fnv1a(std::string_view bytes, std::uint64_t start = 0xcbf29ce484222325);

}  // namespace tenure
