// SPDX-License-Identifier: Apache-2.0
// Any text is accepted as a URL or refused. A URL that is written again from its parts has the same parts. No message
// repeats text between the scheme and the last '@', where a user and a password may stand.
#include <stdexcept>
#include <string>

#include <tenure/kit/suggest.hpp>
#include <tenure/kit/url.hpp>

#include "fuzz.hpp"

namespace tenure::fuzz {
namespace {

constexpr std::string_view canary = "S3CR3T";  // no scheme: those are in lower case

std::string encoded(std::string_view text, bool path) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c == '/' && path))
      out += c;
    else
      (out += '%', out += digits[byte >> 4]) += digits[byte & 15];
  }
  return out;
}

std::string written(const Url& url, bool authority) {
  auto out = url.scheme + ":" + (authority ? "//" : "");
  if (!url.user.empty() || !url.password.empty())
    out += encoded(url.user, false) + ":" + encoded(url.password, false) + "@";
  for (std::size_t i = 0; i < url.hosts.size(); ++i) {
    const auto& [name, port] = url.hosts[i];
    out += (i ? "," : "") + (name.find(':') == name.npos ? name : "[" + name + "]");
    if (port) out += ":" + std::to_string(*port);
  }
  out += encoded(url.path, authority || !url.path.starts_with("//"));
  for (std::size_t i = 0; i < url.query.size(); ++i)
    out += (i ? "&" : "?") + encoded(url.query[i].first, false) + "=" + encoded(url.query[i].second, false);
  return out;
}

bool same(const Url& a, const Url& b) {
  return a.scheme == b.scheme && a.user == b.user && a.password == b.password && a.hosts == b.hosts &&
         a.path == b.path && a.query == b.query;
}

void check(const std::string& text, bool may_repeat_canary) {
  try {
    const auto url = parse_url(text);
    const bool authority = text.compare(url.scheme.size() + 1, 2, "//") == 0;
    if (const auto anew = written(url, authority); anew.size() <= max_url_bytes)
      require(same(parse_url(anew), url), "a URL written anew has the same parts");
    url.expect_no_more({});
  } catch (const std::invalid_argument& e) {
    require(printable_text(e.what()), "a refusal is printable");
    require(may_repeat_canary || std::string_view(e.what()).find(canary) == std::string_view::npos,
            "a refusal repeats no user-info");
  }
}

}  // namespace

}  // namespace tenure::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure::fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text, true);
  constexpr std::string_view names[] = {"group", "create_topic", "election", ""};
  tenure::nearest(text, names);

  // The canary at a place that the input chooses, after the scheme and before the last '@'.
  const auto from = text.find("://"), to = text.rfind('@');
  if (text.find(canary) != text.npos || from == text.npos || to == text.npos || to < from + 3) return 0;
  auto secret = text;
  secret.insert(from + 3 + data[size - 1] % (to - from - 2), canary);
  check(secret, false);
  return 0;
}
