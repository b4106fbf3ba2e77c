// SPDX-License-Identifier: Apache-2.0
// A URL: any text is accepted or refused. A URL that is written again from its parts has the same parts. No message
// repeats text between the scheme and the last '@', where a user and a password may stand. Text and names: what is
// written is read again, and what is fit for a log line is. A redacted text has no secret in it. Who leads: what was
// read is written again.
#include <algorithm>
#include <stdexcept>
#include <string>

#include <tenure/candidate.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/kit/suggest.hpp>
#include <tenure/kit/url.hpp>
#include <tenure/kit/who.hpp>

#include "fuzz.hpp"

namespace tenure::fuzz {
namespace {

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

void try_url(const std::string& text, bool may_repeat_canary) {
  try {
    const auto url = parse_url(text);
    const bool authority = text.compare(url.scheme.size() + 1, 2, "//") == 0;
    if (const auto anew = written(url, authority); anew.size() <= max_url_bytes)
      require(same(parse_url(anew), url), "a URL written anew has the same parts");
    url.expect_no_more();
  } catch (const std::invalid_argument& e) {
    require(printable_text(e.what()), "a refusal is printable");
    require(may_repeat_canary || !contains(e.what(), canary), "a refusal repeats no user-info");
  }
}

/// By itself, perhaps with escapes.
bool spells_canary(const std::string& text) {
  try {
    const auto url = parse_url(text);
    if (std::ranges::any_of(url.query, [](const auto& pair) { return contains(pair.first, canary); })) return true;
  } catch (const std::invalid_argument&) {  // of which nothing is repeated
  }
  return contains(text, canary);
}

void url(const std::string& text) {
  try_url(text, true);
  constexpr std::string_view names[] = {"group", "create_topic", "election", ""};
  nearest(text, names);
  require(!scheme_of(text) || lower(*scheme_of(text)) == *scheme_of(text), "a scheme is in lower case");

  // The canary at a place that the input chooses, after the scheme and before the last '@'.
  const auto from = text.find("://"), to = text.rfind('@');
  if (spells_canary(text) || from == text.npos || to == text.npos || to < from + 3) return;
  auto secret = text;
  secret.insert(from + 3 + static_cast<unsigned char>(text.back()) % (to - from - 2), canary);
  try_url(secret, false);
}

void text(const std::string& text) {
  require(percent_decoded(percent_encoded(text), text.size()) == text, "what is percent-encoded is decoded");
  if (const auto bytes = percent_decoded(text, text.size()))
    require(percent_decoded(percent_encoded(*bytes), bytes->size()) == bytes, "what was decoded is written again");
  require(utf8(utf8(text)) == utf8(text), "what is UTF-8 stays as it is");
  require(printable_text(printable(text, 100)) && printable(text, 100).size() <= 103, "what is printable fits a log");
  require(printable(printable(text, 100), 103) == printable(text, 100), "what is printable stays as it is");
  if (const auto value = number<std::uint64_t>(text))
    require(number<std::uint64_t>(std::to_string(*value)) == value, "a number");
}

void names(const std::string& text) {
  const bool fits = !contains(text, std::string_view("\0", 1));
  try {
    check_election(text);
    require(fits && !text.empty() && text.size() <= max_election_bytes, "a name is accepted that fits");
  } catch (const std::invalid_argument& e) {
    require(!fits || text.empty() || text.size() > max_election_bytes, "a name is refused that does not fit");
    require(printable_text(e.what()), "a refusal is printable");
  }
  Lines lines(text);
  const auto by = lines.next();
  if (const auto refused = refused_step_down(by, lines.rest()))
    require(printable_text(refused->message), "a refusal is printable");
}

/// A secret with a star may come about anew by the stars that stand for another one.
void redaction(const std::string& text) {
  Lines lines(text);
  const std::vector<std::string> secrets{lines.next(), lines.next(), lines.next()};
  const auto shown = Redactor(secrets)(lines.rest());
  for (const auto& secret : secrets)
    require(secret.empty() || contains(secret, "*") || !contains(shown, secret), "a redacted text has no secret");
}

/// What others wrote is read or not. What a candidate tells of itself is always read.
void who(const std::string& text) {
  if (const auto in = read_who(text)) {
    const auto anew = who_text(*in);
    require(anew.size() <= max_who_bytes && read_who(anew) == in, "what was read is written again");
    require(text.size() <= max_who_bytes && printable_text(text), "what was read fits a log");
  }
  Lines lines(text);
  Candidate self{lines.next(), {}};
  self.address = lines.rest();
  try {
    self = checked(self);
  } catch (const std::invalid_argument&) {
    return;
  }
  const auto in = read_who(who_text(self, "0f12") + ";later=1");
  require(in && in->name == self.name && in->address == self.address && in->incarnation == "0f12",
          "who writes is read");
}

}  // namespace

const std::vector<Target> targets{
    {"core_url", url}, {"core_text", text}, {"core_names", names}, {"core_redaction", redaction}, {"core_who", who}};

}  // namespace tenure::fuzz
