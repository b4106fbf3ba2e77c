// SPDX-License-Identifier: Apache-2.0
// For those who write a backend: names that users choose, and incarnations.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <tenure/candidate.hpp>
#include <tenure/error.hpp>
#include <tenure/export.hpp>

namespace tenure {

/// The candidate, with a name if it had none. Throws std::invalid_argument if its name or address is too long.
TENURE_EXPORT Candidate checked(Candidate);

/// Throws std::invalid_argument for an election name that is empty, too long or has a NUL byte.
TENURE_EXPORT void check_election(std::string_view name);

/// Why a request to step down is refused, if it is.
TENURE_EXPORT std::optional<Error> refused_step_down(std::string_view by, std::string_view why);

/// 128 random bits of the kernel, as 32 hexadecimal digits.
TENURE_EXPORT std::string draw_incarnation();

}  // namespace tenure
