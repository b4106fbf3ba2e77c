// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: the parts of the URL that names a store.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/export.hpp>
#include <tenure/open.hpp>

namespace tenure {

/// `scheme://user:password@host:port,[::1]:port/path?key=value&key=value`, or `scheme:path`. All but the scheme may be
/// missing. Every part is percent-decoded, except the hosts, which never need it.
struct TENURE_EXPORT Url {
  /// One of several hosts.
  struct Host {
    std::string name{};  ///< As written, but an IPv6 address without its brackets.
    std::optional<std::uint16_t> port{};
    friend bool operator==(const Host&, const Host&) = default;
  };

  std::string scheme{};  ///< In lower case.
  std::string user{}, password{};
  std::vector<Host> hosts{};
  std::string path{};                                        ///< With its first '/'. Of scheme:path, the text after it.
  std::vector<std::pair<std::string, std::string>> query{};  ///< In order, no key twice.

  std::vector<std::string_view> known{};  ///< The keys that take() was asked for.

  /// Removes the key from the query, and returns its value. REQUIRES: the key's text outlives this, as a literal does.
  std::optional<std::string> take(std::string_view key);
  /// The same into `out`, which stays as it is if there is no such key.
  void take(std::string_view key, std::string& out);
  /// The same of a number. Throws std::invalid_argument, which tells the bounds, for any other value.
  void take(std::string_view key, int& out, int least, int most);
  /// Whether the value is `second`; a missing one is `first`. Throws std::invalid_argument for any other value.
  bool take_second(std::string_view key, std::string_view first, std::string_view second);

  /// ", did you mean ...?", of the known keys.
  std::string meant(std::string_view key) const;

  /// Throws std::invalid_argument if a key is left in the query. The message names it, the nearest of the known ones,
  /// and all of them.
  void expect_no_more() const;
};

inline constexpr std::size_t max_url_bytes = 4096;

/// Refuses bytes that RFC 3986 does not allow unencoded, an empty or repeated part, and a '#' or an '@' in the wrong
/// place. It then throws std::invalid_argument, which says what is wrong, at which byte, and what would be right. Of
/// the text the message repeats only a key of the query, because a password that was not encoded can stand anywhere.
TENURE_EXPORT Url parse_url(std::string_view text);

/// Parses the opening's URL. The opening's user and password replace those of the URL, and its properties are added to
/// the query. Throws also if a key stands in both.
TENURE_EXPORT Url parse_url(const Opening& opening);

/// What the opening's credentials return, each time. What they leave empty is that of the URL, which parse_url()
/// returned for the same opening. Null: the opening has none.
TENURE_EXPORT AskCredentials credentials_of(const Opening& opening, const Url& url);

/// The options that `from` reads from the opening's URL. Credentials replace its user and password.
template <class Options>
Options options_of(const Opening& opening, Options (*from)(Url)) {
  const auto url = parse_url(opening);
  auto options = from(url);
  options.credentials = credentials_of(opening, url);
  if (options.credentials) options.user = options.password = {};
  return options;
}

/// The text before the first ':', in lower case, if a URL can begin with it. Nothing of any other text, because it may
/// be a password.
TENURE_EXPORT std::optional<std::string> scheme_of(std::string_view text);

}  // namespace tenure
