// SPDX-License-Identifier: Apache-2.0
// For those who write a store or a backend: what a candidate tells others of itself, as one text. A store keeps it as
// it is and looks at nothing in it, so that a new field changes no store.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/export.hpp>
#include <tenure/token.hpp>

namespace tenure {

/// This version writes at most 700 bytes. A later one may add fields, and stays below this bound.
inline constexpr std::size_t max_who_bytes = 1000;

/// Of a candidate that checked() accepted. No two incarnations have the same text.
TENURE_EXPORT std::string who_text(const Candidate& self, std::string_view incarnation);

/// The texts of an Incumbent, and nothing else of it, such as "name=a;address=b:80;incarnation=0f12". It is ASCII
/// without blanks: a byte that is not plain is percent().
TENURE_EXPORT std::string who_text(const Incumbent& holder);

/// What who_text() wrote, as an Incumbent that has the texts alone. Fields that a later version added are skipped;
/// fields that an earlier one did not write are empty. Nothing if the text is too long, has a blank or another byte
/// that is not visible ASCII, or a field that is not as who_text() writes it.
TENURE_EXPORT std::optional<Incumbent> read_who(std::string_view who);

/// Who leads. It has no texts if read_who() reads none.
TENURE_EXPORT Incumbent incumbent_of(std::string_view who, Token token, Clock::Duration remaining);

}  // namespace tenure
