// SPDX-License-Identifier: Apache-2.0
// Reads the head of a request.
#pragma once
#include <algorithm>
#include <optional>
#include <string_view>

#include <tenure/kit/text.hpp>

namespace tenure::http {

inline constexpr std::string_view end_of_head = "\r\n\r\n";

/// What counts of a head.
struct Head {
  std::string_view method{}, target{}, protocol{}, host{}, authorization{};
};

inline bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    const char small = lower(c);
    return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

/// Of some line up to the next CRLF, which is taken away too.
inline std::string_view next_line(std::string_view& text) {
  const auto line = text.substr(0, text.find("\r\n"));
  text.remove_prefix(std::min(text.size(), line.size() + 2));
  return line;
}

inline std::string_view without_blanks_around(std::string_view text) {
  const auto first = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

/// Nothing unless its line and headers are as RFC 9112 wants them: a proxy before us may have understood what is not in
/// another way. REQUIRES: if end_of_head is in the text, the first one is its end.
inline std::optional<Head> head_of(std::string_view text) {
  if (!text.ends_with(end_of_head)) return std::nullopt;
  const auto line = next_line(text);
  const auto first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) return std::nullopt;
  Head out{line.substr(0, first), line.substr(first + 1, last - first - 1), line.substr(last + 1)};
  const auto visible = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!is_token(out.method) || out.target.empty() || !std::all_of(out.target.begin(), out.target.end(), visible))
    return std::nullopt;
  int hosts = 0, logins = 0;
  for (auto header = next_line(text); !header.empty(); header = next_line(text)) {
    const auto name = header.substr(0, header.find(':')), value = header.substr(name.size());
    const auto controls = [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; };
    if (value.empty() || !is_token(name) || std::any_of(value.begin(), value.end(), controls)) return std::nullopt;
    const auto says = without_blanks_around(value.substr(1));
    if (lower(name) == "host") out.host = says, ++hosts;
    if (lower(name) == "authorization") out.authorization = says, ++logins;
  }
  const bool named = hosts == 1 || (hosts == 0 && out.protocol == "HTTP/1.0");
  return named && logins <= 1 && (out.protocol == "HTTP/1.1" || out.protocol == "HTTP/1.0") ? std::optional(out)
                                                                                            : std::nullopt;
}

}  // namespace tenure::http
