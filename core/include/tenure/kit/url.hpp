// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: the URL that names a store, taken apart.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/export.hpp>
#include <tenure/open.hpp>

namespace tenure {

/// scheme://user:password@host:port,[::1]:port/path?key=value&key=value, or scheme:path. All but the scheme may be
/// missing. Everything is percent-decoded, except hosts, which need no such thing.
struct TENURE_EXPORT Url {
  struct Host {
    std::string name{};  ///< As written; an IPv6 address without its brackets.
    std::optional<std::uint16_t> port{};
    friend bool operator==(const Host&, const Host&) = default;
  };

  std::string scheme{};  ///< In lower case.
  std::string user{}, password{};
  std::vector<Host> hosts{};
  std::string path{};                                        ///< With its leading '/'; what follows the ':' if no '/'.
  std::vector<std::pair<std::string, std::string>> query{};  ///< In order, no key twice.

  /// The value of that key, which leaves the query.
  std::optional<std::string> take(std::string_view key);

  /// Throws std::invalid_argument if a key is left in the query: which, the nearest of `known`, and all of them.
  void expect_no_more(std::span<const std::string_view> known) const;
};

inline constexpr std::size_t max_url_bytes = 4096;

/// Strict: bytes that RFC 3986 does not allow unencoded, an empty or repeated part, a '#' or an '@' out of place are
/// refused. Throws std::invalid_argument saying what is wrong, at which byte, and what would be right. The message
/// repeats nothing of the text but a key of the query: a password that was not encoded can stand anywhere.
TENURE_EXPORT Url parse_url(std::string_view text);

/// parse_url() of the opening's URL, with the user, the password and the properties that stand beside it: the first
/// two replace those of the URL, the last are added to its query. Throws also for a key that is in both.
TENURE_EXPORT Url parse_url(const Opening& opening);

/// What stands before the first ':', in lower case, if a URL can begin so; of any other text nothing: it may be a
/// password.
TENURE_EXPORT std::optional<std::string> scheme_of(std::string_view text);

}  // namespace tenure
