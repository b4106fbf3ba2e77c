// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: numbers and bytes as text.
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/export.hpp>
#include <tenure/kit/same_build.hpp>

namespace tenure {

/// The number that the whole text is, if it fits. Nothing for any other text, for instance with a blank or a '+'.
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

/// The letters of ASCII in lower case, whatever the locale.
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
TENURE_EXPORT std::string lower(std::string_view text);  ///< Does so with each letter.

/// With a '_' in place of each blank: "timed out" as timed_out, for what takes no blank.
TENURE_EXPORT std::string underscored(std::string_view words);

/// '%' and two digits, in upper case.
TENURE_EXPORT std::string percent(char byte);

/// The text in ASCII that needs no quoting: letters, digits and -._~:/@[] as they are, all else as percent().
TENURE_EXPORT std::string percent_encoded(std::string_view text);

/// The reverse of percent_encoded(). Empty if that cannot have made this text, or if more than `most` bytes come out.
TENURE_EXPORT std::optional<std::string> percent_decoded(std::string_view text, std::size_t most);

/// The text with U+FFFD in place of each byte, or begin of a character, that is not UTF-8.
TENURE_EXPORT std::string utf8(std::string_view text);

/// The FNV-1a sum of the bytes. It finds accidents, not forgers. `start` is the sum of the bytes before, if there
/// are any.
TENURE_EXPORT std::uint64_t fnv1a(std::string_view bytes, std::uint64_t start = 0xcbf29ce484222325);

}  // namespace tenure
