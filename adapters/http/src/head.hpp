// SPDX-License-Identifier: Apache-2.0
// Judges whether the head of a request is one.
#pragma once
#include <algorithm>
#include <string_view>

#include <tenure/kit/text.hpp>

namespace tenure::http {

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

/// Whether a request's line and headers are as RFC 9112 wants them. httplib passes over what it does not understand,
/// and a proxy before us may have understood it in another way.
inline bool well_formed(std::string_view head) {
  if (!head.ends_with("\r\n\r\n")) return false;
  const auto line = next_line(head);
  const auto first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last || !is_token(line.substr(0, first))) return false;
  const auto target = line.substr(first + 1, last - first - 1), protocol = line.substr(last + 1);
  if (target.empty() || !std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c < '\x7f'; }))
    return false;
  int hosts = 0;
  for (auto header = next_line(head); !header.empty(); header = next_line(head)) {
    const auto name = header.substr(0, header.find(':')), value = header.substr(name.size());
    const auto controls = [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; };
    if (value.empty() || !is_token(name) || std::any_of(value.begin(), value.end(), controls)) return false;
    hosts += lower(name) == "host";
  }
  return head.empty() && (protocol == "HTTP/1.1" ? hosts == 1 : protocol == "HTTP/1.0" && hosts <= 1);
}

}  // namespace tenure::http
