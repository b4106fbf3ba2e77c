// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <tenure/export.hpp>

namespace tenure {

/// What went wrong, as far as a caller can act on it.
enum class Fault {
  unreachable,    ///< The store did not answer, or refused the connection.
  timed_out,      ///< The call ended by its limit; it may or may not have taken effect.
  wedged,         ///< A store call ignored its limit: nothing more is sent to that seat until it returns.
  deposed,        ///< The store will renew no more; the lease still runs to its end, and others honour it.
  forbidden,      ///< The store refused us: credentials, a missing privilege, a read-only server.
  misconfigured,  ///< A setting here or at the store must change first. The message says which and to what.
  corrupt,        ///< What the store holds cannot be right: an unknown format, a token that fell.
  hook_threw,     ///< A hook or a task of yours threw.
  hook_overran,   ///< A hook of yours had not returned when its time was up.
};

TENURE_EXPORT std::string_view to_string(Fault) noexcept;

/// A value, not an exception: losing an election and trouble with a store are expected.
struct Error {
  Fault fault{};
  std::string message{};  ///< What, where, and what would be right. Never a secret.
  friend bool operator==(const Error&, const Error&) = default;
};

}  // namespace tenure
