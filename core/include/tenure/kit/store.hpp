// SPDX-License-Identifier: Apache-2.0
// For those who write a store or a backend: what several of them say and check alike.
#pragma once
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string_view>

#include <tenure/conditional_store.hpp>
#include <tenure/credentials.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>
#include <tenure/kit/security.hpp>

namespace tenure {

/// The error of a forked child that asks what its parent opened. `opened` is such as "the store" or a path.
TENURE_EXPORT Error forked_child(std::string_view opened);

/// The error of a call for which no further connection could be made, since descriptors or threads have run out.
TENURE_EXPORT Error no_connection_left(const std::exception& why);

/// The error of a place of a record where something else stands. `where` is such as a key or a path, and printable.
TENURE_EXPORT Error no_record(std::string_view where);
/// The same where another release wrote a record in a format that this one does not know.
TENURE_EXPORT Error other_format(std::string_view where, std::string_view found, int known);

/// Of a record that somebody else wrote to. It counts as a version, and a claim writes it anew.
TENURE_EXPORT Read unreadable(Read read);

struct NoCredentials : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// What the user's function returns. Throws NoCredentials, with the reason and without the secrets, if it throws.
TENURE_EXPORT Credentials credentials_by(const AskCredentials& ask, const Redactor& redacted);

/// The longest term that a stored record may have, of whatever version. It is far above max_term, which a later version
/// may raise. A longer one shows that somebody else wrote the record, and it could overflow a Clock::Duration.
inline constexpr std::chrono::hours longest_stored_term{24 * 365};

}  // namespace tenure
