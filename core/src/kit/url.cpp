// SPDX-License-Identifier: Apache-2.0
// Parses the URL of a store.
#include <tenure/kit/url.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <stdexcept>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/suggest.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/log.hpp>

namespace tenure {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument("URL: " + what); }

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool unreserved(char c) { return letter(c) || digit(c) || std::string_view("-._~").find(c) != std::string_view::npos; }

bool of_scheme(char c) { return letter(c) || digit(c) || c == '+' || c == '-' || c == '.'; }

/// Its messages name the position of a mistake and nothing else: see parse_url().
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Url parse() {
    check_bytes();
    Url url;
    url.scheme = scheme();
    const bool has_authority = rest().starts_with("//");
    if (has_authority) at_ += 2;
    // Before the rest of a password is taken for hosts: it may have a '/' or a '?' that ends them.
    const auto authority_end = has_authority ? text_.find_first_of("/?", at_) : at_;
    if (const auto stray = text_.find('@', std::min(authority_end, text_.size())); stray != text_.npos)
      refuse_at(stray, "an '@' that is not in its place: write %40, and in a password %2F for '/', %3F for '?'");
    if (has_authority) authority(url);
    const auto end = std::min(text_.find('?', at_), text_.size());
    url.path = decoded(end, "/:!$&'()*+,;=");
    if (at_ < text_.size()) query(url);
    return url;
  }

 private:
  [[noreturn]] void refuse_at(std::size_t at, const std::string& what) const {
    refuse("at byte " + std::to_string(at + 1) + " " + what);
  }

  std::string_view rest() const { return text_.substr(at_); }

  void check_bytes() const {
    if (text_.empty()) refuse("it is empty; give for instance file:///directory");
    if (text_.size() > max_url_bytes)
      refuse("it has " + std::to_string(text_.size()) + " bytes; at most " + std::to_string(max_url_bytes) +
             " are allowed");
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text_[i]);
      if (byte <= 0x20 || byte >= 0x7f)
        refuse_at(i, "a blank, a control character or a byte beyond ASCII: write it as % and two hexadecimal digits");
      if (text_[i] == '#') refuse_at(i, "a '#': a store has no fragments, write %23 if it belongs to a name");
    }
  }

  std::string scheme() {
    const auto end = text_.find(':');
    if (end == text_.npos) refuse("the scheme is missing; give for instance file:///directory");
    std::string out;
    for (; at_ < end; ++at_) {
      const char c = text_[at_];
      if (!of_scheme(c) || (at_ == 0 && !letter(c)))
        refuse_at(at_, "an invalid character in the scheme; give for instance file:///directory");
      out += lower(c);
    }
    if (out.empty()) refuse_at(0, "an empty scheme; give for instance file:///directory");
    ++at_;
    return out;
  }

  void authority(Url& url) {
    const auto end = std::min(text_.find_first_of("/?", at_), text_.size());
    if (const auto sign = text_.substr(0, end).find('@', at_); sign != text_.npos) {
      const auto colon = std::min(text_.find(':', at_), sign);
      url.user = decoded(colon, "!$&'()*+,;=");
      if (colon < sign) {
        ++at_;
        url.password = decoded(sign, ":!$&'()*+,;=");
      }
      at_ = sign + 1;
      if (text_.substr(0, end).find('@', at_) != text_.npos)
        refuse_at(sign, "one of several '@': write %40 in a user or a password");
    }
    while (at_ < end) {
      url.hosts.push_back(host(std::min(text_.find(',', at_), end)));
      if (at_ < end && ++at_ == end) refuse_at(at_ - 1, "a ',' that no further host follows");
    }
  }

  Url::Host host(std::size_t end) {
    Url::Host out;
    const auto part = text_.substr(at_, end - at_);
    const auto name_end = part.starts_with('[') ? bracketed(part, out.name) : named(part, out.name);
    if (name_end < part.size()) out.port = port(at_ + name_end, part.substr(name_end));
    at_ = end;
    return out;
  }

  /// Both return where the name ends.
  std::size_t bracketed(std::string_view part, std::string& name) const {
    const auto end = part.find(']');
    if (end == part.npos) refuse_at(at_, "a '[' without a ']': an IPv6 address is written [::1]");
    name = part.substr(1, end - 1);
    in6_addr address{};
    if (inet_pton(AF_INET6, name.c_str(), &address) != 1)
      refuse_at(at_, "brackets round what is no IPv6 address: write for instance [::1]");
    return end + 1;
  }

  std::size_t named(std::string_view part, std::string& name) const {
    const auto end = std::min(part.find(':'), part.size());
    name = part.substr(0, end);
    if (name.empty()) refuse_at(at_, "a host is missing");
    for (std::size_t i = 0; i < end; ++i)
      if (!unreserved(name[i]))
        refuse_at(at_ + i, "a character that no host has: letters, digits, '-', '.' and '_' are allowed");
    return end;
  }

  std::uint16_t port(std::size_t at, std::string_view part) const {
    const auto value = part.starts_with(':') ? number<std::uint16_t>(part.substr(1)) : std::nullopt;
    if (!value || *value == 0)
      refuse_at(
          at,
          "no port; a ':' after a host is followed by 1 to 65535. In a password, write %3A for ':' and %40 for '@'");
    return *value;
  }

  void query(Url& url) {
    do {
      ++at_;
      const auto end = std::min(text_.find('&', at_), text_.size());
      const auto equals = text_.find('=', at_);
      if (equals >= end || equals == at_) refuse_at(at_, "key=value is expected here");
      auto key = decoded(equals, "/:!$'()*+,;?");
      ++at_;
      auto value = decoded(end, "/:!$'()*+,;=?");
      for (const auto& [known, _] : url.query)
        if (known == key) refuse("the key \"" + printable(key, 80) + "\" stands twice in the query; give it once");
      url.query.emplace_back(std::move(key), std::move(value));
    } while (at_ < text_.size());
  }

  /// Up to `end`; `allowed`: what may stand unencoded beside letters, digits and -._~
  std::string decoded(std::size_t end, std::string_view allowed) {
    std::string out;
    while (at_ < end) {
      const char c = text_[at_];
      if (c == '%') {
        const auto byte = at_ + 2 < text_.size() ? number<unsigned char>(text_.substr(at_ + 1, 2), 16) : std::nullopt;
        if (!byte) refuse_at(at_, "a '%' that two hexadecimal digits do not follow; '%' itself is %25");
        if (*byte == 0) refuse_at(at_, "a NUL: nothing that is named here may have one");
        out += static_cast<char>(*byte);
        at_ += 3;
      } else if (unreserved(c) || allowed.find(c) != allowed.npos) {
        out += c;
        ++at_;
      } else {
        refuse_at(at_, "a character that must be written as % and two hexadecimal digits");
      }
    }
    return out;
  }

  const std::string_view text_;
  std::size_t at_{};
};

}  // namespace

std::optional<std::string> Url::take(std::string_view key) {
  known.push_back(key);
  const auto found = std::find_if(query.begin(), query.end(), [&](const auto& pair) { return pair.first == key; });
  if (found == query.end()) return std::nullopt;
  auto value = std::move(found->second);
  query.erase(found);
  return value;
}

void Url::take(std::string_view key, std::string& out) {
  if (auto value = take(key)) out = *std::move(value);
}

void Url::take(std::string_view key, int& out, int least, int most) {
  const auto text = take(key);
  if (!text) return;
  const auto value = number<int>(*text);
  if (!value || *value < least || *value > most)
    refuse(std::string(key) + " must be a number from " + std::to_string(least) + " to " + std::to_string(most));
  out = *value;
}

bool Url::take_second(std::string_view key, std::string_view first, std::string_view second) {
  const auto value = take(key);
  if (value && *value != first && *value != second)
    refuse(std::string(key) + " must be " + std::string(first) + " or " + std::string(second));
  return value == second;
}

std::string Url::meant(std::string_view key) const { return did_you_mean(key, known); }

void Url::expect_no_more() const {
  if (query.empty()) return;
  const auto& key = query.front().first;
  const auto near = meant(key);
  refuse("a store of the scheme \"" + printable(scheme, 40) + "\" has no setting \"" + printable(key, 80) + "\"" +
         (near.empty() ? "." : near) + (known.empty() ? " It has none." : " It has: " + listed(known)));
}

Url parse_url(std::string_view text) { return Parser(text).parse(); }

Url parse_url(const Opening& opening) {
  auto url = parse_url(opening.url);
  if (!opening.user.empty()) url.user = opening.user;
  if (!opening.password.empty()) url.password = opening.password;
  for (const auto& [key, value] : url.query)
    if (opening.properties.contains(key))
      refuse("the key \"" + printable(key, 80) + "\" stands in its query and in the properties; give it once");
  url.query.insert(url.query.end(), opening.properties.begin(), opening.properties.end());
  return url;
}

AskCredentials credentials_of(const Opening& opening, const Url& url) {
  if (!opening.credentials) return {};
  return [ask = opening.credentials, user = url.user, password = url.password] {
    auto found = ask();
    if (found.user.empty()) found.user = user;
    if (found.password.empty()) found.password = password;
    return found;
  };
}

std::optional<std::string> scheme_of(std::string_view text) {
  std::string out(text.substr(0, std::min(text.find(':'), text.size())));
  if (out.size() == text.size() || out.empty() || !letter(out[0]) || !std::ranges::all_of(out, of_scheme))
    return std::nullopt;
  return lower(out);
}

}  // namespace tenure
