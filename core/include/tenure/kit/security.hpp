// SPDX-License-Identifier: Apache-2.0
// Secrets stay out of messages, and users hear of connections on which others can read them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <tenure/export.hpp>

namespace tenure {

/// Takes secrets out of texts that somebody else wrote.
class TENURE_EXPORT Redactor {
 public:
  /// Empty secrets are ignored.
  explicit Redactor(std::vector<std::string> secrets);

  /// The text, with "***" in place of each secret.
  std::string operator()(std::string_view text) const;

 private:
  std::vector<std::string> secrets_;  ///< Longest first, for one may be a part of another.
};

/// True if what is sent to this host stays on this machine: localhost, 127.*, ::1, or a Unix socket, which is written
/// as nothing, as a path, or as '@' and a name.
TENURE_EXPORT bool loopback(std::string_view host);

/// The warning about a server over whose connection TLS does not watch. `server`: "broker kafka1". `remedy`: a
/// sentence.
TENURE_EXPORT std::string unprotected(std::string_view server, std::string_view remedy);

}  // namespace tenure
