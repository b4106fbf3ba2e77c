// SPDX-License-Identifier: Apache-2.0
// Hexadecimal, percent and UTF-8 encoding, and a hash of bytes.
#include <tenure/kit/text.hpp>

#include <algorithm>

namespace tenure {
namespace {

constexpr char digits[] = "0123456789abcdef";

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~:/@[]").find(c) != std::string_view::npos;
}

/// How many bytes lead the text that are a character of UTF-8, or can begin one. It says which of both they are.
struct Leading {
  std::size_t bytes;
  bool whole;
};

Leading leading_character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto first = byte(0);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xc2 ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  // A character has no longer form than it needs, is no surrogate, and is not above U+10FFFF.
  auto least = first == 0xe0 ? 0xa0u : first == 0xf0 ? 0x90u : 0x80u;
  auto most = first == 0xed ? 0x9fu : first == 0xf4 ? 0x8fu : 0xbfu;
  std::size_t good = 1;
  for (; good < size && byte(good) >= least && byte(good) <= most; ++good) least = 0x80, most = 0xbf;
  return {good, good == size};
}

}  // namespace

std::string hex(std::string_view bytes) {
  std::string out;
  for (const auto c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string hex(std::uint64_t value) {
  std::string out(16, '0');
  for (auto digit = out.rbegin(); digit != out.rend(); ++digit, value >>= 4) *digit = digits[value & 15];
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = lower(c);
  return out;
}

std::string underscored(std::string_view words) {
  std::string out(words);
  std::ranges::replace(out, ' ', '_');
  return out;
}

std::string percent(char byte) {
  static constexpr char upper[] = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  return {'%', upper[value >> 4], upper[value & 15]};
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) out += plain(c) ? std::string(1, c) : percent(c);
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!plain(text[i])) return std::nullopt;
      out += text[i];
      continue;
    }
    const auto byte = i + 2 < text.size() ? number<unsigned char>(text.substr(i + 1, 2), 16) : std::nullopt;
    if (!byte) return std::nullopt;
    out += static_cast<char>(*byte);
    i += 2;
  }
  if (out.size() > most) return std::nullopt;
  return out;
}

std::string utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [bytes, whole] = leading_character(text);
    out += whole ? text.substr(0, bytes) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(bytes);
  }
  return out;
}

std::uint64_t fnv1a(std::string_view bytes, std::uint64_t start) {
  for (const char c : bytes) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return start;
}

}  // namespace tenure
