// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes base64. libcurl has this too, but exports none of it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tenure::web {

inline constexpr std::string_view digits_of_base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Each three bytes are four digits. Bytes that are missing at the end become '='.
inline std::string base64(std::string_view bytes) {
  std::string out;
  for (; !bytes.empty(); bytes.remove_prefix(bytes.size() < 3 ? bytes.size() : 3)) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) out += i <= bytes.size() ? digits_of_base64[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

/// Nothing of a text that base64() does not make.
inline std::optional<std::string> from_base64(std::string_view text) {
  std::string out;
  for (auto left = text; !left.empty(); left.remove_prefix(4)) {
    if (left.size() < 4) return std::nullopt;
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto digit = digits_of_base64.find(left[i]);
      bits = bits << 6 | static_cast<std::uint32_t>(digit == digits_of_base64.npos ? 0 : digit);
    }
    for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 255);
  }
  if (text.ends_with('=')) out.pop_back();
  if (text.ends_with("==")) out.pop_back();
  return base64(out) == text ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace tenure::web
