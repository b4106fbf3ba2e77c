// SPDX-License-Identifier: Apache-2.0
// What went wrong, as a value: its kind, and a message for people.
#pragma once
#include <string>
#include <string_view>

#include <tenure/export.hpp>
#include <tenure/kit/same_build.hpp>

namespace tenure {

/// What went wrong: the kinds of trouble that a caller may want to tell apart.
enum class Fault {
  unreachable,    ///< The store did not answer, or refused the connection.
  timed_out,      ///< The call ran into its limit. It may or may not have taken effect.
  wedged,         ///< A store call ignored its limit. Nothing more is sent to that backend until the call returns.
  fenced,         ///< The store will not renew again. The lease runs to its end, and others respect it until then.
  forbidden,      ///< The store refused us: wrong credentials, a missing privilege, or a read-only server.
  misconfigured,  ///< A setting here or in the store must change first. The message says which one, and to what.
  corrupt,        ///< The store holds something that cannot be right: an unknown format, or a token that fell.
  hook_threw,     ///< A hook or a task of yours threw.
  hook_overran,   ///< A hook of yours had not returned when its time was up.
};

TENURE_EXPORT std::string_view to_string(Fault) noexcept;  ///< In words: "timed out".

/// An error is a value and not an exception, because trouble with a store is expected.
struct Error {
  Fault fault{};
  std::string message{};  ///< Says what is wrong, where, and what would be right. Holds no secret.
  friend bool operator==(const Error&, const Error&) = default;
};

}  // namespace tenure
