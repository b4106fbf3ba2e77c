// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: keeps secrets out of messages, and warns of connections without TLS.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <tenure/export.hpp>
#include <tenure/kit/same_build.hpp>

namespace tenure {

/// Takes secrets out of texts that somebody else wrote. Any thread may call it.
class TENURE_EXPORT Redactor {
 public:
  /// Empty secrets are ignored.
  explicit Redactor(std::vector<std::string> secrets);

  /// The text, with "***" in place of each secret.
  std::string operator()(std::string_view text) const;

 private:
  std::vector<std::string> secrets_;  ///< Longest first, for one may be a part of another.
};

/// Whether this host is this machine: localhost, 127.*, ::1, or a Unix socket. A Unix socket is written as an empty
/// text, as a path, or as '@' and a name.
TENURE_EXPORT bool loopback(std::string_view host);

/// The warning that TLS does not protect the connection to a server. `server` is such as "broker kafka1"; `remedy` is
/// a sentence.
TENURE_EXPORT std::string unprotected(std::string_view server, std::string_view remedy);

}  // namespace tenure
